//! Rows of tasks and back: columns, types, and what a damaged row looks like.

use longshore_tasks::id::{Json, Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::question::{Fate, Question};
use longshore_tasks::store::{Output, Segment, Summary, Unfinished};
use longshore_tasks::task::{
    Failure, JournalTail, Lease, Pinned, Progress, Reach, State, StateName, Status, Task, Usage,
};
use rusqlite::types::FromSql;
use rusqlite::{Row, Rows};
use uuid::Uuid;

use super::error::Trouble;

/// What [`tasks`] reads: a task and, once for each, its questions. In one statement, so that both
/// are of the same moment. The questions of an ended task are not even looked for, unless they are kept.
macro_rules! select_tasks {
    ($($clauses:literal),+) => {
        concat!(
            "select t.key, t.id, t.version, t.epoch, t.owner, t.state, t.created_at, t.updated_at, \
             t.deadline_at, t.retention_ms, t.ended_at, t.cancel_requested_at, t.wake_at, t.stalls, \
             t.segments, t.calls, t.base, t.base_cpu_ms, t.kept_active_ms, t.kept_cpu_ms, t.active_ms, t.cpu_ms, t.progress_done, t.progress_total, \
             t.tenant, t.principal, t.component, t.digest, t.tool, t.revision, t.host_abi, \
             t.idempotency_key, t.journal_key, t.status_message, t.failure_code, t.failure_message, t.failure_data, \
             t.client, t.policy, t.arguments, t.result, t.reach, \
             q.key, q.state, q.request, q.answer \
             from task t left join question q on (t.ended_at is null or t.reach = 'again') and q.task = t.key ",
            $($clauses),+
        )
    };
}
pub(super) use select_tasks;

/// How many of those columns are the task's.
const TASK_COLUMNS: usize = 42;

/// Reads the rows of a `select_tasks!`, in which the rows of one task follow each other.
pub(super) fn tasks(rows: Rows<'_>) -> Result<Vec<Task>, Trouble> {
    each_task(rows, Err)
}

/// The same without the tasks that cannot be read: one damaged row must not keep all others from being
/// looked after.
pub(super) fn readable_tasks(rows: Rows<'_>) -> Result<Vec<Task>, Trouble> {
    each_task(rows, |trouble| match trouble {
        Trouble::Corrupt(what) => {
            tracing::error!(
                what,
                "a task in the database cannot be read and is left as it is"
            );
            Ok(())
        }
        trouble => Err(trouble),
    })
}

fn each_task(
    mut rows: Rows<'_>,
    damaged: impl Fn(Trouble) -> Result<(), Trouble>,
) -> Result<Vec<Task>, Trouble> {
    let mut tasks: Vec<Task> = Vec::new();
    // The task whose rows are read now, or none if it cannot be.
    let mut current: Option<(i64, Option<Task>)> = None;
    while let Some(row) = rows.next()? {
        let mut columns = Columns { row, next: 0 };
        let key: i64 = columns.take()?;
        if current.as_ref().is_none_or(|(last, _)| *last != key) {
            tasks.extend(current.take().and_then(|(_, task)| task));
            let read = match task(&mut columns) {
                Ok(task) => Some(task),
                Err(trouble) => {
                    damaged(trouble)?;
                    None
                }
            };
            current = Some((key, read));
        }
        columns.next = TASK_COLUMNS;
        let Some((_, slot @ Some(_))) = &mut current else {
            continue;
        };
        match question(&mut columns) {
            Ok(question) => {
                if let (Some(task), Some(question)) = (slot.as_mut(), question) {
                    task.questions.push(question);
                }
            }
            Err(trouble) => {
                damaged(trouble)?;
                *slot = None;
            }
        }
    }
    tasks.extend(current.and_then(|(_, task)| task));
    Ok(tasks)
}

/// The columns of a row, from left to right.
struct Columns<'row> {
    row: &'row Row<'row>,
    next: usize,
}

