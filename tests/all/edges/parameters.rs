//! Parameters that are not what their method takes: -32602, whatever the era and the transport.

use longshore_tests::pipes::{Pipes, data};
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, OLDEST, Session};
use serde_json::{Value, json};

const TASK: &str = "00000000-0000-4000-8000-000000000000";

type Row = (&'static str, Value);

/// Of methods that every era has.
fn common() -> Vec<Row> {
    let mut rows = Vec::new();
    for method in [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ] {
        for cursor in [json!(1), json!({}), json!(""), json!("nowhere")] {
            rows.push((method, json!({ "cursor": cursor })));
        }
    }
    for name in [None, Some(json!(1)), Some(json!(["a"])), Some(json!(""))] {
        let params = name.map_or(json!({}), |name| json!({ "name": name }));
        rows.push(("tools/call", params.clone()));
        rows.push(("prompts/get", params));
    }
    for arguments in [json!([]), json!("a"), json!(1)] {
        rows.push((
            "tools/call",
            json!({ "name": "greet", "arguments": arguments }),
        ));
        let params = json!({ "name": "test_simple_prompt", "arguments": arguments });
        rows.push(("prompts/get", params));
    }
    // A prompt is filled in with texts.
    let numbers = json!({ "arg1": 1, "arg2": "b" });
    let params = json!({ "name": "test_prompt_with_arguments", "arguments": numbers });
    rows.push(("prompts/get", params));
    for uri in [None, Some(json!(1)), Some(json!({}))] {
        let params = uri.map_or(json!({}), |uri| json!({ "uri": uri }));
        rows.push(("resources/read", params));
    }
    let prompt = json!({ "type": "ref/prompt", "name": "test_prompt_with_arguments" });
    let argument = json!({ "name": "arg1", "value": "p" });
    for params in [
        json!({}),
        json!({ "ref": prompt }),
        json!({ "argument": argument }),
        json!({ "ref": "test_prompt_with_arguments", "argument": argument }),
        json!({ "ref": { "type": "ref/tool", "name": "greet" }, "argument": argument }),
        json!({ "ref": { "type": "ref/prompt", "uri": "test://x" }, "argument": argument }),
        json!({ "ref": { "type": "ref/prompt", "name": 1 }, "argument": argument }),
        json!({ "ref": { "type": "ref/resource", "name": "x" }, "argument": argument }),
        json!({ "ref": prompt, "argument": "arg1" }),
        json!({ "ref": prompt, "argument": { "name": "arg1" } }),
        json!({ "ref": prompt, "argument": { "name": "arg1", "value": 1 } }),
        json!({ "ref": prompt, "argument": { "name": 1, "value": "p" } }),
        json!({ "ref": prompt, "argument": argument, "context": [] }),
        json!({ "ref": prompt, "argument": argument, "context": { "arguments": { "arg2": 1 } } }),
    ] {
        rows.push(("completion/complete", params));
    }
    for (key, value) in [
        ("progressToken", json!({})),
        ("longshore/deadlineMs", json!(0)),
        ("longshore/deadlineMs", json!("soon")),
        ("longshore/idempotencyKey", json!(1)),
    ] {
        let params =
            json!({ "name": "greet", "arguments": { "name": "Ada" }, "_meta": { key: value } });
        rows.push(("tools/call", params));
    }
    rows
}

/// Of methods that sessions have.
fn of_sessions() -> Vec<Row> {
    let mut rows = common();
    for level in [None, Some(json!("loud")), Some(json!(3))] {
        let params = level.map_or(json!({}), |level| json!({ "level": level }));
        rows.push(("logging/setLevel", params));
    }
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        for params in [json!({}), json!({ "uri": 1 }), json!({ "uri": null })] {
            rows.push((method, params));
        }
    }
    rows
}

/// Of the experimental tasks of the newest of them.
fn of_tasks_in_sessions() -> Vec<Row> {
    let mut rows = of_sessions();
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for params in [
            json!({}),
            json!({ "taskId": 1 }),
            json!({ "taskId": "none" }),
            json!({ "taskId": TASK }),
        ] {
            rows.push((method, params));
        }
    }
    rows.push(("tasks/list", json!({ "cursor": 1 })));
    rows.push(("tasks/list", json!({ "cursor": "nowhere" })));
    for task in [json!(true), json!([]), json!({ "ttl": "long" })] {
        let params = json!({ "name": "slow_compute", "arguments": { "seconds": 0 }, "task": task });
        rows.push(("tools/call", params));
    }
    rows
}

