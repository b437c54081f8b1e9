//! The statements about tasks.

use async_trait::async_trait;
use longshore_tasks::id::{Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::store::{
    Commit, Figures, Output, Page, Query, Segment, StoreError, TaskStore, UnfinishedPage,
};
use longshore_tasks::task::Task;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Sqlite;
use super::error::Trouble;
use super::rows::{self, int, select_tasks};
use super::{journal, lists, values};
use crate::successor::{is_written_under, leads_forwards, segments_before};

pub(super) const GET: &str = select_tasks!("where t.id = ?1 order by q.ordinal");
pub(super) const BY_KEY: &str = select_tasks!(
    "where t.tenant = ?1 and t.principal = ?2 and t.idempotency_key = ?3 order by q.ordinal"
);
pub(super) const SWEEP: &str = "delete from task where key in \
     (select key from task where forget_at < ?1 order by forget_at, key limit ?2)";
/// What the same tasks have left.
const SWEEP_ARTIFACTS: &str = "delete from artifact where call in \
     (select id from task where forget_at < ?1 order by forget_at, key limit ?2)";

#[async_trait]
impl TaskStore for Sqlite {
    async fn create(
        &self,
        task: Task,
        segment: Option<Segment>,
        output: Option<Output>,
    ) -> Result<(), StoreError> {
        if segments_before(&task, segment.as_ref()) != Some(0)
            || !is_written_under(task.lease.epoch, segment.as_ref())
        {
            // A taken id is the more useful answer, as long as it is as true.
            return Err(match self.get(task.id).await? {
                Some(_) => StoreError::Exists,
                None => StoreError::Conflict,
            });
        }
        let created = self
            .0
            .writer
            .write(move |db| create(db, &task, segment.as_ref(), output.as_ref()))
            .await?;
        if created {
            Ok(())
        } else {
            Err(StoreError::Exists)
        }
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.0.readers.here(|db| get(db, id))?)
    }

    async fn by_key(
        &self,
        tenant: &Tenant,
        principal: &Principal,
        key: &str,
    ) -> Result<Option<Task>, StoreError> {
        Ok(self.0.readers.here(|db| {
            let mut select = db.prepare_cached(BY_KEY)?;
            let rows = select.query(params![tenant.0, principal.0, key])?;
            Ok(rows::tasks(rows)?.pop())
        })?)
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        match self.0.writer.write(move |db| replace(db, &commit)).await? {
            Replaced::Done => Ok(()),
            Replaced::Conflict => Err(StoreError::Conflict),
            Replaced::Fenced => Err(StoreError::Fenced),
            Replaced::Missing => Err(StoreError::Missing),
        }
    }

    async fn list(&self, query: Query) -> Result<Page, StoreError> {
        Ok(self
            .0
            .readers
            .elsewhere(move |db| lists::page(db, &query))
            .await?)
    }

    async fn orphans(&self, node: NodeId, limit: usize) -> Result<Vec<Task>, StoreError> {
        Ok(self
            .0
            .readers
            .elsewhere(move |db| lists::orphans(db, &node, limit))
            .await?)
    }

    async fn unfinished(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<UnfinishedPage, StoreError> {
        Ok(self
            .0
            .readers
            .elsewhere(move |db| lists::unfinished(db, after, limit))
            .await?)
    }

    async fn segments(&self, id: TaskId) -> Result<Vec<Segment>, StoreError> {
        Ok(self
            .0
            .readers
            .elsewhere(move |db| journal::segments(db, id))
            .await?)
    }

    async fn segment(&self, id: TaskId, number: u64) -> Result<Option<Segment>, StoreError> {
        Ok(self
            .0
            .readers
            .elsewhere(move |db| journal::segment(db, id, number))
            .await?)
    }

    async fn output(&self, id: TaskId) -> Result<Option<Output>, StoreError> {
        Ok(self
            .0
            .readers
            .elsewhere(move |db| journal::output(db, id))
            .await?)
    }

    async fn sweep(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        Ok(self.0.writer.write(move |db| sweep(db, now, limit)).await?)
    }

    async fn figures(&self) -> Result<Figures, StoreError> {
        let unfinished = self.0.readers.elsewhere(lists::count_unfinished).await?;
        let writer = &self.0.writer;
        Ok(Figures {
            commits: writer.commits(),
            changes: writer.changes(),
            unfinished,
        })
    }
}

fn create(
    db: &Connection,
    task: &Task,
    segment: Option<&Segment>,
    output: Option<&Output>,
) -> Result<bool, Trouble> {
    let pinned = &task.pinned;
    let state = rows::state_columns(&task.state);
    let inserted = db
        .prepare_cached(
            "insert into task (id, version, epoch, owner, state, created_at, updated_at, \
             deadline_at, retention_ms, ended_at, forget_at, cancel_requested_at, wake_at, stalls, \
             segments, calls, base, active_ms, cpu_ms, progress_done, progress_total, \
             status_message, failure_code, failure_message, failure_data, result, \
             tenant, principal, component, digest, tool, revision, host_abi, idempotency_key, \
             client, policy, arguments, base_cpu_ms, journal_key, reach, kept_active_ms, \
             kept_cpu_ms) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
             ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, \
             ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42) on conflict do nothing",
        )?
        .execute(params![
            task.id.0.as_bytes(),
            int(task.version),
            int(task.lease.epoch),
            task.lease.owner.as_ref().map(|node| &node.0),
            task.state.name().as_str(),
            task.created_at.0,
            task.updated_at.0,
            task.deadline_at.0,
            int(task.retention_ms),
            task.state.ended_at().map(|at| at.0),
            task.forget_at().map(|at| at.0),
            task.cancel_requested_at.map(|at| at.0),
            task.wake_at.map(|at| at.0),
            task.stalls,
            int(task.journal.segments),
            int(task.journal.calls),
            int(task.journal.base),
            int(task.usage.active_ms),
            int(task.usage.cpu_ms),
            task.status.progress.map(|progress| progress.done),
            task.status.progress.and_then(|progress| progress.total),
            task.status.message,
            state.failure_code,
            state.failure_message,
            state.failure_data,
            state.result,
            pinned.tenant.0,
            pinned.principal.0,
            pinned.component,
            pinned.digest,
            pinned.tool,
            pinned.revision,
            pinned.host_abi,
            pinned.idempotency_key,
            pinned.client.0,
            pinned.policy.0,
            pinned.arguments.0,
            int(task.journal.base_cpu_ms),
            task.journal_key,
            task.reach.as_str(),
            int(task.journal.used.active_ms),
            int(task.journal.used.cpu_ms),
        ])?;
    if inserted == 0 {
        return Ok(false);
    }
    let key = db.last_insert_rowid();
    journal::keep(db, key, task, segment, output)?;
    keep_questions(db, key, task)?;
    Ok(true)
}