impl Columns<'_> {
    fn take<T: FromSql>(&mut self) -> Result<T, Trouble> {
        let value = self.row.get(self.next)?;
        self.next += 1;
        Ok(value)
    }

    fn count(&mut self) -> Result<u64, Trouble> {
        count(self.take()?)
    }

    fn millis(&mut self) -> Result<Millis, Trouble> {
        self.take().map(Millis)
    }

    fn maybe_millis(&mut self) -> Result<Option<Millis>, Trouble> {
        Ok(self.take::<Option<i64>>()?.map(Millis))
    }

    fn json(&mut self) -> Result<Json, Trouble> {
        self.take().map(Json)
    }

    fn maybe_json(&mut self) -> Result<Option<Json>, Trouble> {
        Ok(self.take::<Option<_>>()?.map(Json))
    }

    fn id(&mut self) -> Result<TaskId, Trouble> {
        let bytes: [u8; 16] = self.take()?;
        Ok(TaskId(Uuid::from_bytes(bytes)))
    }

    fn reach(&mut self) -> Result<Reach, Trouble> {
        let word: String = self.take()?;
        Reach::parse(&word).ok_or_else(|| damaged(format!("no task is reached by {word:?}")))
    }

    fn state_name(&mut self) -> Result<StateName, Trouble> {
        let word: String = self.take()?;
        StateName::parse(&word).ok_or_else(|| damaged(format!("no task can be {word:?}")))
    }
}

fn damaged(what: impl Into<String>) -> Trouble {
    Trouble::Corrupt(what.into())
}

/// Takes the columns in the order in which `select_tasks!` names them.
fn task(columns: &mut Columns<'_>) -> Result<Task, Trouble> {
    let id = columns.id()?;
    let version = columns.count()?;
    let lease = Lease {
        epoch: columns.count()?,
        owner: columns.take::<Option<_>>()?.map(NodeId),
    };
    let name = columns.state_name()?;
    let created_at = columns.millis()?;
    let updated_at = columns.millis()?;
    let deadline_at = columns.millis()?;
    let retention_ms = columns.count()?;
    let ended_at = columns.maybe_millis()?;
    let cancel_requested_at = columns.maybe_millis()?;
    let wake_at = columns.maybe_millis()?;
    let stalls = columns.take()?;
    let journal = JournalTail {
        segments: columns.count()?,
        calls: columns.count()?,
        base: columns.count()?,
        base_cpu_ms: columns.count()?,
        used: Usage {
            active_ms: columns.count()?,
            cpu_ms: columns.count()?,
        },
    };
    let usage = Usage {
        active_ms: columns.count()?,
        cpu_ms: columns.count()?,
    };
    let (done, total) = (columns.take::<Option<f64>>()?, columns.take()?);
    let progress = done.map(|done| Progress { done, total });
    let tenant = Tenant(columns.take()?);
    let principal = Principal(columns.take()?);
    let component = columns.take()?;
    let digest = columns.take()?;
    let tool = columns.take()?;
    let revision = columns.take()?;
    let host_abi = columns.take()?;
    let idempotency_key = columns.take()?;
    let journal_key = columns.take()?;
    let status = Status {
        message: columns.take()?,
        progress,
    };
    let failure = Failed {
        code: columns.take()?,
        message: columns.take()?,
        data: columns.maybe_json()?,
    };
    let client = columns.json()?;
    let policy = columns.json()?;
    let arguments = columns.json()?;
    let result = columns.maybe_json()?;
    let reach = columns.reach()?;
    let pinned = Pinned {
        tenant,
        principal,
        component,
        digest,
        tool,
        arguments,
        client,
        revision,
        policy,
        host_abi,
        idempotency_key,
    };
    let state = state(name, ended_at, result, failure).ok_or_else(|| {
        damaged(format!(
            "task {id} is {} without what belongs to that",
            name.as_str()
        ))
    })?;
    Ok(Task {
        id,
        pinned,
        created_at,
        updated_at,
        deadline_at,
        retention_ms,
        version,
        lease,
        journal,
        journal_key,
        usage,
        status,
        reach,
        cancel_requested_at,
        wake_at,
        stalls,
        questions: Vec::new(),
        state,
    })
}

struct Failed {
    code: Option<i32>,
    message: Option<String>,
    data: Option<Json>,
}

fn state(
    name: StateName,
    at: Option<Millis>,
    result: Option<Json>,
    failed: Failed,
) -> Option<State> {
    match (name, at) {
        (StateName::Working, None) => Some(State::Working),
        (StateName::InputRequired, None) => Some(State::InputRequired),
        (StateName::Completed, Some(at)) => Some(State::Completed {
            at,
            result: result?,
        }),
        (StateName::Failed, Some(at)) => {
            let Failed {
                code,
                message,
                data,
            } = failed;
            Some(State::Failed {
                at,
                failure: Failure {
                    code: code?,
                    message: message?,
                    data,
                },
            })
        }
        (StateName::Cancelled, Some(at)) => Some(State::Cancelled { at }),
        (StateName::Working | StateName::InputRequired, Some(_))
        | (StateName::Completed | StateName::Failed | StateName::Cancelled, None) => None,
    }
}

