//! The numbered steps that lead an empty file to today's schema.

use rusqlite::{Connection, TransactionBehavior};

/// Step `n` is the n-th. A step that was released never changes; a change is a further step.
const MIGRATIONS: [&str; 8] = [
    include_str!("migrations/0001_tasks_and_components.sql"),
    include_str!("migrations/0002_runs_that_survive.sql"),
    include_str!("migrations/0003_calls_made_again.sql"),
    include_str!("migrations/0004_what_is_done_again.sql"),
    include_str!("migrations/0005_the_secret.sql"),
    include_str!("migrations/0006_grants.sql"),
    include_str!("migrations/0007_values.sql"),
    include_str!("migrations/0008_artifacts.sql"),
];

/// The schema that this program writes.
pub(super) const KNOWN: u32 = MIGRATIONS.len() as u32;

/// What a file holds before anything is done to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    /// Tables, but none of ours.
    Foreign,
    Schema(u32),
}

pub(super) fn look(db: &Connection) -> rusqlite::Result<Found> {
    let tables: i64 = db.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(Found::Nothing);
    }
    let ours: i64 = db.query_row(
        "select count(*) from sqlite_schema where type = 'table' and name in ('migration', 'task')",
        [],
        |row| row.get(0),
    )?;
    if ours < 2 {
        return Ok(Found::Foreign);
    }
    let version = db.query_row("select max(version) from migration", [], |row| row.get(0))?;
    Ok(Found::Schema(version))
}

/// Takes the steps after `from`, each in a transaction of its own.
pub(super) fn migrate(db: &mut Connection, from: u32) -> rusqlite::Result<()> {
    for (version, step) in (1_u32..).zip(MIGRATIONS).skip(from as usize) {
        let step_made = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        step_made.execute_batch(step)?;
        step_made.execute("insert into migration (version) values (?1)", [version])?;
        step_made.commit()?;
    }
    Ok(())
}
