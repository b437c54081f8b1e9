//! Answers of more than one message, as an event stream. Without event ids a stream that broke cannot be taken up again
//! (MCP 2026-07-28, Streamable HTTP); sessions give them.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};

use super::unread::Unread;

/// A comment goes out after this long without an event: proxies close what is silent for 30 s or more.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An answer of these messages, each one line of JSON.
pub(super) fn respond(
    unread: &Unread,
    messages: impl Stream<Item = String> + Send + 'static,
) -> Response {
    respond_frames(unread, messages.map(|message| frame(&message)))
}

/// A message as an event.
pub(super) fn frame(message: &str) -> String {
    format!("data: {message}\n\n")
}

/// An answer of these events, each written out with its end. It ends before one that there is no room for.
pub(super) fn respond_frames(
    unread: &Unread,
    events: impl Stream<Item = String> + Send + 'static,
) -> Response {
    let unread = unread.clone();
    respond_bytes(events.scan((), move |(), event| std::future::ready(unread.hold(event))))
}

/// An answer of these events, which there is room for.
pub(super) fn respond_bytes(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Proxies of one kind hold a stream back until a buffer is full unless they are told not to.
        (ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(frames(events, KEEP_ALIVE))).into_response()
}

fn frames(
    events: impl Stream<Item = Bytes> + Send + 'static,
    keep_alive: Duration,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    stream::unfold(Box::pin(events), move |mut events| async move {
        let frame = match tokio::time::timeout(keep_alive, events.next()).await {
            Ok(Some(event)) => event,
            Ok(None) => return None,
            Err(_) => Bytes::from_static(b": alive\n\n"),
        };
        Some((Ok(frame), events))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_stream_is_kept_alive() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let messages = stream::once(async { told.await.unwrap() });
        let mut frames = Box::pin(frames(messages, Duration::from_millis(5)));
        let mut next = async || frames.next().await.map(Result::unwrap);
        assert_eq!(next().await.unwrap(), ": alive\n\n");
        tell.send(Bytes::from_static(b"data: {}\n\n")).unwrap();
        let message = loop {
            let frame = next().await.unwrap();
            if frame != ": alive\n\n" {
                break frame;
            }
        };
        assert_eq!(message, "data: {}\n\n");
        assert_eq!(next().await, None);
    }
}
