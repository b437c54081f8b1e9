//! A store that forgets everything with its process.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use longshore_catalog::component::{Component, Digest, LeftOut, Name, Shape};
use longshore_catalog::library::Library;
use longshore_catalog::store::{ComponentStore, Installed, StoreError as CatalogError};
use longshore_catalog::tool::Tool;
use longshore_tasks::artifacts::{self, Artifact, ArtifactId, ArtifactStore, Put};
use longshore_tasks::id::{Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::store::{
    Commit, Figures, Output, Page, Query, Segment, StoreError, Summary, TaskStore, Unfinished,
    UnfinishedPage,
};
use longshore_tasks::task::{Pinned, Reach, Task};
use longshore_tasks::values::{
    Change, Changed, KeyPage, Keys, Once, Room, Shelf, Taken, ValueStore, Values,
};
use parking_lot::Mutex;

use crate::successor::{is_written_under, leads_forwards, segments_before};

/// Tasks and components of one process; clones share them.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Rows by the order in which they were made.
    rows: BTreeMap<u64, Row>,
    /// Where a task's row is.
    keys: HashMap<TaskId, u64>,
    /// The order of the newest row.
    newest: u64,
    names: BTreeMap<Name, Pointer>,
    components: BTreeMap<Digest, Kept>,
    grants: BTreeMap<Name, String>,
    values: BTreeMap<Shelf, Values>,
    /// What came of the newest change of each call and start.
    changed: BTreeMap<(TaskId, u64), (u64, Changed)>,
    artifacts: BTreeMap<ArtifactId, Left>,
    changes: u64,
}

struct Row {
    task: Task,
    /// From the task's base on.
    segments: Vec<Segment>,
    output: Option<Output>,
}

/// What a call has left.
struct Left {
    artifact: Artifact,
    /// Only of a call that is no task.
    forget_at: Option<Millis>,
}

struct Pointer {
    digest: Digest,
    installed_at_ms: i64,
}

/// What belongs to a digest, whichever names point at it.
struct Kept {
    about: About,
    bytes: Vec<u8>,
}

#[derive(PartialEq)]
struct About {
    size: u64,
    tools: Vec<Tool>,
    shape: Shape,
    left_out: Vec<LeftOut>,
    library: Library,
    imports: Vec<String>,
    manifest: Option<String>,
    volatile: Vec<String>,
}

impl State {
    fn row(&self, id: TaskId) -> Option<&Row> {
        self.rows.get(self.keys.get(&id)?)
    }

    fn has_key_of(&self, task: &Task) -> bool {
        let Pinned {
            tenant,
            principal,
            idempotency_key,
            ..
        } = &task.pinned;
        idempotency_key
            .as_ref()
            .is_some_and(|key| self.by_key(tenant, principal, key).is_some())
    }

    fn by_key(&self, tenant: &Tenant, principal: &Principal, key: &str) -> Option<&Task> {
        self.rows.values().map(|row| &row.task).find(|task| {
            let pinned = &task.pinned;
            pinned.idempotency_key.as_deref() == Some(key)
                && (&pinned.tenant, &pinned.principal) == (tenant, principal)
        })
    }

    fn has_ended(&self, id: TaskId) -> bool {
        self.row(id)
            .is_some_and(|row| row.task.state.name().is_final())
    }

    fn forget(&mut self, call: TaskId) {
        self.changed.retain(|(by, _), _| *by != call);
    }

    fn unfinished(&self) -> impl Iterator<Item = &Task> {
        self.rows
            .values()
            .map(|row| &row.task)
            .filter(|task| task.state.ended_at().is_none())
    }
}

