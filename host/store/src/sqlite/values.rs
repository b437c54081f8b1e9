//! The statements about what components keep.

use std::ops::Bound;

use async_trait::async_trait;
use longshore_tasks::id::TaskId;
use longshore_tasks::store::StoreError;
use longshore_tasks::values::{
    Change, Changed, KeyPage, Keys, Once, Room, Shelf, Taken, ValueStore, decide,
};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Sqlite;
use super::error::Trouble;
use super::rows::int;
use super::tasks::has_ended;

#[async_trait]
impl ValueStore for Sqlite {
    async fn value(&self, shelf: &Shelf, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.readers.here(|db| value(db, shelf, key))?)
    }

    async fn keys(&self, shelf: &Shelf, which: Keys) -> Result<KeyPage, StoreError> {
        let shelf = shelf.clone();
        let page = self.0.readers.elsewhere(move |db| keys(db, &shelf, &which));
        Ok(page.await?)
    }

    async fn change(
        &self,
        shelf: &Shelf,
        once: Once,
        how: Change,
        room: Room,
    ) -> Result<Changed, StoreError> {
        let shelf = shelf.clone();
        let written = self
            .0
            .writer
            .write(move |db| change(db, &shelf, once, &how, room));
        written.await?.ok_or(StoreError::Fenced)
    }

    async fn forget(&self, call: TaskId) -> Result<(), StoreError> {
        Ok(self.0.writer.write(move |db| forget(db, call)).await?)
    }

    async fn forget_lost(&self) -> Result<(), StoreError> {
        Ok(self.0.writer.write(forget_lost).await?)
    }

    async fn taken(&self, shelf: &Shelf) -> Result<Taken, StoreError> {
        Ok(self.0.readers.here(|db| taken(db, shelf))?)
    }

    async fn clear(&self, shelf: &Shelf) -> Result<(), StoreError> {
        let shelf = shelf.clone();
        Ok(self.0.writer.write(move |db| clear(db, &shelf)).await?)
    }
}

fn value(db: &Connection, shelf: &Shelf, key: &str) -> Result<Option<Vec<u8>>, Trouble> {
    Ok(db
        .prepare_cached(
            "select value from value where tenant = ?1 and component = ?2 and name = ?3",
        )?
        .query_row(params![shelf.tenant.0, shelf.component, key], |row| {
            row.get(0)
        })
        .optional()?)
}

fn keys(db: &Connection, shelf: &Shelf, which: &Keys) -> Result<KeyPage, Trouble> {
    let (select, from) = match which.from() {
        Bound::Excluded(after) => (
            "select name from value where tenant = ?1 and component = ?2 and name > ?3 \
             order by name limit ?4",
            after,
        ),
        Bound::Included(first) => (
            "select name from value where tenant = ?1 and component = ?2 and name >= ?3 \
             order by name limit ?4",
            first,
        ),
        Bound::Unbounded => unreachable!("a page begins somewhere"),
    };
    // One more, since that says whether there are more.
    let most = int(which.limit.max(1) as u64 + 1);
    let mut select = db.prepare_cached(select)?;
    let names = select.query_map(
        params![shelf.tenant.0, shelf.component, from, most],
        |row| row.get::<_, String>(0),
    )?;
    Ok(which.page(names)?)
}

fn taken(db: &Connection, shelf: &Shelf) -> Result<Taken, Trouble> {
    let taken: Option<(i64, i64)> = db
        .prepare_cached("select keys, bytes from value_taken where tenant = ?1 and component = ?2")?
        .query_row(params![shelf.tenant.0, shelf.component], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let (keys, bytes) = taken.unwrap_or_default();
    Ok(Taken {
        keys: keys.cast_unsigned(),
        bytes: bytes.cast_unsigned(),
    })
}

/// None if the call has ended, or is further.
fn change(
    db: &Connection,
    shelf: &Shelf,
    once: Once,
    change: &Change,
    room: Room,
) -> Result<Option<Changed>, Trouble> {
    let Once {
        call,
        start,
        number,
    } = once;
    let (call, start, number) = (call.0.as_bytes(), start.cast_signed(), int(number));
    let newest: Option<(i64, String)> = db
        .prepare_cached("select number, outcome from value_change where call = ?1 and start = ?2")?
        .query_row(params![call, start], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match newest {
        Some((newest, outcome)) if newest == number => {
            return match serde_json::from_str(&outcome) {
                Ok(changed) => Ok(Some(changed)),
                Err(error) => Err(Trouble::Corrupt(format!("what came of a change: {error}"))),
            };
        }
        Some((newest, _)) if newest > number => return Ok(None),
        Some(_) | None => {}
    }
    if has_ended(db, once.call)? {
        return Ok(None);
    }
    let now = value(db, shelf, &change.key)?;
    let decided = decide(change, now.as_deref(), taken(db, shelf)?, room);
    let (tenant, component) = (&shelf.tenant.0, &shelf.component);
    if let Some(new) = &decided.write {
        match new {
            Some(new) => db
                .prepare_cached(
                    "insert into value (tenant, component, name, value) values (?1, ?2, ?3, ?4) \
                     on conflict (tenant, component, name) do update set value = excluded.value",
                )?
                .execute(params![tenant, component, change.key, new])?,
            None => db
                .prepare_cached(
                    "delete from value where tenant = ?1 and component = ?2 and name = ?3",
                )?
                .execute(params![tenant, component, change.key])?,
        };
        let Taken { keys, bytes } = decided.taken;
        db.prepare_cached(
            "insert into value_taken (tenant, component, keys, bytes) values (?1, ?2, ?3, ?4) \
             on conflict (tenant, component) do update set keys = excluded.keys, bytes = excluded.bytes",
        )?
        .execute(params![tenant, component, int(keys), int(bytes)])?;
    }
    let outcome = serde_json::to_string(&decided.changed)
        .expect("what came of a change is a word or a word and a number");
    db.prepare_cached(
        "insert into value_change (call, start, number, outcome) values (?1, ?2, ?3, ?4) \
         on conflict (call, start) do update set number = excluded.number, outcome = excluded.outcome",
    )?
    .execute(params![call, start, number, outcome])?;
    Ok(Some(decided.changed))
}

/// Forgets what came of the changes of a call.
pub(super) fn forget(db: &Connection, call: TaskId) -> Result<(), Trouble> {
    db.prepare_cached("delete from value_change where call = ?1")?
        .execute([call.0.as_bytes()])?;
    Ok(())
}

fn forget_lost(db: &Connection) -> Result<(), Trouble> {
    db.prepare_cached(
        "delete from value_change where call not in (select id from task where ended_at is null)",
    )?
    .execute([])?;
    Ok(())
}

fn clear(db: &Connection, shelf: &Shelf) -> Result<(), Trouble> {
    for delete in [
        "delete from value where tenant = ?1 and component = ?2",
        "delete from value_taken where tenant = ?1 and component = ?2",
    ] {
        db.prepare_cached(delete)?
            .execute(params![shelf.tenant.0, shelf.component])?;
    }
    Ok(())
}
