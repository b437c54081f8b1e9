//! Which methods there are, and what every request must say of itself.

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::{CAPABILITIES, Error, ErrorWith, Fine, Row, Sent, TASKS, VERSION, check};

#[tokio::test]
async fn every_request_says_what_it_speaks_and_can_do() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    let meta = |edit: fn(&mut Value)| {
        Sent::edited(&client, "tools/list", json!({}), |request| {
            edit(&mut request["params"]["_meta"])
        })
    };
    let lacks = Error(400, -32602);
    let rows = vec![
        ("all of it", meta(|_| {}), Fine),
        (
            "no parameters",
            Sent::edited(&client, "tools/list", json!({}), |request| {
                request
                    .as_object_mut()
                    .expect("it is an object")
                    .remove("params");
            }),
            lacks.clone(),
        ),
        (
            "parameters that are null",
            Sent::edited(&client, "tools/list", json!({}), |r| {
                r["params"] = Value::Null
            }),
            lacks.clone(),
        ),
        (
            "no _meta",
            Sent::edited(&client, "tools/list", json!({}), |request| {
                request["params"] = json!({})
            }),
            lacks.clone(),
        ),
        (
            "_meta that is a list",
            meta(|meta| *meta = json!([])),
            lacks.clone(),
        ),
        (
            "_meta that is null",
            meta(|meta| *meta = Value::Null),
            lacks.clone(),
        ),
        (
            "no version",
            meta(|meta| drop(meta.as_object_mut().and_then(|meta| meta.remove(VERSION)))),
            lacks.clone(),
        ),
        (
            "a version that is a number",
            meta(|meta| meta[VERSION] = json!(20_260_728)),
            lacks.clone(),
        ),
        (
            "a version that is null",
            meta(|meta| meta[VERSION] = Value::Null),
            lacks.clone(),
        ),
        (
            "no capabilities",
            meta(|meta| {
                drop(
                    meta.as_object_mut()
                        .and_then(|meta| meta.remove(CAPABILITIES)),
                )
            }),
            lacks.clone(),
        ),
        (
            "capabilities in a list",
            meta(|meta| meta[CAPABILITIES] = json!([])),
            lacks.clone(),
        ),
        (
            "capabilities that are null",
            meta(|meta| meta[CAPABILITIES] = Value::Null),
            lacks.clone(),
        ),
        (
            "extensions in a list",
            meta(|meta| meta[CAPABILITIES]["extensions"] = json!([TASKS])),
            lacks.clone(),
        ),
        (
            "an extension that is true",
            meta(|meta| meta[CAPABILITIES]["extensions"][TASKS] = json!(true)),
            lacks.clone(),
        ),
        (
            "an unknown capability",
            meta(|meta| meta[CAPABILITIES]["telepathy"] = json!(true)),
            Fine,
        ),
        (
            "an unknown extension",
            meta(|meta| meta[CAPABILITIES]["extensions"]["com.example/x"] = json!([])),
            Fine,
        ),
        (
            "no client info, which nobody may ask for",
            meta(|meta| {
                drop(
                    meta.as_object_mut()
                        .and_then(|m| m.remove("io.modelcontextprotocol/clientInfo")),
                )
            }),
            Fine,
        ),
        (
            "a progress token with a fraction",
            meta(|meta| meta["progressToken"] = json!(1.5)),
            lacks.clone(),
        ),
        (
            "a progress token",
            meta(|meta| meta["progressToken"] = json!(0)),
            Fine,
        ),
        (
            "a log level that is none",
            meta(|meta| meta["io.modelcontextprotocol/logLevel"] = json!("loud")),
            lacks,
        ),
        (
            "a trace that is none",
            meta(|meta| meta["traceparent"] = json!("00-0-0-00")),
            Fine,
        ),
        (
            "an unknown key",
            meta(|meta| meta["com.example/x"] = json!({})),
            Fine,
        ),
    ];
    check(server.address, rows).await;
}

#[tokio::test]
async fn methods_that_are_not_there_are_not_found() {
    let server = Server::start(Options::default()).await;
    let (client, plain) = (server.client(), Client::plain(server.address));
    let gone = [
        // Of older revisions, and of the tasks that went before the extension.
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/result",
        "tasks/list",
        // Never there, or not so.
        "tools/List",
        "tools",
        "server/discover/",
        "notifications/tasks",
        "héllo",
    ];
    let mut rows: Vec<Row> = Vec::new();
    for method in gone {
        for client in [&client, &plain] {
            let sent = Sent::edited(client, "tools/list", json!({ "taskId": "x" }), |request| {
                request["method"] = json!(method)
            });
            // What no header can carry is refused for that; no method of MCP is of that kind.
            let expected = if method.is_ascii() {
                Error(404, -32601)
            } else {
                Error(400, -32020)
            };
            let sent = if method.is_ascii() {
                sent.with("mcp-method", method)
            } else {
                sent
            };
            rows.push((method, sent, expected));
        }
    }
    check(server.address, rows).await;
}

#[tokio::test]
async fn a_task_is_out_of_reach_without_the_extension() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let able = server.client();
    let other = |capabilities: Value| Client {
        address: server.address,
        capabilities,
    };
    let needs = ErrorWith(
        400,
        -32021,
        json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } }),
    );
    let clients = [
        Client::plain(server.address),
        // The experiment of an older revision is not the extension.
        other(
            json!({ "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } } }),
        ),
        other(json!({ "extensions": {} })),
        other(json!({ "extensions": { "io.modelcontextprotocol/Tasks": {} } })),
        other(json!({ "experimental": { TASKS: {} } })),
        other(json!({ TASKS: {} })),
    ];
    // What an earlier request declared counts for nothing.
    able.result("tools/list", json!({})).await;
    for client in &clients {
        let mut rows: Vec<Row> = Vec::new();
        for id in ["3f2c1a44-0000-4000-8000-000000000000", "no-id", ""] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                rows.push((
                    method,
                    Sent::new(client, method, params.clone()),
                    needs.clone(),
                ));
            }
        }
        check(server.address, rows).await;
    }
    check(
        server.address,
        vec![(
            "the extension",
            Sent::new(&able, "tasks/get", json!({ "taskId": "no-id" })),
            Error(400, -32602),
        )],
    )
    .await;
}