#[async_trait]
impl TaskStore for Memory {
    async fn create(
        &self,
        task: Task,
        segment: Option<Segment>,
        output: Option<Output>,
    ) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        if state.keys.contains_key(&task.id) || state.has_key_of(&task) {
            return Err(StoreError::Exists);
        }
        if segments_before(&task, segment.as_ref()) != Some(0)
            || !is_written_under(task.lease.epoch, segment.as_ref())
        {
            return Err(StoreError::Conflict);
        }
        state.newest += 1;
        let key = state.newest;
        state.keys.insert(task.id, key);
        let row = Row {
            task,
            segments: segment.into_iter().collect(),
            output,
        };
        state.rows.insert(key, row);
        state.changes += 1;
        Ok(())
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        Ok(self.0.lock().row(id).map(|row| row.task.clone()))
    }

    async fn by_key(
        &self,
        tenant: &Tenant,
        principal: &Principal,
        key: &str,
    ) -> Result<Option<Task>, StoreError> {
        Ok(self.0.lock().by_key(tenant, principal, key).cloned())
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        let mut guard = self.0.lock();
        let state = &mut *guard;
        let key = state.keys.get(&commit.task.id).ok_or(StoreError::Missing)?;
        let row = state.rows.get_mut(key).ok_or(StoreError::Missing)?;
        if row.task.lease.epoch != commit.from_epoch
            || !is_written_under(commit.from_epoch, commit.segment.as_ref())
        {
            return Err(StoreError::Fenced);
        }
        let before = segments_before(&commit.task, commit.segment.as_ref());
        if !leads_forwards(&commit)
            || row.task.version != commit.from_version
            || row.task.state.name().is_final()
            || row.task.journal.base > commit.task.journal.base
            || before != Some(row.task.journal.segments)
        {
            return Err(StoreError::Conflict);
        }
        row.segments.extend(commit.segment);
        let base = commit.task.journal.base;
        row.segments.retain(|segment| segment.number >= base);
        if commit.output.is_some() {
            row.output = commit.output;
        }
        // What was fixed when the task was made is not part of a change.
        row.task = Task {
            pinned: row.task.pinned.clone(),
            created_at: row.task.created_at,
            journal_key: row.task.journal_key.take(),
            ..commit.task
        };
        if !row.task.keeps_questions() {
            row.task.questions.clear();
        }
        if row.task.state.name().is_final() {
            let id = row.task.id;
            state.forget(id);
        }
        state.changes += 1;
        Ok(())
    }

    async fn list(&self, query: Query) -> Result<Page, StoreError> {
        let state = self.0.lock();
        let end = query.after.unwrap_or(u64::MAX);
        let mut matching = state.rows.range(..end).rev().filter(|(_, row)| {
            query.state.is_none_or(|name| row.task.state.name() == name)
                && query
                    .component
                    .as_ref()
                    .is_none_or(|name| row.task.pinned.component == *name)
                && query.of.as_ref().is_none_or(|(tenant, principal)| {
                    let pinned = &row.task.pinned;
                    (&pinned.tenant, &pinned.principal) == (tenant, principal)
                        && row.task.reach == Reach::Id
                })
                && query
                    .ids
                    .is_none_or(|(first, last)| first <= row.task.id && row.task.id <= last)
        });
        let mut tasks = Vec::new();
        let mut last = None;
        for (key, row) in matching.by_ref().take(query.limit) {
            tasks.push(summary(&row.task));
            last = Some(*key);
        }
        let next = last.filter(|_| matching.next().is_some());
        Ok(Page { tasks, next })
    }

    async fn orphans(&self, node: NodeId, limit: usize) -> Result<Vec<Task>, StoreError> {
        let state = self.0.lock();
        let orphan = |task: &&Task| task.lease.owner.as_ref() != Some(&node);
        Ok(state
            .unfinished()
            .filter(orphan)
            .take(limit)
            .cloned()
            .collect())
    }

    async fn unfinished(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<UnfinishedPage, StoreError> {
        let state = self.0.lock();
        let first = after.map_or(0, |after| after.saturating_add(1));
        let mut rows = state
            .rows
            .range(first..)
            .filter(|(_, row)| row.task.state.ended_at().is_none());
        let mut tasks = Vec::new();
        let mut last = None;
        for (key, row) in rows.by_ref().take(limit) {
            tasks.push(unfinished(&row.task));
            last = Some(*key);
        }
        let next = last.filter(|_| rows.next().is_some());
        Ok(UnfinishedPage { tasks, next })
    }

    async fn segments(&self, id: TaskId) -> Result<Vec<Segment>, StoreError> {
        let state = self.0.lock();
        Ok(state
            .row(id)
            .map(|row| row.segments.clone())
            .unwrap_or_default())
    }

    async fn segment(&self, id: TaskId, number: u64) -> Result<Option<Segment>, StoreError> {
        let state = self.0.lock();
        let mut segments = state.row(id).into_iter().flat_map(|row| &row.segments);
        Ok(segments.find(|segment| segment.number == number).cloned())
    }

    async fn output(&self, id: TaskId) -> Result<Option<Output>, StoreError> {
        let state = self.0.lock();
        Ok(state.row(id).and_then(|row| row.output.clone()))
    }

    async fn sweep(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        let mut state = self.0.lock();
        let mut over: Vec<(Millis, u64)> = state
            .rows
            .iter()
            .filter_map(|(key, row)| Some((row.task.forget_at()?, *key)))
            .filter(|(at, _)| *at < now)
            .collect();
        over.sort_unstable();
        over.truncate(limit);
        for (_, key) in &over {
            if let Some(row) = state.rows.remove(key) {
                let id = row.task.id;
                state.keys.remove(&id);
                state.artifacts.retain(|_, left| left.artifact.call != id);
            }
        }
        state.changes += u64::from(!over.is_empty());
        Ok(over.len())
    }

    async fn figures(&self) -> Result<Figures, StoreError> {
        let state = self.0.lock();
        Ok(Figures {
            commits: state.changes,
            changes: state.changes,
            unfinished: state.unfinished().count() as u64,
        })
    }
}

