//! Going on with tasks that nobody runs: after the death of a process, after a wait.

use std::sync::Arc;
use std::time::Duration;

use longshore_protocol::capability::ClientCapabilities;
use longshore_sandbox::control::StopReason;
use longshore_sandbox::target::Target;
use longshore_tasks::event::{Event, Outcome, Refused};
use longshore_tasks::id::{Millis, TaskId};
use longshore_tasks::store::{Commit, StoreError};
use longshore_tasks::task::{StateName, Task, Trust};

use super::output::Output;
use super::record::{self, Unusable};
use super::target;
use super::{CallFacts, Caller, NewRun, Start};
use crate::clock;
use crate::components::PinnedError;
use crate::reason::RunReason;
use crate::server::Server;
use crate::wire;

/// Why a task could not be gone on with.
#[derive(Debug, thiserror::Error)]
enum CannotResume {
    /// It may work later.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It will never work: the task ends so.
    #[error("{}", .1)]
    Never(RunReason, String),
}

impl From<Unusable> for CannotResume {
    fn from(unusable: Unusable) -> Self {
        let reason = match unusable {
            Unusable::NotRecorded | Unusable::HostAbi(_) => RunReason::Interrupted,
            Unusable::Sealed(_) | Unusable::Unreadable(_) | Unusable::Short { .. } => {
                RunReason::HostFault
            }
        };
        Self::Never(reason, unusable.to_string())
    }
}

impl From<PinnedError> for CannotResume {
    fn from(error: PinnedError) -> Self {
        match error {
            // Of the component that says nothing: it was loaded before, and may be again.
            PinnedError::Refused(refusal) if refusal.reason == "host" => {
                Self::Store(StoreError::Unavailable(refusal.message))
            }
            PinnedError::Refused(refusal) => Self::Never(
                RunReason::HostFault,
                format!(
                    "its component cannot be loaded any more ({}): {}",
                    refusal.reason, refusal.message
                ),
            ),
            PinnedError::Store(error) => Self::Store(StoreError::Unavailable(error.to_string())),
        }
    }
}

impl Server {
    /// Goes on with tasks whose time has come, for as long as the server lives.
    pub async fn keep_awake(self) {
        loop {
            let id = self.alarms.next().await;
            self.look_after(id);
        }
    }

    /// Sees to a task that no run is here for: whether it can go on now, and when if not. Does not wait.
    pub(crate) fn look_after(&self, id: TaskId) {
        {
            let mut looking = self.looking_after.lock();
            if let Some(again) = looking.get_mut(&id) {
                *again = true;
                return;
            }
            looking.insert(id, false);
        }
        let server = self.clone();
        tokio::spawn(async move {
            let mut pause = Duration::from_millis(100);
            loop {
                if server.is_leaving() {
                    server.looking_after.lock().remove(&id);
                    return;
                }
                match server.resume(id).await {
                    Ok(()) => {
                        let mut looking = server.looking_after.lock();
                        match looking.get_mut(&id) {
                            Some(again) if *again => *again = false,
                            _ => {
                                looking.remove(&id);
                                return;
                            }
                        }
                    }
                    Err(error) => {
                        tracing::warn!(task = %id, %error, "a task waits for the store before it goes on");
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(Duration::from_secs(5));
                    }
                }
            }
        });
    }

    /// Goes on with a task if nobody does and it is time, or sets its alarm.
    async fn resume(&self, id: TaskId) -> Result<(), StoreError> {
        let Some(row) = self.tasks.get(id).await? else {
            return Ok(());
        };
        // Whoever changed it may not have come to show it.
        self.runs.show_row(&row);
        if !self.is_due(&row) {
            return Ok(());
        }
        if row.deadline_at <= clock::now() && row.cancel_requested_at.is_none() {
            // It is not brought back only to be stopped.
            let event = Event::Ended {
                outcome: wire::stopped(StopReason::Expired),
                usage: row.usage,
            };
            return match self.change_row(id, None, &event).await {
                Err(crate::follow::FollowError::Store(error)) => Err(error),
                _ => Ok(()),
            };
        }
        let alone = match row.trust() {
            Trust::Quarantined if row.cancel_requested_at.is_some() => {
                // It is not run again only to be told that it is cancelled.
                let event = Event::Ended {
                    outcome: Outcome::Cancelled(None),
                    usage: row.usage,
                };
                return match self.change_row(id, None, &event).await {
                    Err(crate::follow::FollowError::Store(error)) => Err(error),
                    _ => Ok(()),
                };
            }
            Trust::Quarantined => return Ok(()),
            Trust::Trusted => None,
            // One that may bring the process down has no other such beside it, so that it is known
            // which of them it was.
            Trust::Suspect => Arc::clone(&self.suspects).acquire_owned().await.ok(),
        };
        let place = self.admission.enter_again(&row.pinned.tenant).await;
        // It may have waited for long.
        let Some(row) = self.tasks.get(id).await? else {
            return Ok(());
        };
        if self.is_leaving() || !self.is_due(&row) {
            return Ok(());
        }
        let Some(row) = self.claim(&row).await? else {
            return Ok(());
        };
        self.alarms.clear(id);
        let new = match self.brought_back(row.clone(), place).await {
            Ok(mut new) => {
                new.alone = alone;
                new
            }
            Err(CannotResume::Store(error)) => {
                // So that the next attempt finds it as this one did.
                let released = Event::Released { usage: row.usage };
                let _tried_again = self.change_row(id, None, &released).await;
                return Err(error);
            }
            Err(CannotResume::Never(reason, message)) => {
                tracing::error!(task = %id, %message, "a task cannot go on");
                let event = Event::Ended {
                    outcome: Outcome::Failed(wire::failure(reason, &message)),
                    usage: row.usage,
                };
                return match self.change_row(id, None, &event).await {
                    Err(crate::follow::FollowError::Store(error)) => Err(error),
                    _ => Ok(()),
                };
            }
        };
        let _nobody_holds_it = self.start_run(new);
        Ok(())
    }

