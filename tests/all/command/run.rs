//! `run`: a tool called at the prompt, without a server.

use std::path::Path;
use std::time::{Duration, Instant};

use longshore_tests::component::{Act, Behaviour, Made, Mode};
use longshore_tests::guests;
use longshore_tests::process::{Options, Server, command};
use serde_json::{Value, json};
use tokio::process::Command;

use super::{CANCELLED, Ended, FAILED, USAGE, alone, fed, text};

#[tokio::test]
async fn a_tool_is_called_and_its_result_is_all_of_stdout() {
    let hello = guests::component("hello");
    let hello = text(&hello);
    let count = guests::component("count-words");
    let rows: [(&[&str], &str); 4] = [
        (
            &["run", hello, "hello", "--arg", "name=Ada"],
            "Hello, Ada!\n",
        ),
        // The only tool need not be named, and an equals sign is a character.
        (&["run", hello, "--arg", "name=a=b"], "Hello, a=b!\n"),
        (&["run", hello, "--arg", "name=12"], "Hello, 12!\n"),
        (
            &["run", hello, "--arguments", r#"{"name":"Bo"}"#],
            "Hello, Bo!\n",
        ),
    ];
    for (arguments, expected) in rows {
        let ended = alone(arguments).await;
        assert_eq!(
            (ended.code, ended.out.as_str(), ended.err.as_str()),
            (0, expected, ""),
            "{arguments:?}"
        );
    }
    let whole = alone(&["--json", "run", text(&count), "--arg", "text=one two"]).await;
    assert_eq!((whole.code, whole.err.as_str()), (0, ""), "{whole:?}");
    let result = whole.json();
    assert_eq!(result["resultType"], "complete", "{result}");
    assert!(result["content"].is_array(), "{result}");
    assert!(result["structuredContent"].is_object(), "{result}");
}

#[tokio::test]
async fn what_cannot_be_called_is_named_with_the_remedy() {
    let hello = guests::component("hello");
    let modes = guests::component("modes");
    let (hello, modes) = (text(&hello), text(&modes));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let core = folder.path().join("core.wasm");
    std::fs::write(&core, b"\0asm\x01\0\0\0").expect("it can be written");
    let missing = folder.path().join("missing.wasm");
    let rows: [(&[&str], i32, &[&str]); 10] = [
        (
            &["run", hello, "helo"],
            USAGE,
            &["\"helo\"", "it has hello"],
        ),
        // The nearest comes first.
        (
            &["run", modes, "modes-neve"],
            USAGE,
            &["it has modes-never, modes-"],
        ),
        (&["run", modes], USAGE, &["several tools", "modes-always"]),
        (
            &["run", modes, "modes-never", "--arg", "m=1"],
            USAGE,
            &["\"m\"", "ms"],
        ),
        (
            &["run", modes, "modes-never", "--arg", "ms=soon"],
            USAGE,
            &["ms takes a whole number"],
        ),
        (
            &["run", hello, "--arguments", "[]"],
            USAGE,
            &["JSON object"],
        ),
        (
            &["run", hello, "--arg", "name=a", "--arguments", "{}"],
            USAGE,
            &["cannot be used with"],
        ),
        (&["run", text(&missing)], FAILED, &["missing.wasm"]),
        (&["run", text(folder.path())], USAGE, &["longshore new"]),
        (
            &["run", text(&core)],
            FAILED,
            &["core-module", "longshore component new"],
        ),
    ];
    for (arguments, code, words) in rows {
        alone(arguments).await.assert_failed(code, words);
    }
    // What only the schema knows comes from the tool, which a model would correct.
    let lacking = alone(&["run", hello]).await;
    assert_eq!(lacking.code, FAILED, "{lacking:?}");
    assert!(lacking.out.contains("lacks the property"), "{lacking:?}");
}

#[tokio::test]
async fn failures_have_their_code_and_show_what_the_tool_printed() {
    let refusing = guests::component("tool-error");
    let told = alone(&["run", text(&refusing), "--arg", "message=no way"]).await;
    assert_eq!(
        (told.code, told.out.as_str()),
        (FAILED, "no way\n"),
        "{told:?}"
    );
    let panicking = guests::component("panic");
    let ended = alone(&["run", text(&panicking)]).await;
    assert_eq!((ended.code, ended.out.as_str()), (FAILED, ""), "{ended:?}");
    assert!(
        ended.err.contains("the call failed (trap)")
            && ended.err.contains("stderr\n  panic: this tool"),
        "{ended:?}"
    );
    let document = alone(&["--json", "run", text(&panicking)]).await.json();
    assert_eq!(document["error"]["reason"], "trap", "{document}");
}

/// The tool of one example with what is typed at its questions.
async fn asked(name: &str, typed: &str) -> Ended {
    fed(
        &["run", text(&guests::component(name)), "--ask", "always"],
        typed,
    )
    .await
}

#[tokio::test]
async fn questions_are_put_on_stderr_and_answered_on_stdin() {
    let ended = asked("ask-form", "Ada\nold\n151\n36\nblack\nGREEN\n").await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "Ada is 36 and chose green\n"),
        "{ended:?}"
    );
    // Each wrong answer is told and asked again, in the order of the form.
    let order = [
        "? Who are you?",
        "Ctrl-D declines",
        "name (string)",
        "age (integer from 0 to 150)",
        "a whole number",
        "age (integer from 0 to 150)",
        "this is more than 150",
        "age (integer from 0 to 150)",
        "choice (red | green | blue)",
        "takes red | green | blue",
        "choice (red | green | blue)",
    ];
    let mut rest = ended.err.as_str();
    for words in order {
        let at = rest.find(words);
        let at = at.unwrap_or_else(|| panic!("{words:?} is not where it should be: {ended:?}"));
        rest = &rest[at + words.len()..];
    }
    // The end of the input declines, wherever it comes.
    for typed in ["", "Ada\n", "Ada\nold\n"] {
        let ended = asked("ask-form", typed).await;
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (0, "the person declined to answer\n"),
            "{typed:?}: {ended:?}"
        );
    }
    // Several at once come one after the other.
    let ended = asked("ask-two", "Bo\ny\n").await;
    assert_eq!(ended.out, "name: \"Bo\", confirm: true\n", "{ended:?}");
}