enum Replaced {
    Done,
    Conflict,
    Fenced,
    Missing,
}

fn replace(db: &Connection, commit: &Commit) -> Result<Replaced, Trouble> {
    let Commit {
        from_version,
        from_epoch,
        task,
        segment,
        output,
    } = commit;
    let fits = leads_forwards(commit) && is_written_under(*from_epoch, segment.as_ref());
    let Some(before) = segments_before(task, segment.as_ref()).filter(|_| fits) else {
        return refusal(db, commit);
    };
    let state = rows::state_columns(&task.state);
    let key: Option<i64> = db
        .prepare_cached(
            "update task set version = ?1, epoch = ?2, owner = ?3, state = ?4, updated_at = ?5, \
             deadline_at = ?6, retention_ms = ?7, ended_at = ?8, forget_at = ?9, \
             cancel_requested_at = ?10, wake_at = ?11, stalls = ?12, segments = ?13, calls = ?14, \
             base = ?15, active_ms = ?16, cpu_ms = ?17, progress_done = ?18, progress_total = ?19, \
             status_message = ?20, failure_code = ?21, failure_message = ?22, failure_data = ?23, \
             result = ?24, base_cpu_ms = ?29, reach = ?30, kept_active_ms = ?31, kept_cpu_ms = ?32 \
             where id = ?25 and version = ?26 and epoch = ?27 and segments = ?28 and base <= ?15 \
             and ended_at is null \
             returning key",
        )?
        .query_row(
            params![
                int(task.version),
                int(task.lease.epoch),
                task.lease.owner.as_ref().map(|node| &node.0),
                task.state.name().as_str(),
                task.updated_at.0,
                task.deadline_at.0,
                int(task.retention_ms),
                task.state.ended_at().map(|at| at.0),
                task.forget_at().map(|at| at.0),
                task.cancel_requested_at.map(|at| at.0),
                task.wake_at.map(|at| at.0),
                task.stalls,
                int(task.journal.segments),
                int(task.journal.calls),
                int(task.journal.base),
                int(task.usage.active_ms),
                int(task.usage.cpu_ms),
                task.status.progress.map(|progress| progress.done),
                task.status.progress.and_then(|progress| progress.total),
                task.status.message,
                state.failure_code,
                state.failure_message,
                state.failure_data,
                state.result,
                task.id.0.as_bytes(),
                int(*from_version),
                int(*from_epoch),
                int(before),
                int(task.journal.base_cpu_ms),
                task.reach.as_str(),
                int(task.journal.used.active_ms),
                int(task.journal.used.cpu_ms),
            ],
            |row| row.get(0),
        )
        .optional()?;
    match key {
        Some(key) => {
            journal::keep(db, key, task, segment.as_ref(), output.as_ref())?;
            keep_questions(db, key, task)?;
            if task.state.name().is_final() {
                values::forget(db, task.id)?;
            }
            Ok(Replaced::Done)
        }
        None => refusal(db, commit),
    }
}