#[async_trait]
impl ValueStore for Memory {
    async fn value(&self, shelf: &Shelf, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let state = self.0.lock();
        Ok(state.values.get(shelf).and_then(|values| values.value(key)))
    }

    async fn keys(&self, shelf: &Shelf, which: Keys) -> Result<KeyPage, StoreError> {
        let state = self.0.lock();
        let values = state.values.get(shelf);
        Ok(values.map_or_else(KeyPage::default, |values| values.keys(&which)))
    }

    async fn change(
        &self,
        shelf: &Shelf,
        once: Once,
        change: Change,
        room: Room,
    ) -> Result<Changed, StoreError> {
        let mut state = self.0.lock();
        let by = (once.call, once.start);
        match state.changed.get(&by) {
            Some((newest, changed)) if *newest == once.number => return Ok(*changed),
            Some((newest, _)) if *newest > once.number => return Err(StoreError::Fenced),
            Some(_) | None => {}
        }
        if state.has_ended(once.call) {
            return Err(StoreError::Fenced);
        }
        let values = state.values.entry(shelf.clone()).or_default();
        let changed = values.change(change, room);
        state.changed.insert(by, (once.number, changed));
        state.changes += 1;
        Ok(changed)
    }

    async fn forget(&self, call: TaskId) -> Result<(), StoreError> {
        self.0.lock().forget(call);
        Ok(())
    }

    async fn forget_lost(&self) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        let going_on: HashSet<TaskId> = state.unfinished().map(|task| task.id).collect();
        state.changed.retain(|(call, _), _| going_on.contains(call));
        Ok(())
    }

    async fn taken(&self, shelf: &Shelf) -> Result<Taken, StoreError> {
        let state = self.0.lock();
        Ok(state
            .values
            .get(shelf)
            .map(Values::taken)
            .unwrap_or_default())
    }

    async fn clear(&self, shelf: &Shelf) -> Result<(), StoreError> {
        self.0.lock().values.remove(shelf);
        Ok(())
    }
}

