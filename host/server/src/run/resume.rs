//! Going on with tasks that nobody runs: after the death of a process, after a wait.

use std::sync::Arc;

use longshore_catalog::registry::Entry;
use longshore_catalog::store as catalog;
use longshore_policy::policy::Policy;
use longshore_protocol::capability::ClientCapabilities;
use longshore_sandbox::control::StopReason;
use longshore_sandbox::sandbox::Prepared;
use longshore_sandbox::target::Target;
use longshore_tasks::event::{Event, Outcome, Refused};
use longshore_tasks::id::{Millis, TaskId};
use longshore_tasks::store::{Commit, StoreError};
use longshore_tasks::task::{StateName, Task, Trust};

use super::lookout::{Attempt, HeldUp, Patience};
use super::output::Output;
use super::record::{self, Unusable};
use super::target;
use super::{CallFacts, Caller, NewRun, Start, Turns};
use crate::clock;
use crate::components::PinnedError;
use crate::follow::FollowError;
use crate::loaded::Loaded;
use crate::reason::{Refusal, RunReason};
use crate::server::Server;
use crate::wire;

/// Why a task could not be gone on with.
#[derive(Debug, thiserror::Error)]
enum CannotResume {
    /// It may work later.
    #[error(transparent)]
    Now(HeldUp),
    /// It will never work: the task ends so.
    #[error("{}", .1)]
    Never(RunReason, String),
}

impl From<StoreError> for CannotResume {
    fn from(error: StoreError) -> Self {
        match error {
            // No time makes that whole again.
            StoreError::Corrupt(_) => Self::Never(RunReason::HostFault, error.to_string()),
            error => Self::Now(error.into()),
        }
    }
}

impl From<Unusable> for CannotResume {
    fn from(unusable: Unusable) -> Self {
        let reason = match unusable {
            Unusable::NotRecorded | Unusable::HostAbi(_) => RunReason::Interrupted,
            Unusable::Sealed(_)
            | Unusable::Unreadable(_)
            | Unusable::Short { .. }
            | Unusable::NoStart(_) => RunReason::HostFault,
        };
        Self::Never(reason, unusable.to_string())
    }
}

