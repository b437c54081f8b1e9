//! After a crash, and now and then: no task stays `working` with nobody working on it, and none stays
//! for longer than it was promised.

use std::collections::HashSet;
use std::time::Duration;

use longshore_tasks::event::{Event, Outcome};
use longshore_tasks::id::{NodeId, TaskId};
use longshore_tasks::store::{Commit, StoreError};

use crate::clock;
use crate::reason::RunReason;
use crate::server::Server;
use crate::wire;

/// Rows that are read at once.
const BATCH: usize = 500;
/// How often ended tasks are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

impl Server {
    /// Ends every task that an earlier process left unfinished, before anybody can ask for it. Says how
    /// many there were.
    pub async fn recover(&self) -> Result<usize, StoreError> {
        let mut recovered = 0;
        loop {
            let orphans = self.tasks.orphans(self.node.clone(), BATCH).await?;
            if orphans.is_empty() {
                return Ok(recovered);
            }
            let ends = orphans.into_iter().map(|task| async move {
                let failure = wire::failure(
                    RunReason::Interrupted,
                    "the server stopped while it ran this task",
                );
                let event = Event::Ended {
                    outcome: Outcome::Failed(failure),
                    usage: task.usage,
                };
                let Ok(step) = task.apply(event, clock::now()) else {
                    return Ok(0);
                };
                let commit = Commit {
                    from_version: task.version,
                    from_epoch: task.lease.epoch,
                    task: step.task,
                    segment: None,
                };
                match self.tasks.commit(commit).await {
                    Ok(()) => Ok(1),
                    // Somebody else ended it meanwhile, which is just as well.
                    Err(StoreError::Conflict | StoreError::Fenced | StoreError::Missing) => Ok(0),
                    Err(error) => Err(error),
                }
            });
            // All at once, so that the store can make them durable together.
            for ended in futures_util::future::join_all(ends).await {
                recovered += ended?;
            }
        }
    }

    /// Deletes what nobody can ask for any more, for as long as the server lives.
    pub async fn keep_clean(self) {
        let mut stranded = HashSet::new();
        let mut ticks = tokio::time::interval(SWEEP_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.end_stranded(&mut stranded).await {
                tracing::warn!(%error, "tasks could not be looked through; the next round tries again");
            }
            if let Err(error) = self.clean().await {
                tracing::warn!(%error, "old tasks could not be deleted; the next round tries again");
            }
        }
    }

    /// Ends what this node owns and does not run: a second lock behind the rule that whatever writes a
    /// row also starts its run. Only what was so a round ago as well, since a run is made after its row.
    async fn end_stranded(&self, before: &mut HashSet<TaskId>) -> anyhow::Result<()> {
        let nobody = NodeId("".into());
        let unfinished = self.tasks.orphans(nobody, BATCH).await?;
        let stranded = unfinished.into_iter().filter(|task| {
            task.lease.owner.as_ref() == Some(&self.node) && !self.runs.has(task.id)
        });
        let mut now = HashSet::new();
        for task in stranded {
            if !before.contains(&task.id) {
                now.insert(task.id);
                continue;
            }
            let failure =
                wire::failure(RunReason::HostFault, "the server lost the run of this task");
            let event = Event::Ended {
                outcome: Outcome::Failed(failure),
                usage: task.usage,
            };
            self.change_row(task.id, None, &event).await?;
            tracing::error!(task = %task.id, "a task had no run and was ended");
        }
        *before = now;
        Ok(())
    }

    async fn clean(&self) -> anyhow::Result<()> {
        // In batches, so that nobody waits long for the store.
        while self.tasks.sweep(clock::now(), BATCH).await? == BATCH {}
        for digest in self.components.collect().await? {
            let is_served = self
                .registry()
                .components()
                .any(|entry| entry.component.digest == digest);
            if !is_served {
                self.sandbox.forget(digest.as_str()).await?;
            }
            tracing::info!(%digest, "a component that nothing needs any more was deleted");
        }
        Ok(())
    }
}