fn question(columns: &mut Columns<'_>) -> Result<Option<Question>, Trouble> {
    let Some(key) = columns.take::<Option<String>>()? else {
        return Ok(None);
    };
    let word: String = columns.take()?;
    let request = columns.json()?;
    let fate = match (word.as_str(), columns.maybe_json()?) {
        (OPEN, None) => Fate::Open,
        (ANSWERED, Some(answer)) => Fate::Answered(answer),
        (WITHDRAWN, None) => Fate::Withdrawn,
        (other, _) => return Err(damaged(format!("the question {key:?} cannot be {other:?}"))),
    };
    Ok(Some(Question { key, request, fate }))
}

const OPEN: &str = "open";
const ANSWERED: &str = "answered";
const WITHDRAWN: &str = "withdrawn";

/// How a question's fate is kept.
pub(super) fn fate(fate: &Fate) -> (&'static str, Option<&str>) {
    match fate {
        Fate::Open => (OPEN, None),
        Fate::Answered(answer) => (ANSWERED, Some(&answer.0)),
        Fate::Withdrawn => (WITHDRAWN, None),
    }
}

/// What of a state is kept in columns of its own.
#[derive(Default)]
pub(super) struct StateColumns<'task> {
    pub(super) result: Option<&'task str>,
    pub(super) failure_code: Option<i32>,
    pub(super) failure_message: Option<&'task str>,
    pub(super) failure_data: Option<&'task str>,
}

pub(super) fn state_columns(state: &State) -> StateColumns<'_> {
    match state {
        State::Working | State::InputRequired | State::Cancelled { at: _ } => {
            StateColumns::default()
        }
        State::Completed { at: _, result } => StateColumns {
            result: Some(&result.0),
            ..StateColumns::default()
        },
        State::Failed {
            at: _,
            failure:
                Failure {
                    code,
                    message,
                    data,
                },
        } => StateColumns {
            result: None,
            failure_code: Some(*code),
            failure_message: Some(message),
            failure_data: data.as_ref().map(|data| data.0.as_ref()),
        },
    }
}

/// Reads `key, id, component, tool, principal, state, status_message, created_at, updated_at`.
pub(super) fn summary(row: &Row<'_>) -> Result<Summary, Trouble> {
    let mut columns = Columns { row, next: 1 };
    Ok(Summary {
        id: columns.id()?,
        component: columns.take()?,
        tool: columns.take()?,
        principal: columns.take()?,
        state: columns.state_name()?,
        status_message: columns.take()?,
        created_at: columns.millis()?,
        updated_at: columns.millis()?,
    })
}

/// Reads `key, id, state, owner, wake_at, deadline_at, cancel_requested_at is not null, stalls`.
pub(super) fn unfinished(row: &Row<'_>) -> Result<Unfinished, Trouble> {
    let mut columns = Columns { row, next: 1 };
    Ok(Unfinished {
        id: columns.id()?,
        state: columns.state_name()?,
        owner: columns.take::<Option<_>>()?.map(NodeId),
        wake_at: columns.maybe_millis()?,
        deadline_at: columns.millis()?,
        cancel_requested: columns.take()?,
        stalls: columns.take()?,
    })
}

/// Reads `number, epoch, first_call, last_call, written_at, frames` from the column `first` on.
pub(super) fn segment(row: &Row<'_>, first: usize) -> Result<Segment, Trouble> {
    let mut columns = Columns { row, next: first };
    Ok(Segment {
        number: columns.count()?,
        epoch: columns.count()?,
        first_call: columns.count()?,
        last_call: columns.count()?,
        written_at: columns.millis()?,
        frames: columns.take()?,
    })
}

/// Reads `calls, body`.
pub(super) fn output(row: &Row<'_>) -> Result<Output, Trouble> {
    let mut columns = Columns { row, next: 0 };
    Ok(Output {
        calls: columns.count()?,
        body: columns.take()?,
    })
}

/// A number that [`int`] has written.
pub(super) fn count(kept: i64) -> Result<u64, Trouble> {
    u64::try_from(kept).map_err(|_| damaged(format!("{kept} where only a count can be")))
}

/// A number as SQLite keeps it. What does not fit would last longer than the sun.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
