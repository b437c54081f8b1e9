//! `tools/call`: which faults are the protocol's and which the tool's, and what a result looks like.

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::{Error, Fine, Row, Sent, VERSION, check, is_marked, members};

/// The text of a result that is nothing but text.
fn text(result: &Value) -> &str {
    let content = result["content"].as_array().expect("a result has content");
    assert_eq!(content.len(), 1, "{result}");
    assert_eq!(content[0]["type"], "text", "{result}");
    content[0]["text"].as_str().expect("a text has text")
}

#[tokio::test]
async fn what_is_no_call_is_an_error_of_the_protocol() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let client = server.client();
    let call = |params: Value| Sent::new(&client, "tools/call", params);
    let wrong = Error(400, -32602);
    let mut rows: Vec<Row> = vec![
        (
            "in order",
            call(json!({ "name": "hello", "arguments": { "name": "x" } })),
            Fine,
        ),
        (
            "an unknown tool",
            call(json!({ "name": "none", "arguments": {} })),
            wrong.clone(),
        ),
        (
            "other case",
            call(json!({ "name": "Hello", "arguments": {} })),
            wrong.clone(),
        ),
        (
            "a tool of no name",
            call(json!({ "name": "", "arguments": {} })),
            wrong.clone(),
        ),
        (
            "a tool of a long name",
            call(json!({ "name": "x".repeat(5_000), "arguments": {} })),
            wrong.clone(),
        ),
        (
            "no tool",
            call(json!({ "arguments": {} })).with("mcp-name", "hello"),
            wrong.clone(),
        ),
        (
            "a tool that is a number",
            call(json!({ "name": 5 })).with("mcp-name", "5"),
            wrong.clone(),
        ),
        (
            "a tool that is null",
            call(json!({ "name": null })).with("mcp-name", "null"),
            wrong.clone(),
        ),
        (
            "answers in a list",
            call(json!({ "name": "hello", "inputResponses": [] })),
            wrong.clone(),
        ),
    ];
    for arguments in [json!([]), json!("{}"), json!(1), json!(true), Value::Null] {
        rows.push((
            "arguments of another type",
            call(json!({ "name": "hello", "arguments": arguments })),
            wrong.clone(),
        ));
    }
    // What a checker and a guest could read differently.
    let good =
        String::from_utf8(call(json!({ "name": "hello", "arguments": { "name": "x" } })).body)
            .expect("it is text");
    for (name, from, to) in [
        (
            "an argument twice",
            r#"{"name":"x"}"#,
            r#"{"name":"x","name":"y"}"#,
        ),
        (
            "an argument twice, once in escapes",
            r#"{"name":"x"}"#,
            r#"{"name":"x","\u006eame":"y"}"#,
        ),
        (
            "arguments twice",
            r#""arguments":{"#,
            r#""arguments":{},"arguments":{"#,
        ),
        (
            "the tool twice",
            r#""name":"hello""#,
            r#""name":"hello","name":"hello""#,
        ),
        (
            "half a character",
            r#"{"name":"x"}"#,
            r#"{"name":"\ud800"}"#,
        ),
        (
            "a number that fits nowhere",
            r#"{"name":"x"}"#,
            r#"{"name":1e999}"#,
        ),
    ] {
        let body = good.replacen(from, to, 1);
        assert_ne!(body, good, "{from} is not in {good}");
        let sent = call(json!({ "name": "hello", "arguments": { "name": "x" } }));
        rows.push((
            name,
            Sent {
                body: body.into_bytes(),
                ..sent
            },
            wrong.clone(),
        ));
    }
    check(server.address, rows).await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_to_the_model() {
    let server = Server::start(Options::with_guests(&["hello", "long-job"])).await;
    let client = server.client();
    let rows = [
        ("hello", json!({}), vec!["(root)", "name"]),
        ("hello", json!({ "name": 5 }), vec!["/name", "string"]),
        ("hello", json!({ "name": null }), vec!["/name", "string"]),
        (
            "long-job",
            json!({ "steps": 0, "step-ms": 1 }),
            vec!["/steps", "1"],
        ),
        (
            "long-job",
            json!({ "steps": "3", "step-ms": -1 }),
            vec!["/steps", "/step-ms"],
        ),
        (
            "long-job",
            json!({ "steps": 1.5, "step-ms": 1 }),
            vec!["/steps", "integer"],
        ),
    ];
    for (tool, arguments, words) in rows {
        let result = client.call(tool, arguments.clone()).await;
        assert!(
            is_marked(&result) && result["resultType"] == "complete",
            "{result}"
        );
        assert_eq!(result["isError"], true, "{arguments}: {result}");
        for word in words {
            assert!(
                text(&result).contains(word),
                "{arguments}: {word} is not in {:?}",
                text(&result)
            );
        }
    }
    // No run was spent on them, and no task made.
    assert_eq!(server.figures().await["runs"]["started"], 0);
    let absent = client
        .result("tools/call", json!({ "name": "hello" }))
        .await;
    assert_eq!(
        absent,
        client.call("hello", json!({})).await,
        "absent arguments are the same as none"
    );
}

