//! By what the secret is known that the tasks in this file were sealed under.

use longshore_tasks::store::StoreError;
use rusqlite::{Connection, OptionalExtension as _};

use super::Sqlite;
use super::error::Trouble;

/// What a file says of the secret that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// By what the secret is known, if that was ever noted.
    pub sign: Option<Vec<u8>>,
    /// Tasks that have not ended and are of no use without it.
    pub unfinished: u64,
}

impl Sqlite {
    /// What is known of the secret that the tasks here were sealed under.
    pub async fn sealed(&self) -> Result<Sealed, StoreError> {
        Ok(self.0.readers.elsewhere(sealed).await?)
    }

    /// Notes by what the secret is known from now on.
    pub async fn note_secret(&self, sign: [u8; 32]) -> Result<(), StoreError> {
        Ok(self.0.writer.write(move |db| note(db, &sign)).await?)
    }
}

fn sealed(db: &Connection) -> Result<Sealed, Trouble> {
    let sign = db
        .query_row("select sign from secret", [], |row| row.get(0))
        .optional()?;
    let unfinished = db.query_row(
        "select count(*) from task where ended_at is null and journal_key is not null",
        [],
        |row| row.get::<_, i64>(0),
    )?;
    Ok(Sealed {
        sign,
        unfinished: super::rows::count(unfinished)?,
    })
}

fn note(db: &Connection, sign: &[u8]) -> Result<(), Trouble> {
    db.execute(
        "insert into secret (one, sign) values (1, ?1) \
         on conflict (one) do update set sign = excluded.sign",
        [sign],
    )?;
    Ok(())
}
