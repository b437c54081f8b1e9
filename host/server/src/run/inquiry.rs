//! Questions of a held call, on their way to whoever holds it, and the answers on their way back.

use std::collections::VecDeque;
use std::sync::Arc;

use longshore_journal::call::AskError;
use longshore_tasks::id::{Json, TaskId};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::desk::Desk;

/// A question that is to be put to the caller.
#[derive(Clone, Debug)]
pub struct Put {
    /// Its key, unique in the life of the call.
    pub key: String,
    /// The request, one JSON text; an answer is checked against it.
    pub request: String,
}

/// What whoever holds the call is to do.
#[derive(Clone, Debug)]
pub enum Inquiry {
    /// Ask all of these; the guest goes on once all are answered.
    Put(Vec<Put>),
    /// Nobody waits for the answers to these any more.
    Withdrawn(Vec<String>),
}

/// What waits to be taken away. A guest asks nothing before it is answered, so this is little.
#[derive(Default)]
pub(crate) struct Inquiries {
    waiting: Mutex<VecDeque<Inquiry>>,
    knock: Notify,
}

impl Inquiries {
    pub(crate) fn leave(&self, inquiry: Inquiry) {
        self.waiting.lock().push_back(inquiry);
        self.knock.notify_one();
    }

    /// The next, once there is one.
    pub(crate) async fn next(&self) -> Inquiry {
        loop {
            if let Some(inquiry) = self.waiting.lock().pop_front() {
                return inquiry;
            }
            self.knock.notified().await;
        }
    }
}

/// Who asks, and so where the answers go.
#[derive(Clone)]
pub enum By {
    /// A call, for as long as it is held.
    Call(Answers),
    /// A run with a row.
    Row(TaskId),
}

/// Where the answers to a call go, for as long as it is held.
#[derive(Clone)]
pub struct Answers(pub(in crate::run) Arc<Desk>);

impl Answers {
    /// Hands one in: a text that was found to fit its question, or why there is none.
    pub(crate) fn hand_in(&self, key: String, answer: Result<Json, AskError>) {
        self.0.leave(|inbox| inbox.answers.push((key, answer)));
    }
}
