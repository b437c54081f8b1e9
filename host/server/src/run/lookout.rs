//! Tasks that no run is here for and that somebody sees to: which they are, and what keeps them from going on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use longshore_tasks::id::{Millis, TaskId};
use longshore_tasks::store::StoreError;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::reason::Refusal;

/// What keeps a task from going on that could, for now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeldUp {
    /// The store cannot be read or written now.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The component that it began with cannot be made ready here now.
    #[error("its component cannot be made ready now ({}): {}", .0.reason, .0.message)]
    Component(Refusal),
}

impl HeldUp {
    /// The longest time until it is tried again.
    fn longest(&self) -> Duration {
        match self {
            Self::Store(_) => Duration::from_secs(5),
            // To look at a component again takes much more than a look at a row.
            Self::Component(_) => Duration::from_secs(60),
        }
    }
}

/// An attempt that came to nothing.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) held_up: HeldUp,
    /// When the task is over in any case, if that is known.
    pub(crate) deadline_at: Option<Millis>,
}

impl From<StoreError> for Attempt {
    fn from(error: StoreError) -> Self {
        Self {
            held_up: error.into(),
            deadline_at: None,
        }
    }
}

/// How long it is until the next attempt, and whether this one is worth a line in the log.
pub(crate) struct Patience {
    pause: Duration,
    attempts: u32,
    said: String,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            pause: Duration::from_millis(100),
            attempts: 0,
            said: String::new(),
        }
    }
}

impl Patience {
    /// After another attempt. What has been said is said again after twice as many attempts as the last time.
    pub(crate) fn after(&mut self, attempt: &Attempt, now: Millis) -> (Duration, bool) {
        let why = attempt.held_up.to_string();
        if why != self.said {
            self.said = why;
            self.attempts = 0;
        }
        self.attempts = self.attempts.saturating_add(1);
        let pause = self.pause;
        self.pause = (pause * 2).min(attempt.held_up.longest());
        let left = attempt
            .deadline_at
            .map_or(Duration::MAX, |at| Duration::from_millis(at.since(now)));
        (pause.min(left), self.attempts.is_power_of_two())
    }
}

/// The tasks that are being seen to.
#[derive(Default)]
pub(crate) struct Lookout(Mutex<HashMap<TaskId, Seen>>);

struct Seen {
    /// Something happened to it meanwhile.
    again: bool,
    knock: Arc<Notify>,
    held_up: Option<String>,
}

impl Lookout {
    /// Begins to see to a task; none if somebody does already, who then looks again.
    pub(super) fn begin(&self, id: TaskId) -> Option<Arc<Notify>> {
        let mut seen = self.0.lock();
        if let Some(seen) = seen.get_mut(&id) {
            seen.again = true;
            seen.knock.notify_one();
            return None;
        }
        let knock = Arc::<Notify>::default();
        let new = Seen {
            again: false,
            knock: Arc::clone(&knock),
            held_up: None,
        };
        seen.insert(id, new);
        Some(knock)
    }

    /// Whether nothing happened to it since the last look; then nobody sees to it any more.
    pub(super) fn is_over(&self, id: TaskId) -> bool {
        let mut seen = self.0.lock();
        match seen.get_mut(&id) {
            Some(seen) if seen.again => {
                seen.again = false;
                seen.held_up = None;
                false
            }
            _ => {
                seen.remove(&id);
                true
            }
        }
    }

    /// Nobody sees to it any more, whatever happened.
    pub(super) fn forget(&self, id: TaskId) {
        self.0.lock().remove(&id);
    }

    /// What keeps it from going on.
    pub(super) fn note(&self, id: TaskId, why: String) {
        if let Some(seen) = self.0.lock().get_mut(&id) {
            seen.again = false;
            seen.held_up = Some(why);
        }
    }

    /// What keeps a task from going on, if anything does.
    pub(crate) fn held_up(&self, id: TaskId) -> Option<String> {
        self.0.lock().get(&id)?.held_up.clone()
    }

    /// What kept tasks from going on may be over: all of them are tried again.
    pub(crate) fn try_all_again(&self) {
        for seen in self.0.lock().values() {
            if seen.held_up.is_some() {
                seen.knock.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn attempt(why: &str, deadline_at: Option<Millis>) -> Attempt {
        Attempt {
            held_up: HeldUp::Component(Refusal::new("compile-limit", why)),
            deadline_at,
        }
    }

    #[test]
    fn the_pauses_grow_up_to_the_deadline_and_the_same_is_said_rarely() {
        let mut patience = Patience::default();
        let now = Millis(1_000_000);
        let mut told = 0;
        let mut last = Duration::ZERO;
        for _ in 0..100 {
            let (pause, tells) = patience.after(&attempt("slow", None), now);
            assert!(last <= pause && pause <= Duration::from_secs(60));
            last = pause;
            told += u32::from(tells);
        }
        assert_eq!((told, last), (7, Duration::from_secs(60)));
        // Something else is news.
        let (pause, tells) = patience.after(&attempt("crashed", Some(now.plus(7))), now);
        assert_eq!((pause, tells), (Duration::from_millis(7), true));
        // A store is looked at more often.
        let store = Attempt::from(StoreError::Unavailable("full".to_owned()));
        patience.after(&store, now);
        assert_eq!(patience.after(&store, now).0, Duration::from_secs(5));
    }

    #[tokio::test]
    async fn whoever_sees_to_a_task_hears_of_all_that_happens_to_it() {
        let lookout = Lookout::default();
        let id = TaskId(Uuid::from_u128(1));
        let knock = lookout.begin(id).expect("nobody does");
        assert!(lookout.begin(id).is_none());
        knock.notified().await;
        assert!(!lookout.is_over(id));
        lookout.note(id, "slow".to_owned());
        assert_eq!(lookout.held_up(id).as_deref(), Some("slow"));
        lookout.try_all_again();
        knock.notified().await;
        assert!(lookout.is_over(id));
        assert_eq!(lookout.held_up(id), None);
        assert!(lookout.begin(id).is_some());
    }
}
