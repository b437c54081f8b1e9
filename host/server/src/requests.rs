//! Requests of one client that are being answered, by their ids.

use std::collections::HashMap;
use std::sync::Arc;

use longshore_protocol::envelope::RequestId;
use longshore_protocol::error::RpcError;
use parking_lot::Mutex;

use crate::errors;
use crate::presence::{self, Presence, Stays};

/// Those of one client.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// So many have begun.
    begun: u64,
    /// Each with its number, and with what says that its answer is still wanted.
    live: HashMap<RequestId, (u64, Stays)>,
    is_over: bool,
}

/// A request that is being answered. Its id is free again when this is dropped.
pub(crate) struct Ticket {
    requests: Requests,
    id: RequestId,
    /// One that was cancelled may be dropped after its id is in use again.
    number: u64,
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Another one of its id is being answered.
    InUse,
    /// Its client has left.
    Over,
}

impl From<Refused> for RpcError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::InUse => Self::invalid_request("a request of that `id` is being answered"),
            Refused::Over => errors::no_session(true).error,
        }
    }
}

impl Requests {
    /// Begins to answer one.
    pub(crate) fn begin(&self, id: &RequestId) -> Result<(Ticket, Presence), Refused> {
        let (stays, presence) = presence::somebody();
        let mut inner = self.0.lock();
        if inner.is_over {
            return Err(Refused::Over);
        }
        if inner.live.contains_key(id) {
            return Err(Refused::InUse);
        }
        inner.begun += 1;
        let number = inner.begun;
        inner.live.insert(id.clone(), (number, stays));
        drop(inner);
        let ticket = Ticket {
            requests: self.clone(),
            id: id.clone(),
            number,
        };
        Ok((ticket, presence))
    }

    /// The answer to that one is not wanted any more. One that is over, or never was, is no fault.
    pub(crate) fn cancel(&self, id: &RequestId) {
        // Not under the lock: whoever answers it looks at once.
        let cancelled = self.0.lock().live.remove(id);
        drop(cancelled);
    }

    /// No answer is wanted any more, and nothing begins.
    pub(crate) fn end(&self) {
        let left = {
            let mut inner = self.0.lock();
            inner.is_over = true;
            std::mem::take(&mut inner.live)
        };
        drop(left);
    }
}

impl Ticket {
    /// Frees the id, before the client sees the answer: some use one id for all. False if it wants none any more.
    pub(crate) fn finish(self) -> bool {
        self.free()
    }

    fn free(&self) -> bool {
        let mut inner = self.requests.0.lock();
        let is_mine = inner
            .live
            .get(&self.id)
            .is_some_and(|(number, _)| *number == self.number);
        let mine = is_mine.then(|| inner.live.remove(&self.id));
        drop(inner);
        mine.is_some()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.free();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn id(json: &str) -> RequestId {
        RequestId::parse(json).unwrap()
    }

    #[tokio::test]
    async fn an_id_is_in_use_until_its_answer() {
        let requests = Requests::default();
        let (ticket, presence) = requests.begin(&id("1")).unwrap();
        assert_eq!(requests.begin(&id("1")).err(), Some(Refused::InUse));
        // A string is another id.
        let (other, _) = requests.begin(&id("\"1\"")).unwrap();
        assert!(presence.gone().now_or_never().is_none());
        assert!(ticket.finish());
        assert!(requests.begin(&id("1")).is_ok());
        drop(other);
        assert!(requests.begin(&id("\"1\"")).is_ok());
    }

    #[tokio::test]
    async fn a_cancelled_one_lets_go_of_nobody_elses() {
        let requests = Requests::default();
        let (first, presence) = requests.begin(&id("1")).unwrap();
        requests.cancel(&id("1"));
        presence.gone().await;
        let (second, presence) = requests.begin(&id("1")).unwrap();
        assert!(!first.finish());
        assert_eq!(requests.begin(&id("1")).err(), Some(Refused::InUse));
        assert!(presence.gone().now_or_never().is_none());
        assert!(second.finish());
    }

    #[tokio::test]
    async fn nothing_begins_after_the_end() {
        let requests = Requests::default();
        let (ticket, presence) = requests.begin(&id("1")).unwrap();
        requests.end();
        presence.gone().await;
        assert!(!ticket.finish());
        assert_eq!(requests.begin(&id("2")).err(), Some(Refused::Over));
    }
}
