//! What HTTP carries.

use std::net::SocketAddr;
use std::time::Duration;

use longshore_tests::http::{Reply, send};
use longshore_tests::mcp::Client;
use longshore_tests::process::Server;
use longshore_tests::wait;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::{Outcome, Reaching};

/// Much longer than anything here is told to wait.
const PATIENCE: Duration = Duration::from_secs(30);

fn small(bytes: u64) -> usize {
    usize::try_from(bytes).expect("it is small")
}

/// A request in order: its headers and its body.
fn request(server: &Server) -> (Vec<(String, String)>, String) {
    let request = server.client().request("tools/list", json!({}));
    (Client::headers(&request), request.to_string())
}

fn outcome(reply: &Reply, status: u16) -> Outcome {
    if reply.status == 200 {
        return Ok(());
    }
    let body = reply.json();
    assert_eq!(reply.status, status, "{body}");
    let reason = body["error"]["data"]["reason"].as_str();
    Err(reason.expect("a reason").to_owned())
}

async fn posted(server: &Server, headers: &[(String, String)], body: String) -> Reply {
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let reply = send(server.address, "POST", "/mcp", &headers, body).await;
    reply.expect("the server answers")
}

pub(super) fn body(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move {
        let (headers, body) = request(server);
        // White space belongs to no document.
        let padded = format!("{}{body}", " ".repeat(small(bytes) - body.len()));
        outcome(&posted(server, &headers, padded).await, 413)
    })
}

/// Those that a client library adds by itself.
fn added(server: &Server, body: &str) -> [(String, String); 2] {
    [
        ("host".to_owned(), server.address.to_string()),
        ("content-length".to_owned(), body.len().to_string()),
    ]
}

pub(super) fn headers(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let (mut headers, body) = request(server);
        let there = headers.len() + added(server, &body).len();
        headers.extend((there..small(count)).map(|n| (format!("x-{n}"), String::new())));
        outcome(&posted(server, &headers, body).await, 431)
    })
}

pub(super) fn header_bytes(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move {
        let (mut headers, body) = request(server);
        let written = |headers: &[(String, String)]| -> usize {
            headers
                .iter()
                .map(|(name, value)| name.len() + value.len() + 4)
                .sum()
        };
        let there = "/mcp".len() + written(&headers) + written(&added(server, &body));
        let filling = small(bytes) - there - "x".len() - 4;
        headers.push(("x".to_owned(), "v".repeat(filling)));
        outcome(&posted(server, &headers, body).await, 431)
    })
}

/// The head of a good request, in the bytes that a client writes.
fn head(server: &Server, length: usize) -> String {
    let (headers, _) = request(server);
    let lines: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\n{lines}content-length: {length}\r\n\r\n",
        server.address
    )
}

/// Reads until there is a whole answer, or the connection is closed.
async fn answer(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    let reading = async {
        loop {
            let text = String::from_utf8_lossy(&read).into_owned();
            if text.contains("\r\n\r\n") && text.ends_with('}') {
                return Some(text);
            }
            match stream.read_buf(&mut read).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("the server answers or hangs up")
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address)
        .await
        .expect("the server listens")
}

/// The rest comes at once, or never.
pub(super) fn slow_head(server: &Server, never: u64) -> Reaching<'_> {
    Box::pin(async move {
        let mut stream = connect(server.address).await;
        let (_, body) = request(server);
        let head = head(server, body.len());
        let (first, rest) = head.split_at(40);
        stream
            .write_all(first.as_bytes())
            .await
            .expect("it is read");
        if never == 0 {
            let rest = format!("{rest}{body}");
            stream.write_all(rest.as_bytes()).await.expect("it is read");
        }
        match answer(&mut stream).await {
            Some(_) => Ok(()),
            None => Err("closed".to_owned()),
        }
    })
}

