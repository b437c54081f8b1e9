//! A store as one life of a server has it: at the write that a test chooses the server dies, or is told something
//! else than what happened, or stands still while another one takes over. What the lives write is compared with the
//! rules of a journal as they write it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use longshore_store::memory::Memory;
use longshore_tasks::artifacts::{self, Artifact, ArtifactId, ArtifactStore, Put};
use longshore_tasks::id::{Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::store::{
    Commit, Figures, Output, Page, Query, Segment, StoreError, TaskStore, UnfinishedPage,
};
use longshore_tasks::task::Task;
use longshore_tasks::values::{
    Change, Changed, KeyPage, Keys, Once, Room, Shelf, Taken, ValueStore,
};
use tokio::sync::{Mutex, watch};

/// What happens at a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// The server dies before it.
    DiesBefore,
    /// It is made, and the server dies before it knows.
    DiesUntold,
    /// It is made, the server knows, a client sees, and then the server dies.
    DiesAfter,
    /// It is not made, and the server lives and is told so.
    Refused,
    /// It is made, and the server lives and is told that it was not.
    Denied,
    /// The server stands still before it until another one has its tasks, and then goes on.
    StandsStill,
    /// The same, until the other one has ended them.
    StandsStillLong,
    /// It is made, and the server is told to go down in order.
    GoesDown,
}

impl How {
    /// Every way.
    pub const ALL: [Self; 8] = [
        Self::DiesBefore,
        Self::DiesUntold,
        Self::DiesAfter,
        Self::Refused,
        Self::Denied,
        Self::StandsStill,
        Self::StandsStillLong,
        Self::GoesDown,
    ];
}

/// Where something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number of the write, from 1, among those of its life.
    pub write: u64,
    /// What happens there.
    pub how: How,
}

/// How a life goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// As usual.
    Beats,
    /// It is to go down, and may still write.
    Ends,
    /// It writes nothing until it is released.
    Stands,
    /// It reads and writes nothing any more.
    Dead,
}

/// One segment, as it was kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Its place in the journal.
    pub number: u64,
    /// The lease under which it was written.
    pub epoch: u64,
    /// The first call that it covers.
    pub first_call: u64,
}

/// What all lives share: the store itself and what is known of it.
#[derive(Clone, Default)]
pub struct Kit {
    /// The store.
    pub memory: Memory,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Default)]
struct Ledger {
    segments: BTreeMap<TaskId, Vec<Kept>>,
    broken: Vec<String>,
}

impl Kit {
    /// Rules that a write has broken.
    pub async fn broken(&self) -> Vec<String> {
        self.ledger.lock().await.broken.clone()
    }

    /// Every segment of a task that was ever kept, in the order in which that happened.
    pub async fn kept(&self, id: TaskId) -> Vec<Kept> {
        let ledger = self.ledger.lock().await;
        ledger.segments.get(&id).cloned().unwrap_or_default()
    }
}

impl Ledger {
    fn note(&mut self, before: Option<&Task>, after: &Task, segment: Option<&Segment>) {
        let id = after.id;
        if let Some(before) = before {
            if after.version <= before.version {
                self.broken.push(format!(
                    "versions grow: {} after {}",
                    after.version, before.version
                ));
            }
            if after.lease.epoch < before.lease.epoch {
                self.broken.push(format!(
                    "epochs never fall: {} after {}",
                    after.lease.epoch, before.lease.epoch
                ));
            }
            if before.state.name().is_final() {
                self.broken.push(format!(
                    "nothing follows the end: version {} of a task that was {}",
                    after.version,
                    before.state.name().as_str()
                ));
            }
        }
        let Some(segment) = segment else { return };
        let due = before.map_or(0, |before| before.journal.segments);
        let kept = self.segments.entry(id).or_default();
        if segment.number != due {
            self.broken.push(format!(
                "no gap in the segments: {} where {due} was due",
                segment.number
            ));
        }
        if kept.last().is_some_and(|last| segment.epoch < last.epoch) {
            self.broken.push(format!(
                "epochs never fall along the segments: {} in segment {}",
                segment.epoch, segment.number
            ));
        }
        kept.push(Kept {
            number: segment.number,
            epoch: segment.epoch,
            first_call: segment.first_call,
        });
    }
}

