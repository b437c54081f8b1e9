//! Clients that are slow, silent or many: their connections end, and others are served meanwhile.

use std::time::{Duration, Instant};

use longshore_tests::process::{Options, Server};
use serde_json::json;

use super::raw::Raw;
use super::{Error, Sent, judge};

/// What the server is told to wait, in seconds.
const WAIT_S: u64 = 1;
/// A wait is over after this on a busy machine, and a wait of the default 10 s is not.
const OVER: Duration = Duration::from_secs(6);

fn impatient() -> Options {
    Options::default()
        .set("header_s", WAIT_S)
        .set("body_pause_s", WAIT_S)
}

/// The head of a good request with a body of that length.
fn head(server: &Server, length: usize) -> String {
    let sent = Sent::new(&server.client(), "tools/list", json!({}));
    let lines: String = sent
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\n{lines}content-length: {length}\r\n\r\n",
        server.address
    )
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_in_time() {
    let server = Server::start(impatient()).await;
    let host = format!("host: {}\r\n", server.address);
    let silent = [
        "",
        "P",
        "POST /mcp HTTP/1.1",
        "POST /mcp HTTP/1.1\r\n",
        &format!("POST /mcp HTTP/1.1\r\n{host}"),
        &format!("POST /mcp HTTP/1.1\r\n{host}x: "),
    ];
    let waits = silent.map(|start| {
        let address = server.address;
        let start = start.to_owned();
        async move {
            let mut raw = Raw::open(address).await;
            raw.send(&start).await;
            let waited = raw.closed().await;
            assert!(waited < OVER, "{start:?} was waited on for {waited:?}");
            assert!(
                waited > Duration::from_millis(WAIT_S * 1_000 / 2),
                "{start:?} was given up after {waited:?}"
            );
        }
    });
    futures_util::future::join_all(waits).await;

    // A drop now and then buys no more time than silence.
    let started = Instant::now();
    let mut dripping = Raw::open(server.address).await;
    dripping.send("POST /mcp HTTP/1.1\r\n").await;
    let drip = async {
        for number in 0.. {
            dripping.send(format!("x-{number}: 1\r\n")).await;
            if tokio::time::timeout(Duration::from_millis(100), dripping.closed())
                .await
                .is_ok()
            {
                break;
            }
        }
    };
    tokio::time::timeout(OVER, drip)
        .await
        .expect("headers one by one are given up");
    assert!(started.elapsed() > Duration::from_millis(WAIT_S * 1_000 / 2));

    // After an answer the wait begins anew.
    let mut raw = Raw::open(server.address).await;
    raw.send(head(&server, 1) + "x").await;
    assert_eq!(raw.reply().await.map(|reply| reply.status), Some(400));
    assert!(
        raw.closed().await < OVER,
        "an idle connection is not closed"
    );
}

#[tokio::test]
async fn a_body_that_stands_still_is_given_up() {
    let server = Server::start(impatient()).await;
    for start in ["", "{", r#"{"jsonrpc":"2.0","#] {
        let mut raw = Raw::open(server.address).await;
        raw.send(head(&server, 100) + start).await;
        let started = Instant::now();
        let reply = raw.reply().await.expect("it is told why");
        judge(&reply, &Error(408, -32600)).unwrap_or_else(|fault| panic!("{start:?}: {fault}"));
        let waited = started.elapsed();
        assert!(
            waited < OVER && waited > Duration::from_millis(WAIT_S * 1_000 / 2),
            "{start:?}: {waited:?}"
        );
        // What would come now is no request.
        assert!(raw.closed().await < OVER, "{start:?}");
    }
    // A client that hangs up within its body does no harm.
    let mut raw = Raw::open(server.address).await;
    raw.send(head(&server, 100) + "{").await;
    drop(raw);
    server.client().result("tools/list", json!({})).await;
}

#[tokio::test]
async fn idle_connections_keep_nobody_out() {
    // The idle ones are not sent away while this test lasts.
    let server = Server::start(Options::with_guests(&["hello"]).set("header_s", 600)).await;
    let mut idle = Vec::new();
    for number in 0..500 {
        let mut raw = Raw::open(server.address).await;
        if number % 2 == 0 {
            raw.send("POST /mcp HTTP/1.1\r\nhost: ").await;
        }
        idle.push(raw);
    }
    let started = Instant::now();
    for _ in 0..20 {
        server.client().call("hello", json!({ "name": "x" })).await;
    }
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(30), "{waited:?}");
    drop(idle);
}

#[tokio::test]
async fn a_full_house_has_room_again_when_the_silent_are_sent_away() {
    let server = Server::start(impatient().set("connections", 4)).await;
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(Raw::open(server.address).await);
    }
    let started = Instant::now();
    server.client().result("tools/list", json!({})).await;
    let waited = started.elapsed();
    assert!(
        waited > Duration::from_millis(WAIT_S * 1_000 / 2),
        "connections are not bounded: {waited:?}"
    );
    assert!(waited < 2 * OVER, "{waited:?}");
}