#[async_trait]
impl ArtifactStore for Memory {
    async fn put(&self, artifact: Artifact, room: artifacts::Room) -> Result<Put, StoreError> {
        let mut state = self.0.lock();
        if state.artifacts.contains_key(&artifact.id) {
            return Ok(Put::Kept);
        }
        if state.has_ended(artifact.call) {
            return Err(StoreError::Fenced);
        }
        let sizes = state
            .artifacts
            .values()
            .filter(|left| left.artifact.call == artifact.call)
            .map(|left| left.artifact.data.len() as u64);
        let (count, bytes) = sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size));
        let put = room.fits(count, bytes, artifact.data.len() as u64);
        if put == Put::Kept {
            let left = Left {
                forget_at: None,
                artifact,
            };
            state.artifacts.insert(left.artifact.id, left);
            state.changes += 1;
        }
        Ok(put)
    }

    async fn artifact(
        &self,
        id: ArtifactId,
        tenant: &Tenant,
        principal: &Principal,
        now: Millis,
    ) -> Result<Option<Artifact>, StoreError> {
        let state = self.0.lock();
        let Some(Left {
            artifact,
            forget_at,
        }) = state.artifacts.get(&id)
        else {
            return Ok(None);
        };
        let row = state.row(artifact.call);
        let forget_at = forget_at.or(row.and_then(|row| row.task.forget_at()));
        let is_there = (&artifact.tenant, &artifact.principal) == (tenant, principal)
            && forget_at.is_none_or(|at| at >= now);
        Ok(is_there.then(|| artifact.clone()))
    }

    async fn left_until(&self, call: TaskId, forget_at: Millis) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        for left in state.artifacts.values_mut() {
            if left.artifact.call == call {
                left.forget_at = Some(forget_at);
            }
        }
        Ok(())
    }

    async fn left_by_lost(&self, forget_at: Millis) -> Result<(), StoreError> {
        let mut guard = self.0.lock();
        let state = &mut *guard;
        for left in state.artifacts.values_mut() {
            if left.forget_at.is_none() && !state.keys.contains_key(&left.artifact.call) {
                left.forget_at = Some(forget_at);
            }
        }
        Ok(())
    }

    async fn sweep_artifacts(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        let mut state = self.0.lock();
        let over = |left: &Left| left.forget_at.is_some_and(|at| at < now);
        let ids: Vec<ArtifactId> = state
            .artifacts
            .iter()
            .filter(|(_, left)| over(left))
            .map(|(id, _)| *id)
            .take(limit)
            .collect();
        for id in &ids {
            state.artifacts.remove(id);
        }
        Ok(ids.len())
    }
}

fn summary(task: &Task) -> Summary {
    Summary {
        id: task.id,
        component: task.pinned.component.clone(),
        tool: task.pinned.tool.clone(),
        principal: task.pinned.principal.0.as_ref().to_owned(),
        state: task.state.name(),
        status_message: task.status.message.clone(),
        created_at: task.created_at,
        updated_at: task.updated_at,
    }
}

fn unfinished(task: &Task) -> Unfinished {
    Unfinished {
        id: task.id,
        state: task.state.name(),
        owner: task.lease.owner.clone(),
        wake_at: task.wake_at,
        deadline_at: task.deadline_at,
        cancel_requested: task.cancel_requested_at.is_some(),
        stalls: task.stalls,
    }
}

