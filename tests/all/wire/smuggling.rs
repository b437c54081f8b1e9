//! One connection, several requests: where each begins and ends must be beyond doubt.

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::json;

use super::raw::Raw;
use super::{Fine, Sent, id_of, judge};

/// A whole request on the wire with `id` in it.
fn request(client: &Client, id: u32, framing: &str) -> String {
    let sent = Sent::edited(client, "tools/list", json!({}), |request| {
        request["id"] = json!(id)
    });
    let lines: String = sent
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let body = String::from_utf8(sent.body).expect("it is text");
    let framing = framing.replace("LENGTH", &body.len().to_string());
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\n{lines}{framing}\r\n\r\n{body}",
        client.address
    )
}

#[tokio::test]
async fn requests_on_one_connection_are_answered_in_order() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let client = server.client();
    let mut raw = Raw::open(server.address).await;
    // All in one piece, so that the server reads the second with the first.
    let three: String = (1..=3)
        .map(|id| request(&client, id, "content-length: LENGTH"))
        .collect();
    raw.send(&three).await;
    for id in 1..=3 {
        let reply = raw.reply().await.expect("each is answered");
        judge(&reply, &Fine).unwrap_or_else(|fault| panic!("{id}: {fault}"));
        assert_eq!(id_of(&reply), Some(id.to_string()));
    }
    // In pieces as small as they get.
    for byte in request(&client, 4, "content-length: LENGTH").bytes() {
        raw.send([byte]).await;
    }
    assert_eq!(
        raw.reply().await.as_ref().and_then(id_of).as_deref(),
        Some("4")
    );
    // A refusal does not end the connection, and nothing is remembered from one request to the next.
    raw.send(
        request(&client, 5, "content-length: LENGTH").replace("\r\nmcp-method: tools/list", ""),
    )
    .await;
    assert_eq!(raw.reply().await.map(|reply| reply.status), Some(400));
    let plain = Client::plain(server.address);
    let get = Sent::new(&plain, "tasks/get", json!({ "taskId": "x" }));
    let lines: String = get
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\n{lines}content-length: {}\r\n\r\n",
        server.address,
        get.body.len()
    );
    raw.send([head.as_bytes(), &get.body].concat()).await;
    let reply = raw.reply().await.expect("it is answered");
    assert_eq!(
        reply.json()["error"]["code"],
        -32021,
        "the extension was declared only earlier"
    );
    // Header names are the same in any case.
    let shouted = request(&client, 6, "CONTENT-length: LENGTH")
        .replace("mcp-method", "MCP-METHOD")
        .replace("mcp-protocol", "Mcp-PROTOCOL");
    raw.send(shouted).await;
    assert_eq!(
        raw.reply().await.as_ref().and_then(id_of).as_deref(),
        Some("6")
    );
}

#[tokio::test]
async fn a_request_whose_end_is_in_doubt_ends_the_connection() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    let framings = [
        "content-length: LENGTH\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: LENGTH",
        "content-length: LENGTH\r\ncontent-length: 5",
        "content-length: 5\r\ncontent-length: LENGTH",
        "content-length: LENGTH, 5",
        "content-length: +LENGTH",
        "content-length: -1",
        "content-length: 0xff",
        "content-length: 99999999999999999999999",
        "content-length : LENGTH",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: xchunked",
        "transfer-encoding: gzip",
        "transfer-encoding : chunked",
        "transfer-encoding:\x0bchunked",
        "content-length: LENGTH\r\n x: 1",
    ];
    for framing in framings {
        let mut raw = Raw::open(server.address).await;
        // What follows must not be taken for a request of its own.
        raw.send(request(&client, 1, framing)).await;
        raw.send(request(&client, 2, "content-length: LENGTH"))
            .await;
        let mut statuses = Vec::new();
        while let Some(reply) = raw.reply().await {
            assert!(
                reply.body.is_empty() || id_of(&reply).as_deref() != Some("2"),
                "{framing:?}: the second was answered"
            );
            statuses.push(reply.status);
        }
        assert!(
            matches!(statuses.as_slice(), [] | [400]),
            "{framing:?}: {statuses:?}"
        );
    }
    // Where both ways to say the length are there and each would do, one counts, and after that nobody can be sure.
    let sent = Sent::new(&client, "tools/list", json!({}));
    let body = String::from_utf8(sent.body.clone()).expect("it is text");
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for length in [chunks.len(), 4, 0] {
        for framing in [
            format!("content-length: {length}\r\ntransfer-encoding: chunked"),
            format!("transfer-encoding: chunked\r\ncontent-length: {length}"),
        ] {
            let mut raw = Raw::open(server.address).await;
            raw.send(request(&client, 1, &framing).replacen(&body, &chunks, 1))
                .await;
            raw.send(request(&client, 2, "content-length: LENGTH"))
                .await;
            let mut answered = Vec::new();
            while let Some(reply) = raw.reply().await {
                answered.push((reply.status, id_of(&reply)));
            }
            let once = Some("1".to_owned());
            assert!(
                answered.is_empty() || answered == [(200, once)] || answered == [(400, None)],
                "{framing:?}: {answered:?}"
            );
        }
    }
    // The server is none the worse.
    client.result("tools/list", json!({})).await;
}

#[tokio::test]
async fn heads_have_a_bound() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    let good = request(&client, 1, "content-length: LENGTH");
    let with = |more: String| good.replacen("\r\n", &format!("\r\n{more}"), 1);
    let many: String = (0..70).map(|number| format!("x-{number}: 1\r\n")).collect();
    let rows = [
        ("70 headers", with(many)),
        (
            "a header of 1 MiB",
            with(format!("x: {}\r\n", "x".repeat(1 << 20))),
        ),
        (
            "a target of 1 MiB",
            good.replacen("/mcp", &format!("/mcp?{}", "x".repeat(1 << 20)), 1),
        ),
    ];
    for (name, bytes) in rows {
        let mut raw = Raw::open(server.address).await;
        raw.send(bytes).await;
        // It may hang up while the rest still comes, and then its answer may not arrive.
        if let Some(reply) = raw.reply().await {
            assert!(
                matches!(reply.status, 431 | 414),
                "{name}: {}",
                reply.status
            );
        }
        raw.closed().await;
    }
    client.result("tools/list", json!({})).await;
}