#[tokio::test]
async fn nobody_is_asked_who_is_not_there() {
    let asking = guests::component("ask-form");
    for arguments in [
        &["run", text(&asking)][..],
        &["run", text(&asking), "--ask", "never"],
    ] {
        let ended = fed(arguments, "Ada\n36\ngreen\n").await;
        assert_eq!(ended.code, FAILED, "{ended:?}");
        assert!(!ended.err.contains("Who are you?"), "{ended:?}");
        assert!(ended.out.contains("cannot be asked"), "{ended:?}");
    }
}

#[tokio::test]
async fn native_code_is_shared_with_a_server_and_kept_nowhere_else() {
    let hello = guests::component("hello");
    let run = |data: &Path| {
        let mut command = command(data);
        command.args(["run", text(&hello), "--arg", "name=x"]);
        Ended::of(command)
    };
    let home = tempfile::tempdir().expect("a temporary folder can be made");
    let nowhere = home.path().join("nowhere");
    assert_eq!(run(&nowhere).await.code, 0);
    assert!(!nowhere.exists(), "nothing was asked to be kept");

    let mut server = Server::start(Options::default()).await;
    server.terminate().await;
    let kept = || {
        let artifacts = server.data().join("artifacts");
        let entries = std::fs::read_dir(artifacts).expect("a server has made it");
        let times = entries.map(|entry| {
            let entry = entry.expect("it can be read");
            (
                entry.file_name(),
                entry
                    .metadata()
                    .and_then(|file| file.modified())
                    .expect("it has a time"),
            )
        });
        times.collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = kept();
    assert_eq!(run(server.data()).await.code, 0);
    let after = kept();
    assert_eq!(after.len(), before.len() + 1, "{after:?}");
    // Compiled once.
    assert_eq!(run(server.data()).await.code, 0);
    assert_eq!(kept(), after);
}

/// The program on a terminal, with what is typed when something has been said.
async fn on_terminal(script: &[(&str, &str)], arguments: &[&str]) -> (i64, String) {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut python = Command::new("python3");
    python
        .arg(guests::root().join("tests/clients/terminal.py"))
        .arg(json!(script).to_string())
        .arg(guests::longshore())
        .args(arguments)
        .env("LONGSHORE_DATA", data.path());
    let ended = Ended::of(python).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let document = ended.json();
    assert_eq!(document["untyped"], Value::Null, "{document}");
    let said = document["said"].as_str().expect("it is text").to_owned();
    (document["code"].as_i64().expect("it is a number"), said)
}

#[tokio::test]
async fn a_terminal_shows_progress_and_puts_questions() {
    let job = guests::component("long-job");
    let (code, said) = on_terminal(
        &[("working 50 %: step 2 of 4", "")],
        &[
            "run",
            text(&job),
            "--arg",
            "steps=4",
            "--arg",
            "step-ms=600",
        ],
    )
    .await;
    assert_eq!(code, 0, "{said}");
    // The line is taken away before the result comes.
    assert!(said.ends_with("\r\u{1b}[Kdone: 4 steps\r\n"), "{said:?}");

    // A call that never becomes a task says the same.
    let mut made = Made::with_tool("held");
    made.tools[0].mode = Mode::Never;
    made.call = Behaviour::Does(&[Act::Progress(1.0, Some(4.0)), Act::Sleep(2_000)]);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let held = folder.path().join("held.wasm");
    std::fs::write(&held, made.bytes()).expect("it can be written");
    let (code, said) = on_terminal(&[("working 25 %", "")], &["run", text(&held)]).await;
    assert_eq!(code, 0, "{said}");

    let asking = guests::component("ask-form");
    let typed = [
        ("name (string)", "Ada\n"),
        ("age (integer", "36\n"),
        ("choice (red", "red\n"),
    ];
    let (code, said) = on_terminal(&typed, &["run", text(&asking)]).await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Ada is 36 and chose red"), "{said:?}");
    // Ctrl-D declines on a terminal too.
    let (_, said) = on_terminal(&[("name (string)", "\u{4}")], &["run", text(&asking)]).await;
    assert!(said.contains("the person declined to answer"), "{said:?}");
}

#[tokio::test]
async fn ctrl_c_cancels_and_a_second_one_stops_at_once() {
    const INTERRUPT: &str = "\u{3}";
    let job = guests::component("long-job");
    let long = [
        "run",
        text(&job),
        "--arg",
        "steps=1000",
        "--arg",
        "step-ms=50",
    ];
    let asking = guests::component("ask-form");
    let never = guests::component("modes");
    let held = ["run", text(&never), "modes-never", "--arg", "ms=100000"];
    let rows: [(&str, &[&str]); 3] = [
        ("of 1000", &long),
        ("age (integer", &["run", text(&asking)]),
        ("working", &held),
    ];
    for (when, arguments) in rows {
        let typed = [("name (string)", "Ada\n"), (when, INTERRUPT)];
        let typed = if when.starts_with("age") {
            &typed[..]
        } else {
            &typed[1..]
        };
        let (code, said) = on_terminal(typed, arguments).await;
        assert_eq!(code, i64::from(CANCELLED), "{when}: {said:?}");
        assert!(said.contains("the call was cancelled"), "{when}: {said:?}");
    }

    // It sees that it is cancelled, and goes on.
    let mut made = Made::with_tool("stays");
    made.tools[0].mode = Mode::Always;
    made.call = Behaviour::SleepsAndLoops(3_600_000);
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("stays.wasm");
    std::fs::write(&file, made.bytes()).expect("it can be written");
    let typed = [("working", INTERRUPT), ("stopping", INTERRUPT)];
    let grace = [
        "--set",
        "grace_ms=3600000",
        "--set",
        "limits.cpu_ms=3600000",
    ];
    let started = Instant::now();
    let (code, said) = on_terminal(&typed, &[&["run", text(&file)][..], &grace].concat()).await;
    assert_eq!(code, i64::from(CANCELLED), "{said:?}");
    assert!(started.elapsed() < Duration::from_secs(60), "{said:?}");
}
