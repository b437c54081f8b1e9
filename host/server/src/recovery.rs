//! After a crash, and now and then: no task stays `working` with nobody working on it, and none stays
//! for longer than it was promised.

use std::collections::HashSet;
use std::time::Duration;

use longshore_tasks::event::{Event, Outcome};
use longshore_tasks::id::TaskId;
use longshore_tasks::store::{Commit, StoreError, Unfinished};
use longshore_tasks::task::{StateName, Task, Trust};

use crate::clock;
use crate::reason::RunReason;
use crate::server::Server;
use crate::wire;

/// Rows that are read at once.
const BATCH: usize = 500;
/// How often ended tasks are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// What an earlier process left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Tasks that go on where they stood.
    pub going_on: usize,
    /// Tasks that go on at an answer or a time.
    pub parked: usize,
    /// Tasks that cannot go on, since nothing was recorded of them.
    pub interrupted: usize,
    /// Tasks that are set aside, since the process died too often while they ran.
    pub quarantined: usize,
}

/// What is to be done about one of them.
enum Left {
    GoesOn,
    Parked,
    Interrupted,
    Quarantined,
    Gone,
}

impl Server {
    /// Looks at every task that an earlier process left unfinished, before anybody can ask for it: those
    /// that can go on do so from now on, and those that cannot end.
    pub async fn recover(&self) -> Result<Recovered, StoreError> {
        self.values.forget_lost().await?;
        self.artifacts.left_by_lost(clock::now()).await?;
        let mut recovered = Recovered::default();
        let mut after = None;
        loop {
            let page = self.tasks.unfinished(after, BATCH).await?;
            let looks = page.tasks.into_iter().map(|task| self.take_over(task));
            // All at once, so that the store can make them durable together.
            for left in futures_util::future::join_all(looks).await {
                match left? {
                    Left::GoesOn => recovered.going_on += 1,
                    Left::Parked => recovered.parked += 1,
                    Left::Interrupted => recovered.interrupted += 1,
                    Left::Quarantined => recovered.quarantined += 1,
                    Left::Gone => {}
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(recovered);
            }
        }
    }

    /// Ends every unfinished task whose journal was sealed with another secret than this node has.
    pub async fn give_up_sealed(&self) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let page = self.tasks.unfinished(after, BATCH).await?;
            let tasks = page.tasks.iter().map(|task| self.give_up(task.id));
            futures_util::future::try_join_all(tasks).await?;
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn give_up(&self, id: TaskId) -> Result<(), StoreError> {
        let row = match self.tasks.get(id).await {
            Ok(Some(row)) => row,
            // What cannot be read is named when tasks are taken over.
            Ok(None) | Err(StoreError::Corrupt(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let kept = row.journal_key.as_deref();
        if kept.is_none_or(|kept| self.keys.open_task(id, kept).is_ok()) {
            return Ok(());
        }
        tracing::warn!(task = %id, tool = row.pinned.tool, "a task was given up with the secret that it was sealed with");
        let why =
            "the secret that this task was sealed with is lost, and its operator has given it up";
        self.interrupt(row, why).await
    }

    async fn interrupt(&self, row: Task, why: &str) -> Result<(), StoreError> {
        let event = Event::Ended {
            outcome: Outcome::Failed(wire::failure(RunReason::Interrupted, why)),
            usage: row.usage,
        };
        self.change(row, event).await.map(drop)
    }

    async fn take_over(&self, task: Unfinished) -> Result<Left, StoreError> {
        let is_owned = task.owner.is_some();
        if !is_owned && !task.cancel_requested && task.state == StateName::InputRequired {
            // Nothing has to be written, however many there are.
            let at = task.wake_at.unwrap_or(task.deadline_at);
            self.alarms.set(task.id, at.min(task.deadline_at));
            return Ok(Left::Parked);
        }
        let row = match self.tasks.get(task.id).await {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(Left::Gone),
            // One damaged row must not keep a node from looking after the others.
            Err(StoreError::Corrupt(what)) => {
                tracing::error!(task = %task.id, what, "a task in the database cannot be read and is left as it is");
                return Ok(Left::Gone);
            }
            Err(error) => return Err(error),
        };
        if row.journal_key.is_none() {
            let why = "the server stopped while it ran this task, and nothing was recorded of it";
            self.interrupt(row, why).await?;
            return Ok(Left::Interrupted);
        }
        let (row, died) = if is_owned {
            // Whoever goes down cleanly lets go of what it owns.
            match self.left_by_the_dead(row).await? {
                Some(row) => (row, true),
                // Its last write was not seen yet: once more from what it left.
                None => match self.tasks.get(task.id).await? {
                    Some(row) if row.lease.owner.is_some() => {
                        match self.left_by_the_dead(row).await? {
                            Some(row) => (row, true),
                            None => return Ok(Left::Gone),
                        }
                    }
                    Some(row) => (row, false),
                    None => return Ok(Left::Gone),
                },
            }
        } else {
            (row, false)
        };
        if row.state.name().is_final() {
            return Ok(Left::Gone);
        }
        if row.trust() == Trust::Quarantined {
            if died {
                tracing::error!(task = %row.id, tool = row.pinned.tool, "the server died {} times while this task ran: it is set aside", row.stalls);
            }
            // It still ends by its deadline, or because somebody wants it to.
            self.look_after(row.id);
            return Ok(Left::Quarantined);
        }
        self.look_after(row.id);
        Ok(
            if row.state.name() == StateName::Working
                && row.wake_at.is_none_or(|at| at <= clock::now())
            {
                Left::GoesOn
            } else {
                Left::Parked
            },
        )
    }

    /// Takes a row from a process that died. Once a process has died under a run, it is known whether the run was on a
    /// thread when the next one died; if not, that was not its doing.
    async fn left_by_the_dead(&self, row: Task) -> Result<Option<Task>, StoreError> {
        let event = if row.stalls > 0 && !self.marks.may_have_run(row.id) {
            Event::Released { usage: row.usage }
        } else {
            Event::Died
        };
        self.change(row, event).await
    }

    /// Applies an event to a row that nobody else changes. None if somebody does.
    async fn change(&self, row: Task, event: Event) -> Result<Option<Task>, StoreError> {
        let Ok(step) = row.apply(event, clock::now()) else {
            return Ok(Some(row));
        };
        let commit = Commit {
            from_version: row.version,
            from_epoch: row.lease.epoch,
            task: step.task.clone(),
            segment: None,
            output: None,
        };
        match self.tasks.commit(commit).await {
            Ok(()) => Ok(Some(step.task)),
            Err(StoreError::Conflict | StoreError::Fenced | StoreError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes what nobody can ask for any more, for as long as the server lives.
    pub async fn keep_clean(self) {
        let mut stranded = HashSet::new();
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.sessions.sweep(tokio::time::Instant::now());
            if let Err(error) = self.find_stranded(&mut stranded).await {
                tracing::warn!(%error, "tasks could not be looked through; the next round tries again");
            }
            if let Err(error) = self.clean().await {
                tracing::warn!(%error, "old tasks could not be deleted; the next round tries again");
            }
        }
    }

    /// Sees to what this node owns and does not run: a second lock behind the rule that whatever writes a
    /// row also starts its run. Only what was so a round ago as well, since a run is made after its row.
    async fn find_stranded(&self, before: &mut HashSet<TaskId>) -> anyhow::Result<()> {
        let mut now = HashSet::new();
        let mut after = None;
        loop {
            let page = self.tasks.unfinished(after, BATCH).await?;
            for task in page.tasks {
                if task.owner.as_ref() != Some(&self.node) || self.runs.has(task.id) {
                    continue;
                }
                if before.contains(&task.id) {
                    self.strand(task.id).await?;
                } else {
                    now.insert(task.id);
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        *before = now;
        Ok(())
    }

    async fn strand(&self, id: TaskId) -> anyhow::Result<()> {
        let Some(row) = self.tasks.get(id).await? else {
            return Ok(());
        };
        if row.journal_key.is_some() {
            tracing::error!(task = %id, "a task had no run and goes on");
            let released = Event::Released { usage: row.usage };
            self.change(row, released).await?;
            self.look_after(id);
            return Ok(());
        }
        let failure = wire::failure(RunReason::HostFault, "the server lost the run of this task");
        let event = Event::Ended {
            outcome: Outcome::Failed(failure),
            usage: row.usage,
        };
        self.change_row(id, None, &event).await?;
        tracing::error!(task = %id, "a task had no run and was ended");
        Ok(())
    }

    /// Deletes what nobody can ask for any more.
    pub async fn clean(&self) -> anyhow::Result<()> {
        // In batches, so that nobody waits long for the store.
        while self.tasks.sweep(clock::now(), BATCH).await? == BATCH {}
        while self.artifacts.sweep_artifacts(clock::now(), BATCH).await? == BATCH {}
        // Nothing comes between what is needed and what is deleted.
        let _alone = self.changing.lock().await;
        for digest in self.components.collect(self.holds.digests()).await? {
            self.sandbox.forget(digest.as_str()).await?;
            tracing::info!(%digest, "a component that nothing needs any more was deleted");
        }
        Ok(())
    }
}
