//! The row: everything that is known of one task.

use crate::id::{Json, Millis, NodeId, Principal, TaskId, Tenant};
use crate::question::{Fate, Question};

/// One task. Only [`Task::apply`] makes the next one from it, and [`Task::append`] counts what is
/// journalled with that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub id: TaskId,
    /// What was fixed when it was made.
    pub pinned: Pinned,
    /// When it was made.
    pub created_at: Millis,
    /// When something that a client can see last changed.
    pub updated_at: Millis,
    /// When it ends as expired, if it has not ended before.
    pub deadline_at: Millis,
    /// How long it can be read after its end, in milliseconds.
    pub retention_ms: u64,
    /// Grows by one with each commit.
    pub version: u64,
    /// Who may run it.
    pub lease: Lease,
    /// How far its journal reaches.
    pub journal: JournalTail,
    /// The key of its journal, itself sealed, or none if it keeps no journal. Fixed when the task was
    /// made; without it nothing of the journal can be read.
    pub journal_key: Option<Vec<u8>>,
    /// What its guest has used so far.
    pub usage: Usage,
    /// What it last said of itself.
    pub status: Status,
    /// How whoever called comes to its result.
    pub reach: Reach,
    /// When it was asked to stop.
    pub cancel_requested_at: Option<Millis>,
    /// When it goes on by itself: a parked run at its timer, a question at the end of its wait, and at
    /// once if nobody owns a task that could go on. None while it runs, and while it is set aside.
    pub wake_at: Option<Millis>,
    /// Unclean deaths of a process while this task was on a thread, since its last progress. See
    /// [`Trust`].
    pub stalls: u32,
    /// All that it asked so far; empty once it has ended, unless the call can be made again.
    pub questions: Vec<Question>,
    /// Where it stands.
    pub state: State,
}

/// What is fixed when a task is made: it runs to its end with the component, the policy and the
/// client that it began with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Who pays and who is isolated.
    pub tenant: Tenant,
    /// Who called, and the only one who may see it.
    pub principal: Principal,
    /// The component's name at the time of the call.
    pub component: String,
    /// The component's bytes, as `sha256:<hex>`.
    pub digest: String,
    /// The tool.
    pub tool: String,
    /// Its arguments, a JSON object.
    pub arguments: Json,
    /// What the client said that it can do, as JSON.
    pub client: Json,
    /// The protocol revision of the call.
    pub revision: String,
    /// What the component may touch, as JSON.
    pub policy: Json,
    /// The version of the host's behaviour that a guest can observe.
    pub host_abi: u32,
    /// The caller's own key against making the same call twice.
    pub idempotency_key: Option<String>,
}

/// How whoever made a call comes to its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// By the task's id, which was given out.
    Id,
    /// Only by making the same call again, with the state of its last round or with its own key: nobody
    /// was told the id. What it asked and was answered is kept after its end, to know the call by.
    Again,
}

impl Reach {
    /// Every way.
    pub const ALL: [Self; 2] = [Self::Id, Self::Again];

    /// The word used in stores.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Again => "again",
        }
    }

    /// The way of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reach| reach.as_str() == word)
    }
}

/// The right to run a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Grows with each owner; a write under an older number is refused.
    pub epoch: u64,
    /// Who runs it, if anybody does.
    pub owner: Option<NodeId>,
}

/// How far a task is trusted not to take its process with it. Only unclean deaths count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// It runs with others.
    Trusted,
    /// It runs alone, so that another death is certainly its own doing.
    Suspect,
    /// It is set aside: seen by all, and run again only when the operator says so.
    Quarantined,
}

impl Trust {
    /// A process may die once or twice for its own reasons; three times under one task are no chance.
    pub const SUSPECT_FROM: u32 = 3;
    /// The death of a suspect, which ran alone.
    pub const QUARANTINED_FROM: u32 = Self::SUSPECT_FROM + 1;

    /// The trust after so many deaths since the last progress.
    #[must_use]
    pub fn after(stalls: u32) -> Self {
        match stalls {
            0..Self::SUSPECT_FROM => Self::Trusted,
            Self::SUSPECT_FROM..Self::QUARANTINED_FROM => Self::Suspect,
            Self::QUARANTINED_FROM.. => Self::Quarantined,
        }
    }
}

/// How far a journal reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalTail {
    /// Segments written.
    pub segments: u64,
    /// Host calls that they cover.
    pub calls: u64,
    /// The first segment that still counts: the newest one that begins with a restart point, or the
    /// first of all. Those below it are deleted.
    pub base: u64,
    /// CPU time of the guest when that restart point was made, in milliseconds.
    pub base_cpu_ms: u64,
    /// What the guest had used when the newest segment was written. Whoever goes on does again what it used after
    /// that, which is not to count twice.
    pub used: Usage,
}

/// What the guest of a task has used by the furthest that it came in any process. What a process repeats of that is
/// not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Wall time in which its guest could run, in milliseconds; waiting for the host is not counted.
    pub active_ms: u64,
    /// CPU time of its guest, in milliseconds.
    pub cpu_ms: u64,
}

