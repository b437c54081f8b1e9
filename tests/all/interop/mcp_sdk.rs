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
