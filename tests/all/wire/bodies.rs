//! What HTTP itself must bring: the method, the media types, an encoding, a size.

use longshore_tests::process::{Options, Server};
use serde_json::json;

use super::raw::Raw;
use super::{Error, Fine, Row, Sent, check};

/// What one request may have, in bytes, unless the server is told otherwise.
const MOST: usize = 1024 * 1024;

#[tokio::test]
async fn only_post_is_an_mcp_request() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    for verb in ["PUT", "PATCH", "OPTIONS", "HEAD"] {
        let sent = Sent::new(&client, "tools/list", json!({}))
            .by(verb)
            .with("accept", "text/event-stream");
        let reply = sent.to(server.address).await;
        assert_eq!(reply.status, 405, "{verb}");
        assert_eq!(
            reply.headers.get("allow").map(http::HeaderValue::as_bytes),
            Some(b"GET, POST, DELETE".as_slice()),
            "{verb}"
        );
        // A page of another origin is told nothing that would let it in.
        let cors: Vec<_> = reply
            .headers
            .keys()
            .filter(|name| name.as_str().starts_with("access-control"))
            .collect();
        assert!(cors.is_empty(), "{verb}: {cors:?}");
    }
    let reply = Sent::new(&client, "tools/list", json!({}))
        .to(server.address)
        .await;
    assert_eq!(reply.status, 200);
    assert!(
        !reply.headers.contains_key("mcp-session-id"),
        "{:?}",
        reply.headers
    );
}

#[tokio::test]
async fn media_types_are_checked_before_the_body() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    let good = Sent::new(&client, "tools/list", json!({}));
    let of_type = |value: &str| good.clone().with("content-type", value);
    let (kind, accept) = (Error(415, -32600), Error(406, -32600));
    let mut rows: Vec<Row> = vec![
        (
            "no content type",
            good.clone().without("content-type"),
            kind.clone(),
        ),
        ("an empty content type", of_type(""), kind.clone()),
        (
            "plain text, which a page may send unasked",
            of_type("text/plain"),
            kind.clone(),
        ),
        (
            "JSON as plain text",
            of_type("text/plain;application/json"),
            kind.clone(),
        ),
        (
            "a form",
            of_type("application/x-www-form-urlencoded"),
            kind.clone(),
        ),
        (
            "parts",
            of_type("multipart/form-data; boundary=x"),
            kind.clone(),
        ),
        (
            "what only begins so",
            of_type("application/json-seq"),
            kind.clone(),
        ),
        (
            "another alphabet",
            of_type("application/json; charset=latin1"),
            kind.clone(),
        ),
        (
            "two content types",
            of_type("application/json").and("content-type", "text/plain"),
            kind.clone(),
        ),
        (
            "with its alphabet",
            of_type("application/json; charset=utf-8"),
            Fine,
        ),
        (
            "in other case",
            of_type("Application/JSON;charset=UTF-8"),
            Fine,
        ),
        (
            "events only",
            good.clone().with("accept", "text/event-stream"),
            accept.clone(),
        ),
        (
            "a page",
            good.clone().with("accept", "text/html"),
            accept.clone(),
        ),
        (
            "an accept of nothing",
            good.clone().with("accept", ""),
            accept.clone(),
        ),
        ("anything", good.clone().with("accept", "*/*"), Fine),
        (
            "JSON only",
            good.clone().with("accept", "application/json"),
            Fine,
        ),
        ("no accept", good.clone().without("accept"), Fine),
        (
            "two lines",
            good.clone()
                .with("accept", "text/event-stream")
                .and("accept", "application/json"),
            Fine,
        ),
        (
            "a compressed body",
            good.clone().with("content-encoding", "gzip"),
            kind.clone(),
        ),
        (
            "an unknown encoding",
            good.clone().with("content-encoding", "x"),
            kind.clone(),
        ),
        (
            "no encoding",
            good.clone().with("content-encoding", "identity"),
            Fine,
        ),
    ];
    // Whatever is in the body, the type is refused first.
    for (name, sent, _) in rows
        .clone()
        .into_iter()
        .filter(|(_, _, expected)| *expected == kind)
    {
        rows.push((
            name,
            Sent {
                body: b"{".to_vec(),
                ..sent
            },
            kind.clone(),
        ));
    }
    check(server.address, rows).await;
}

#[tokio::test]
async fn a_body_has_a_bound() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    let good =
        String::from_utf8(Sent::new(&client, "tools/list", json!({})).body).expect("it is text");
    let sized = |size: usize| {
        let padding = "x".repeat(size - good.len() - r#""padding":"","#.len());
        let body = good.replacen('{', &format!(r#"{{"padding":"{padding}","#), 1);
        assert_eq!(body.len(), size);
        body
    };
    let rows = vec![
        ("the largest", Sent::bytes(&client, sized(MOST)), Fine),
        (
            "a byte more",
            Sent::bytes(&client, sized(MOST + 1)),
            Error(413, -32600),
        ),
    ];
    check(server.address, rows).await;

    let head = |more: &str| {
        let sent = Sent::new(&client, "tools/list", json!({}));
        let lines: String = sent
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\n{lines}{more}\r\n\r\n",
            server.address
        )
    };
    // A length alone is enough to say no, before a byte of it is sent.
    let mut raw = Raw::open(server.address).await;
    raw.send(head(&format!("content-length: {}", MOST + 1)))
        .await;
    assert_eq!(raw.reply().await.map(|reply| reply.status), Some(413));
    // Without a length what comes is counted.
    let mut raw = Raw::open(server.address).await;
    raw.send(head("transfer-encoding: chunked")).await;
    let chunk = format!("{:x}\r\n{}\r\n", 65_536, "x".repeat(65_536));
    for _ in 0..MOST / 65_536 {
        raw.send(&chunk).await;
    }
    raw.send("1\r\nx\r\n").await;
    assert_eq!(raw.reply().await.map(|reply| reply.status), Some(413));
    // The same road with a body that fits.
    let mut raw = Raw::open(server.address).await;
    raw.send(head("transfer-encoding: chunked")).await;
    for half in [&good[..20], &good[20..]] {
        raw.send(format!("{:x}\r\n{half}\r\n", half.len())).await;
    }
    raw.send("0\r\n\r\n").await;
    assert_eq!(raw.reply().await.map(|reply| reply.status), Some(200));
}
