//! MCP over pipes: both eras, whatever is written, and processes that share one data directory.

mod cancelled;
mod faults;
mod shared;

use longshore_tests::pipes::{Pipes, data};
use longshore_tests::session::{NEWEST, OLDEST, notification};
use rustix::process::Signal;
use serde_json::{Value, json};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Parameters of a request that says all that is needed.
fn alone(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {},
            "extensions": { TASKS: {} },
        },
    });
    params
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

#[tokio::test]
async fn the_first_message_says_which_rules_hold() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["hello"]);
    // Nothing before it is understood, and nothing is broken by that.
    pipes
        .say(&notification("notifications/initialized", json!({})))
        .await;
    pipes
        .say(&notification(
            "notifications/cancelled",
            json!({ "requestId": 7 }),
        ))
        .await;
    pipes
        .say(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} }))
        .await;
    let early = pipes.response("tools/list", json!({})).await;
    assert_eq!(early["error"]["code"], -32602, "{early}");
    let found = pipes.result("server/discover", alone(json!({}))).await;
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    let result = pipes
        .result(
            "tools/call",
            alone(call("hello", &json!({ "name": "Ada" }))),
        )
        .await;
    assert_eq!(
        (&result["resultType"], &result["content"][0]["text"]),
        (&json!("complete"), &json!("Hello, Ada!"))
    );

    let opened = pipes.open(OLDEST, json!({})).await;
    assert_eq!(opened["result"]["protocolVersion"], OLDEST);
    assert_eq!(pipes.result("ping", json!({})).await, json!({}));
    let result = pipes
        .result("tools/call", call("hello", &json!({ "name": "Ada" })))
        .await;
    assert_eq!(
        result,
        json!({ "content": [{ "type": "text", "text": "Hello, Ada!" }] })
    );
    // A request that names its revision says all that is needed, here as elsewhere.
    let result = pipes.result("tools/list", alone(json!({}))).await;
    assert_eq!(result["resultType"], "complete");
    let twice = pipes
        .response(
            "initialize",
            json!({ "protocolVersion": NEWEST, "capabilities": {} }),
        )
        .await;
    assert_eq!(twice["error"]["code"], -32600, "{twice}");
    let (said, code) = pipes.end().await;
    assert!(
        said.iter()
            .all(|message| message["method"] == "notifications/tools/list_changed"),
        "{said:?}"
    );
    assert_eq!(code, Some(0), "{}", pipes.errors());
}

#[tokio::test]
async fn what_guests_print_is_no_message() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["flood", "panic"]);
    pipes.open(NEWEST, json!({})).await;
    // Each line that comes is read as a message.
    let flooded = pipes
        .response("tools/call", call("flood", &json!({ "bytes": 100_000 })))
        .await;
    assert!(
        flooded.get("result").is_some() || flooded["error"]["code"].is_i64(),
        "{flooded}"
    );
    let broken = pipes
        .response("tools/call", call("panic", &json!({})))
        .await;
    assert_eq!(broken["error"]["data"]["reason"], "trap", "{broken}");
    assert_eq!(pipes.end().await.1, Some(0));
}

#[tokio::test]
async fn answers_come_as_they_are_ready_and_questions_between_them() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["ask-any", "hello"]);
    pipes
        .open(NEWEST, json!({ "elicitation": {}, "roots": {} }))
        .await;
    let asks = pipes
        .ask("tools/call", call("ask-any", &json!({ "way": "form" })))
        .await;
    let question = loop {
        let message = pipes.next().await.expect("it goes on");
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    // It waits, and others do not.
    let result = pipes
        .result("tools/call", call("hello", &json!({ "name": "Ada" })))
        .await;
    assert_eq!(result["content"][0]["text"], "Hello, Ada!");
    // An answer that is none leaves it waiting.
    pipes
        .say(&json!({ "jsonrpc": "2.0", "id": 999, "result": {} }))
        .await;
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    pipes
        .say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }))
        .await;
    let response = pipes.until(&json!(asks)).await.pop().expect("the last");
    assert_eq!(
        response["result"]["content"][0]["text"],
        r#"accepted {"name":"Ada"}"#
    );
    assert_eq!(pipes.end().await.1, Some(0));
}

