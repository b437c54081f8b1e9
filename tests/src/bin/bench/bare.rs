//! The least that a server in Rust can do for a call: axum reads the body and gives back fixed bytes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// It in a process of its own, so that its CPU time can be told from all other.
pub(crate) struct Bare {
    child: Child,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Bare {
    /// Starts it; it answers everything with these bytes.
    pub(crate) async fn start(answer: &[u8]) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bare", std::str::from_utf8(answer)?])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("stdout is a pipe")?).lines();
        let address = lines.next_line().await?.context("its address")?.parse()?;
        Ok(Self { child, address })
    }

    pub(crate) fn pid(&self) -> Result<u32> {
        self.child.id().context("it lives")
    }
}

/// What every server of the protocol has to read of a request.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: &'a str,
    #[serde(borrow)]
    params: &'a RawValue,
}

/// The process itself.
pub(crate) async fn serve(answer: &str) -> Result<()> {
    let answer = Bytes::from(answer.to_owned());
    let handler = move |body: Bytes| {
        let answer = answer.clone();
        async move {
            let read: Result<Envelope<'_>, _> = serde_json::from_slice(&body);
            assert!(read.is_ok_and(|read| {
                read.method == "tools/call" && read.id.get() == "1" && read.params.get().len() > 2
            }));
            ([("content-type", "application/json")], answer)
        }
    };
    let router = axum::Router::new().route("/mcp", axum::routing::post(handler));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let router = router.clone();
        let service =
            hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let mut router = router.clone();
                async move {
                    let response: Result<_, Infallible> =
                        tower::Service::call(&mut router, request.map(axum::body::Body::new)).await;
                    response
                }
            });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            let _the_client_ends_it = connection.await;
        });
    }
}
