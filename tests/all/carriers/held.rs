//! Calls that somebody waits for: what they cannot do, and what becomes of them when nobody waits any more.

use std::time::Duration;

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{cancel, live_stores, text, until_live};

/// Longer than any test waits.
const LONG_MS: u64 = 600_000;

/// Sends a call and leaves the connection open without reading from it.
async fn call_and_hold(client: &Client, tool: &str, arguments: serde_json::Value) -> TcpStream {
    let request = client.request(
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    );
    let body = request.to_string();
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n",
        client.address,
        body.len()
    );
    for (name, value) in Client::headers(&request) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = TcpStream::connect(client.address)
        .await
        .expect("the server listens");
    stream
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .await
        .expect("the server reads");
    stream
}

#[tokio::test]
async fn a_held_call_whose_connection_closes_is_cancelled() {
    // A grace that no test could wait for: what ends within a minute ended because it was told to.
    let options = Options::with_guests(&["modes", "spin"]).set("grace_ms", LONG_MS);
    let server = Server::start(options).await;
    let calls = [
        (server.client(), "modes-never", json!({ "ms": LONG_MS })),
        (
            Client::plain(server.address),
            "modes-always",
            json!({ "ms": LONG_MS }),
        ),
        // It looks at nothing, so it has to be stopped.
        (
            Client::plain(server.address),
            "spin",
            json!({ "seconds": 25 }),
        ),
    ];
    for (client, tool, arguments) in calls {
        let stream = call_and_hold(&client, tool, arguments).await;
        until_live(&server, 1).await;
        drop(stream);
        wait::until(
            &format!("{tool} to be gone"),
            Duration::from_secs(10),
            || async { (live_stores(&server).await == 0).then_some(()) },
        )
        .await;
    }
    let tasks = server.admin("GET", "/v1/tasks", "").await.json();
    assert_eq!(
        tasks["tasks"],
        json!([]),
        "nobody could have been given a task"
    );
}

#[tokio::test]
async fn a_task_outlives_every_connection() {
    let server = Server::start(Options::with_guests(&["modes"])).await;
    let client = server.client();

    // The connection that made it, read to the task and then closed.
    let mut stream = call_and_hold(&client, "modes-always", json!({ "ms": 1_500 })).await;
    let mut read = Vec::new();
    let created = loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.expect("the server answers");
        assert_ne!(count, 0, "closed after {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&part[..count]);
        let body = read
            .windows(4)
            .position(|bytes| bytes == b"\r\n\r\n")
            .map(|at| &read[at + 4..]);
        if let Some(created) =
            body.and_then(|body| serde_json::from_slice::<serde_json::Value>(body).ok())
        {
            break created;
        }
    };
    let id = created["result"]["taskId"].as_str().expect("a task");
    until_live(&server, 1).await;
    drop(stream);
    // Others come and go: each of these is a connection of its own.
    let task = client.until_ended(id).await;
    assert_eq!(
        (&task["status"], text(&task["result"])),
        (&json!("completed"), "always after 1500 ms")
    );

    // A call that became a task while it was held is left alone too.
    let id = client.start("modes-auto", json!({ "ms": LONG_MS })).await;
    assert_eq!(live_stores(&server).await, 1);
    assert_eq!(client.task(&id).await["status"], "working");
    cancel(&client, &id).await;
    assert_eq!(client.until_ended(&id).await["status"], "cancelled");
}

#[tokio::test]
async fn who_cannot_show_a_form_cannot_be_asked() {
    let server = Server::start(Options::with_guests(&["ask-form", "approve"])).await;
    let client = Client::plain(server.address);
    for (tool, arguments) in [
        ("ask-form", json!({})),
        ("approve", json!({ "what": "the launch" })),
    ] {
        let result = client.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(
            text(&result).starts_with("this client cannot be asked: ")
                && text(&result).contains("elicitation.form"),
            "{result}"
        );
    }

    // A task alone is not enough: the client has to be able to show a form.
    let without_forms = Client {
        capabilities: json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }),
        ..server.client()
    };
    let id = without_forms.start("ask-form", json!({})).await;
    let task = without_forms.until_ended(&id).await;
    assert_eq!(task["status"], "completed");
    assert_eq!(task["result"]["isError"], true);
    assert!(text(&task["result"]).contains("elicitation.form"), "{task}");
}