/// The store, as one life has it.
pub struct FaultStore {
    kit: Kit,
    fault: Option<Fault>,
    writes: AtomicU64,
    pulse: watch::Sender<Pulse>,
    /// Writes that are under way.
    open: watch::Sender<u64>,
}

/// Counts a write for as long as it is under way.
struct Open<'a>(&'a watch::Sender<u64>);

impl<'a> Open<'a> {
    fn new(open: &'a watch::Sender<u64>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl FaultStore {
    /// That of a life to which this happens.
    #[must_use]
    pub fn new(kit: Kit, fault: Option<Fault>) -> Self {
        Self {
            kit,
            fault,
            writes: AtomicU64::new(0),
            pulse: watch::Sender::new(Pulse::Beats),
            open: watch::Sender::new(0),
        }
    }

    /// Writes that were begun.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// Whether what was to happen has happened.
    #[must_use]
    pub fn is_struck(&self) -> bool {
        self.fault.is_some_and(|fault| self.writes() >= fault.write)
    }

    /// What was to happen.
    #[must_use]
    pub fn how(&self) -> Option<How> {
        self.fault.map(|fault| fault.how)
    }

    /// Returns once no write is under way.
    pub async fn quiet(&self) {
        let mut open = self.open.subscribe();
        let _it_is = open.wait_for(|open| *open == 0).await;
    }

    /// Returns once the life does not go on as usual, and how.
    pub async fn troubled(&self) -> Pulse {
        let mut pulse = self.pulse.subscribe();
        *pulse
            .wait_for(|pulse| *pulse != Pulse::Beats)
            .await
            .expect("this store has the other end")
    }

    /// From now on this life reads and writes nothing.
    pub fn die(&self) {
        self.pulse.send_replace(Pulse::Dead);
    }

    /// A life that stood still goes on.
    pub fn release(&self) {
        self.pulse.send_replace(Pulse::Beats);
    }

    /// Whoever is dead waits here for ever.
    async fn alive(&self) {
        if *self.pulse.borrow() == Pulse::Dead {
            std::future::pending().await
        }
    }

    async fn until_it_beats(&self) {
        let mut pulse = self.pulse.subscribe();
        let _it_does = pulse
            .wait_for(|pulse| matches!(pulse, Pulse::Beats | Pulse::Ends))
            .await;
    }

    async fn write<T>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let _under_way = Open::new(&self.open);
        self.until_it_beats().await;
        let number = self.writes.fetch_add(1, Ordering::AcqRel) + 1;
        let how = self
            .fault
            .and_then(|fault| (fault.write == number).then_some(fault.how));
        match how {
            None => write.await,
            Some(How::DiesBefore) => {
                self.die();
                std::future::pending().await
            }
            Some(How::DiesUntold) => {
                let _nobody_is_told = write.await;
                self.die();
                std::future::pending().await
            }
            Some(How::DiesAfter) => {
                let done = write.await;
                self.pulse.send_replace(Pulse::Stands);
                done
            }
            Some(How::GoesDown) => {
                let done = write.await;
                self.pulse.send_replace(Pulse::Ends);
                done
            }
            Some(How::Refused) => Err(StoreError::Unavailable("as a test wants it".to_owned())),
            Some(How::Denied) => {
                write.await?;
                Err(StoreError::Unavailable("as a test wants it".to_owned()))
            }
            Some(How::StandsStill | How::StandsStillLong) => {
                self.pulse.send_replace(Pulse::Stands);
                self.until_it_beats().await;
                write.await
            }
        }
    }
}

#[async_trait]
impl ArtifactStore for FaultStore {
    async fn put(&self, artifact: Artifact, room: artifacts::Room) -> Result<Put, StoreError> {
        self.write(self.kit.memory.put(artifact, room)).await
    }

    async fn artifact(
        &self,
        id: ArtifactId,
        tenant: &Tenant,
        principal: &Principal,
        now: Millis,
    ) -> Result<Option<Artifact>, StoreError> {
        self.alive().await;
        self.kit.memory.artifact(id, tenant, principal, now).await
    }

    async fn left_until(&self, call: TaskId, forget_at: Millis) -> Result<(), StoreError> {
        self.alive().await;
        self.kit.memory.left_until(call, forget_at).await
    }