/// Why a row was not replaced. In the same transaction, so that it is still as it was.
fn refusal(db: &Connection, commit: &Commit) -> Result<Replaced, Trouble> {
    let epoch: Option<i64> = db
        .prepare_cached("select epoch from task where id = ?1")?
        .query_row([commit.task.id.0.as_bytes()], |row| row.get(0))
        .optional()?;
    Ok(match epoch {
        None => Replaced::Missing,
        Some(epoch) if epoch != int(commit.from_epoch) => Replaced::Fenced,
        Some(_) if !is_written_under(commit.from_epoch, commit.segment.as_ref()) => {
            Replaced::Fenced
        }
        Some(_) => Replaced::Conflict,
    })
}

/// Writes only what became of questions since, and the new ones: a request never changes.
fn keep_questions(db: &Connection, key: i64, task: &Task) -> Result<(), Trouble> {
    let questions = if task.keeps_questions() {
        &task.questions
    } else {
        &[][..]
    };
    let kept: Vec<String> = db
        .prepare_cached("select state from question where task = ?1 order by ordinal")?
        .query_map([key], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    if kept.len() > questions.len() {
        db.prepare_cached("delete from question where task = ?1 and ordinal >= ?2")?
            .execute(params![key, int(questions.len() as u64)])?;
    }
    for (ordinal, question) in questions.iter().enumerate() {
        let (word, answer) = rows::fate(&question.fate);
        let place = int(ordinal as u64);
        match kept.get(ordinal) {
            Some(kept) if kept == word => {}
            Some(_) => {
                db.prepare_cached(
                    "update question set state = ?3, answer = ?4 where task = ?1 and ordinal = ?2",
                )?
                .execute(params![key, place, word, answer])?;
            }
            None => {
                db.prepare_cached(
                    "insert into question (task, ordinal, key, state, request, answer) \
                     values (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    key,
                    place,
                    question.key,
                    word,
                    question.request.0,
                    answer
                ])?;
            }
        }
    }
    Ok(())
}

fn get(db: &Connection, id: TaskId) -> Result<Option<Task>, Trouble> {
    let mut select = db.prepare_cached(GET)?;
    Ok(rows::tasks(select.query([id.0.as_bytes()])?)?.pop())
}

/// Whether a task of that id has ended.
pub(super) fn has_ended(db: &Connection, id: TaskId) -> Result<bool, Trouble> {
    let ended = db
        .prepare_cached(
            "select exists (select 1 from task where id = ?1 and ended_at is not null)",
        )?
        .query_row([id.0.as_bytes()], |row| row.get(0))?;
    Ok(ended)
}

fn sweep(db: &Connection, now: Millis, limit: usize) -> Result<usize, Trouble> {
    db.prepare_cached(SWEEP_ARTIFACTS)?
        .execute(params![now.0, int(limit as u64)])?;
    // Segments, questions and output go with their task, by their foreign keys.
    let deleted = db
        .prepare_cached(SWEEP)?
        .execute(params![now.0, int(limit as u64)])?;
    Ok(deleted)
}