#[tokio::test]
async fn progress_and_logs_are_told_and_a_cancelled_request_is_not_answered() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["conformance", "long-job"]);
    pipes.open(NEWEST, json!({})).await;
    pipes
        .result("logging/setLevel", json!({ "level": "info" }))
        .await;
    let mut params = call("test_tool_with_progress", &json!({}));
    params["_meta"] = json!({ "progressToken": "p" });
    let id = pipes.ask("tools/call", params).await;
    let said = pipes.until(&json!(id)).await;
    let progress: Vec<&Value> = said
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| &message["params"]["progress"])
        .collect();
    assert_eq!(progress, [0, 50, 100]);
    let id = pipes
        .ask("tools/call", call("test_tool_with_logging", &json!({})))
        .await;
    let said = pipes.until(&json!(id)).await;
    let lines: Vec<&Value> = said
        .iter()
        .filter(|message| message["method"] == "notifications/message")
        .map(|message| &message["params"]["data"])
        .collect();
    assert_eq!(
        lines,
        [
            "Tool execution started",
            "Tool processing data",
            "Tool execution completed"
        ]
    );

    let long = json!({ "steps": 1_000, "step-ms": 100 });
    // In either era: nothing is said of it any more.
    let held = pipes.ask("tools/call", call("long-job", &long)).await;
    let mut alone = alone(call("long-job", &long));
    alone["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let other = pipes.ask("tools/call", alone).await;
    for id in [held, other] {
        pipes
            .say(&notification(
                "notifications/cancelled",
                json!({ "requestId": id, "reason": "enough" }),
            ))
            .await;
    }
    assert_eq!(pipes.result("ping", json!({})).await, json!({}));
    let (said, code) = pipes.end().await;
    assert!(
        said.iter().all(|message| message.get("id").is_none()),
        "{said:?}"
    );
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn tasks_are_pushed_to_whoever_listens() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["ask-form"]);
    let created = pipes
        .result("tools/call", alone(call("ask-form", &json!({}))))
        .await;
    assert_eq!(created["resultType"], "task", "{created}");
    let task = created["taskId"].clone();
    let listens = pipes
        .ask(
            "subscriptions/listen",
            alone(json!({ "notifications": { "taskIds": [task], "toolsListChanged": true } })),
        )
        .await;
    let of_it = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == json!(listens)
    };
    let acknowledged = pipes.next().await.expect("it is acknowledged");
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        acknowledged["params"]["notifications"]["taskIds"],
        json!([task])
    );
    assert!(of_it(&acknowledged));
    let key = loop {
        let told = pipes.next().await.expect("it is told");
        assert!(of_it(&told), "{told}");
        if told["params"]["status"] == "input_required" {
            let requests = told["params"]["inputRequests"]
                .as_object()
                .expect("an object");
            break requests.keys().next().expect("it asks").clone();
        }
    };
    let update = json!({ "taskId": task, "inputResponses": { key: { "action": "decline" } } });
    let id = pipes.ask("tasks/update", alone(update)).await;
    let mut is_acknowledged = false;
    loop {
        let told = pipes.next().await.expect("it is told");
        is_acknowledged |= told["id"] == json!(id);
        if told["params"]["status"] == "completed" {
            assert_eq!(
                told["params"]["result"]["content"][0]["text"],
                "the person declined to answer"
            );
            break;
        }
    }
    if !is_acknowledged {
        pipes.until(&json!(id)).await;
    }
    pipes
        .say(&notification(
            "notifications/cancelled",
            json!({ "requestId": listens }),
        ))
        .await;
    let (said, code) = pipes.end().await;
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn the_end_of_input_ends_it_and_tasks_go_on_with_the_next() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["long-job"]);
    let job = json!({ "steps": 4, "step-ms": 300 });
    let created = pipes
        .result("tools/call", alone(call("long-job", &job)))
        .await;
    let task = created["taskId"].clone();
    // What was asked last is answered, what is held is given up.
    pipes.ask("tools/list", alone(json!({}))).await;
    let (said, code) = pipes.end().await;
    assert_eq!(code, Some(0), "{}", pipes.errors());
    assert!(
        said.iter()
            .any(|message| message["result"]["tools"].is_array()),
        "{said:?}"
    );
    let mut pipes = Pipes::start(data.path(), &["long-job"]);
    let result = loop {
        let task = pipes
            .result("tasks/get", alone(json!({ "taskId": task })))
            .await;
        if task["status"] != "working" {
            break task;
        }
    };
    assert_eq!(
        result["result"]["content"][0]["text"], "done: 4 steps",
        "{result}"
    );
    // Told to stop, it ends as well, and tells those who listen.
    let listens = pipes
        .ask(
            "subscriptions/listen",
            alone(json!({ "notifications": { "toolsListChanged": true } })),
        )
        .await;
    assert_eq!(
        pipes.next().await.expect("acknowledged")["method"],
        "notifications/subscriptions/acknowledged"
    );
    pipes.signal(Signal::TERM);
    let end = pipes.until(&json!(listens)).await.pop().expect("the last");
    assert_eq!(end["result"]["resultType"], "complete");
    assert_eq!(pipes.exit().await, Some(0));
}
