//! The client of the Python SDK, which an extension of forty lines teaches tasks.

use longshore_tests::process::Options;

use super::cases::{self, GUESTS};
use super::script::{Language, Script, Way, count, names};

const SCRIPT: Script = Script {
    language: Language::Python,
    file: "mcp_sdk.py",
    name: "mcp 2.3.0",
    lacks: &[
        "task ids in subscriptions/listen: it polls",
        "tasks of its own: a call is held unless an extension is written for it",
    ],
};

#[tokio::test]
async fn lists_calls_polls_answers_and_cancels() {
    let said = SCRIPT
        .drive(Way::POLLING, Options::with_guests(&GUESTS))
        .await;
    let cases = cases::all();
    assert!(count(&said, "tasks/get") >= cases::tasks(&cases));
    assert_eq!(count(&said, "tasks/update"), cases::questions(&cases));
    assert_eq!(count(&said, "tasks/cancel"), 1);
    for (name, id) in names(&said) {
        assert_eq!(name, id);
    }
}

/// Without tasks, in a session: what is asked comes on the call's own stream.
#[tokio::test]
async fn holds_a_session_and_answers_in_it() {
    let said = SCRIPT
        .drive(Way::SESSION, Options::with_guests(&GUESTS))
        .await;
    assert_eq!(count(&said, "initialize"), 1);
    assert_eq!(count(&said, "tools/call"), cases::held().len());
}

#[tokio::test]
async fn does_the_same_over_pipes() {
    for way in [Way::PIPES, Way::SESSION_ON_PIPES] {
        SCRIPT.drive(way, Options::with_guests(&GUESTS)).await;
    }
}
