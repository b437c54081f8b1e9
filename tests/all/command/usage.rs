//! Options, variables and settings, before anything is tried.

use longshore_tests::process::command;
use serde_json::json;

use super::{CANNOT_START, Ended, FAILED, USAGE, alone, text};

#[tokio::test]
async fn what_is_not_understood_is_refused_before_anything_is_done() {
    let rows: [(&[&str], &[&str]); 17] = [
        (&[], &["Usage"]),
        (&["serv"], &["serve"]),
        (&["--colour"], &["--colour"]),
        (&["serve", "--lisen", "127.0.0.1:0"], &["--listen"]),
        (&["serve", "--listen", "nowhere"], &["nowhere"]),
        (&["serve", "--listen", "127.0.0.1:70000"], &["70000"]),
        (&["serve", "--set", "grace_ms"], &["KEY=VALUE"]),
        (&["serve", "--set", "grace=1"], &["grace_ms"]),
        (&["serve", "--set", "grace_ms=soon"], &["grace_ms", "soon"]),
        (&["serve", "--set", "connections=0"], &["connections"]),
        (&["serve", "--listen", "localhost"], &["localhost:8383"]),
        (
            &["tasks", "list", "--status", "bad"],
            &["bad", "input_required"],
        ),
        (
            &["tasks", "list", "--cursor", "bad"],
            &["bad", "there are more"],
        ),
        (&["push"], &["FILE"]),
        (&["tasks"], &["Usage"]),
        (
            &["tasks", "answer", "x", "--decline", "--dismiss"],
            &["--decline"],
        ),
        (
            &["tasks", "list", "--server", "ftp://127.0.0.1:1"],
            &["http://"],
        ),
    ];
    for (arguments, words) in rows {
        alone(arguments).await.assert_failed(USAGE, words);
    }
    for (name, nearest) in [
        ("LONGSHORE_LISTN", "LONGSHORE_LISTEN"),
        ("LONGSHORE_ADMINTOKEN", "LONGSHORE_ADMIN_TOKEN"),
        ("LONGSHORE_GRACE_S", "LONGSHORE_GRACE_MS"),
        ("LONGSHORE_WHATEVER_ELSE", "--help"),
    ] {
        for arguments in [["serve", "--print-config"].as_slice(), &["tasks", "list"]] {
            let data = tempfile::tempdir().expect("a temporary folder can be made");
            let mut command = command(data.path());
            command.env(name, "1").args(arguments);
            Ended::of(command)
                .await
                .assert_failed(USAGE, &[name, nearest]);
        }
    }
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut bad = command(data.path());
    bad.env("LONGSHORE_GRACE_MS", "soon")
        .args(["serve", "--print-config"]);
    Ended::of(bad)
        .await
        .assert_failed(USAGE, &["LONGSHORE_GRACE_MS", "soon"]);
    assert_eq!(
        std::fs::read_dir(data.path()).expect("it is there").count(),
        0,
        "nothing was tried"
    );
}

#[tokio::test]
async fn settings_in_force_are_printed_with_their_source() {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut printing = command(data.path());
    printing
        .env("LONGSHORE_QUEUED", "7")
        .env("LONGSHORE_GRACE_MS", "5");
    printing.args(["serve", "--print-config", "--json", "--set", "grace_ms=9"]);
    let shown = Ended::of(printing).await;
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_eq!(
        shown.json()["grace_ms"],
        json!({ "value": 9, "source": "--set" })
    );
    assert_eq!(
        shown.json()["queued"],
        json!({ "value": 7, "source": "LONGSHORE_QUEUED" })
    );
    assert_eq!(shown.json()["header_s"]["source"], "default");
    let help = alone(&["serve", "--help"]).await;
    assert_eq!(help.code, 0);
    for key in shown
        .json()
        .as_object()
        .expect("settings are an object")
        .keys()
    {
        assert!(help.out.contains(key.as_str()), "{key} is not in the help");
    }
}

#[tokio::test]
async fn completions_are_ones_that_the_shell_takes() {
    for (shell, words) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef longshore"),
        ("fish", "complete -c longshore"),
    ] {
        let printed = alone(&["completions", shell]).await;
        assert_eq!((printed.code, printed.err.as_str()), (0, ""), "{shell}");
        assert!(printed.out.contains(words), "{shell}: {}", printed.out);
        for option in ["print-config", "inspect", "watch"] {
            assert!(printed.out.contains(option), "{shell} lacks {option}");
        }
        // The one that is on every machine that builds this.
        if shell == "bash" {
            let mut bash = tokio::process::Command::new("bash");
            bash.args(["-n", "-c", &printed.out]);
            let read = Ended::of(bash).await;
            assert_eq!((read.code, read.err.as_str()), (0, ""));
        }
    }
    alone(&["completions", "tcsh"])
        .await
        .assert_failed(USAGE, &["bash", "zsh", "fish"]);
}

#[tokio::test]
async fn help_says_what_the_codes_mean() {
    let help = alone(&["--help"]).await;
    assert_eq!(help.code, 0);
    for code in ["0  ", "1  ", "2  ", "3  ", "4  ", "130  "] {
        assert!(help.out.contains(&format!("\n  {code}")), "{}", help.out);
    }
}

#[tokio::test]
async fn named_files_are_read_up_to_their_bound_and_devices_not_at_all() {
    const NO_FILE: &str = "not a regular file";
    let rows: [(&[&str], i32); 5] = [
        (&["inspect", "/dev/zero"], FAILED),
        (&["run", "/dev/zero", "tool"], FAILED),
        (&["push", "/dev/zero"], FAILED),
        (&["replay", "/dev/zero"], FAILED),
        (
            &["serve", "--listen", "127.0.0.1:0", "/dev/zero"],
            CANNOT_START,
        ),
    ];
    for (arguments, code) in rows {
        alone(arguments).await.assert_failed(code, &[NO_FILE]);
    }
    let settings = alone(&["serve", "--print-config", "--config", "/dev/zero"]).await;
    settings.assert_failed(USAGE, &[NO_FILE, "/dev/zero"]);

    // Three gigabytes of nothing, of which nothing is read.
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let huge = folder.path().join("huge.wasm");
    let file = std::fs::File::create(&huge).expect("a file can be made");
    file.set_len(3 << 30).expect("it can have holes");
    let huge = text(&huge);
    alone(&["inspect", huge]).await.assert_failed(
        FAILED,
        &["(too-large)", "more than 33554432 bytes", "remedy: "],
    );
    let document = alone(&["inspect", huge, "--json"]).await.json();
    assert_eq!(document["error"]["reason"], "too-large", "{document}");
    for command in ["push", "replay"] {
        alone(&[command, huge])
            .await
            .assert_failed(FAILED, &["it has more than "]);
    }
}
