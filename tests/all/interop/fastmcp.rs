//! The client of fastmcp with fastmcp-tasks: it follows tasks without a word of them to whoever calls a tool, polls every
//! few milliseconds at first, and sends no `Mcp-Name` with requests about a task.

use longshore_tests::process::Options;

use super::cases;
use super::script::{Language, Script, names, tell_lacks};

const SCRIPT: Script = Script {
    language: Language::Python,
    file: "fastmcp_client.py",
    name: "fastmcp 4.1.4 with fastmcp-tasks 4.1.4",
    lacks: &[
        "subscriptions/listen: it polls",
        "code and data of a failed task whose call it follows: the message only",
    ],
};

fn options() -> Options {
    Options::with_guests(&cases::GUESTS)
}

#[tokio::test]
async fn lists_calls_polls_answers_and_cancels() {
    let said = SCRIPT.poll(options()).await;
    // MCP 2026-07-28, tasks extension, asks clients for the header; this one does not send it, and is served all the same.
    assert!(names(&said).iter().all(|(name, _)| name.is_none()));
    tell_lacks(SCRIPT.name, &["Mcp-Name on requests about a task"]);
}

#[tokio::test]
async fn holds_a_session_and_answers_in_it() {
    SCRIPT.hold_a_session(options()).await;
}

#[tokio::test]
async fn does_the_same_over_pipes() {
    SCRIPT.talk_over_pipes(&options()).await;
}
