//! The statements about components.

use async_trait::async_trait;
use longshore_catalog::component::{Component, Digest, LeftOut, Name, Shape};
use longshore_catalog::library::Library;
use longshore_catalog::store::{ComponentStore, Installed, StoreError};
use longshore_catalog::tool::Tool;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::Sqlite;
use super::error::Trouble;
use super::rows::{count, int};

/// What is kept of a component as JSON, with its digest. A member that is added needs a default.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Meta {
    tools: Vec<Tool>,
    #[serde(default)]
    shape: Shape,
    #[serde(default)]
    left_out: Vec<LeftOut>,
    #[serde(default)]
    library: Library,
    imports: Vec<String>,
    #[serde(default)]
    manifest: Option<String>,
    volatile: Vec<String>,
}

#[async_trait]
impl ComponentStore for Sqlite {
    async fn install(&self, component: Component, bytes: Vec<u8>) -> Result<Installed, StoreError> {
        Ok(self
            .0
            .writer
            .write(move |db| install(db, component, &bytes))
            .await?)
    }

    async fn keep(&self, component: Component, bytes: Vec<u8>) -> Result<(), StoreError> {
        let digest = component.digest.clone();
        // At each start for each file: mostly it is there, and then nothing is written.
        if self.bytes(digest).await?.is_some_and(|kept| kept == bytes) {
            return Ok(());
        }
        Ok(self
            .0
            .writer
            .write(move |db| keep(db, component, &bytes).map(drop))
            .await?)
    }

    async fn remove(&self, name: Name) -> Result<bool, StoreError> {
        Ok(self.0.writer.write(move |db| remove(db, &name)).await?)
    }

    async fn installed(&self) -> Result<Vec<Component>, StoreError> {
        Ok(self.0.readers.elsewhere(installed).await?)
    }

    async fn grant(&self, name: Name, grant: Option<String>) -> Result<(), StoreError> {
        let written = self.0.writer.write(move |db| write_grant(db, &name, grant));
        Ok(written.await?)
    }

    async fn grants(&self) -> Result<Vec<(Name, String)>, StoreError> {
        Ok(self.0.readers.elsewhere(grants).await?)
    }

    async fn bytes(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self
            .0
            .readers
            .elsewhere(move |db| bytes(db, &digest))
            .await?)
    }

    async fn collect(&self, served: Vec<Digest>) -> Result<Vec<Digest>, StoreError> {
        Ok(self.0.writer.write(move |db| collect(db, &served)).await?)
    }
}

fn install(db: &Connection, component: Component, bytes: &[u8]) -> Result<Installed, Trouble> {
    let (name, installed_at_ms) = (component.name.clone(), component.installed_at_ms);
    let digest = component.digest.clone();
    let before: Option<String> = db
        .prepare_cached("select digest from component_name where name = ?1")?
        .query_row([name.as_str()], |row| row.get(0))
        .optional()?;
    let known = keep(db, component, bytes)?;
    if known && before.as_deref() == Some(digest.as_str()) {
        return Ok(Installed::Unchanged);
    }
    db.prepare_cached(
        "insert into component_name (name, digest, installed_at) values (?1, ?2, ?3) \
         on conflict (name) do update set digest = excluded.digest, installed_at = excluded.installed_at",
    )?
    .execute(params![name.as_str(), digest.as_str(), installed_at_ms])?;
    Ok(match before {
        Some(before) => Installed::Replaced(Digest::from_stored(before)),
        None => Installed::Created,
    })
}

