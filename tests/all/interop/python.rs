//! The client of the Python SDK, in an environment of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longshore_tests::guests;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};
use tokio::process::Command;

/// The package, at the version that the script was written for.
const PACKAGE: &str = "mcp==2.3.0";

/// Runs a program to its end and gives back what it printed.
async fn output(mut command: Command, what: &str, most: Duration) -> String {
    let output = tokio::time::timeout(most, command.kill_on_drop(true).output()).await;
    let output = output.unwrap_or_else(|_| panic!("{what}: not within {most:?}"));
    let output =
        output.unwrap_or_else(|error| panic!("{what}: {error}; the tests need Python 3 with venv"));
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{what}: {}\n{out}\n{err}",
        output.status
    );
    out.into_owned()
}

/// An interpreter that has the package: made once, and used again by the next run.
async fn python() -> PathBuf {
    let target = guests::longshore();
    let target = target
        .parent()
        .and_then(Path::parent)
        .expect("the program lies in target/PROFILE");
    let name = format!("python-{}", PACKAGE.replace("==", "-"));
    let (made, interpreter) = (target.join(&name), target.join(&name).join("bin/python"));
    if made.join("whole").exists() {
        return interpreter;
    }
    // A folder that an earlier run left half made is no use.
    let _it_may_not_be_there = std::fs::remove_dir_all(&made);
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(&made);
    output(
        venv,
        "making a Python environment",
        Duration::from_secs(120),
    )
    .await;
    let mut pip = Command::new(&interpreter);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        PACKAGE,
    ]);
    output(
        pip,
        &format!("installing {PACKAGE} from the package index"),
        Duration::from_secs(300),
    )
    .await;
    std::fs::write(made.join("whole"), PACKAGE).expect("it can be written");
    interpreter
}

#[tokio::test]
async fn lists_calls_follows_answers_and_cancels() {
    let interpreter = python().await;
    let names = ["hello", "tool-error", "panic", "long-job", "ask-form"];
    let server = Server::start(Options::with_guests(&names).set("deadline_ms", 4_000)).await;
    let mut script = Command::new(interpreter);
    script
        .arg(guests::root().join("tests/clients/python_mcp.py"))
        .arg(format!("http://{}/mcp", server.address));
    let printed = output(script, "the Python client", Duration::from_secs(120)).await;
    let seen: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let expected = [
        json!({ "what": "list", "tools": ["ask-form", "hello", "long-job", "panic", "tool-error"] }),
        json!({ "what": "call", "texts": ["Hello, Ada!"], "isError": false, "seen": [] }),
        json!({ "what": "error", "texts": ["no luck"], "isError": true, "seen": [] }),
        json!({ "what": "misfit", "texts": [seen[3]["texts"][0]], "isError": true, "seen": [] }),
        json!({ "what": "broken", "code": 1000, "data": { "reason": "trap" } }),
        json!({ "what": "task", "texts": ["done: 3 steps"], "isError": false, "seen": ["working", "completed"] }),
        json!({ "what": "accept", "texts": ["Ada is 36 and chose green"], "isError": false, "seen": seen[6]["seen"] }),
        json!({ "what": "decline", "texts": ["the person declined to answer"], "isError": false, "seen": seen[7]["seen"] }),
        json!({ "what": "cancel", "status": "cancelled", "error": null, "seen": ["working", "cancelled"] }),
        json!({ "what": "expire", "status": "failed", "error": seen[9]["error"], "seen": ["working", "failed"] }),
    ];
    assert_eq!(seen, expected);
    assert!(
        seen[3]["texts"][0]
            .as_str()
            .is_some_and(|text| text.contains("/name")),
        "{}",
        seen[3]
    );
    // Between the answer and the end the task may be seen at work again, or not.
    for asked in [&seen[6], &seen[7]] {
        let states = asked["seen"].as_array().expect("states are a list");
        assert!(
            states.starts_with(&[json!("working"), json!("input_required")]),
            "{asked}"
        );
        assert_eq!(states.last(), Some(&json!("completed")), "{asked}");
    }
    assert_eq!(seen[9]["error"]["data"], json!({ "reason": "expired" }));
}
