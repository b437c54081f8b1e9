//! One request and its answer over a connection.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anyhow::anyhow;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// More than the largest task with everything that it printed.
const ANSWER_BYTES: usize = 64 << 20;
/// A larger body is not sent before the server wants it. It may refuse by the length alone, and then
/// closes a connection that is still being written to, which can destroy its answer on the way.
const UNASKED_BYTES: usize = 64 * 1024;
/// How long to wait for that: a server need not say anything.
const ASKED_WITHIN: Duration = Duration::from_secs(1);

/// Sends the request, and reads the whole answer.
pub(crate) async fn exchange(
    stream: TcpStream,
    request: Request<Bytes>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let answered = async {
        let response: Response<Incoming> = sender.send_request(patient(request)).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES)
            .collect()
            .await
            .map_err(|error| anyhow!(error))?;
        Ok((status, body.to_bytes()))
    };
    tokio::pin!(answered);
    // The connection does its work only while it is polled; an answer that came before it broke counts.
    tokio::select! {
        answer = &mut answered => answer,
        _ended = connection => answered.await,
    }
}

/// The request, with its body held back if it is large.
fn patient(request: Request<Bytes>) -> Request<HeldBack> {
    let is_large = request.body().len() > UNASKED_BYTES;
    let mut request = request.map(HeldBack::sent_at_once);
    if is_large {
        let asked = Arc::new(Notify::new());
        request
            .headers_mut()
            .insert(header::EXPECT, HeaderValue::from_static("100-continue"));
        request.body_mut().until = Some(Box::pin({
            let asked = Arc::clone(&asked);
            async move {
                // Either way the time to send has come.
                let _unasked = tokio::time::timeout(ASKED_WITHIN, asked.notified()).await;
            }
        }));
        hyper::ext::on_informational(&mut request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                asked.notify_one();
            }
        });
    }
    request
}

/// A body in one piece, sent when its time has come.
struct HeldBack {
    until: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    piece: Bytes,
}

impl HeldBack {
    fn sent_at_once(piece: Bytes) -> Self {
        Self { until: None, piece }
    }
}

impl Body for HeldBack {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(until) = &mut self.until {
            ready!(until.as_mut().poll(cx));
            self.until = None;
        }
        let piece = std::mem::take(&mut self.piece);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.piece.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that reads the head, says something, and maybe reads the body. How much body it saw.
    async fn check(
        body: usize,
        says: &'static str,
        reads: bool,
    ) -> (anyhow::Result<(StatusCode, Bytes)>, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut accepted, _) = listener.accept().await.unwrap();
        let request = Request::put("/")
            .header(header::HOST, "x")
            .body(Bytes::from(vec![b'x'; body]))
            .unwrap();
        let server = async move {
            let mut seen = Vec::new();
            let head = loop {
                if let Some(at) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
                    break at + 4;
                }
                assert_ne!(accepted.read_buf(&mut seen).await.unwrap(), 0);
            };
            accepted.write_all(says.as_bytes()).await.unwrap();
            while reads && seen.len() < head + body {
                assert_ne!(accepted.read_buf(&mut seen).await.unwrap(), 0);
            }
            if reads {
                accepted
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    .await
                    .unwrap();
            }
            seen.len() - head
        };
        tokio::join!(exchange(stream, request), server)
    }

    const LARGE: usize = 8 << 20;

    #[tokio::test]
    async fn a_large_body_waits_until_it_is_wanted() {
        let (answer, seen) = check(LARGE, "HTTP/1.1 100 Continue\r\n\r\n", true).await;
        assert_eq!(answer.unwrap(), (StatusCode::OK, Bytes::from_static(b"ok")));
        assert_eq!(seen, LARGE);
    }

    #[tokio::test]
    async fn a_refusal_by_length_arrives_whole() {
        let refusal =
            "HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig";
        let (answer, seen) = check(LARGE, refusal, false).await;
        assert_eq!(
            answer.unwrap(),
            (StatusCode::PAYLOAD_TOO_LARGE, Bytes::from_static(b"big"))
        );
        assert_eq!(seen, 0);
    }

    #[tokio::test]
    async fn a_server_that_does_not_ask_gets_it_all_the_same() {
        for body in [0, 1, UNASKED_BYTES, UNASKED_BYTES + 1] {
            let (answer, seen) = check(body, "", true).await;
            assert_eq!(answer.unwrap().0, StatusCode::OK, "{body}");
            assert_eq!(seen, body);
        }
    }
}
