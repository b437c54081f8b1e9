//! Where a request belongs in its caller's trace stands in the log beside what is said of its run.

use std::time::Duration;

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, Session};
use longshore_tests::wait;
use serde_json::{Value, json};

/// A trace of that number.
fn parent(number: u32) -> String {
    format!("00-{number:032x}-00f067aa0ba902b7-01")
}

/// Parameters with that in their `_meta`.
fn with(parent: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "traceparent": parent });
    params
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

#[tokio::test]
async fn every_run_is_found_by_the_trace_that_it_belongs_to() {
    let options = Options {
        variables: vec![(
            "LONGSHORE_LOG".to_owned(),
            "longshore_server=debug".to_owned(),
        )],
        ..Options::with_guests(&["conformance", "hello"])
    };
    let server = Server::start(options).await;
    let (plain, able) = (Client::plain(server.address), server.client());
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let hello = || call("hello", &json!({ "name": "Ada" }));

    // Each under a trace of its own, and what the run is of.
    plain.result("tools/call", with(&parent(1), hello())).await;
    let slow = call("slow_compute", &json!({ "seconds": 0.01 }));
    let task = able
        .result("tools/call", with(&parent(2), slow.clone()))
        .await;
    able.until_ended(task["taskId"].as_str().expect("a task has an id"))
        .await;
    let read = json!({ "uri": "test://template/7/data" });
    plain.result("resources/read", with(&parent(3), read)).await;
    let get = json!({ "name": "test_simple_prompt" });
    plain.result("prompts/get", with(&parent(4), get)).await;
    session
        .result("tools/call", with(&parent(5), hello()))
        .await;
    let mut of_a_session = with(&parent(6), slow);
    of_a_session["task"] = json!({});
    session.result("tools/call", of_a_session).await;
    let targets = [
        (1, "hello"),
        (2, "slow_compute"),
        (3, "test://template/7/data"),
        (4, "test_simple_prompt"),
        (5, "hello"),
        (6, "slow_compute"),
    ];
    for (number, target) in targets {
        let what = format!("trace {number} in the log");
        wait::until(&what, Duration::from_secs(30), || async {
            let log = server.errors();
            let traced = format!("traceparent=\"{}\"", parent(number));
            let mut lines = log.lines().filter(|line| line.contains(&traced));
            lines.any(|line| line.contains(target)).then_some(())
        })
        .await;
    }

    // What is none goes nowhere, and fails nothing.
    let forged = "00-0-0-00\nERROR forged";
    plain.result("tools/call", with(forged, hello())).await;
    plain.result("tools/call", with(&parent(7), hello())).await;
    wait::until("the last in the log", Duration::from_secs(30), || async {
        server.errors().contains(&parent(7)).then_some(())
    })
    .await;
    assert!(!server.errors().contains("forged"), "{}", server.errors());
}
