//! A connection that is kept: for many requests, one after the other.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::http::Reply;
use crate::mcp::Client;

/// A request as it is sent over and over: written once, so that whoever measures a server does not
/// measure itself.
#[derive(Clone, Debug)]
pub struct Prepared {
    headers: HeaderMap,
    body: Bytes,
}

impl Prepared {
    /// A request of the protocol, as a client in order writes it.
    ///
    /// # Panics
    /// Never in practice.
    #[must_use]
    pub fn of(client: &Client, method: &str, params: Value) -> Self {
        let request = client.request(method, params);
        let mut headers: HeaderMap = Client::headers(&request)
            .iter()
            .map(|(name, value)| {
                let name = HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
                let value = HeaderValue::from_str(value).expect("a header's value");
                (name, value)
            })
            .collect();
        let host = HeaderValue::from_str(&client.address.to_string()).expect("a header's value");
        headers.insert(header::HOST, host);
        Self {
            headers,
            body: Bytes::from(request.to_string()),
        }
    }
}

/// A connection.
pub struct Kept {
    sender: SendRequest<Full<Bytes>>,
    connection: JoinHandle<()>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Kept {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(async move {
            // Whoever sends next finds out.
            let _ended = connection.await;
        });
        Ok(Self { sender, connection })
    }

    /// Sends a request and reads its whole answer.
    pub async fn send(&mut self, request: &Prepared) -> Result<Reply> {
        let mut sent = http::Request::new(Full::new(request.body.clone()));
        *sent.method_mut() = http::Method::POST;
        *sent.uri_mut() = http::Uri::from_static("/mcp");
        *sent.headers_mut() = request.headers.clone();
        self.sender.ready().await?;
        let (parts, body) = self.sender.send_request(sent).await?.into_parts();
        Ok(Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await?.to_bytes(),
        })
    }

    /// The result of a request, which is answered by one.
    pub async fn result(&mut self, request: &Prepared) -> Result<Value> {
        let reply = self.send(request).await?;
        let mut body: Value = serde_json::from_slice(&reply.body)?;
        ensure!(reply.status == 200, "status {}: {body}", reply.status);
        ensure!(body.get("error").is_none(), "{body}");
        Ok(body["result"].take())
    }

    /// How long one request takes.
    pub async fn time(&mut self, request: &Prepared) -> Result<Duration> {
        let began = Instant::now();
        let reply = self.send(request).await?;
        ensure!(reply.status == 200, "status {}", reply.status);
        Ok(began.elapsed())
    }
}
