//! Who may start a run now: a place is taken before anything is made for the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::reason::RunReason;

/// The places of one node, and the calls that wait for one, first come first served.
#[derive(Clone)]
pub(crate) struct Admission {
    places: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    queued: usize,
    wait: Duration,
}

/// One place; it is free again when this is dropped.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Admission {
    pub(crate) fn new(running: usize, queued: usize, wait: Duration) -> Self {
        Self {
            places: Arc::new(Semaphore::new(running)),
            waiting: Arc::default(),
            queued,
            wait,
        }
    }

    /// A place, now or within the wait.
    pub(crate) async fn enter(&self) -> Result<Place, RunReason> {
        if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(Place { _permit: permit });
        }
        let _in_queue = Waiting::join(&self.waiting, self.queued).ok_or(RunReason::QueueFull)?;
        match tokio::time::timeout(self.wait, Arc::clone(&self.places).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Place { _permit: permit }),
            Ok(Err(_)) | Err(_) => Err(RunReason::Busy),
        }
    }

    /// Calls that wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }
}

/// One call in the queue; it leaves when this is dropped, also when its client goes away.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn join(waiting: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                (now < most).then_some(now + 1)
            })
            .ok()
            .map(|_| Self(Arc::clone(waiting)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn places_queue_and_refusals() {
        let admission = Admission::new(1, 1, Duration::from_secs(10));
        let held = admission.enter().await.ok().unwrap();

        let waiter = tokio::spawn({
            let admission = admission.clone();
            async move { admission.enter().await.map(|_| ()) }
        });
        while admission.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(admission.enter().await.err(), Some(RunReason::QueueFull));

        drop(held);
        assert_eq!(waiter.await.unwrap(), Ok(()));
        assert_eq!(admission.waiting(), 0);
    }

    #[tokio::test]
    async fn a_wait_ends() {
        let admission = Admission::new(1, 1, Duration::from_millis(5));
        let _held = admission.enter().await.ok().unwrap();
        assert_eq!(admission.enter().await.err(), Some(RunReason::Busy));
        assert_eq!(admission.waiting(), 0);
    }

    #[tokio::test]
    async fn no_queue_means_refusal_at_once() {
        let admission = Admission::new(0, 0, Duration::from_secs(10));
        assert_eq!(admission.enter().await.err(), Some(RunReason::QueueFull));
    }
}
