//! The client of fastmcp with fastmcp-tasks: it follows tasks without a word of them to whoever calls a tool, polls every
//! few milliseconds at first, and sends no `Mcp-Name` with requests about a task.

use longshore_tests::process::Options;

use super::cases::{self, GUESTS};
use super::script::{Language, Script, Way, count, names, tell_lacks};

const SCRIPT: Script = Script {
    language: Language::Python,
    file: "fastmcp_client.py",
    name: "fastmcp 4.1.4 with fastmcp-tasks 4.1.4",
    lacks: &[
        "subscriptions/listen: it polls",
        "code and data of a failed task whose call it follows: the message only",
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
    // MCP 2026-07-28, tasks extension, asks clients for the header; this one does not send it, and is served all the same.
    assert!(names(&said).iter().all(|(name, _)| name.is_none()));
    tell_lacks(SCRIPT.name, &["Mcp-Name on requests about a task"]);
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
