//! What clients do with tasks: look, answer, cancel. The store is the truth; a run of this node is
//! shown the row after each commit.

use std::collections::BTreeMap;

use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use longshore_protocol::error::RpcError;
use longshore_tasks::event::{Effect, Event, Outcome, Refused};
use longshore_tasks::id::{Json, TaskId};
use longshore_tasks::store::{Commit, StoreError};
use longshore_tasks::task::{Reach, Task};
use serde_json::value::RawValue;

use crate::clock;
use crate::reason::RequestReason;
use crate::run::{Caller, Output};
use crate::server::Server;
use crate::wire;

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// There is no such task for this caller. Somebody else's task looks the same.
    #[error("no such task: it never existed, or it ended and its retention is over")]
    Unknown,
    /// An answer does not fit its question.
    #[error("{}", .0.message)]
    Answer(RpcError),
    /// The store is in trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// The row changed.
    Changed,
    /// It said nothing new, or the task had ended.
    Unchanged,
}

/// What an answer may have, by the limits that the task began with.
fn answer_bytes(task: &Task) -> u64 {
    Policy::of_kept(&task.pinned.policy.0)
        .map_or_else(|_| Limits::default(), |policy| policy.limits)
        .answer_bytes
}

impl Server {
    /// The task of that id, if this caller was told it; whoever may see all passes none.
    pub async fn task(&self, id: TaskId, caller: Option<&Caller>) -> Result<Task, FollowError> {
        let task = self.tasks.get(id).await?.ok_or(FollowError::Unknown)?;
        let is_theirs = caller.is_none_or(|caller| {
            caller.principal == task.pinned.principal
                && caller.tenant == task.pinned.tenant
                && task.reach == Reach::Id
        });
        // An ended task may still wait for the sweeper; its time is over all the same.
        let is_over = task.forget_at().is_some_and(|at| at <= clock::now());
        if is_theirs && !is_over {
            Ok(task)
        } else {
            Err(FollowError::Unknown)
        }
    }

    /// Asks a task to stop.
    pub async fn cancel_task(
        &self,
        id: TaskId,
        caller: Option<&Caller>,
    ) -> Result<Followed, FollowError> {
        match self.change_row(id, caller, &Event::CancelRequested).await {
            // Nobody can be told, since nothing goes on from such a row.
            Err(FollowError::Store(StoreError::Corrupt(_))) => {
                let usage = self.task(id, caller).await?.usage;
                let outcome = Outcome::Cancelled(None);
                self.change_row(id, caller, &Event::Ended { outcome, usage })
                    .await
            }
            followed => followed,
        }
    }

    /// Goes on with a task that was set aside.
    pub async fn readmit_task(&self, id: TaskId) -> Result<Followed, FollowError> {
        self.change_row(id, None, &Event::Readmitted).await
    }

    /// What the runs of a task have printed and logged, if it is known.
    pub(crate) async fn output_of(&self, task: &Task) -> Result<Option<Output>, StoreError> {
        if let Some(output) = self.runs.output(task.id) {
            return Ok(Some(output));
        }
        let Some(kept_key) = &task.journal_key else {
            return Ok(None);
        };
        let kept = match self.tasks.output(task.id).await {
            Ok(Some(kept)) => kept,
            // It is shown without.
            Ok(None) | Err(StoreError::Corrupt(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let opened = self
            .keys
            .open_task(task.id, kept_key)
            .and_then(|key| key.open_output(&kept.body));
        Ok(opened.ok().and_then(|bytes| Output::of_bytes(&bytes)))
    }

    /// Answers what a task asks: all that fits, or nothing if one answer to an open question does not.
    /// Answers to anything else are ignored, whatever they look like.
    pub async fn answer_task(
        &self,
        id: TaskId,
        caller: Option<&Caller>,
        answers: &[(&str, &RawValue)],
    ) -> Result<Followed, FollowError> {
        let task = self.task(id, caller).await?;
        let mut fitting: BTreeMap<String, Json> = BTreeMap::new();
        for question in task.open_questions() {
            let Some((key, answer)) = answers.iter().find(|(key, _)| *key == question.key) else {
                continue;
            };
            let most = answer_bytes(&task);
            if answer.get().len() as u64 > most {
                return Err(FollowError::Answer(
                    RpcError::invalid_params(format!(
                        "inputResponses: the answer to `{key}` has {} bytes; at most {most} are taken (limits.answer_kib)",
                        answer.get().len()
                    ))
                    .with_data(RequestReason::TooLarge.data()),
                ));
            }
            let answer = wire::check_answer(key, &question.request.0, answer)
                .map_err(FollowError::Answer)?;
            fitting.insert((*key).to_owned(), answer);
        }
        // A question's key is never used again, so what fitted then still answers the same question.
        self.change_row(id, caller, &Event::Answered(fitting)).await
    }

    /// Applies an event to a row against whatever others do to it meanwhile, then does what follows.
    pub(crate) async fn change_row(
        &self,
        id: TaskId,
        caller: Option<&Caller>,
        event: &Event,
    ) -> Result<Followed, FollowError> {
        let mut tried = None;
        loop {
            let task = self.task(id, caller).await?;
            let is_same = tried.replace((task.version, task.lease.epoch))
                == Some((task.version, task.lease.epoch));
            if is_same {
                // Nobody was faster: the store takes no successor of this row.
                let what = format!("task {id} cannot be changed");
                return Err(StoreError::Corrupt(what).into());
            }
            let step = match task.apply(event.clone(), clock::now()) {
                Ok(step) => step,
                Err(
                    Refused::Ended
                    | Refused::Nothing
                    | Refused::Cancelling
                    | Refused::BadQuestions
                    | Refused::Unowned
                    | Refused::Owned
                    | Refused::Quarantined,
                ) => {
                    // Its run may have missed the change that made this one none.
                    self.runs.show_row(&task);
                    return Ok(Followed::Unchanged);
                }
            };
            let commit = Commit {
                from_version: task.version,
                from_epoch: task.lease.epoch,
                task: step.task.clone(),
                segment: None,
                output: None,
            };
            match self.tasks.commit(commit).await {
                Ok(()) => {
                    self.follow_up(&step.task, &step.effects);
                    return Ok(Followed::Changed);
                }
                // Somebody was faster: decide again from what they left.
                Err(StoreError::Conflict | StoreError::Fenced) => {}
                Err(error) => {
                    // The write may have happened and only its answer been lost.
                    self.look_after(id);
                    return Err(error.into());
                }
            }
        }
    }

    fn follow_up(&self, task: &Task, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Resume | Effect::Cancel => {
                    if !self.runs.show_row(task) {
                        // It is parked: it goes on, to use its answers or to see that it is cancelled.
                        self.look_after(task.id);
                    }
                }
                Effect::Notify => self.tell_of(task),
            }
        }
    }
}
