//! A relay between a client and the server, which notes what the client says: what is on the wire shows here, and not in
//! what a client tells of itself.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1 as client;
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A message from the client.
#[derive(Clone, Debug)]
pub struct Said {
    /// The headers of its request.
    pub headers: http::HeaderMap,
    /// The message, or nothing if the body was none.
    pub message: Value,
}

impl Said {
    /// Its method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }
}

/// A running relay. Dropping it ends it.
pub struct Tap {
    /// Where clients find it.
    pub address: SocketAddr,
    said: Arc<Mutex<Vec<Said>>>,
    relay: JoinHandle<()>,
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.relay.abort();
    }
}

impl Tap {
    /// Starts a relay to that server.
    ///
    /// # Panics
    /// If there is no port for it.
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("there is a free port");
        let address = listener.local_addr().expect("it listens");
        let said = Arc::<Mutex<Vec<Said>>>::default();
        let noted = Arc::clone(&said);
        let relay = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let noted = Arc::clone(&noted);
                tokio::spawn(async move {
                    let relay = service_fn(|request| pass_on(server, request, &noted));
                    let _the_client_may_be_gone = server::Builder::new()
                        .serve_connection(TokioIo::new(stream), relay)
                        .await;
                });
            }
        });
        Self {
            address,
            said,
            relay,
        }
    }

    /// Everything that the client said so far.
    ///
    /// # Panics
    /// Never in practice.
    #[must_use]
    pub fn said(&self) -> Vec<Said> {
        self.said.lock().expect("nobody panics with it").clone()
    }
}

/// Sends one request on as it came but for its host, on a connection of its own. The answer is not read here, so that a
/// stream arrives as it is sent, and a client that goes away is gone for the server too.
async fn pass_on(
    server: SocketAddr,
    request: http::Request<Incoming>,
    noted: &Mutex<Vec<Said>>,
) -> anyhow::Result<http::Response<Incoming>> {
    let (mut head, body) = request.into_parts();
    let body: Bytes = body.collect().await?.to_bytes();
    noted.lock().expect("nobody panics with it").push(Said {
        headers: head.headers.clone(),
        message: serde_json::from_slice(&body).unwrap_or_default(),
    });
    head.headers
        .insert(http::header::HOST, server.to_string().parse()?);
    let (mut sender, connection) =
        client::handshake(TokioIo::new(TcpStream::connect(server).await?)).await?;
    tokio::spawn(async move {
        let _the_answer_shows_it = connection.await;
    });
    let request = http::Request::from_parts(head, Full::new(body));
    Ok(sender.send_request(request).await?)
}
