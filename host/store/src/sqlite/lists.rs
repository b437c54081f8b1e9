//! Many tasks at once: for people, at the start, and for timers.

use longshore_tasks::id::NodeId;
use longshore_tasks::store::{Page, Query, UnfinishedPage};
use longshore_tasks::task::{StateName, Task};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::error::Trouble;
use super::rows::{self, int, select_tasks};

/// How many rows one page looks at to find those that a filter lets through. A rare one then takes
/// several pages, some of them empty, instead of one that reads the whole table.
const SCAN: i64 = 10_000;
/// The longest page, since it is built in memory.
const PAGE: usize = 1_000;
/// The longest page of the tasks that have not ended, of which little is read.
const UNFINISHED_PAGE: usize = 10_000;

pub(super) const ORPHANS: &str = select_tasks!(
    "where t.key in (select key from task where ended_at is null and owner is not ?1 \
     order by key limit ?2) order by t.key, q.ordinal"
);
pub(super) const UNFINISHED: &str = "select key, id, state, owner, wake_at, deadline_at, \
     cancel_requested_at is not null, stalls from task \
     where ended_at is null and key > ?1 order by key limit ?2";
pub(super) const COUNT_UNFINISHED: &str = "select count(*) from task where ended_at is null";

pub(super) fn orphans(db: &Connection, node: &NodeId, limit: usize) -> Result<Vec<Task>, Trouble> {
    let mut select = db.prepare_cached(ORPHANS)?;
    rows::readable_tasks(select.query(params![node.0, int(limit as u64)])?)
}

pub(super) fn page(db: &Connection, query: &Query) -> Result<Page, Trouble> {
    let limit = query.limit.min(PAGE);
    let before = query.after.map_or(i64::MAX, int);
    // The few that have not ended have an index of their own.
    let part = match query.state {
        Some(StateName::Working | StateName::InputRequired) => "ended_at is null and",
        Some(StateName::Completed | StateName::Failed | StateName::Cancelled) | None => "",
    };
    let filtered = query.state.is_some() || query.component.is_some() || query.of.is_some();
    let floor: Option<i64> = if filtered {
        let sql = format!(
            "select key from task where {part} key < ?1 order by key desc limit 1 offset ?2"
        );
        db.prepare_cached(&sql)?
            .query_row([before, SCAN - 1], |row| row.get(0))
            .optional()?
    } else {
        None
    };
    // Ids have an index of their own, and few lie between two that begin alike.
    let (indexed, between) = match query.ids {
        Some(_) => ("indexed by task_id", "id between ?6 and ?7 and"),
        None => ("", "(?6 is null or ?7 is null) and"),
    };
    let ids = query
        .ids
        .map(|(first, last)| (first.0.into_bytes().to_vec(), last.0.into_bytes().to_vec()));
    let (first, last_id) = ids.unzip();
    let sql = format!(
        "select key, id, component, tool, principal, state, status_message, created_at, updated_at \
         from task {indexed} where {part} {between} key < ?1 and key >= ?2 and (?3 is null or state = ?3) \
         and (?4 is null or component = ?4) \
         and (?8 is null or (tenant = ?8 and principal = ?9 and reach = 'id')) order by key desc limit ?5"
    );
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query(params![
        before,
        floor.unwrap_or(i64::MIN),
        query.state.map(StateName::as_str),
        query.component,
        int(limit as u64 + 1),
        first,
        last_id,
        query.of.as_ref().map(|(tenant, _)| &tenant.0),
        query.of.as_ref().map(|(_, principal)| &principal.0),
    ])?;
    let mut tasks = Vec::new();
    let mut last = None;
    for seen in 0.. {
        let Some(row) = rows.next()? else { break };
        if seen == limit {
            return Ok(Page { tasks, next: last });
        }
        last = Some(rows::count(row.get(0)?)?);
        tasks.extend(unless_damaged(rows::summary(row))?);
    }
    Ok(Page {
        tasks,
        next: floor.and_then(|key| u64::try_from(key).ok()),
    })
}

/// One damaged row must not hide all others, nor end the pages before their end.
fn unless_damaged<T>(read: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
    match read {
        Ok(row) => Ok(Some(row)),
        Err(Trouble::Corrupt(what)) => {
            tracing::error!(what, "a task in the database cannot be listed");
            Ok(None)
        }
        Err(trouble) => Err(trouble),
    }
}

pub(super) fn unfinished(
    db: &Connection,
    after: Option<u64>,
    limit: usize,
) -> Result<UnfinishedPage, Trouble> {
    let limit = limit.min(UNFINISHED_PAGE);
    let mut select = db.prepare_cached(UNFINISHED)?;
    // One more than is given, to see whether there is a next page.
    let mut rows = select.query(params![after.map_or(i64::MIN, int), int(limit as u64 + 1)])?;
    let mut tasks = Vec::new();
    let mut last = None;
    for seen in 0.. {
        let Some(row) = rows.next()? else { break };
        if seen == limit {
            return Ok(UnfinishedPage { tasks, next: last });
        }
        last = Some(rows::count(row.get(0)?)?);
        tasks.extend(unless_damaged(rows::unfinished(row))?);
    }
    Ok(UnfinishedPage { tasks, next: None })
}

pub(super) fn count_unfinished(db: &Connection) -> Result<u64, Trouble> {
    let count = db
        .prepare_cached(COUNT_UNFINISHED)?
        .query_row([], |row| row.get(0))?;
    rows::count(count)
}
