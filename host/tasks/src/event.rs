//! What may happen to a task, and what follows. The rules are in `apply`.

use std::collections::BTreeMap;

use crate::id::{Json, Millis, NodeId};
use crate::task::{Failure, Progress, Task, Usage};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The guest said how it is doing; the newest counts.
    StatusChanged {
        /// A new line, or none to keep the old one.
        message: Option<String>,
        /// New numbers, or none to keep the old ones.
        progress: Option<Progress>,
    },
    /// The guest asked, all of it at once, under keys that this task has never used.
    Asked {
        /// What it asked.
        questions: Vec<NewQuestion>,
        /// When it stops waiting, if it does.
        wake_at: Option<Millis>,
    },
    /// Somebody answered; keys that wait for nothing are ignored.
    Answered(BTreeMap<String, Json>),
    /// The guest stopped waiting for what is still open.
    Withdrawn,
    /// Somebody wants it to stop.
    CancelRequested,
    /// A node takes it, to run it. Whoever says so of a task that another node owns has made sure that
    /// the other is dead.
    Claimed {
        /// The node.
        owner: NodeId,
    },
    /// The run made its journal durable, without anything that a client sees.
    Journalled {
        /// What its guest has used.
        usage: Usage,
    },
    /// The guest computes, and nothing came of it that could be recorded.
    Used {
        /// What it has used.
        usage: Usage,
    },
    /// The run waits for long and was put away. Decide again whether it still waits for the same before
    /// this is applied to a row that others have changed.
    Parked {
        /// When it goes on by itself: at a timer, or at the end of a question's wait.
        wake_at: Option<Millis>,
        /// What its guest has used.
        usage: Usage,
    },
    /// The process that owned it ends in good order.
    Released {
        /// What its guest has used.
        usage: Usage,
    },
    /// The process that owned it died without saying so.
    Died,
    /// The operator wants a task that was set aside to be tried again.
    Readmitted,
    /// Whoever made the call is told the id of the task, so that it can be read for longer after its end.
    Shown {
        /// From its end on, in milliseconds.
        retention_ms: u64,
    },
    /// The run ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// What its guest has used.
        usage: Usage,
    },
}

/// One question before it is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct NewQuestion {
    /// Its key on the wire.
    pub key: String,
    /// The request as the client sees it.
    pub request: Json,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With a result, which may say that the tool failed.
    Completed(Json),
    /// Without one.
    Failed(Failure),
    /// Because it was told to, with a line that says more if there is more to say.
    Cancelled(Option<String>),
}

/// A task after an event, and what must be done once it is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The next row.
    pub task: Task,
    /// What to do after the commit, and not before.
    pub effects: Vec<Effect>,
}

/// What must be done after the commit that justifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The run goes on: every question is settled, or the operator said so.
    Resume,
    /// Its run is to be told that it is cancelled.
    Cancel,
    /// Those who watch it are told.
    Notify,
}

/// Why an event changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The task has ended, and that never changes.
    #[error("the task has ended")]
    Ended,
    /// The event says nothing new.
    #[error("nothing changes")]
    Nothing,
    /// A task that is being cancelled asks nothing any more.
    #[error("the task is being cancelled")]
    Cancelling,
    /// The questions break a rule that the run must keep: a key was used before, or twice, or the
    /// list is empty, or earlier questions are still open.
    #[error("the questions cannot be asked now")]
    BadQuestions,
    /// Only a run can say this, or its death, and nobody runs the task.
    #[error("nobody runs the task")]
    Unowned,
    /// The node that claims the task has it already.
    #[error("this node has the task already")]
    Owned,
    /// The task was set aside and is not run until the operator says so.
    #[error("the task was set aside")]
    Quarantined,
}
