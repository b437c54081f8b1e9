//! What waits for a run's driver. Everything but a question is overwritten by the newest, so a desk
//! holds little however fast a guest writes.

use longshore_journal::call::{Answer, AskError, Question};
use longshore_tasks::task::{Progress, Task};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// Where the guest and clients leave things for a run's driver.
#[derive(Default)]
pub(crate) struct Desk {
    inbox: Mutex<Inbox>,
    knock: Notify,
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
    /// The row as somebody else committed it.
    pub(crate) row: Option<Box<Task>>,
    /// Nobody holds the call any more.
    pub(crate) gone: bool,
}

/// What a guest asks.
pub(crate) struct Asking {
    pub(crate) questions: Vec<Question>,
    pub(crate) wait_ms: Option<u64>,
    pub(crate) reply: oneshot::Sender<Result<Vec<Answer>, AskError>>,
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

    /// Returns once something was left.
    pub(crate) async fn knocked(&self) {
        self.knock.notified().await;
    }

    /// Takes all of it.
    pub(crate) fn take(&self) -> Inbox {
        std::mem::take(&mut self.inbox.lock())
    }
}
