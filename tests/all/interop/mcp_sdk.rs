//! The client of the Python SDK, which an extension of forty lines teaches tasks.

use longshore_tests::process::Options;

use super::cases;
use super::script::{Language, Script, names};

const SCRIPT: Script = Script {
    language: Language::Python,
    file: "mcp_sdk.py",
    name: "mcp 2.3.0",
    lacks: &[
        "task ids in subscriptions/listen: it polls",
        "tasks of its own: a call is held unless an extension is written for it",
    ],
};

fn options() -> Options {
    Options::with_guests(&cases::GUESTS)
}

#[tokio::test]
async fn lists_calls_polls_answers_and_cancels() {
    for (name, id) in names(&SCRIPT.poll(options()).await) {
        assert_eq!(name, id);
    }
}

#[tokio::test]
async fn holds_a_session_and_answers_in_it() {
    SCRIPT.hold_a_session(options()).await;
}

#[tokio::test]
async fn does_the_same_over_pipes() {
    SCRIPT.talk_over_pipes(&options()).await;
}