impl Usage {
    /// The more of both.
    #[must_use]
    pub fn or_more(self, other: Self) -> Self {
        Self {
            active_ms: self.active_ms.max(other.active_ms),
            cpu_ms: self.cpu_ms.max(other.cpu_ms),
        }
    }
}

/// What a task last said of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// One line for a person.
    pub message: Option<String>,
    /// How far it has come.
    pub progress: Option<Progress>,
}

// Progress holds numbers that were checked to be finite, so equality is total.
impl Eq for Status {}

/// How far a task has come; both numbers are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Units done; never shrinks.
    pub done: f64,
    /// Units in all, if known.
    pub total: Option<f64>,
}

/// Where a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs, or will go on by itself.
    Working,
    /// At least one question is open.
    InputRequired,
    /// It returned a result, which may say that the tool failed.
    Completed {
        /// When.
        at: Millis,
        /// What the call would have returned.
        result: Json,
    },
    /// It could not return a result.
    Failed {
        /// When.
        at: Millis,
        /// Why.
        failure: Failure,
    },
    /// It was cancelled.
    Cancelled {
        /// When.
        at: Millis,
    },
}

/// Why a task has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error's number.
    pub code: i32,
    /// One line for a person.
    pub message: String,
    /// What a program can use, as JSON.
    pub data: Option<Json>,
}

/// The state without its data, for lists and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateName {
    /// See [`State::Working`].
    Working,
    /// See [`State::InputRequired`].
    InputRequired,
    /// See [`State::Completed`].
    Completed,
    /// See [`State::Failed`].
    Failed,
    /// See [`State::Cancelled`].
    Cancelled,
}

impl StateName {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word used in stores, on the wire and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }

    /// Whether nothing can change any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Working | Self::InputRequired => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

impl State {
    /// The state without its data.
    #[must_use]
    pub fn name(&self) -> StateName {
        match self {
            Self::Working => StateName::Working,
            Self::InputRequired => StateName::InputRequired,
            Self::Completed { .. } => StateName::Completed,
            Self::Failed { .. } => StateName::Failed,
            Self::Cancelled { .. } => StateName::Cancelled,
        }
    }

    /// When it ended, if it has.
    #[must_use]
    pub fn ended_at(&self) -> Option<Millis> {
        match self {
            Self::Working | Self::InputRequired => None,
            Self::Completed { at, .. } | Self::Failed { at, .. } | Self::Cancelled { at } => {
                Some(*at)
            }
        }
    }
}

impl Task {
    /// Whether its questions are of use to anybody.
    #[must_use]
    pub fn keeps_questions(&self) -> bool {
        !self.state.name().is_final() || self.reach == Reach::Again
    }

    /// The questions that wait for an answer, in the order in which they were asked.
    pub fn open_questions(&self) -> impl Iterator<Item = &Question> {
        self.open().filter(|question| !question.is_of_host())
    }

    /// What the host sees to and has not come yet.
    pub fn open_waits(&self) -> impl Iterator<Item = &Question> {
        self.open().filter(|question| question.is_of_host())
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = &Question> {
        self.questions
            .iter()
            .filter(|question| question.fate == Fate::Open)
    }

    /// Counts one more segment, which goes into the same commit, reaches up to the host call `last_call`, and was
    /// written when the guest had used so much. One that begins with a restart point makes all earlier ones useless.
    pub fn append(&mut self, last_call: u64, restart_point: bool, used: Usage) {
        let number = self.journal.segments;
        self.journal.segments += 1;
        self.journal.calls = last_call;
        self.journal.used = used;
        self.usage = self.usage.or_more(used);
        if restart_point {
            self.journal.base = number;
            self.journal.base_cpu_ms = used.cpu_ms;
        }
    }

    /// CPU time that a replay of its journal takes, in milliseconds.
    #[must_use]
    pub fn replay_debt_ms(&self) -> u64 {
        self.usage.cpu_ms.saturating_sub(self.journal.base_cpu_ms)
    }

    /// How far it is trusted.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust::after(self.stalls)
    }

    /// Milliseconds from its creation for which it can be read. While it lives that is a bound which
    /// never shrinks; once it has ended, the real end.
    #[must_use]
    pub fn ttl_ms(&self) -> u64 {
        let end = self.state.ended_at().unwrap_or(self.deadline_at);
        end.since(self.created_at).saturating_add(self.retention_ms)
    }

    /// When its row may be deleted; never while it lives.
    #[must_use]
    pub fn forget_at(&self) -> Option<Millis> {
        self.state.ended_at().map(|at| at.plus(self.retention_ms))
    }

    /// When it ends as expired unless it ends before.
    #[must_use]
    pub fn expires_at(&self) -> Option<Millis> {
        self.state.ended_at().is_none().then_some(self.deadline_at)
    }
}