pub(super) fn slow_body(server: &Server, never: u64) -> Reaching<'_> {
    Box::pin(async move {
        let mut stream = connect(server.address).await;
        let (_, body) = request(server);
        let (first, rest) = body.split_at(10);
        let begun = format!("{}{first}", head(server, body.len()));
        stream
            .write_all(begun.as_bytes())
            .await
            .expect("it is read");
        if never == 0 {
            stream.write_all(rest.as_bytes()).await.expect("it is read");
        }
        let answer = answer(&mut stream).await.expect("it is told why");
        if answer.starts_with("HTTP/1.1 200 ") {
            return Ok(());
        }
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        let (_, reason) = answer.split_once("\"reason\":\"").expect("a reason");
        Err(reason.split('"').next().unwrap_or_default().to_owned())
    })
}

/// A call with an answer of that size, as it is written.
fn large_call(server: &Server, bytes: usize) -> String {
    let call = json!({ "name": "large", "arguments": { "bytes": bytes } });
    // One that waits, and is given no task in its place.
    let call = Client::plain(server.address).request("tools/call", call);
    let lines: String = Client::headers(&call)
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let body = call.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\n{lines}content-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    )
}

/// A connection that takes in next to nothing by itself.
async fn narrow(server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket can be made");
    socket
        .set_recv_buffer_size(4096)
        .expect("the option is known");
    let stream = socket.connect(server.address).await;
    stream.expect("the server listens")
}

/// Clients that ask for more than the system takes in and do not read it, beside one that reads.
pub(super) fn unread_by_all(server: &Server, count: u64) -> Reaching<'_> {
    const FAR_MORE: usize = 16 << 20;
    Box::pin(async move {
        let call = json!({ "name": "large", "arguments": { "bytes": 100_000 } });
        let answer = async || {
            let reply = server.client().send("tools/call", call.clone()).await;
            outcome(&reply.expect("the server answers"), 503)
        };
        if count == 0 {
            return answer().await;
        }
        let mut silent = Vec::new();
        for _ in 0..count {
            let mut stream = narrow(server).await;
            let call = large_call(server, FAR_MORE);
            stream.write_all(call.as_bytes()).await.expect("it is read");
            silent.push(stream);
        }
        let refused = wait::until("the room to be taken", PATIENCE, || async {
            answer().await.err()
        })
        .await;
        // Small answers need none of it.
        server.client().result("tools/list", json!({})).await;
        drop(silent);
        wait::until("the room to be free again", PATIENCE, || async {
            answer().await.ok()
        })
        .await;
        Err(refused)
    })
}

/// More answers than all buffers on the way hold, read at once or not until it is too late.
pub(super) fn unread(server: &Server, late: u64) -> Reaching<'_> {
    const ANSWERS: usize = 16;
    Box::pin(async move {
        let mut stream = narrow(server).await;
        let sent = large_call(server, 1_000_000).repeat(ANSWERS);
        stream.write_all(sent.as_bytes()).await.expect("it is read");
        if late > 0 {
            // The server says nothing when it gives a connection up: its own figures show that one is gone.
            let fds = async || {
                let figures = server.figures().await;
                figures["process"]["fds"]
                    .as_u64()
                    .expect("the system tells")
            };
            let with_it = fds().await;
            wait::until("it to be given up", PATIENCE, || async {
                (fds().await < with_it).then_some(())
            })
            .await;
        }
        let mut read = 0;
        let mut part = vec![0; 1 << 16];
        let reading = async {
            // The connection stays open for more once all is read.
            while read < ANSWERS * 1_000_000 {
                match stream.read(&mut part).await {
                    Ok(0) | Err(_) => return Err("closed".to_owned()),
                    Ok(more) => read += more,
                }
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("the server answers or hangs up")
    })
}

/// Connections that stay open, each with one answer.
pub(super) fn connections(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let (_, body) = request(server);
        let whole = format!("{}{body}", head(server, body.len()));
        let mut open = Vec::new();
        for _ in 0..count {
            let mut stream = connect(server.address).await;
            stream
                .write_all(whole.as_bytes())
                .await
                .expect("it is sent");
            // Who has to wait is not answered; a second is more than an answer takes.
            let answered = tokio::time::timeout(Duration::from_secs(1), answer(&mut stream)).await;
            if answered.is_ok() {
                open.push(stream);
                continue;
            }
            // It has its turn once another leaves.
            drop(open.pop());
            answer(&mut stream).await.expect("it is answered then");
            return Err("waits".to_owned());
        }
        Ok(())
    })
}
