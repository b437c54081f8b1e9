//! Answers that are not taken in yet: a common bound on their bytes.

use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::admin::ApiError;
use crate::dispatch::DispatchError;
use crate::reason::RunReason;

/// Answers up to here are not counted: the system takes them in whole whether or not anybody reads, and as many as there
/// are connections are few bytes beside the rest of each.
const SMALL: usize = 64 * 1024;
/// Bytes are counted in portions of this size.
const PORTION: usize = 1024;

const FULL: &str =
    "too many bytes of answers wait to be taken in by their clients (answers_mib): try again later";

/// The bytes of all large answers that are written to nobody yet, over all connections: a client that asks and does not
/// read costs no more than that, however often it does so. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Unread {
    room: Arc<Semaphore>,
    portions: usize,
}

impl Unread {
    pub(super) fn new(bytes: usize) -> Self {
        let portions = (bytes / PORTION).min(Semaphore::MAX_PERMITS);
        Self {
            room: Arc::new(Semaphore::new(portions)),
            portions,
        }
    }

    /// The text as bytes that count until they are written or dropped; nothing if there is no room for them. It is not
    /// waited for, since a text that waits is in memory like one that is sent. One that is larger than all the room is
    /// sent alone.
    pub(super) fn hold<T>(&self, text: T) -> Option<Bytes>
    where
        T: AsRef<[u8]> + Send + 'static,
    {
        let size = text.as_ref().len();
        let place = if size > SMALL {
            let portions = size.div_ceil(PORTION).min(self.portions);
            let portions = u32::try_from(portions).ok()?;
            let room = Arc::clone(&self.room);
            Some(room.try_acquire_many_owned(portions).ok()?)
        } else {
            None
        };
        Some(Bytes::from_owner(Held {
            text,
            _place: place,
        }))
    }

    /// An answer that is written already, if there is room for it.
    pub(super) async fn bound(&self, response: Response) -> Response {
        let size = response.body().size_hint().exact();
        if size.is_none_or(|size| size <= SMALL as u64) {
            return response;
        }
        let (parts, body) = response.into_parts();
        let bytes = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes);
        match bytes.ok().and_then(|bytes| self.hold(bytes)) {
            Some(bytes) => Response::from_parts(parts, Body::from(bytes)),
            None => {
                let busy = RunReason::Busy.as_str();
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, busy, FULL).into_response()
            }
        }
    }

    /// Bytes that count now, in KiB.
    pub(super) fn held_kib(&self) -> usize {
        self.portions - self.room.available_permits()
    }
}

/// What is told in place of an answer that there is no room for.
pub(super) fn full() -> DispatchError {
    DispatchError::NoRoom {
        reason: RunReason::Busy,
        message: FULL,
    }
}

struct Held<T> {
    text: T,
    _place: Option<OwnedSemaphorePermit>,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Held<T> {
    fn as_ref(&self) -> &[u8] {
        self.text.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(size: usize) -> String {
        "x".repeat(size)
    }

    #[test]
    fn large_answers_share_the_room_and_give_it_back() {
        let unread = Unread::new(4 * SMALL);
        let first = unread.hold(text(2 * SMALL)).expect("there is room");
        let second = unread.hold(text(2 * SMALL)).expect("there is room");
        assert!(unread.hold(text(SMALL + 1)).is_none());
        assert_eq!(unread.held_kib(), 4 * SMALL / PORTION);
        // Part of it is still to be written.
        let rest = first.slice(1..);
        drop(first);
        assert!(unread.hold(text(SMALL + 1)).is_none());
        drop(rest);
        assert!(unread.hold(text(SMALL + 1)).is_some());
        drop(second);
        assert_eq!(unread.held_kib(), 0);
    }

    #[test]
    fn small_answers_need_no_room_and_one_that_is_too_large_has_it_alone() {
        let unread = Unread::new(2 * SMALL);
        let large = unread.hold(text(9 * SMALL)).expect("it is alone");
        assert_eq!(large.len(), 9 * SMALL);
        assert!(unread.hold(text(SMALL + 1)).is_none());
        assert_eq!(
            unread.hold(text(SMALL)).map(|bytes| bytes.len()),
            Some(SMALL)
        );
        drop(large);
        assert!(unread.hold(text(SMALL + 1)).is_some());
    }
}
