//! The statements about what runs leave for whoever called them.

use async_trait::async_trait;
use longshore_tasks::artifacts::{Artifact, ArtifactId, ArtifactStore, Put, Room};
use longshore_tasks::id::{Millis, Principal, TaskId, Tenant};
use longshore_tasks::store::StoreError;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Sqlite;
use super::error::Trouble;
use super::rows::int;
use super::tasks::has_ended;

#[async_trait]
impl ArtifactStore for Sqlite {
    async fn put(&self, artifact: Artifact, room: Room) -> Result<Put, StoreError> {
        let written = self.0.writer.write(move |db| put(db, &artifact, room));
        written.await?.ok_or(StoreError::Fenced)
    }

    async fn artifact(
        &self,
        id: ArtifactId,
        tenant: &Tenant,
        principal: &Principal,
        now: Millis,
    ) -> Result<Option<Artifact>, StoreError> {
        let (tenant, principal) = (tenant.clone(), principal.clone());
        let read = self
            .0
            .readers
            .elsewhere(move |db| artifact(db, id, tenant, principal, now));
        Ok(read.await?)
    }

    async fn left_until(&self, call: TaskId, forget_at: Millis) -> Result<(), StoreError> {
        let written = self.0.writer.write(move |db| {
            db.prepare_cached("update artifact set forget_at = ?2 where call = ?1")?
                .execute(params![call.0.as_bytes(), forget_at.0])?;
            Ok(())
        });
        Ok(written.await?)
    }

    async fn left_by_lost(&self, forget_at: Millis) -> Result<(), StoreError> {
        let written = self.0.writer.write(move |db| {
            db.prepare_cached(
                "update artifact set forget_at = ?1 where forget_at is null \
                 and call not in (select id from task)",
            )?
            .execute([forget_at.0])?;
            Ok(())
        });
        Ok(written.await?)
    }

    async fn sweep_artifacts(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        let written = self.0.writer.write(move |db| {
            let deleted = db
                .prepare_cached(
                    "delete from artifact where key in (select key from artifact \
                     where forget_at < ?1 order by forget_at, key limit ?2)",
                )?
                .execute(params![now.0, int(limit as u64)])?;
            Ok(deleted)
        });
        Ok(written.await?)
    }
}

/// None if the call has ended.
fn put(db: &Connection, artifact: &Artifact, room: Room) -> Result<Option<Put>, Trouble> {
    let (id, call) = (artifact.id.0.as_bytes(), artifact.call.0.as_bytes());
    let is_there: bool = db
        .prepare_cached("select exists (select 1 from artifact where id = ?1)")?
        .query_row([id], |row| row.get(0))?;
    if is_there {
        return Ok(Some(Put::Kept));
    }
    if has_ended(db, artifact.call)? {
        return Ok(None);
    }
    let (count, bytes): (i64, i64) = db
        .prepare_cached("select count(*), coalesce(sum(bytes), 0) from artifact where call = ?1")?
        .query_row([call], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let size = artifact.data.len() as u64;
    let put = room.fits(count.cast_unsigned(), bytes.cast_unsigned(), size);
    if put == Put::Kept {
        db.prepare_cached(
            "insert into artifact (id, call, tenant, principal, name, mime_type, bytes, data) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            id,
            call,
            artifact.tenant.0,
            artifact.principal.0,
            artifact.name,
            artifact.mime_type,
            int(size),
            artifact.data
        ])?;
    }
    Ok(Some(put))
}

fn artifact(
    db: &Connection,
    id: ArtifactId,
    tenant: Tenant,
    principal: Principal,
    now: Millis,
) -> Result<Option<Artifact>, Trouble> {
    let found = db
        .prepare_cached(
            "select call, name, mime_type, data from artifact \
             where id = ?1 and tenant = ?2 and principal = ?3 \
             and (forget_at is null or forget_at >= ?4) \
             and not exists (select 1 from task where task.id = artifact.call and task.forget_at < ?4)",
        )?
        .query_row(
            params![id.0.as_bytes(), tenant.0, principal.0, now.0],
            |row| {
                Ok((
                    row.get::<_, [u8; 16]>(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                ))
            },
        )
        .optional()?;
    Ok(found.map(|(call, name, mime_type, data)| Artifact {
        id,
        call: TaskId(uuid::Uuid::from_bytes(call)),
        tenant,
        principal,
        name,
        mime_type,
        data,
    }))
}