    /// Whether that task can go on here now. Sets its alarm if it can later.
    fn is_due(&self, row: &Task) -> bool {
        if row.state.name().is_final() || row.lease.owner.as_ref() == Some(&self.node) {
            self.alarms.clear(row.id);
            return false;
        }
        let now = clock::now();
        let wake_at = if row.cancel_requested_at.is_some() {
            Some(now)
        } else {
            match row.state.name() {
                StateName::Working => Some(row.wake_at.unwrap_or(now)),
                _ => row.wake_at,
            }
        };
        let at: Millis = wake_at.map_or(row.deadline_at, |at| at.min(row.deadline_at));
        if at <= now {
            return true;
        }
        self.alarms.set(row.id, at);
        false
    }

    /// Takes the right to run a task. None if somebody else was faster.
    async fn claim(&self, row: &Task) -> Result<Option<Task>, StoreError> {
        let claimed = Event::Claimed {
            owner: self.node.clone(),
        };
        let step = match row.apply(claimed, clock::now()) {
            Ok(step) => step,
            Err(refused) => {
                debug_assert_ne!(refused, Refused::BadQuestions);
                return Ok(None);
            }
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
            Err(StoreError::Conflict | StoreError::Fenced | StoreError::Missing) => {
                // Whoever changed it may have left it to be gone on with.
                self.look_after(row.id);
                Ok(None)
            }
            // The write may have happened and only its answer been lost.
            Err(error) => match self.tasks.get(row.id).await? {
                Some(there) if there.lease == step.task.lease => Ok(Some(there)),
                _ => Err(error),
            },
        }
    }

    /// Everything that a claimed task needs to run where it stood.
    async fn brought_back(
        &self,
        row: Task,
        place: crate::admission::Place,
    ) -> Result<NewRun, CannotResume> {
        let segments = self.tasks.segments(row.id).await?;
        let recorded = record::read(&self.keys, &row, &segments)?;
        let printed = self.tasks.output(row.id).await?;
        let entry = self.pinned(&row.pinned.digest).await?;
        let unreadable = |what: &str| {
            CannotResume::Never(
                RunReason::HostFault,
                format!("its row has unreadable {what}"),
            )
        };
        let target = target::of_kept(&row.pinned.tool, &row.pinned.arguments.0)
            .ok_or_else(|| unreadable("parameters"))?;
        let library = &entry.payload.library;
        let (task_mode, output_schema, turns) = match &target {
            Target::Tool { name, .. } => {
                let tools = &entry.component.tools;
                let (Some(ready), Some(described)) = (
                    entry.payload.tool(name),
                    tools.iter().find(|known| known.name == *name),
                ) else {
                    return Err(CannotResume::Never(
                        RunReason::HostFault,
                        format!("its component has no tool {name:?} any more"),
                    ));
                };
                (described.task_mode, ready.output.clone(), &ready.turns)
            }
            Target::Resource { .. } => (target::NO_TOOLS_MODE, None, &library.reads),
            Target::Prompt { .. } => (target::NO_TOOLS_MODE, None, &library.fills),
            Target::Completion { .. } => (target::NO_TOOLS_MODE, None, &library.completions),
        };
        let turns = turns.clone();
        let limits =
            serde_json::from_str(&row.pinned.policy.0).map_err(|_| unreadable("limits"))?;
        let capabilities = ClientCapabilities::parse(&row.pinned.client.0)
            .map_err(|_| unreadable("capabilities of its client"))?;
        let revision = longshore_protocol::version::Revision::parse(&row.pinned.revision)
            .ok_or_else(|| unreadable("revision of the protocol"))?;
        let call = CallFacts {
            id: row.id,
            created_at: row.created_at,
            component: row.pinned.component.clone(),
            digest: row.pinned.digest.clone(),
            _component: Arc::clone(&entry),
            target,
            task_mode,
            output_schema,
            caller: Caller {
                tenant: row.pinned.tenant.clone(),
                principal: row.pinned.principal.clone(),
                revision,
                capabilities,
                capabilities_json: row.pinned.client.0.to_string(),
            },
            limits,
            deadline_at: row.deadline_at,
            retention_ms: row.retention_ms,
            given: Vec::new(),
            idempotency_key: row.pinned.idempotency_key.clone(),
            traceparent: None,
        };
        let prepared = entry
            .payload
            .code
            .made()
            .await
            .map_err(PinnedError::Refused)?;
        let printed_through = printed.as_ref().map_or(0, |printed| printed.calls);
        let earlier = printed
            .map(|printed| recorded.key().open_output(&printed.body))
            .transpose()
            .map_err(Unusable::from)?
            .and_then(|bytes| Output::of_bytes(&bytes));
        Ok(NewRun {
            call,
            prepared,
            place,
            turns,
            alone: None,
            start: Start::Resumed(Box::new(super::Resumed {
                row,
                recorded,
                earlier: earlier.map(Arc::new),
                printed_through,
            })),
        })
    }
}