/// Keeps the bytes and what is known of them. True if nothing had to be written.
fn keep(db: &Connection, component: Component, bytes: &[u8]) -> Result<bool, Trouble> {
    let Component {
        name: _,
        digest,
        size,
        tools,
        shape,
        left_out,
        library,
        imports,
        manifest,
        volatile,
        installed_at_ms: _,
    } = component;
    let meta = Meta {
        tools,
        shape,
        left_out,
        library,
        imports,
        manifest,
        volatile,
    };
    let kept: Option<(bool, String)> = db
        .prepare_cached("select size = ?2 and bytes = ?3, meta from component where digest = ?1")?
        .query_row(params![digest.as_str(), int(size), bytes], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    // What was damaged is written again: an upload of the right file heals it.
    let known = kept.as_ref().is_some_and(|(is_same, kept_meta)| {
        *is_same && read_meta(digest.as_str(), kept_meta).is_ok_and(|kept| kept == meta)
    });
    if known {
        return Ok(true);
    }
    let meta =
        serde_json::to_string(&meta).map_err(|error| Trouble::Unavailable(error.to_string()))?;
    let statement = if kept.is_some() {
        "update component set size = ?2, meta = ?3, bytes = ?4 where digest = ?1"
    } else {
        "insert into component (digest, size, meta, bytes) values (?1, ?2, ?3, ?4)"
    };
    db.prepare_cached(statement)?
        .execute(params![digest.as_str(), int(size), meta, bytes])?;
    Ok(false)
}

fn remove(db: &Connection, name: &Name) -> Result<bool, Trouble> {
    let removed = db
        .prepare_cached("delete from component_name where name = ?1")?
        .execute([name.as_str()])?;
    if removed > 0 {
        // Whoever comes under that name later is somebody else.
        write_grant(db, name, None)?;
    }
    Ok(removed > 0)
}

fn write_grant(db: &Connection, name: &Name, grant: Option<String>) -> Result<(), Trouble> {
    match grant {
        Some(grant) => db
            .prepare_cached(
                "insert into component_grant (name, grant_json) values (?1, ?2) \
                 on conflict (name) do update set grant_json = excluded.grant_json",
            )?
            .execute([name.as_str(), &grant])?,
        None => db
            .prepare_cached("delete from component_grant where name = ?1")?
            .execute([name.as_str()])?,
    };
    Ok(())
}

fn grants(db: &Connection) -> Result<Vec<(Name, String)>, Trouble> {
    let mut select =
        db.prepare_cached("select name, grant_json from component_grant order by name")?;
    let mut rows = select.query([])?;
    let mut grants = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, grant) = (row.get_ref(0)?, row.get_ref(1)?);
        let Some(name) = name.as_str().ok().and_then(|name| name.parse().ok()) else {
            // No component can have it.
            tracing::error!("something is granted to a name in the database that is none");
            continue;
        };
        // What is no text is no grant, which whoever reads it finds out: its component is not served, and others are.
        grants.push((name, grant.as_str().unwrap_or_default().to_owned()));
    }
    Ok(grants)
}

fn installed(db: &Connection) -> Result<Vec<Component>, Trouble> {
    let mut select = db.prepare_cached(
        "select n.name, n.digest, n.installed_at, c.size, c.meta \
         from component_name n join component c on c.digest = n.digest order by n.name",
    )?;
    let mut rows = select.query([])?;
    let mut components = Vec::new();
    while let Some(row) = rows.next()? {
        match installed_row(row) {
            Ok(component) => components.push(component),
            // One damaged row must not keep the others from being served.
            Err(Trouble::Corrupt(what)) => tracing::error!(
                what,
                "a component cannot be read from the database: upload it again"
            ),
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(components)
}

fn installed_row(row: &rusqlite::Row<'_>) -> Result<Component, Trouble> {
    let name: String = row.get(0)?;
    let digest: String = row.get(1)?;
    let meta: String = row.get(4)?;
    let Meta {
        tools,
        shape,
        left_out,
        library,
        imports,
        manifest,
        volatile,
    } = read_meta(&digest, &meta)?;
    Ok(Component {
        name: name
            .parse()
            .map_err(|_| Trouble::Corrupt(format!("a component's name is {name:?}")))?,
        digest: Digest::from_stored(digest),
        size: count(row.get(3)?)?,
        tools,
        shape,
        left_out,
        library,
        imports,
        manifest,
        volatile,
        installed_at_ms: row.get(2)?,
    })
}

fn bytes(db: &Connection, digest: &Digest) -> Result<Option<Vec<u8>>, Trouble> {
    let bytes = db
        .prepare_cached("select bytes from component where digest = ?1")?
        .query_row([digest.as_str()], |row| row.get(0))
        .optional()?;
    Ok(bytes)
}

fn collect(db: &Connection, served: &[Digest]) -> Result<Vec<Digest>, Trouble> {
    let mut digests: Vec<Digest> = db
        .prepare_cached(
            "select digest from component where digest not in (select digest from component_name) \
             and digest not in (select digest from task where ended_at is null)",
        )?
        .query_map([], |row| row.get(0).map(Digest::from_stored))?
        .collect::<Result<_, _>>()?;
    digests.retain(|digest| !served.contains(digest));
    digests.sort_unstable();
    for digest in &digests {
        db.prepare_cached("delete from component where digest = ?1")?
            .execute([digest.as_str()])?;
    }
    Ok(digests)
}

fn read_meta(digest: &str, meta: &str) -> Result<Meta, Trouble> {
    serde_json::from_str(meta)
        .map_err(|error| Trouble::Corrupt(format!("component {digest}: {error}")))
}
