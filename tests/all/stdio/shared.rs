//! Several processes on one data directory: the first serves, the others pass on.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use longshore_tests::pipes::{Pipes, data};
use longshore_tests::process::{Options, Server};
use longshore_tests::session::NEWEST;
use rustix::process::Signal;
use serde_json::json;

use super::{alone, call};

#[tokio::test]
async fn a_second_one_passes_on_to_the_first() {
    let data = data();
    let mut first = Pipes::start(data.path(), &["hello", "ask-any"]);
    first.open(NEWEST, json!({ "elicitation": {} })).await;
    let socket = std::fs::metadata(data.path().join("stdio.sock")).expect("there is a socket");
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let mut second = Pipes::start(data.path(), &["hello"]);
    let opened = second.open(NEWEST, json!({ "elicitation": {} })).await;
    assert_eq!(opened["result"]["protocolVersion"], NEWEST);
    // Each has a session of its own, and is asked on its own pipes.
    let asks = second
        .ask("tools/call", call("ask-any", &json!({ "way": "form" })))
        .await;
    let question = loop {
        let message = second.next().await.expect("it asks");
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let result = first
        .result("tools/call", call("hello", &json!({ "name": "Ada" })))
        .await;
    assert_eq!(result["content"][0]["text"], "Hello, Ada!");
    second
        .say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } }))
        .await;
    let response = second.until(&json!(asks)).await.pop().expect("the last");
    assert_eq!(response["result"]["content"][0]["text"], "declined");
    // The end of one is not the end of the other.
    second.ask("ping", json!({})).await;
    let (said, code) = second.end().await;
    assert_eq!(
        (said.len(), code),
        (1, Some(0)),
        "{said:?} {}",
        second.errors()
    );
    assert!(
        second
            .errors()
            .contains("another longshore serves this data"),
        "{}",
        second.errors()
    );
    assert_eq!(first.result("ping", json!({})).await, json!({}));
    assert_eq!(first.end().await.1, Some(0));
    assert!(!data.path().join("stdio.sock").exists());
}

#[tokio::test]
async fn when_the_first_one_dies_the_second_says_so_and_ends() {
    let data = data();
    for signal in [Signal::KILL, Signal::TERM] {
        let mut first = Pipes::start(data.path(), &["hello"]);
        first.open(NEWEST, json!({})).await;
        let mut second = Pipes::start(data.path(), &[]);
        second.open(NEWEST, json!({})).await;
        first.signal(signal);
        first.exit().await;
        assert_eq!(second.exit().await, Some(3), "{}", second.errors());
        assert!(second.errors().contains("has ended"), "{}", second.errors());
        // What a dead one left behind is in nobody's way.
    }
    let mut third = Pipes::start(data.path(), &["hello"]);
    third.open(NEWEST, json!({})).await;
    assert_eq!(third.end().await.1, Some(0));
}

#[tokio::test]
async fn who_comes_while_one_ends_is_served_by_the_next() {
    let data = data();
    // However the end of one falls together with the start of the other.
    for _ in 0..10 {
        let mut first = Pipes::start(data.path(), &["hello"]);
        first.open(NEWEST, json!({})).await;
        let ending = first.end();
        let second = async {
            let mut second = Pipes::start(data.path(), &["hello"]);
            let opened = second.open(NEWEST, json!({})).await;
            assert_eq!(opened["result"]["protocolVersion"], NEWEST);
            second.end().await.1
        };
        let ((_, first), second) = tokio::join!(ending, second);
        assert_eq!(first, Some(0));
        // It was served by itself, or to its first answer by the one that ended then.
        assert!(matches!(second, Some(0 | 3)), "{second:?}");
    }
}

#[tokio::test]
async fn a_server_over_http_is_passed_on_to_as_well() {
    let data = Arc::new(data());
    let server = Server::start_in(
        Arc::clone(&data),
        Options::with_guests(&["hello", "long-job"]),
    )
    .await;
    let mut pipes = Pipes::start(data.path(), &[]);
    let job = json!({ "steps": 3, "step-ms": 100 });
    let created = pipes
        .result("tools/call", alone(call("long-job", &job)))
        .await;
    let id = created["taskId"].as_str().expect("a task has an id");
    // It is one server, whichever way it is asked.
    assert_eq!(server.client().until_ended(id).await["status"], "completed");
    assert_eq!(pipes.end().await.1, Some(0));
}

#[tokio::test]
async fn it_listens_beside_its_pipes_only_where_it_is_told_to() {
    let data = data();
    let mut pipes = Pipes::start_with(data.path(), &["--listen", "127.0.0.1:0", "--json"]);
    pipes.open(NEWEST, json!({})).await;
    let at = longshore_tests::wait::until(
        "it to say where it is",
        std::time::Duration::from_secs(60),
        || async {
            let errors = pipes.errors();
            let (_, rest) = errors.split_once("ready at http://")?;
            rest.split_once("/mcp")
                .map(|(address, _)| address.to_owned())
        },
    )
    .await;
    let client = longshore_tests::mcp::Client::plain(at.parse().expect("an address"));
    let listed = client.result("tools/list", json!({})).await;
    assert!(listed["tools"].is_array());
    assert_eq!(pipes.end().await.1, Some(0));
}
