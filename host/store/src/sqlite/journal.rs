//! The statements about what a run has journalled and printed.

use longshore_tasks::id::TaskId;
use longshore_tasks::store::{Output, Segment};
use longshore_tasks::task::Task;
use rusqlite::{Connection, params};

use super::error::Trouble;
use super::rows::{self, int};

pub(super) const SEGMENTS: &str = "select t.base, t.segments, s.number, s.epoch, s.first_call, \
     s.last_call, s.written_at, s.frames from task t \
     left join segment s on s.task = t.key and s.number >= t.base where t.id = ?1 order by s.number";
pub(super) const SEGMENT: &str = "select number, epoch, first_call, last_call, written_at, frames \
     from segment where task = (select key from task where id = ?1) and number = ?2";
pub(super) const OUTPUT: &str =
    "select calls, body from output where task = (select key from task where id = ?1)";
pub(super) const DELETE_BELOW: &str = "delete from segment where task = ?1 and number < ?2";

/// Keeps what belongs to a row that was just written, and deletes what it has made useless.
pub(super) fn keep(
    db: &Connection,
    key: i64,
    task: &Task,
    segment: Option<&Segment>,
    output: Option<&Output>,
) -> Result<(), Trouble> {
    if let Some(Segment {
        number,
        epoch,
        first_call,
        last_call,
        written_at,
        frames,
    }) = segment
    {
        db.prepare_cached(
            "insert into segment (task, number, epoch, first_call, last_call, written_at, frames) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            key,
            int(*number),
            int(*epoch),
            int(*first_call),
            int(*last_call),
            written_at.0,
            frames
        ])?;
    }
    let base = task.journal.base;
    if base > 0 {
        db.prepare_cached(DELETE_BELOW)?
            .execute(params![key, int(base)])?;
    }
    if let Some(Output { calls, body }) = output {
        db.prepare_cached(
            "insert into output (task, calls, body) values (?1, ?2, ?3) \
             on conflict (task) do update set calls = excluded.calls, body = excluded.body",
        )?
        .execute(params![key, int(*calls), body])?;
    }
    Ok(())
}

pub(super) fn segments(db: &Connection, id: TaskId) -> Result<Vec<Segment>, Trouble> {
    let mut select = db.prepare_cached(SEGMENTS)?;
    let mut rows = select.query([id.0.as_bytes()])?;
    let mut segments: Vec<Segment> = Vec::new();
    let mut numbers = 0..0;
    while let Some(row) = rows.next()? {
        numbers = rows::count(row.get(0)?)?..rows::count(row.get(1)?)?;
        // A journal that is still empty comes as one row without a segment.
        if row.get::<_, Option<i64>>(2)?.is_some() {
            segments.push(rows::segment(row, 2)?);
        }
    }
    // A run that went on from a journal with a gap would contradict what a client has seen.
    if segments
        .iter()
        .map(|segment| segment.number)
        .ne(numbers.clone())
    {
        let said = numbers.end.saturating_sub(numbers.start);
        return Err(Trouble::Corrupt(format!(
            "the journal of task {id} has {} segments, and its row says {said} from number {} on",
            segments.len(),
            numbers.start
        )));
    }
    Ok(segments)
}

pub(super) fn segment(
    db: &Connection,
    id: TaskId,
    number: u64,
) -> Result<Option<Segment>, Trouble> {
    let mut select = db.prepare_cached(SEGMENT)?;
    let mut rows = select.query(params![id.0.as_bytes(), int(number)])?;
    match rows.next()? {
        Some(row) => rows::segment(row, 0).map(Some),
        None => Ok(None),
    }
}

pub(super) fn output(db: &Connection, id: TaskId) -> Result<Option<Output>, Trouble> {
    let mut select = db.prepare_cached(OUTPUT)?;
    let mut rows = select.query([id.0.as_bytes()])?;
    match rows.next()? {
        Some(row) => rows::output(row).map(Some),
        None => Ok(None),
    }
}
