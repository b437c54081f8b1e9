//! How a run is told to stop, first kindly, then not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use tokio::sync::Notify;

/// Why a run was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was cancelled and did not end by itself in its grace.
    Cancelled,
    /// It ran for longer than it may.
    WallLimit,
    /// Its deadline passed.
    Expired,
    /// Nobody waits for it any more.
    Abandoned,
    /// The process is going down.
    Shutdown,
    /// It waits for long, and its memory is wanted back. Its journal brings it there again.
    Parked,
}

impl StopReason {
    fn code(self) -> u8 {
        match self {
            Self::Cancelled => 1,
            Self::WallLimit => 2,
            Self::Expired => 3,
            Self::Abandoned => 4,
            Self::Shutdown => 5,
            Self::Parked => 6,
        }
    }

    fn of(code: u8) -> Option<Self> {
        [
            Self::Cancelled,
            Self::WallLimit,
            Self::Expired,
            Self::Abandoned,
            Self::Shutdown,
            Self::Parked,
        ]
        .into_iter()
        .find(|reason| reason.code() == code)
    }
}

/// The two ends of one run's reins: its owner pulls, the run looks.
#[derive(Clone, Default)]
pub struct Control {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    stopped: AtomicU8,
    /// The guest has looked at `is-cancelled`, or waits where a cancel reaches it.
    cooperates: AtomicBool,
    changed: Notify,
    /// Names the run among those of its process; 0 before it is started.
    run: AtomicU64,
}

impl Control {
    /// Lets the guest see that it is cancelled: waits end, `is-cancelled` turns true.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Release);
        self.shared.changed.notify_waiters();
    }

    /// Ties the reins to a run.
    pub(crate) fn tie(&self, run: u64) {
        self.shared.run.store(run, Ordering::Release);
    }

    /// The run that it is tied to.
    pub(crate) fn run(&self) -> u64 {
        self.shared.run.load(Ordering::Acquire)
    }

    /// Whether the guest has been told.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    /// Whether a grace makes sense: the guest has ever looked at its cancellation, or waits in a
    /// call that a cancel ends.
    #[must_use]
    pub fn cooperates(&self) -> bool {
        self.shared.cooperates.load(Ordering::Acquire)
    }

    /// The guest looked, or waits where it would see.
    pub(crate) fn set_cooperates(&self) {
        self.shared.cooperates.store(true, Ordering::Release);
    }

    /// Ends the run at its next epoch or wait. The first reason stays. Call it through
    /// `Sandbox::stop`, which also wakes a guest that computes.
    pub(crate) fn stop(&self, reason: StopReason) {
        let _first_wins = self.shared.stopped.compare_exchange(
            0,
            reason.code(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        self.shared.changed.notify_waiters();
    }

    /// Why it is to stop, if it is.
    #[must_use]
    pub fn stopped(&self) -> Option<StopReason> {
        StopReason::of(self.shared.stopped.load(Ordering::Acquire))
    }

    /// Returns once the run is to stop.
    pub async fn until_stopped(&self) -> StopReason {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change between the two is not missed.
            changed.as_mut().enable();
            if let Some(reason) = self.stopped() {
                return reason;
            }
            changed.await;
        }
    }

    /// Returns once the guest is cancelled or the run is to stop.
    pub async fn until_cancelled(&self) {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_cancelled() || self.stopped().is_some() {
                return;
            }
            changed.await;
        }
    }
}
