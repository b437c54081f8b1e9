//! Native code of a component that is served, perhaps before it is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longshore_sandbox::sandbox::Prepared;
use tokio::sync::Notify;

use crate::presence::Presence;
use crate::reason::{Refusal, RunReason};

/// The code, once it is there. Clones are the same.
#[derive(Clone)]
pub(crate) struct Code(Arc<Slot>);

struct Slot {
    done: OnceLock<Result<Prepared, Refusal>>,
    told: Notify,
    /// Somebody has waited for it.
    wanted: AtomicBool,
}

/// Why a call cannot have it.
#[derive(Debug)]
pub(crate) enum NoCode {
    /// It cannot be made.
    Refused(Refusal),
    /// It is not there yet, or its caller left.
    NotYet(RunReason),
}

impl Code {
    /// It is there.
    pub(crate) fn ready(prepared: Prepared) -> Self {
        let code = Self::pending();
        code.settle(Ok(prepared));
        code
    }

    /// Somebody makes it.
    pub(crate) fn pending() -> Self {
        Self(Arc::new(Slot {
            done: OnceLock::new(),
            told: Notify::new(),
            wanted: AtomicBool::new(false),
        }))
    }

    /// What came of making it; the first counts.
    pub(crate) fn settle(&self, outcome: Result<Prepared, Refusal>) {
        let _second_is_the_same = self.0.done.set(outcome);
        self.0.told.notify_waiters();
    }

    /// Whether somebody has waited for it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.wanted.load(Ordering::Relaxed)
    }

    /// Whether somebody still makes it.
    pub(crate) fn is_pending(&self) -> bool {
        self.0.done.get().is_none()
    }

    /// The code for a call, which waits for it for so long and no longer than its caller does.
    pub(crate) async fn get(&self, most: Duration, caller: &Presence) -> Result<Prepared, NoCode> {
        if let Some(done) = self.0.done.get() {
            return done.clone().map_err(NoCode::Refused);
        }
        tokio::select! {
            done = self.done() => done.clone().map_err(NoCode::Refused),
            () = tokio::time::sleep(most) => Err(NoCode::NotYet(RunReason::Busy)),
            () = caller.gone() => Err(NoCode::NotYet(RunReason::Abandoned)),
        }
    }

    /// The code for a run that goes on, which waits for it for as long as it has to.
    pub(crate) async fn made(&self) -> Result<Prepared, Refusal> {
        self.done().await.clone()
    }

    async fn done(&self) -> &Result<Prepared, Refusal> {
        self.0.wanted.store(true, Ordering::Relaxed);
        loop {
            let told = self.0.told.notified();
            tokio::pin!(told);
            // Registered before the look, so that news between the two is not missed.
            told.as_mut().enable();
            if let Some(done) = self.0.done.get() {
                return done;
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn whoever_waits_hears_what_came_of_it_and_nobody_waits_for_ever() {
        let code = Code::pending();
        assert!(code.is_pending() && !code.is_wanted());
        let late = code.get(Duration::from_millis(5), &Presence::ALWAYS).await;
        assert!(matches!(late, Err(NoCode::NotYet(RunReason::Busy))));
        assert!(code.is_wanted());
        let (stays, caller) = crate::presence::somebody();
        drop(stays);
        let gone = code.get(LONG, &caller).await;
        assert!(matches!(gone, Err(NoCode::NotYet(RunReason::Abandoned))));

        let refusal = Refusal::new("compile-limit", "too much");
        let (heard, ()) = tokio::join!(code.get(LONG, &Presence::ALWAYS), async {
            code.settle(Err(refusal.clone()));
        });
        assert!(matches!(heard, Err(NoCode::Refused(heard)) if heard == refusal));
        assert!(!code.is_pending());
    }
}
