//! Who may start a run now: a place is taken before anything is made for the call.
//!
//! [`Fair`] decides and knows no clock; [`Admission`] waits.

mod fair;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use longshore_tasks::id::Tenant;
use parking_lot::Mutex;
use tokio::sync::oneshot;

pub(crate) use self::fair::Bounds;
use self::fair::{Entry, Fair, Ticket};
use crate::presence::Presence;
use crate::reason::RunReason;

/// The places of one node, and the calls that wait for one.
#[derive(Clone)]
pub(crate) struct Admission {
    queue: Arc<Mutex<Fair<oneshot::Sender<Place>>>>,
    wait: Duration,
}

/// One place; it is free again when this is dropped.
pub(crate) struct Place {
    admission: Admission,
    tenant: Tenant,
}

/// What one tenant has of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Places.
    pub(crate) running: usize,
    /// Calls that wait for one.
    pub(crate) queued: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        // In one step, so that nobody who comes now is before those who wait.
        let next = {
            let mut queue = self.admission.queue.lock();
            queue.leave(&self.tenant);
            queue.next()
        };
        self.admission.hand_on(next);
    }
}

impl Admission {
    pub(crate) fn new(bounds: Bounds, wait: Duration) -> Self {
        Self {
            queue: Arc::new(Mutex::new(Fair::new(bounds))),
            wait,
        }
    }

    /// A place for a call of that tenant, now or within the wait, unless its caller leaves.
    pub(crate) async fn enter(
        &self,
        tenant: &Tenant,
        caller: &Presence,
    ) -> Result<Place, RunReason> {
        let mut waiting = None;
        let entry = self.queue.lock().enter(tenant, || {
            let (reply, place) = oneshot::channel();
            waiting = Some(place);
            reply
        });
        let (ticket, place) = match (entry, waiting) {
            (Entry::Taken, _) => return Ok(self.place(tenant)),
            (Entry::Queued(ticket), Some(place)) => (ticket, place),
            (Entry::Full | Entry::Queued(_), _) => return Err(RunReason::QueueFull),
        };
        let _in_queue = InQueue {
            admission: self,
            tenant,
            ticket,
        };
        tokio::select! {
            place = place => place.map_err(|_| RunReason::Busy),
            () = tokio::time::sleep(self.wait) => Err(RunReason::Busy),
            () = caller.gone() => Err(RunReason::Abandoned),
        }
    }

    /// A place for a run that goes on: it was admitted once, takes nobody's place in the queue, and waits for as long as
    /// it has to.
    pub(crate) async fn enter_again(&self, tenant: &Tenant) -> Place {
        let mut waiting = None;
        let entry = self.queue.lock().enter_again(tenant, || {
            let (reply, place) = oneshot::channel();
            waiting = Some(place);
            reply
        });
        let (Entry::Queued(ticket), Some(place)) = (entry, waiting) else {
            return self.place(tenant);
        };
        let _in_queue = InQueue {
            admission: self,
            tenant,
            ticket,
        };
        place
            .await
            .expect("whoever waits is handed a place, and nobody else takes it out of the queue")
    }

    /// What each tenant has that has anything.
    pub(crate) fn shares(&self) -> BTreeMap<Tenant, Share> {
        self.queue.lock().shares()
    }

    /// Calls that wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.lock().queued()
    }

    fn place(&self, tenant: &Tenant) -> Place {
        Place {
            admission: self.clone(),
            tenant: tenant.clone(),
        }
    }

    /// Gives free places to those whose turn it is. Not under the lock: a place whose caller has just left comes back
    /// here by being dropped.
    fn hand_on(&self, mut next: Option<(Tenant, oneshot::Sender<Place>)>) {
        while let Some((tenant, reply)) = next {
            let _comes_back_if_nobody_is_there = reply.send(self.place(&tenant));
            next = self.queue.lock().next();
        }
    }
}

/// A call that waits; it leaves the queue when this is dropped.
struct InQueue<'a> {
    admission: &'a Admission,
    tenant: &'a Tenant,
    ticket: Ticket,
}

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        self.admission
            .queue
            .lock()
            .give_up(self.tenant, self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(running: usize, queued: usize, wait: Duration) -> Admission {
        let bounds = Bounds {
            running,
            running_each: running,
            queued,
            queued_each: queued,
        };
        Admission::new(bounds, wait)
    }

    fn tenant() -> Tenant {
        Tenant("one".into())
    }

    const LONG: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn places_queue_and_refusals() {
        let admission = admission(1, 1, LONG);
        let held = admission
            .enter(&tenant(), &Presence::ALWAYS)
            .await
            .ok()
            .unwrap();

        let waiter = tokio::spawn({
            let admission = admission.clone();
            async move {
                admission
                    .enter(&tenant(), &Presence::ALWAYS)
                    .await
                    .map(|_| ())
            }
        });
        while admission.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            admission.enter(&tenant(), &Presence::ALWAYS).await.err(),
            Some(RunReason::QueueFull)
        );
        let shares = admission.shares();
        assert_eq!(
            shares[&tenant()],
            Share {
                running: 1,
                queued: 1
            }
        );

        drop(held);
        assert_eq!(waiter.await.unwrap(), Ok(()));
        assert_eq!(admission.waiting(), 0);
        assert!(admission.shares().is_empty());
    }

    #[tokio::test]
    async fn a_wait_ends() {
        let admission = admission(1, 1, Duration::from_millis(5));
        let _held = admission
            .enter(&tenant(), &Presence::ALWAYS)
            .await
            .ok()
            .unwrap();
        assert_eq!(
            admission.enter(&tenant(), &Presence::ALWAYS).await.err(),
            Some(RunReason::Busy)
        );
        assert_eq!(admission.waiting(), 0);
    }

    #[tokio::test]
    async fn who_leaves_waits_no_more() {
        let admission = admission(1, 1, LONG);
        let _held = admission.enter(&tenant(), &Presence::ALWAYS).await;
        let (stays, caller) = crate::presence::somebody();
        let waiting = tokio::spawn({
            let admission = admission.clone();
            async move { admission.enter(&tenant(), &caller).await.err() }
        });
        while admission.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        drop(stays);
        assert_eq!(waiting.await.unwrap(), Some(RunReason::Abandoned));
        assert_eq!(admission.waiting(), 0);
    }

    #[tokio::test]
    async fn no_queue_means_refusal_at_once() {
        let admission = admission(0, 0, LONG);
        assert_eq!(
            admission.enter(&tenant(), &Presence::ALWAYS).await.err(),
            Some(RunReason::QueueFull)
        );
    }

    #[tokio::test]
    async fn a_place_for_somebody_who_just_left_goes_to_the_next() {
        let admission = admission(1, 2, LONG);
        let held = admission
            .enter(&tenant(), &Presence::ALWAYS)
            .await
            .ok()
            .unwrap();
        let waiting = |_| {
            let admission = admission.clone();
            let mut entering =
                Box::pin(async move { admission.enter(&tenant(), &Presence::ALWAYS).await });
            // It stands in the queue from its first poll on.
            assert!(futures_util::FutureExt::now_or_never(&mut entering).is_none());
            entering
        };
        let [first, second] = [0, 1].map(waiting);
        // The place was sent and not received.
        drop(held);
        drop(first);
        assert!(second.await.is_ok());
        assert!(admission.shares().is_empty());
    }
}
