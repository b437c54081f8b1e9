//! HTTP as plain as it gets: one connection a request, every header given by the test.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: http::HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Reply {
    /// The body as JSON: of a stream, its last message. Whether an answer comes as one depends on how long it takes.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        let kind = self.headers.get(http::header::CONTENT_TYPE);
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let text = String::from_utf8_lossy(&self.body);
        let last = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .rfind(|data| !data.is_empty());
        let message = match last {
            Some(last) if is_stream => last.as_bytes(),
            _ => &self.body,
        };
        serde_json::from_slice(message)
            .unwrap_or_else(|error| panic!("{error} in {}", String::from_utf8_lossy(&self.body)))
    }
}

/// Sends one request on a connection of its own. `Host` is the address unless a header says otherwise.
pub async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Reply> {
    let stream = TcpStream::connect(address)
        .await
        .with_context(|| format!("connecting to {address}"))?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let mut request = http::Request::builder().method(method).uri(path);
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        request = request.header("host", address.to_string());
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into()))?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok::<_, hyper::Error>(Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        })
    };
    let reply = tokio::time::timeout(Duration::from_secs(120), exchange)
        .await
        .context("no answer in 120 s")??;
    connection.abort();
    Ok(reply)
}