#[tokio::test]
async fn a_result_has_its_members_and_no_others() {
    let server = Server::start(Options::with_guests(&["hello", "tool-error", "panic"])).await;
    for client in [server.client(), Client::plain(server.address)] {
        let result = client.call("hello", json!({ "name": "Ada" })).await;
        assert_eq!(
            members(&result),
            ["_meta", "content", "resultType"],
            "{result}"
        );
        assert!(
            is_marked(&result) && result["resultType"] == "complete",
            "{result}"
        );
        assert_eq!(text(&result), "Hello, Ada!");

        let result = client
            .call("tool-error", json!({ "message": "no luck" }))
            .await;
        assert_eq!(
            members(&result),
            ["_meta", "content", "isError", "resultType"],
            "{result}"
        );
        assert!(
            is_marked(&result) && result["resultType"] == "complete",
            "{result}"
        );
        assert_eq!(
            (text(&result), &result["isError"]),
            ("no luck", &json!(true))
        );

        // Called without arguments, as clients do. The request was served; only the tool broke.
        let (status, error) = client.error("tools/call", json!({ "name": "panic" })).await;
        assert_eq!(
            (status, &error["code"], &error["data"]["reason"]),
            (200, &json!(1000), &json!("trap")),
            "{error}"
        );
        let message = error["message"].as_str().expect("an error has a message");
        assert!(message.contains("this tool panics on purpose"), "{message}");
    }
}

#[tokio::test]
async fn what_older_clients_add_is_ignored() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let client = server.client();
    for task in [
        json!({ "ttl": 60_000 }),
        json!({}),
        Value::Null,
        json!("always"),
        json!([{}]),
    ] {
        let params =
            json!({ "name": "hello", "arguments": { "name": "x" }, "task": task, "colour": "red" });
        let result = client.result("tools/call", params).await;
        assert_eq!(
            (&result["resultType"], text(&result)),
            (&json!("complete"), "Hello, x!"),
            "{task}"
        );
    }
    // Answers and state of a round that never was are carried by no run.
    let params = json!({ "name": "hello", "arguments": { "name": "x" }, "inputResponses": {} });
    assert_eq!(
        text(&client.result("tools/call", params).await),
        "Hello, x!"
    );
}

#[tokio::test]
async fn a_client_without_tasks_is_held_to_the_end() {
    let server = Server::start(Options::with_guests(&["long-job", "ask-form"])).await;
    let plain = Client::plain(server.address);
    let result = plain
        .call("long-job", json!({ "steps": 3, "step-ms": 200 }))
        .await;
    assert_eq!(result["resultType"], "complete", "{result}");
    assert_eq!(text(&result), "done: 3 steps");
    // What cannot be asked is not waited for.
    let result = plain.call("ask-form", json!({})).await;
    assert_eq!(
        (&result["resultType"], &result["isError"]),
        (&json!("complete"), &json!(true)),
        "{result}"
    );
    // With the extension the same tool is a task, whoever declared what before.
    server
        .client()
        .start("long-job", json!({ "steps": 1, "step-ms": 1 }))
        .await;
    let again = Sent::edited(
        &plain,
        "tools/call",
        json!({ "name": "long-job", "arguments": { "steps": 1, "step-ms": 1 } }),
        |request| {
            // A capability on the wrong level is none.
            request["params"]["_meta"][super::TASKS] = json!({});
            assert!(request["params"]["_meta"][VERSION].is_string());
        },
    );
    let reply = again.to(server.address).await;
    assert_eq!(
        reply.json()["result"]["resultType"],
        "complete",
        "{}",
        reply.json()
    );
}
