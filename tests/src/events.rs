//! Answers that come as a stream of events, read as they come.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::mcp::Client;

/// How long a test waits for one event.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer whose body is still coming. Dropping it closes the connection.
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: http::HeaderMap,
    body: Incoming,
    read: BytesMut,
    connection: JoinHandle<()>,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// One event of a stream that can be read on.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where it stands.
    pub id: Option<String>,
    /// Its message; none if it only says where it stands.
    pub data: Option<Value>,
}

/// Sends a request on a connection of its own, and comes back with the head of its answer.
///
/// # Panics
/// If there is none.
pub async fn open(address: SocketAddr, request: &Value) -> Answer {
    open_with(
        address,
        "POST",
        &Client::headers(request),
        request.to_string(),
    )
    .await
}

/// The same with any headers and any body.
///
/// # Panics
/// If there is no answer.
pub async fn open_with(
    address: SocketAddr,
    method: &str,
    headers: &[(String, String)],
    body: String,
) -> Answer {
    let way = Way {
        through: address,
        host: address,
    };
    open_by(way, method, headers, body).await
}

/// How a request reaches a server.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Whom it is sent to: the server, or somebody who passes it on.
    pub through: SocketAddr,
    /// Where the server is.
    pub host: SocketAddr,
}

/// The same by way of somebody else.
///
/// # Panics
/// If there is no answer.
pub async fn open_by(way: Way, method: &str, headers: &[(String, String)], body: String) -> Answer {
    let stream = TcpStream::connect(way.through)
        .await
        .expect("somebody listens");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .expect("a new connection is open");
    let connection = tokio::spawn(async move {
        let _the_test_reads_what_came = connection.await;
    });
    let mut sent = http::Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", way.host.to_string());
    for (name, value) in headers {
        sent = sent.header(name, value);
    }
    let sent = sent
        .body(Full::new(Bytes::from(body)))
        .expect("its headers are right");
    let response = tokio::time::timeout(PATIENCE, sender.send_request(sent))
        .await
        .expect("an answer begins in time")
        .expect("the server answers");
    let (parts, body) = response.into_parts();
    Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body,
        read: BytesMut::new(),
        connection,
    }
}

impl Answer {
    /// Whether it is a stream of events.
    ///
    /// # Panics
    /// If its headers contradict each other.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let is_stream = self.headers["content-type"] == "text/event-stream";
        assert_eq!(
            is_stream,
            self.headers
                .get("x-accel-buffering")
                .is_some_and(|value| value == "no")
        );
        is_stream
    }

    /// The next event, or none at the end of the stream.
    ///
    /// # Panics
    /// If it is not one `data` line with JSON, or does not come in time.
    pub async fn next(&mut self) -> Option<Value> {
        let event = self.text().await?;
        let data = event
            .strip_prefix("data: ")
            .unwrap_or_else(|| panic!("not only data: {event:?}"));
        Some(serde_json::from_str(data).expect("an event is one line of JSON"))
    }

    /// The next event of a stream whose events have ids, or none at its end.
    ///
    /// # Panics
    /// If it has other lines than `id` and `data`, or does not come in time.
    pub async fn event(&mut self) -> Option<Event> {
        let text = self.text().await?;
        let mut event = Event {
            id: None,
            data: None,
        };
        for line in text.lines().filter(|line| !line.is_empty()) {
            match line.split_once(": ").unwrap_or((line, "")) {
                ("id", id) => event.id = Some(id.to_owned()),
                ("data", "") => {}
                ("data", data) => {
                    event.data =
                        Some(serde_json::from_str(data).expect("data is one line of JSON"));
                }
                _ => panic!("neither id nor data: {text:?}"),
            }
        }
        Some(event)
    }

    /// The text of the next event.
    async fn text(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
                let event = self.read.split_to(end + 2);
                let event = std::str::from_utf8(&event).expect("an event is text");
                if event.starts_with(':') {
                    continue;
                }
                return Some(event.to_owned());
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame())
                .await
                .expect("the next event comes in time");
            let Some(frame) = frame else {
                assert!(self.read.is_empty(), "half an event: {:?}", self.read);
                return None;
            };
            let data = frame.expect("the stream is whole").into_data();
            self.read.extend_from_slice(&data.unwrap_or_default());
        }
    }

    /// Every event up to the end of the stream.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// The whole body, of an answer that is no stream.
    ///
    /// # Panics
    /// If it is not JSON.
    pub async fn json(mut self) -> Value {
        while let Some(frame) = self.body.frame().await {
            let data = frame.expect("the body is whole").into_data();
            self.read.extend_from_slice(&data.unwrap_or_default());
        }
        serde_json::from_slice(&self.read).expect("the body is JSON")
    }
}
