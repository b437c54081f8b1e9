//! Clients that go away in the middle of a request: what was begun is done to its end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use longshore_tests::guests;
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server, TOKEN};
use longshore_tests::wait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends a whole request and closes the connection after so long, whatever comes back.
async fn send_and_go(
    address: SocketAddr,
    head: &str,
    headers: &[(String, String)],
    body: &[u8],
    after: Duration,
) {
    let mut request = format!(
        "{head} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    let mut stream = TcpStream::connect(address)
        .await
        .expect("the server listens");
    stream.set_nodelay(true).expect("a socket can be told");
    let whole = [request.as_bytes(), body].concat();
    // It may have closed before all was sent; then nothing was begun.
    if stream.write_all(&whole).await.is_ok() {
        tokio::time::sleep(after).await;
    }
}

async fn ask_and_go(client: &Client, method: &str, params: Value, after: Duration) {
    let request = client.request(method, params);
    let headers = Client::headers(&request);
    send_and_go(
        client.address,
        "POST /mcp",
        &headers,
        request.to_string().as_bytes(),
        after,
    )
    .await;
}

/// From nothing to a few milliseconds: before, during and after what the server does.
fn moments(count: u64) -> impl Iterator<Item = Duration> {
    (0..count).map(|n| Duration::from_micros((n % 12) * 250))
}

async fn tasks(server: &Server) -> Vec<Value> {
    let mut listed = server.admin("GET", "/v1/tasks?limit=500", "").await.json();
    serde_json::from_value(listed["tasks"].take()).expect("a list of tasks")
}

/// Until every task has ended: with a result, or because nobody was told of it.
async fn until_all_ended(server: &Server) -> Vec<Value> {
    wait::until("every task to end", Duration::from_secs(60), || async {
        let tasks = tasks(server).await;
        let open = tasks.iter().any(|task| {
            ["working", "input_required"]
                .iter()
                .any(|open| task["status"] == *open)
        });
        (!open).then_some(tasks)
    })
    .await
}

#[tokio::test]
async fn a_task_that_was_made_is_run_though_its_caller_left() {
    let server = Server::start(Options::with_guests(&["modes"])).await;
    let client = server.client();
    for after in moments(120) {
        ask_and_go(
            &client,
            "tools/call",
            json!({ "name": "modes-always", "arguments": { "ms": 1 } }),
            after,
        )
        .await;
    }
    let tasks = until_all_ended(&server).await;
    assert!(!tasks.is_empty(), "none of the requests arrived");
    let odd: Vec<&Value> = tasks
        .iter()
        .filter(|task| task["status"] != "completed")
        .collect();
    assert!(odd.is_empty(), "{odd:?}");
    assert_eq!(server.figures().await["runs"]["live"], 0);
}

/// Sends a call, says after so long that nothing more will come, and gives back what it was told by then.
async fn call_and_close(client: &Client, params: Value, after: Duration) -> String {
    let request = client.request("tools/call", params);
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
    let whole = format!("{head}\r\n{body}");
    stream.write_all(whole.as_bytes()).await.expect("it reads");
    tokio::time::sleep(after).await;
    let mut told = String::new();
    // The server may have closed first.
    if stream.shutdown().await.is_ok() {
        let reading = stream.read_to_string(&mut told);
        let _cut_or_not = tokio::time::timeout(Duration::from_secs(30), reading).await;
    }
    told
}

#[tokio::test]
async fn a_call_whose_caller_left_at_the_budget_does_not_run_on_untold() {
    let server = Server::start(Options::with_guests(&["modes"]).set("inline_budget_ms", 50)).await;
    let client = server.client();
    let calls = (0..60_u64).map(|n| {
        let client = client.clone();
        async move {
            let arguments =
                json!({ "name": "modes-auto", "arguments": { "ms": 600_000, "detach": false } });
            call_and_close(&client, arguments, Duration::from_millis(30 + n)).await
        }
    });
    let told = futures_util::future::join_all(calls).await.join("\n");
    wait::until("the untold to end", Duration::from_secs(30), || async {
        let untold = tasks(&server)
            .await
            .iter()
            .filter(|task| task["status"] == "working")
            .filter(|task| !told.contains(task["id"].as_str().expect("a task has an id")))
            .count();
        // The answer may be on its way in the very instant in which the connection is found closed.
        (untold <= 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_cancel_reaches_its_run_though_whoever_sent_it_left() {
    let server = Server::start(Options::with_guests(&["sleep"])).await;
    let client = server.client();
    for after in moments(40) {
        let id = client.start("sleep", json!({ "seconds": 3600 })).await;
        ask_and_go(&client, "tasks/cancel", json!({ "taskId": id }), after).await;
        let shown = server
            .admin("GET", &format!("/v1/tasks/{id}"), "")
            .await
            .json();
        if shown["cancelRequestedAt"].is_null() {
            // It left before its request was read, which is as good as never having asked.
            client.result("tasks/cancel", json!({ "taskId": id })).await;
        }
        client.until_status(&id, "cancelled").await;
    }
}

#[tokio::test]
async fn an_answer_reaches_its_run_though_whoever_sent_it_left() {
    let server = Server::start(Options::with_guests(&["ask-two"])).await;
    let client = server.client();
    let answers = json!({
        "name": { "action": "accept", "content": { "name": "Ada" } },
        "confirm": { "action": "accept", "content": { "confirm": true } },
    });
    for after in moments(40) {
        let id = client.start("ask-two", json!({})).await;
        let asked = client.until_status(&id, "input_required").await;
        assert_eq!(
            asked["inputRequests"].as_object().map(serde_json::Map::len),
            Some(2),
            "{asked}"
        );
        ask_and_go(
            &client,
            "tasks/update",
            json!({ "taskId": id, "inputResponses": answers }),
            after,
        )
        .await;
        if client.task(&id).await["status"] == "input_required" {
            client
                .result(
                    "tasks/update",
                    json!({ "taskId": id, "inputResponses": answers }),
                )
                .await;
        }
        client.until_status(&id, "completed").await;
    }
}

#[tokio::test]
async fn what_is_served_is_what_is_kept_though_the_uploader_left() {
    let mut server = Server::start(Options::default()).await;
    let bytes = std::fs::read(guests::component("hello")).expect("it can be read");
    let authorization = vec![("authorization".to_owned(), format!("Bearer {TOKEN}"))];
    // So that native code is there and an upload is a matter of milliseconds.
    assert_eq!(server.upload("first", bytes.clone()).await.status, 201);
    for (n, after) in moments(24).enumerate() {
        let (head, body) = match n % 2 {
            0 => ("DELETE /v1/components/first", [].as_slice()),
            _ => ("PUT /v1/components/first", bytes.as_slice()),
        };
        send_and_go(server.address, head, &authorization, body, after).await;
        // Whatever it began is over once no upload is under way and the next removal had its turn.
        wait::until("the upload to end", Duration::from_secs(30), || async {
            (server.figures().await["uploads"] == 0).then_some(())
        })
        .await;
        assert_eq!(
            server
                .admin("DELETE", "/v1/components/nobody", "")
                .await
                .status,
            404
        );
        let served = components(&server).await;
        if n % 6 == 5 {
            server.restart().await;
            assert_eq!(components(&server).await, served, "round {n}");
        }
    }
}

async fn components(server: &Server) -> BTreeMap<String, String> {
    let listed = server.admin("GET", "/v1/components", "").await.json();
    let text = |one: &Value, member: &str| one[member].as_str().unwrap_or_default().to_owned();
    let components = listed["components"].as_array().expect("a list");
    components
        .iter()
        .map(|one| (text(one, "name"), text(one, "digest")))
        .collect()
}