#[async_trait]
impl ComponentStore for Memory {
    async fn install(
        &self,
        component: Component,
        bytes: Vec<u8>,
    ) -> Result<Installed, CatalogError> {
        let Component {
            name,
            digest,
            size,
            tools,
            shape,
            left_out,
            library,
            imports,
            manifest,
            volatile,
            installed_at_ms,
        } = component;
        let about = About {
            size,
            tools,
            shape,
            left_out,
            library,
            imports,
            manifest,
            volatile,
        };
        let mut state = self.0.lock();
        let before = state.names.get(&name).map(|pointer| pointer.digest.clone());
        let known = state
            .components
            .get(&digest)
            .is_some_and(|kept| kept.about == about);
        if known && before.as_ref() == Some(&digest) {
            return Ok(Installed::Unchanged);
        }
        match state.components.get_mut(&digest) {
            Some(kept) => kept.about = about,
            None => {
                state
                    .components
                    .insert(digest.clone(), Kept { about, bytes });
            }
        }
        state.names.insert(
            name,
            Pointer {
                digest,
                installed_at_ms,
            },
        );
        state.changes += 1;
        Ok(before.map_or(Installed::Created, Installed::Replaced))
    }

    async fn keep(&self, component: Component, bytes: Vec<u8>) -> Result<(), CatalogError> {
        let mut state = self.0.lock();
        let about = About {
            size: component.size,
            tools: component.tools,
            shape: component.shape,
            left_out: component.left_out,
            library: component.library,
            imports: component.imports,
            manifest: component.manifest,
            volatile: component.volatile,
        };
        state
            .components
            .entry(component.digest)
            .or_insert(Kept { about, bytes });
        Ok(())
    }

    async fn remove(&self, name: Name) -> Result<bool, CatalogError> {
        let mut state = self.0.lock();
        let removed = state.names.remove(&name).is_some();
        if removed {
            state.grants.remove(&name);
        }
        state.changes += u64::from(removed);
        Ok(removed)
    }

    async fn installed(&self) -> Result<Vec<Component>, CatalogError> {
        let state = self.0.lock();
        let component = |(name, pointer): (&Name, &Pointer)| {
            let About {
                size,
                tools,
                shape,
                left_out,
                library,
                imports,
                manifest,
                volatile,
            } = &state.components.get(&pointer.digest)?.about;
            Some(Component {
                name: name.clone(),
                digest: pointer.digest.clone(),
                size: *size,
                tools: tools.clone(),
                shape: *shape,
                left_out: left_out.clone(),
                library: library.clone(),
                imports: imports.clone(),
                manifest: manifest.clone(),
                volatile: volatile.clone(),
                installed_at_ms: pointer.installed_at_ms,
            })
        };
        Ok(state.names.iter().filter_map(component).collect())
    }

    async fn grant(&self, name: Name, grant: Option<String>) -> Result<(), CatalogError> {
        let mut state = self.0.lock();
        match grant {
            Some(grant) => state.grants.insert(name, grant),
            None => state.grants.remove(&name),
        };
        state.changes += 1;
        Ok(())
    }

    async fn grants(&self) -> Result<Vec<(Name, String)>, CatalogError> {
        let grants = self.0.lock().grants.clone();
        Ok(grants.into_iter().collect())
    }

    async fn bytes(&self, digest: Digest) -> Result<Option<Vec<u8>>, CatalogError> {
        Ok(self
            .0
            .lock()
            .components
            .get(&digest)
            .map(|kept| kept.bytes.clone()))
    }

    async fn collect(&self, served: Vec<Digest>) -> Result<Vec<Digest>, CatalogError> {
        let mut state = self.0.lock();
        let mut needed: HashSet<String> = state
            .unfinished()
            .map(|task| task.pinned.digest.clone())
            .collect();
        needed.extend(
            state
                .names
                .values()
                .map(|pointer| pointer.digest.to_string()),
        );
        needed.extend(served.iter().map(ToString::to_string));
        let gone: Vec<Digest> = state
            .components
            .keys()
            .filter(|digest| !needed.contains(digest.as_str()))
            .cloned()
            .collect();
        for digest in &gone {
            state.components.remove(digest);
        }
        state.changes += u64::from(!gone.is_empty());
        Ok(gone)
    }
}