impl From<PinnedError> for CannotResume {
    fn from(error: PinnedError) -> Self {
        match error {
            // They are the bytes that were accepted when the task began, so that it is this machine, these settings or
            // this version that cannot have them: a machine that has more to do, a limit that was lowered.
            PinnedError::Refused(refusal) => Self::Now(HeldUp::Component(refusal)),
            PinnedError::Damaged(what) => Self::Never(
                RunReason::HostFault,
                format!("its component is lost: {what}"),
            ),
            PinnedError::Store(
                catalog::StoreError::Unavailable(why) | catalog::StoreError::Corrupt(why),
            ) => Self::Now(StoreError::Unavailable(why).into()),
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
        let Some(knock) = self.lookout.begin(id) else {
            return;
        };
        let server = self.clone();
        tokio::spawn(async move {
            let mut patience = Patience::default();
            loop {
                if server.is_leaving() {
                    server.lookout.forget(id);
                    return;
                }
                let Err(attempt) = server.resume(id).await else {
                    if server.lookout.is_over(id) {
                        return;
                    }
                    continue;
                };
                let why = attempt.held_up.to_string();
                let (pause, tells) = patience.after(&attempt, clock::now());
                if tells {
                    tracing::warn!(task = %id, why, "a task waits before it can go on; it is tried again");
                }
                server.lookout.note(id, why);
                tokio::select! {
                    () = knock.notified() => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
        });
    }

    /// Goes on with a task if nobody does and it is time, or sets its alarm.
    async fn resume(&self, id: TaskId) -> Result<(), Attempt> {
        let row = match self.tasks.get(id).await {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(()),
            Err(StoreError::Corrupt(what)) => {
                tracing::error!(task = %id, what, "a task in the database cannot be read and is left as it is");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        // Whoever changed it may not have come to show it.
        self.runs.show_row(&row);
        if !self.is_due(&row) {
            self.see_to_waits(&row);
            return Ok(());
        }
        let is_over = row.deadline_at <= clock::now() && row.cancel_requested_at.is_none();
        let outcome = match row.trust() {
            // It is not brought back only to be stopped.
            _ if is_over => Some(wire::stopped(StopReason::Expired)),
            // It is not run again only to be told that it is cancelled.
            Trust::Quarantined => over_without_a_run(&row, "it was set aside"),
            Trust::Trusted | Trust::Suspect => match self.carry_on(&row).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let over = over_without_a_run(&row, &error.to_string());
                    match (over, error) {
                        (Some(outcome), _) => Some(outcome),
                        (None, CannotResume::Never(reason, message)) => {
                            tracing::error!(task = %id, message, "a task cannot go on");
                            Some(Outcome::Failed(wire::failure(reason, &message)))
                        }
                        (None, CannotResume::Now(held_up)) => {
                            return Err(Attempt {
                                held_up,
                                deadline_at: Some(row.deadline_at),
                            });
                        }
                    }
                }
            },
        };
        let Some(outcome) = outcome else {
            return Ok(());
        };
        let event = Event::Ended {
            outcome,
            usage: row.usage,
        };
        match self.change_row(id, None, &event).await {
            Err(FollowError::Store(error)) => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn carry_on(&self, row: &Task) -> Result<(), CannotResume> {
        let id = row.id;
        let alone = match row.trust() {
            Trust::Trusted | Trust::Quarantined => None,
            // One that may bring the process down has no other such beside it, so that it is known
            // which of them it was.
            Trust::Suspect => Arc::clone(&self.suspects).acquire_owned().await.ok(),
        };
        // First, since it may take long and come to nothing, and until then nothing is written.
        let (entry, prepared) = self.loaded_for(row).await?;
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
        let usage = row.usage;
        match self.brought_back(row, entry).await {
            Ok((call, resumed, turns)) => {
                let _nobody_holds_it = self.start_run(NewRun {
                    call,
                    prepared,
                    place,
                    turns,
                    alone,
                    start: Start::Resumed(Box::new(resumed)),
                });
                Ok(())
            }
            Err(error) => {
                if let CannotResume::Now(_) = error {
                    // So that the next attempt finds it as this one did.
                    let released = Event::Released { usage };
                    let _tried_again = self.change_row(id, None, &released).await;
                }
                Err(error)
            }
        }
    }

    /// The component that a task began with, and its code.
    async fn loaded_for(&self, row: &Task) -> Result<(Arc<Entry<Loaded>>, Prepared), CannotResume> {
        let entry = match self.pinned(&row.pinned.digest).await {
            Err(PinnedError::Damaged(what)) if *self.starting.borrow() > 0 => {
                // One of the files that are still looked at may bring it.
                return Err(CannotResume::Now(HeldUp::Component(Refusal::new(
                    "host", what,
                ))));
            }
            entry => entry?,
        };
        let made = entry.payload.code.made().await;
        let prepared = made.map_err(PinnedError::Refused)?;
        Ok((entry, prepared))
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
        } else if row.trust() == Trust::Quarantined {
            None
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
                let there = self.tasks.get(row.id).await?;
                if there.is_some_and(|there| there.version == row.version) {
                    // Nobody was faster: the store takes no successor of this row.
                    let what = format!("task {} cannot be changed", row.id);
                    return Err(StoreError::Corrupt(what));
                }
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

    /// Everything else that a claimed task needs to run where it stood.
    async fn brought_back(
        &self,
        row: Task,
        entry: Arc<Entry<Loaded>>,
    ) -> Result<(CallFacts, super::Resumed, Turns), CannotResume> {
        let segments = self.tasks.segments(row.id).await?;
        let recorded = record::read(&self.keys, &row, &segments)?;
        let printed = match self.tasks.output(row.id).await {
            // What it printed is of use, and no more.
            Err(StoreError::Corrupt(what)) => {
                tracing::warn!(task = %row.id, what, "what a task has printed cannot be read and is lost");
                None
            }
            printed => printed?,
        };
        let unreadable = |what: &str| {
            CannotResume::Never(
                RunReason::HostFault,
                format!("its row has unreadable {what}"),
            )
        };
        let target = target::of_kept(&row.pinned.tool, &row.pinned.arguments.0)
            .ok_or_else(|| unreadable("arguments"))?;
        let library = &entry.payload.library;
        let (task_mode, output_schema, turns) = match &target {
            Target::Tool { name, .. } => {
                let described = entry.component.tool(name);
                let ready = described.and_then(|tool| entry.payload.tool(&tool.name));
                let (Some(ready), Some(described)) = (ready, described) else {
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
        let policy = Policy::of_kept(&row.pinned.policy.0).map_err(|_| unreadable("policy"))?;
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
            policy: Arc::new(policy),
            deadline_at: row.deadline_at,
            retention_ms: row.retention_ms,
            given: Vec::new(),
            idempotency_key: row.pinned.idempotency_key.clone(),
            traceparent: None,
        };
        let opened = printed.and_then(|printed| {
            let bytes = recorded.key().open_output(&printed.body).ok();
            let output = bytes.and_then(|bytes| Output::of_bytes(&bytes));
            if output.is_none() {
                tracing::warn!(task = %row.id, "what a task has printed is damaged and is lost");
            }
            Some((printed.calls, output?))
        });
        // What is lost and printed again in the repetition is there again.
        let (printed_through, earlier) = match opened {
            Some((calls, output)) => (calls, Some(output)),
            None => (0, None),
        };
        let resumed = super::Resumed {
            row,
            recorded,
            earlier: earlier.map(Arc::new),
            printed_through,
        };
        Ok((call, resumed, turns))
    }
}

/// How a task ends that is to end now, and that nobody can or may run only to be told so.
fn over_without_a_run(row: &Task, why: &str) -> Option<Outcome> {
    let id = row.id;
    if row.cancel_requested_at.is_some() {
        tracing::info!(task = %id, why, "a task is cancelled without being run again");
        return Some(Outcome::Cancelled(None));
    }
    (row.deadline_at <= clock::now()).then(|| {
        tracing::info!(task = %id, why, "a task expires without being run again");
        Outcome::Failed(wire::failure(
            RunReason::Expired,
            "the deadline passed while the task could not go on",
        ))
    })
}