/// Of methods that belong to no session.
fn of_requests() -> Vec<Row> {
    let mut rows = common();
    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        for params in [
            json!({ "inputResponses": {} }),
            json!({ "taskId": 1, "inputResponses": {} }),
            json!({ "taskId": "none", "inputResponses": {} }),
            json!({ "taskId": TASK, "inputResponses": {} }),
        ] {
            rows.push((method, params));
        }
    }
    for answers in [json!(null), json!([]), json!("yes")] {
        let params = json!({ "taskId": TASK, "inputResponses": answers });
        rows.push(("tasks/update", params));
    }
    for filter in [
        json!(null),
        json!([]),
        json!({ "toolsListChanged": 1 }),
        json!({ "promptsListChanged": "yes" }),
        json!({ "resourcesListChanged": {} }),
        json!({ "resourceSubscriptions": "test://x" }),
        json!({ "resourceSubscriptions": [1] }),
        json!({ "taskIds": [1] }),
    ] {
        rows.push(("subscriptions/listen", json!({ "notifications": filter })));
    }
    for (key, value) in [("requestState", json!(1)), ("inputResponses", json!([]))] {
        let mut params = json!({ "name": "greet", "arguments": { "name": "Ada" } });
        params[key] = value;
        rows.push(("tools/call", params));
    }
    rows
}

fn judge(faults: &mut Vec<String>, row: &Row, told: &Value) {
    let error = &told["error"];
    let says_why = error["message"].as_str().is_some_and(|why| why.len() > 8);
    if error["code"] != -32602 || !says_why {
        faults.push(format!("{} {}: {told}", row.0, row.1));
    }
}

fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn in_a_session_over_http() {
    let server = Server::start(Options::with_guests(&["conformance"])).await;
    let mut faults = Vec::new();
    for (revision, rows) in [(OLDEST, of_sessions()), (NEWEST, of_tasks_in_sessions())] {
        let session = Session::able(server.address, revision).await;
        for row in rows {
            let (method, params) = row.clone();
            let reply = session.post(&session.request(method, params)).await;
            judge(&mut faults, &row, &reply.json());
            if reply.status != 200 {
                faults.push(format!("{row:?}: status {}", reply.status));
            }
        }
        assert_eq!(session.result("ping", json!({})).await, json!({}));
    }
    assert_none(&faults);
}

#[tokio::test]
async fn over_pipes_in_both_eras() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["conformance"]);
    let mut faults = Vec::new();
    for (method, mut params) in of_requests() {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientCapabilities"] =
            json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        let told = pipes.response(method, params.clone()).await;
        judge(&mut faults, &(method, params), &told);
    }
    pipes.open(NEWEST, json!({})).await;
    for (method, params) in of_tasks_in_sessions() {
        let told = pipes.response(method, params.clone()).await;
        judge(&mut faults, &(method, params), &told);
    }
    assert_none(&faults);
    assert_eq!(pipes.result("ping", json!({})).await, json!({}));
    assert_eq!(pipes.end().await.1, Some(0));
}

#[tokio::test]
async fn by_themselves_over_http() {
    let server = Server::start(Options::with_guests(&["conformance"])).await;
    let client = server.client();
    let mut faults = Vec::new();
    for row in of_requests() {
        let (method, params) = row.clone();
        let named = match method {
            "tools/call" | "prompts/get" => Some(&params["name"]),
            "resources/read" => Some(&params["uri"]),
            _ => None,
        };
        // Without a name there is none to repeat in a header, which is looked at first.
        if named.is_some_and(|name| !name.is_string()) {
            continue;
        }
        let reply = client.send(method, params).await.expect("an answer");
        judge(&mut faults, &row, &reply.json());
        if reply.status != 400 {
            faults.push(format!("{row:?}: status {}", reply.status));
        }
    }
    assert_none(&faults);
}
