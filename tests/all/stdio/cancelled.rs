//! Requests that their client gives up, as early as it can, and clients that read no more.

use longshore_tests::pipes::{Pipes, data};
use longshore_tests::session::{NEWEST, notification};
use serde_json::{Value, json};

use super::{alone, call};

/// A call that takes long, its cancellation, and a short one of the same id, written at once.
fn at_once(long: &Value, short: &Value) -> String {
    let request = |params: &Value| json!({ "jsonrpc": "2.0", "id": "again", "method": "tools/call", "params": params });
    let cancelled = notification("notifications/cancelled", json!({ "requestId": "again" }));
    [request(long), cancelled, request(short)]
        .iter()
        .map(|message| format!("{message}\n"))
        .collect()
}

#[tokio::test]
async fn a_request_can_be_cancelled_as_soon_as_it_is_written_and_its_id_used_again() {
    let data = data();
    let mut first = Pipes::start(data.path(), &["hello", "long-job"]);
    first.open(NEWEST, json!({})).await;
    let mut second = Pipes::start(data.path(), &[]);
    second.open(NEWEST, json!({})).await;
    let long = call("long-job", &json!({ "steps": 1_000, "step-ms": 100 }));
    let mut held = alone(long.clone());
    held["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let short = call("hello", &json!({ "name": "Ada" }));
    for (long, short) in [(long, short.clone()), (held, alone(short))] {
        for pipes in [&mut first, &mut second] {
            for round in 0..20 {
                pipes.write(at_once(&long, &short)).await;
                let said = pipes.until(&json!("again")).await;
                let answer = said.last().expect("the response is the last");
                assert_eq!(
                    answer["result"]["content"][0]["text"], "Hello, Ada!",
                    "round {round}: {said:?}"
                );
            }
        }
    }
    for mut pipes in [second, first] {
        let (said, code) = pipes.end().await;
        let answered: Vec<&Value> = said.iter().filter(|said| !said["id"].is_null()).collect();
        assert!(answered.is_empty(), "{answered:?}");
        assert_eq!(code, Some(0), "{}", pipes.errors());
    }
}

#[tokio::test]
async fn it_ends_when_nobody_reads_what_it_says() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["long-job"]);
    let created = pipes
        .result(
            "tools/call",
            alone(call("long-job", &json!({ "steps": 40, "step-ms": 50 }))),
        )
        .await;
    let listens = json!({ "notifications": { "taskIds": [created["taskId"]] } });
    pipes.ask("subscriptions/listen", alone(listens)).await;
    assert!(pipes.next().await.is_some());
    // Its input stays open, and says nothing more.
    pipes.read_no_more();
    assert_eq!(pipes.exit().await, Some(0), "{}", pipes.errors());
    let mut next = Pipes::start(data.path(), &["long-job"]);
    let result = loop {
        let task = alone(json!({ "taskId": created["taskId"] }));
        let task = next.result("tasks/get", task).await;
        if task["status"] != "working" {
            break task;
        }
    };
    assert_eq!(
        result["result"]["content"][0]["text"], "done: 40 steps",
        "{result}"
    );
}
