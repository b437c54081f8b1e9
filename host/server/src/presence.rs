//! Whether somebody still waits for what a request asks.
//!
//! What a request begins is done to its end, so the work is not dropped when its client leaves. Where it has begun
//! nothing yet and only waits, it has to look.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Held by whoever waits; letting go of it is leaving.
pub(crate) struct Stays(Arc<Shared>);

/// What can be seen of that.
#[derive(Clone, Debug)]
pub struct Presence(Option<Arc<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    gone: AtomicBool,
    told: Notify,
}

/// Somebody, and what can be seen of them.
pub(crate) fn somebody() -> (Stays, Presence) {
    let shared = Arc::<Shared>::default();
    (Stays(Arc::clone(&shared)), Presence(Some(shared)))
}

impl Drop for Stays {
    fn drop(&mut self) {
        self.0.gone.store(true, Ordering::Release);
        self.0.told.notify_waiters();
    }
}

impl Presence {
    /// Of whoever drops the work itself when they leave.
    pub(crate) const ALWAYS: Self = Self(None);

    /// Returns once they are gone.
    pub(crate) async fn gone(&self) {
        let Some(shared) = &self.0 else {
            return std::future::pending().await;
        };
        loop {
            let told = shared.told.notified();
            tokio::pin!(told);
            // Registered before the look, so that leaving between the two is not missed.
            told.as_mut().enable();
            if shared.gone.load(Ordering::Acquire) {
                return;
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn leaving_is_seen() {
        let (stays, presence) = somebody();
        assert!(presence.gone().now_or_never().is_none());
        assert!(Presence::ALWAYS.gone().now_or_never().is_none());
        drop(stays);
        presence.gone().await;
        presence.clone().gone().await;
    }
}
