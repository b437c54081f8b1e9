//! How tasks are kept. One contract, whatever is underneath.

use async_trait::async_trait;

use crate::id::{Millis, NodeId, Principal, TaskId, Tenant};
use crate::task::{StateName, Task};

/// A place that keeps tasks. Whatever a method has acknowledged survives the death of the process.
#[async_trait]
pub trait TaskStore: Send + Sync {
    /// Keeps a new task, with what its run has journalled and printed so far. Refused as
    /// [`StoreError::Exists`] if its id, or the key of its caller, is taken, and as
    /// [`StoreError::Conflict`] if the segment is not the first one under the task's lease.
    async fn create(
        &self,
        task: Task,
        segment: Option<Segment>,
        output: Option<Output>,
    ) -> Result<(), StoreError>;

    /// The task of that id as it was last committed.
    async fn get(&self, id: TaskId) -> Result<Option<Task>, StoreError>;

    /// The task that this caller made under a key of its own.
    async fn by_key(
        &self,
        tenant: &Tenant,
        principal: &Principal,
        key: &str,
    ) -> Result<Option<Task>, StoreError>;

    /// Replaces a row by its successor, with what its run has journalled since, in one transaction.
    /// Refused as [`StoreError::Conflict`] unless the row still is what the successor was made from and
    /// the segment is exactly the next one; as [`StoreError::Fenced`] unless row and segment are of the
    /// lease that it was made under. Segments below a base that grew are deleted with it.
    async fn commit(&self, commit: Commit) -> Result<(), StoreError>;

    /// One page of tasks, the newest first.
    async fn list(&self, query: Query) -> Result<Page, StoreError>;

    /// Up to `limit` tasks that have not ended and that `node` does not own, from oldest to newest.
    async fn orphans(&self, node: NodeId, limit: usize) -> Result<Vec<Task>, StoreError>;

    /// One page of the tasks that have not ended, the oldest first; at most `limit`, and the store may
    /// give fewer. `after` is where the page before ended.
    async fn unfinished(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<UnfinishedPage, StoreError>;

    /// The journal of a task from its base on, in order and without a gap.
    async fn segments(&self, id: TaskId) -> Result<Vec<Segment>, StoreError>;

    /// One segment, for whoever does not know whether its commit succeeded: if it is there with the same
    /// frames, it did.
    async fn segment(&self, id: TaskId, number: u64) -> Result<Option<Segment>, StoreError>;

    /// What a task has printed, as it was last kept.
    async fn output(&self, id: TaskId) -> Result<Option<Output>, StoreError>;

    /// Deletes up to `limit` ended tasks whose retention is over, with all that belongs to them.
    async fn sweep(&self, now: Millis, limit: usize) -> Result<usize, StoreError>;

    /// Figures for operators and tests.
    async fn figures(&self) -> Result<Figures, StoreError>;
}

/// A row and what it replaces.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The version that the successor was made from.
    pub from_version: u64,
    /// The lease under which it was made.
    pub from_epoch: u64,
    /// The successor.
    pub task: Task,
    /// What its run has journalled since; [`Task::append`] has counted it.
    pub segment: Option<Segment>,
    /// What its run has printed, in place of what was kept before.
    pub output: Option<Output>,
}

/// What one run journalled between two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its place in the journal, from 0.
    pub number: u64,
    /// The lease under which it was written.
    pub epoch: u64,
    /// The first host call that it covers.
    pub first_call: u64,
    /// The last host call that it covers.
    pub last_call: u64,
    /// When it was written.
    pub written_at: Millis,
    /// The records, sealed.
    pub frames: Vec<u8>,
}

/// What a task has printed so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Host calls of the run by then, so that a replay does not print again.
    pub calls: u64,
    /// What it printed; nothing here looks into it.
    pub body: Vec<u8>,
}

/// One page of the tasks that have not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedPage {
    /// The tasks.
    pub tasks: Vec<Unfinished>,
    /// Where the next page begins, if there is one.
    pub next: Option<u64>,
}

/// What decides what is to be done with a task that has not ended. No texts: there may be very many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Its name.
    pub id: TaskId,
    /// Where it stands.
    pub state: StateName,
    /// Who runs it, if anybody does.
    pub owner: Option<NodeId>,
    /// When it goes on by itself.
    pub wake_at: Option<Millis>,
    /// When it ends as expired.
    pub deadline_at: Millis,
    /// Whether it was asked to stop.
    pub cancel_requested: bool,
    /// What its trust is made from.
    pub stalls: u32,
}

/// Which tasks to list.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Only tasks in this state.
    pub state: Option<StateName>,
    /// Only tasks of the component of this name.
    pub component: Option<String>,
    /// Only tasks that this caller made and was told the id of.
    pub of: Option<(Tenant, Principal)>,
    /// Only tasks whose ids lie between these, both included.
    pub ids: Option<(TaskId, TaskId)>,
    /// At most so many; the store may give fewer.
    pub limit: usize,
    /// Where the page before ended.
    pub after: Option<u64>,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The tasks, without arguments, questions and results.
    pub tasks: Vec<Summary>,
    /// Where the next page begins, if there is one.
    pub next: Option<u64>,
}

/// What a list shows of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its name.
    pub id: TaskId,
    /// The component that it runs.
    pub component: String,
    /// The tool that it runs.
    pub tool: String,
    /// Who called.
    pub principal: String,
    /// Where it stands.
    pub state: StateName,
    /// What it last said of itself.
    pub status_message: Option<String>,
    /// When it was made.
    pub created_at: Millis,
    /// When something last changed.
    pub updated_at: Millis,
}

/// Figures of a store since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Transactions made durable.
    pub commits: u64,
    /// Changes that they carried.
    pub changes: u64,
    /// Tasks that have not ended.
    pub unfinished: u64,
}

/// Why a store did not do it, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Read the row again and decide again.
    #[error("the task changed meanwhile")]
    Conflict,
    /// Another node has the task now: let go of it without a word.
    #[error("another node runs the task now")]
    Fenced,
    /// The id is taken, or the caller's own key.
    #[error("the task exists already")]
    Exists,
    /// There is no such row.
    #[error("no such task")]
    Missing,
    /// Nothing is wrong with the request; it may work later.
    #[error("the store cannot be written or read now: {0}")]
    Unavailable(String),
    /// A row holds what this program never writes.
    #[error("the store holds a damaged row: {0}")]
    Corrupt(String),
}
