//! HTTP by the byte, for what no HTTP library would send.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use longshore_tests::http::Reply;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
pub(super) struct Raw {
    stream: TcpStream,
    /// What was read and not yet taken.
    kept: Vec<u8>,
}

impl Raw {
    pub(super) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the server accepts connections");
        stream.set_nodelay(true).expect("the option is known");
        Self {
            stream,
            kept: Vec::new(),
        }
    }

    /// Writes; whether all of it was taken is for the answer to show.
    pub(super) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _the_server_may_have_hung_up = self.stream.write_all(bytes.as_ref()).await;
    }

    /// The next whole answer; none if the connection is closed before it.
    pub(super) async fn reply(&mut self) -> Option<Reply> {
        let head_end = loop {
            if let Some(end) = find(&self.kept, b"\r\n\r\n") {
                break end;
            }
            if !self.read().await {
                assert!(
                    self.kept.is_empty(),
                    "half an answer: {}",
                    String::from_utf8_lossy(&self.kept)
                );
                return None;
            }
        };
        let head =
            String::from_utf8(self.kept.drain(..head_end + 4).collect()).expect("heads are text");
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .and_then(|word| word.parse().ok());
        let headers: HeaderMap = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| -> (HeaderName, HeaderValue) {
                (
                    name.parse().expect("a header's name"),
                    value.parse().expect("a header's value"),
                )
            })
            .collect();
        assert!(
            !headers.contains_key("transfer-encoding"),
            "answers have a length: {head}"
        );
        let length = headers
            .get("content-length")
            .and_then(|length| length.to_str().ok()?.parse().ok())
            .unwrap_or(0);
        while self.kept.len() < length {
            assert!(
                self.read().await,
                "the answer ends before its length: {head}"
            );
        }
        let body: Bytes = self.kept.drain(..length).collect::<Vec<u8>>().into();
        Some(Reply {
            status: status.expect("a status line"),
            headers,
            body,
        })
    }

    /// How long it takes the server to close the connection, without a word or after the answers it still owes.
    pub(super) async fn closed(&mut self) -> Duration {
        let started = Instant::now();
        while self.read().await {}
        started.elapsed()
    }

    /// Reads some more; false at the end.
    async fn read(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.kept)).await;
        read.expect("the server neither answers nor hangs up")
            .is_ok_and(|length| length > 0)
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
