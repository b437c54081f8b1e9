//! What waits for a run's driver. Everything but questions and answers is overwritten by the newest, so a desk
//! holds little however fast a guest writes.

use std::sync::atomic::{AtomicBool, Ordering};

use longshore_journal::call::{Answer, AskError, Question};
use longshore_tasks::id::Json;
use longshore_tasks::task::{Progress, Task};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Where the guest and clients leave things for a run's driver.
#[derive(Default)]
pub(crate) struct Desk {
    inbox: Mutex<Inbox>,
    knock: Notify,
    has_changed: AtomicBool,
}

/// What came since the driver last looked.
#[derive(Default)]
pub(crate) struct Inbox {
    /// The newest line of status.
    pub(crate) message: Option<String>,
    /// The newest progress.
    pub(crate) progress: Option<Progress>,
    /// The guest says that nobody need wait.
    pub(crate) detach: bool,
    /// What the guest asks; it waits, so there is one at most.
    pub(crate) asking: Option<Asking>,
    /// Answers of whoever holds the call, by the keys of their questions.
    pub(crate) answers: Vec<(String, Result<Json, AskError>)>,
    /// The guest waits for a time that is not near.
    pub(crate) resting: Option<Resting>,
    /// The guest waits until all that it did is kept.
    pub(crate) settling: Option<oneshot::Sender<()>>,
    /// The row as somebody else committed it.
    pub(crate) row: Option<Box<Task>>,
    /// Nobody holds the call any more.
    pub(crate) gone: bool,
    /// The process goes down.
    pub(crate) leaving: bool,
}

/// What a guest asks.
pub(crate) struct Asking {
    pub(crate) questions: Vec<Question>,
    /// When it stops waiting, in milliseconds since the call was made.
    pub(crate) until: Option<u64>,
    /// An earlier process has put the question.
    pub(crate) before: bool,
    pub(crate) reply: oneshot::Sender<Result<Vec<Answer>, AskError>>,
}

/// A guest that waits for a time.
pub(crate) struct Resting {
    /// In milliseconds since the call was made.
    pub(crate) until_ms: u64,
    /// The same on this machine's clock.
    pub(crate) until: Instant,
    /// The time has come, and the run waits for a place to go on.
    pub(crate) is_over: bool,
    pub(crate) go: oneshot::Sender<()>,
}

impl Resting {
    /// When it is over, as long as it is not.
    pub(crate) fn until(&self) -> Option<Instant> {
        (!self.is_over).then_some(self.until)
    }
}

impl Desk {
    /// Leaves something.
    pub(crate) fn leave(&self, write: impl FnOnce(&mut Inbox)) {
        write(&mut self.inbox.lock());
        self.knock.notify_one();
    }

    /// Leaves a row, unless a newer one lies there.
    pub(crate) fn leave_row(&self, row: Task) {
        self.leave(|inbox| {
            if inbox
                .row
                .as_ref()
                .is_none_or(|there| there.version < row.version)
            {
                inbox.row = Some(Box::new(row));
            }
        });
    }

    /// The run changes what its component keeps, or leaves something.
    pub(crate) fn note_change(&self) {
        self.has_changed.store(true, Ordering::Release);
    }

    /// Whether it ever did.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed.load(Ordering::Acquire)
    }

    /// Returns once something was left.
    pub(crate) async fn knocked(&self) {
        self.knock.notified().await;
    }

    /// Takes all of it.
    pub(crate) fn take(&self) -> Inbox {
        std::mem::take(&mut self.inbox.lock())
    }
}
