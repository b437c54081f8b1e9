//! A run that waits for a person or a far clock: it gives its place to others, and after a while its
//! memory. Its journal brings it back.

use std::pin::Pin;
use std::time::Duration;

use longshore_sandbox::control::StopReason;
use longshore_tasks::event::Event;
use longshore_tasks::id::Millis;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::row::{Change, Patience};
use super::{Carrier, Driver};
use crate::admission::Place;
use crate::clock;

/// A run that cost much to bring back is kept for so many times as long.
const WORTH: u64 = 20;
/// But no longer than that.
const WARM_MOST: Duration = Duration::from_secs(60);

/// How often a run that is to be let go of is looked at, while a request of it is under way.
const LEAVE_LOOK: Duration = Duration::from_millis(20);

/// Whether a run has a place among those that run.
pub(crate) struct Seat {
    place: Option<Place>,
    entering: Option<Pin<Box<dyn Future<Output = Place> + Send + Sync>>>,
    /// It waits and keeps its memory, which only so many may.
    warm: Option<OwnedSemaphorePermit>,
    park_at: Option<Instant>,
    /// Held for as long as a run is here that may have brought a process down.
    _alone: Option<OwnedSemaphorePermit>,
}

impl Seat {
    pub(crate) fn taken(place: Place, alone: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            place: Some(place),
            entering: None,
            warm: None,
            park_at: None,
            _alone: alone,
        }
    }

    pub(super) fn park_at(&self) -> Option<Instant> {
        self.park_at
    }

    /// Returns once there is a place again, if one is waited for.
    pub(super) async fn entered(&mut self) {
        match &mut self.entering {
            Some(entering) => {
                self.place = Some(entering.await);
                self.entering = None;
                self.warm = None;
            }
            None => std::future::pending().await,
        }
    }
}

impl Driver {
    /// The guest waits. Whatever it waits for may take days.
    pub(super) fn pause(&mut self) {
        if matches!(self.carrier, Carrier::Held { .. }) && self.waiting.is_some() {
            // Nothing brings it back, so that it keeps its memory; and its place, if too many do that already.
            if let Ok(warm) = std::sync::Arc::clone(&self.server.warm).try_acquire_owned() {
                self.seat.warm = Some(warm);
                self.seat.place = None;
                self.seat.entering = None;
            }
            return;
        }
        if self.recorder.is_none() || !matches!(self.carrier, Carrier::Task(_)) {
            return;
        }
        if self.waiting.is_none() && self.resting.is_none() {
            return;
        }
        self.seat.place = None;
        self.seat.entering = None;
        let Ok(warm) = std::sync::Arc::clone(&self.server.warm).try_acquire_owned() else {
            self.seat.park_at = Some(Instant::now());
            return;
        };
        self.seat.warm = Some(warm);
        let usual = Duration::from_millis(self.server.settings.warm_ms);
        let debt = match &self.carrier {
            Carrier::Task(row) => self.usage().cpu_ms.saturating_sub(row.journal.base_cpu_ms),
            _ => 0,
        };
        let worth = Duration::from_millis(debt.saturating_mul(WORTH)).min(WARM_MOST);
        self.seat.park_at = Instant::now().checked_add(usual.max(worth));
    }

    /// What the guest waited for is there: it goes on as soon as it has a place.
    pub(super) fn sit_down(&mut self) {
        self.seat.park_at = None;
        if let Some(resting) = &mut self.resting {
            resting.is_over = true;
        }
        if self.seat.place.is_some() {
            self.go_on();
        } else if self.seat.entering.is_none() {
            let admission = self.server.admission.clone();
            let tenant = self.call.caller.tenant.clone();
            self.seat.entering = Some(Box::pin(
                async move { admission.enter_again(&tenant).await },
            ));
        }
    }

    /// There is a place.
    pub(super) fn go_on(&mut self) {
        self.settle_answered();
        if let Some(resting) = self.resting.take_if(|resting| resting.is_over) {
            let _guest_is_gone = resting.go.send(());
        }
    }

    /// Lets go of the instance. The row says when, or at what, the run goes on.
    pub(super) async fn park(&mut self) {
        self.seat.park_at = None;
        let is_answered = self
            .waiting
            .as_ref()
            .is_some_and(super::Waiting::is_answered);
        let must_stay = self
            .waiting
            .as_ref()
            .is_some_and(|waiting| !waiting.is_in_row());
        let is_task = matches!(self.carrier, Carrier::Task(_));
        if is_answered || must_stay || self.grace.is_some() || !is_task {
            return;
        }
        let wake_at: Option<Millis> = match (&self.waiting, &self.resting) {
            (Some(waiting), _) => waiting.wake_at(),
            (None, Some(resting)) => {
                let at = self.call.created_at.plus(resting.until_ms);
                let least = self.server.settings.park_from_ms;
                if at.since(clock::now()) < least {
                    // It is back before that would be worth it.
                    return;
                }
                Some(at)
            }
            (None, None) => return,
        };
        let mut events: Vec<Event> = self.take_unshown().into_iter().collect();
        events.push(Event::Parked {
            wake_at,
            usage: self.usage(),
        });
        self.let_go(events, StopReason::Parked).await;
    }

    /// The process goes down: the row says that somebody else can go on with the run.
    pub(super) async fn leave(&mut self) {
        let can_go_on = self.recorder.is_some()
            && self.grace.is_none()
            && matches!(self.carrier, Carrier::Task(_));
        if !can_go_on {
            self.server.runs.stays(self.call.id);
            return;
        }
        if self.tape.writes_under_way() > 0 {
            // What comes of it would never be known.
            self.leave_at = Some(Instant::now() + LEAVE_LOOK);
            return;
        }
        let mut events: Vec<Event> = self.take_unshown().into_iter().collect();
        events.push(Event::Released {
            usage: self.usage(),
        });
        self.let_go(events, StopReason::Shutdown).await;
        if !matches!(self.carrier, Carrier::LetGo) {
            // Somebody changed the row in between: once more with what they left.
            self.desk.leave(|inbox| inbox.leaving = true);
        }
    }

    async fn let_go(&mut self, events: Vec<Event>, reason: StopReason) {
        if !matches!(self.carrier, Carrier::Task(_)) {
            return;
        }
        // What a guest prints that does not wait goes on while this is written: whoever takes over prints it again.
        let is_still = self.waiting.is_some() || self.resting.is_some();
        let output = is_still.then(|| self.output_now());
        match self
            .commit_with(events, output.as_ref(), Patience::Once)
            .await
        {
            Change::Done => {
                self.carrier = Carrier::LetGo;
                self.server.sandbox.stop(&self.control, reason);
            }
            // Something came in between: the run goes on, and waits again if it has to.
            Change::Refused(_) | Change::Unavailable | Change::Lost => {
                if self.waiting.is_some() || self.resting.is_some() {
                    self.seat.park_at = Some(Instant::now() + Duration::from_secs(1));
                }
            }
        }
    }
}