    async fn left_by_lost(&self, forget_at: Millis) -> Result<(), StoreError> {
        self.alive().await;
        self.kit.memory.left_by_lost(forget_at).await
    }

    async fn sweep_artifacts(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        self.alive().await;
        self.kit.memory.sweep_artifacts(now, limit).await
    }
}

#[async_trait]
impl ValueStore for FaultStore {
    async fn change(
        &self,
        shelf: &Shelf,
        once: Once,
        change: Change,
        room: Room,
    ) -> Result<Changed, StoreError> {
        self.write(self.kit.memory.change(shelf, once, change, room))
            .await
    }

    async fn value(&self, shelf: &Shelf, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.alive().await;
        self.kit.memory.value(shelf, key).await
    }

    async fn keys(&self, shelf: &Shelf, which: Keys) -> Result<KeyPage, StoreError> {
        self.alive().await;
        self.kit.memory.keys(shelf, which).await
    }

    async fn forget(&self, call: TaskId) -> Result<(), StoreError> {
        self.alive().await;
        self.kit.memory.forget(call).await
    }

    async fn forget_lost(&self) -> Result<(), StoreError> {
        self.alive().await;
        self.kit.memory.forget_lost().await
    }

    async fn taken(&self, shelf: &Shelf) -> Result<Taken, StoreError> {
        self.alive().await;
        self.kit.memory.taken(shelf).await
    }

    async fn clear(&self, shelf: &Shelf) -> Result<(), StoreError> {
        self.alive().await;
        self.kit.memory.clear(shelf).await
    }
}

#[async_trait]
impl TaskStore for FaultStore {
    async fn create(
        &self,
        task: Task,
        segment: Option<Segment>,
        output: Option<Output>,
    ) -> Result<(), StoreError> {
        self.write(async {
            let mut ledger = self.kit.ledger.lock().await;
            let memory = &self.kit.memory;
            memory.create(task.clone(), segment.clone(), output).await?;
            ledger.note(None, &task, segment.as_ref());
            Ok(())
        })
        .await
    }

    async fn commit(&self, commit: Commit) -> Result<(), StoreError> {
        self.write(async {
            let mut ledger = self.kit.ledger.lock().await;
            let before = self.kit.memory.get(commit.task.id).await?;
            let (after, segment) = (commit.task.clone(), commit.segment.clone());
            self.kit.memory.commit(commit).await?;
            ledger.note(before.as_ref(), &after, segment.as_ref());
            Ok(())
        })
        .await
    }

    async fn get(&self, id: TaskId) -> Result<Option<Task>, StoreError> {
        self.alive().await;
        self.kit.memory.get(id).await
    }

    async fn by_key(
        &self,
        tenant: &Tenant,
        principal: &Principal,
        key: &str,
    ) -> Result<Option<Task>, StoreError> {
        self.alive().await;
        self.kit.memory.by_key(tenant, principal, key).await
    }

    async fn list(&self, query: Query) -> Result<Page, StoreError> {
        self.alive().await;
        self.kit.memory.list(query).await
    }

    async fn orphans(&self, node: NodeId, limit: usize) -> Result<Vec<Task>, StoreError> {
        self.alive().await;
        self.kit.memory.orphans(node, limit).await
    }

    async fn unfinished(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<UnfinishedPage, StoreError> {
        self.alive().await;
        self.kit.memory.unfinished(after, limit).await
    }

    async fn segments(&self, id: TaskId) -> Result<Vec<Segment>, StoreError> {
        self.alive().await;
        self.kit.memory.segments(id).await
    }

    async fn segment(&self, id: TaskId, number: u64) -> Result<Option<Segment>, StoreError> {
        self.alive().await;
        self.kit.memory.segment(id, number).await
    }

    async fn output(&self, id: TaskId) -> Result<Option<Output>, StoreError> {
        self.alive().await;
        self.kit.memory.output(id).await
    }

    async fn sweep(&self, now: Millis, limit: usize) -> Result<usize, StoreError> {
        self.alive().await;
        self.kit.memory.sweep(now, limit).await
    }

    async fn figures(&self) -> Result<Figures, StoreError> {
        self.alive().await;
        self.kit.memory.figures().await
    }
}
