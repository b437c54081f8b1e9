//! Calls that are made again: with the answers of a round, or under a key of their caller. They join the run that there
//! is, whoever started it and whichever process it is in, and are answered from its row.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use longshore_protocol::error::RpcError;
use longshore_tasks::event::{Event, Outcome};
use longshore_tasks::id::TaskId;
use longshore_tasks::question::{Fate, Question};
use longshore_tasks::task::{Reach, State, Task};
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::call::CallError;
use crate::dispatch::DispatchError;
use crate::follow::FollowError;
use crate::handoff;
use crate::rounds::Round;
use crate::run::Caller;
use crate::run::aside::{Asides, Wishes};
use crate::run::inquiry::{Inquiry, Put};
use crate::server::Server;
use crate::wire::{self, TaskForm};

/// Who waits for runs that are reached only by their calls.
#[derive(Default)]
pub(crate) struct Attending {
    waits: Mutex<HashMap<TaskId, Waits>>,
    /// Looked at first: most of the time nobody does.
    count: AtomicUsize,
    next: AtomicUsize,
}

/// Those of one run.
#[derive(Default)]
struct Waits {
    seats: Vec<Seat>,
    /// Somebody gave up, and nobody has heard anything since.
    was_given_up: bool,
}

struct Seat {
    number: usize,
    asides: Option<Arc<Asides>>,
}

/// How long a run goes on whose last caller lost the connection: the same call may be on its way again.
const COMES_BACK: Duration = Duration::from_millis(500);

/// How somebody stops to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leave {
    /// Without having heard what they waited for.
    GivesUp,
    /// With it.
    Heard,
    /// They did not get as far as to wait.
    Unchanged,
}

impl Attending {
    fn enter(&self, id: TaskId) -> usize {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
        let mut waits = self.waits.lock();
        let seat = Seat {
            number,
            asides: None,
        };
        waits.entry(id).or_default().seats.push(seat);
        number
    }

    /// From now on what is said of the run is told there.
    fn listen(&self, id: TaskId, number: usize, asides: &Arc<Asides>) {
        let mut waits = self.waits.lock();
        let seats = waits.get_mut(&id).map(|waits| &mut waits.seats);
        for seat in seats.into_iter().flatten() {
            if seat.number == number {
                seat.asides = Some(Arc::clone(asides));
            }
        }
    }

    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Somebody is about to leave.
    fn note(&self, id: TaskId, how: Leave) {
        if let Some(waits) = self.waits.lock().get_mut(&id) {
            match how {
                Leave::GivesUp => waits.was_given_up = true,
                Leave::Heard => waits.was_given_up = false,
                Leave::Unchanged => {}
            }
        }
    }

    /// Whether the run is given up with this: nobody is left, and the last word of those who waited was that.
    fn leave(&self, id: TaskId, number: usize) -> bool {
        let mut all = self.waits.lock();
        let Some(waits) = all.get_mut(&id) else {
            return false;
        };
        waits.seats.retain(|seat| seat.number != number);
        let is_given_up = waits.seats.is_empty() && waits.was_given_up;
        if waits.seats.is_empty() {
            all.remove(&id);
        }
        self.count.fetch_sub(1, Ordering::Release);
        is_given_up
    }

    /// Whether anybody waits for that run.
    fn has(&self, id: TaskId) -> bool {
        self.waits.lock().contains_key(&id)
    }

    /// Tells those who wait for that run.
    pub(crate) fn tell(&self, id: TaskId, tell: impl Fn(&Asides)) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let waits = self.waits.lock();
        for asides in waits
            .get(&id)
            .into_iter()
            .flat_map(|waits| &waits.seats)
            .filter_map(|seat| seat.asides.as_ref())
        {
            tell(asides);
        }
    }
}

/// Somebody who waits for a run that they did not start. When the last one of a round leaves before the end, the run is
/// cancelled, as that of a call that is held.
pub(crate) struct Attends {
    server: Server,
    id: TaskId,
    number: usize,
    leaves: Leave,
}

/// A call that waits so.
pub(crate) struct Again {
    server: Server,
    caller: Caller,
    attends: Attends,
    /// Questions before this place were put in earlier rounds.
    seen: usize,
    asides: Option<Arc<Asides>>,
    hand_off_at: Option<Instant>,
}

/// What such a call hears.
pub(crate) enum Heard {
    Aside(String),
    /// Questions, to a caller that is asked while it waits.
    Inquiry(Inquiry),
    End(Result<String, DispatchError>),
}

/// What a call is joined for.
pub(crate) struct Joining {
    pub(crate) joined: Joined,
    pub(crate) wishes: Wishes,
    /// Whether the call may go on by itself when its caller has waited for long.
    pub(crate) may_be_handed_off: bool,
}

impl Attends {
    /// From now on that run is not given up by others.
    pub(crate) fn enter(server: &Server, id: TaskId) -> Self {
        Self {
            number: server.attending.enter(id),
            server: server.clone(),
            id,
            leaves: Leave::Unchanged,
        }
    }
}

impl Drop for Attends {
    fn drop(&mut self) {
        let (server, id, number) = (self.server.clone(), self.id, self.number);
        server.attending.note(id, self.leaves);
        if server.is_leaving() {
            server.attending.leave(id, number);
            return;
        }
        let grace = match self.leaves {
            Leave::GivesUp => COMES_BACK,
            Leave::Heard | Leave::Unchanged if !server.attending.leave(id, number) => return,
            Leave::Heard | Leave::Unchanged => Duration::ZERO,
        };
        tokio::spawn(async move {
            if !grace.is_zero() {
                // Its place is kept for so long.
                tokio::time::sleep(grace).await;
                if !server.attending.leave(id, number) {
                    return;
                }
            }
            // Under a key of its own a call is made again by whoever lost its connection: what it would join goes on.
            let is_round = matches!(
                server.task(id, None).await,
                Ok(task) if task.reach == Reach::Again && task.pinned.idempotency_key.is_none()
            );
            if is_round
                && !server.attending.has(id)
                && let Err(error) = server.cancel_task(id, None).await
            {
                tracing::warn!(task = %id, %error, "a call that nobody waits for could not be cancelled");
            }
        });
    }
}

impl Again {
    pub(crate) fn new(server: &Server, caller: Caller, joining: Joining) -> Self {
        let Joining {
            joined: Joined { mut attends, seen },
            wishes,
            may_be_handed_off,
        } = joining;
        attends.leaves = Leave::GivesUp;
        let settings = &server.settings;
        let hold = settings.hold(wishes.progress.is_some());
        let asides = (!wishes.are_none()).then(|| {
            Arc::new(Asides::new(
                wishes,
                settings,
                settings.limits.log_ring_bytes,
            ))
        });
        if let Some(asides) = &asides {
            server.attending.listen(attends.id, attends.number, asides);
        }
        Self {
            hand_off_at: may_be_handed_off.then(|| Instant::now() + hold),
            server: server.clone(),
            caller,
            attends,
            seen,
            asides,
        }
    }

    /// What comes next: notifications, and then the end.
    pub(crate) async fn next(&mut self) -> Heard {
        let server = self.server.clone();
        let watch = server.bus.watch(self.task_id());
        loop {
            // Watching first and looking then, so that no change falls in between.
            let changed = watch.changed();
            if let Some(inquiry) = self.inquiry().await {
                return Heard::Inquiry(inquiry);
            }
            if let Some(end) = self.look().await {
                if let Some(aside) = self.asides.as_ref().and_then(|asides| asides.last()) {
                    return Heard::Aside(aside);
                }
                self.attends.leaves = Leave::Heard;
                return Heard::End(end);
            }
            let aside = async {
                match &self.asides {
                    Some(asides) => asides.next().await,
                    None => std::future::pending().await,
                }
            };
            let held_long = async {
                match self.hand_off_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                aside = aside => return Heard::Aside(aside),
                () = held_long => self.hand_off().await,
            }
        }
    }

    pub(crate) fn task_id(&self) -> TaskId {
        self.attends.id
    }

    /// What it asks, of a caller that is asked on its own stream.
    async fn inquiry(&mut self) -> Option<Inquiry> {
        if !self.caller.revision.has_sessions() {
            return None;
        }
        let task = self.server.task(self.task_id(), None).await.ok()?;
        let new: Vec<Put> = task
            .questions
            .iter()
            .skip(self.seen)
            .filter(|question| question.fate == Fate::Open)
            .map(|question| Put {
                key: question.key.clone(),
                request: question.request.0.to_string(),
            })
            .collect();
        self.seen = self.seen.max(task.questions.len());
        (!new.is_empty() && task.reach == Reach::Again).then_some(Inquiry::Put(new))
    }

    /// How it ends, if it can now.
    async fn look(&self) -> Option<Result<String, DispatchError>> {
        let task = match self.server.task(self.task_id(), None).await {
            Ok(task) => task,
            Err(error) => return Some(Err(error.into())),
        };
        if let (Some(asides), Some(progress)) = (&self.asides, task.status.progress) {
            let message = task.status.message.as_deref();
            asides.progress(progress.done, progress.total, message);
        }
        if let Some(outcome) = outcome_of(&task.state) {
            return Some(wire::held_result(outcome).map_err(DispatchError::Run));
        }
        if task.reach == Reach::Id {
            return Some(Ok(self.server.task_given(&task, &self.caller)));
        }
        let is_new = task
            .questions
            .iter()
            .skip(self.seen)
            .any(|question| question.fate == Fate::Open);
        if is_new {
            let round = self.server.round(&task, &self.caller)?;
            return Some(round.map_err(DispatchError::Refused));
        }
        self.server.bus.is_closed().then(|| {
            Err(DispatchError::Refused(RpcError::internal(
                "the server goes down: make the same call again to go on waiting",
            )))
        })
    }

    /// The caller has waited for as long as its client does: the run goes on as a task.
    async fn hand_off(&mut self) {
        self.hand_off_at = None;
        let id = self.task_id();
        if let Err(error) = self.server.show_task(id).await {
            tracing::warn!(task = %id, %error, "a call that took long could not be handed off; it is tried again");
            self.hand_off_at = Some(Instant::now() + Duration::from_secs(1));
        }
    }
}

fn outcome_of(state: &State) -> Option<Outcome> {
    match state {
        State::Working | State::InputRequired => None,
        State::Completed { result, .. } => Some(Outcome::Completed(result.clone())),
        State::Failed { failure, .. } => Some(Outcome::Failed(failure.clone())),
        State::Cancelled { .. } => Some(Outcome::Cancelled(None)),
    }
}

impl Server {
    /// What a caller gets whose call goes on as a task.
    pub(crate) fn task_given(&self, task: &Task, caller: &Caller) -> String {
        if caller.capabilities.tasks {
            self.write(task, TaskForm::Created)
        } else {
            handoff::handed_off(task, &self.info)
        }
    }

    /// From now on a task can be reached by its id.
    pub(crate) async fn show_task(&self, id: TaskId) -> Result<(), FollowError> {
        let event = Event::Shown {
            retention_ms: self.settings.retention_ms,
        };
        self.change_row(id, None, &event).await.map(|_| ())
    }

    /// The run of a round, with the answers that came for it. The same answers again change nothing; others than those
    /// that were taken are refused.
    pub(crate) async fn join_round(
        &self,
        caller: &Caller,
        call: &SameCall<'_>,
        state: &str,
        answers: &[(Cow<'_, str>, &RawValue)],
    ) -> Result<Joined, CallError> {
        let refused = CallError::Refused;
        let round = Round::open(&self.keys, caller, state).map_err(refused)?;
        let task = self.called_before(round.id, call).await?;
        // Before anything is taken: the connection of the same call may be lost at this moment.
        let attends = Attends::enter(self, round.id);
        let asked = of_round(&task, &round);
        for question in asked {
            let given = answers.iter().find(|(key, _)| *key == question.key);
            if let (Fate::Answered(taken), Some((key, given))) = (&question.fate, given) {
                same_answer(key, &taken.0, given)?;
            }
        }
        let borrowed: Vec<(&str, &RawValue)> = answers
            .iter()
            .filter(|(key, _)| asked.iter().any(|question| question.key == *key))
            .map(|(key, answer)| (key.as_ref(), *answer))
            .collect();
        self.answer_task(round.id, None, &borrowed)
            .await
            .map_err(follow_error)?;
        // Somebody may have been quicker with other answers.
        let task = self.called_before(round.id, call).await?;
        let asked = of_round(&task, &round);
        let mut is_whole = true;
        for question in asked {
            match (
                &question.fate,
                answers.iter().find(|(key, _)| *key == question.key),
            ) {
                (Fate::Answered(taken), Some((key, given))) => same_answer(key, &taken.0, given)?,
                (Fate::Open, _) => is_whole = false,
                _ => {}
            }
        }
        let seen = if is_whole {
            round.first + round.count
        } else {
            round.first
        };
        Ok(Joined { attends, seen })
    }

    /// The run that this caller started under its key, if it did.
    pub(crate) async fn join_key(
        &self,
        caller: &Caller,
        call: &SameCall<'_>,
        key: &str,
    ) -> Result<Option<Joined>, CallError> {
        let found = self
            .tasks
            .by_key(&caller.tenant, &caller.principal, key)
            .await
            .map_err(|error| follow_error(error.into()))?;
        let Some(task) = found else { return Ok(None) };
        call.check(&task)?;
        Ok(Some(Joined::from_the_first(self, task.id)))
    }

    async fn called_before(&self, id: TaskId, call: &SameCall<'_>) -> Result<Task, CallError> {
        let task = self.task(id, None).await.map_err(|error| match error {
            FollowError::Unknown => CallError::Refused(RpcError::invalid_params(
                "the call of params.requestState is over and forgotten: make it again without it",
            )),
            error => follow_error(error),
        })?;
        call.check(&task)?;
        Ok(task)
    }
}

/// A call that joins a run.
pub(crate) struct Joined {
    attends: Attends,
    seen: usize,
}

impl Joined {
    /// One to which all is new.
    pub(crate) fn from_the_first(server: &Server, id: TaskId) -> Self {
        Self {
            attends: Attends::enter(server, id),
            seen: 0,
        }
    }
}

/// What makes two calls the same.
pub(crate) struct SameCall<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
}

impl SameCall<'_> {
    fn check(&self, task: &Task) -> Result<(), CallError> {
        let arguments: Option<Value> = serde_json::from_str(&task.pinned.arguments.0).ok();
        if task.pinned.tool == self.tool && arguments.as_ref() == Some(self.arguments) {
            return Ok(());
        }
        Err(CallError::Refused(RpcError::invalid_params(
            "params.requestState, or the idempotency key, belongs to a call of another tool or with other arguments",
        )))
    }
}

fn of_round<'t>(task: &'t Task, round: &Round) -> &'t [Question] {
    // A task that was shown meanwhile, and has ended, keeps none.
    let end = (round.first + round.count).min(task.questions.len());
    let first = round.first.min(end);
    &task.questions[first..end]
}

fn same_answer(key: &str, taken: &str, given: &RawValue) -> Result<(), CallError> {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    if value(taken) == value(given.get()) {
        return Ok(());
    }
    Err(CallError::Refused(RpcError::invalid_params(format!(
        "inputResponses: `{key}` was answered before, and otherwise: the first answer counts"
    ))))
}

pub(crate) fn follow_error(error: FollowError) -> CallError {
    match DispatchError::from(error) {
        DispatchError::Refused(error) | DispatchError::Run(error) => CallError::Refused(error),
        DispatchError::NoRoom { reason, .. } => CallError::NoRoom(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_given_up_by_the_last_who_leaves_without_having_heard() {
        use Leave::{GivesUp, Heard, Unchanged};
        let id = TaskId(uuid::Uuid::from_u128(1));
        let rows: &[(&[Leave], bool)] = &[
            (&[GivesUp], true),
            (&[Heard], false),
            (&[Unchanged], false),
            // The one who came meanwhile hears it.
            (&[GivesUp, Heard], false),
            // And the one who was refused meanwhile does not.
            (&[GivesUp, Unchanged], true),
            (&[Unchanged, GivesUp], true),
            (&[Heard, Unchanged], false),
            (&[Heard, GivesUp], true),
        ];
        for (leave, expected) in rows {
            let attending = Attending::default();
            let seats: Vec<usize> = leave.iter().map(|_| attending.enter(id)).collect();
            assert_eq!(attending.count(), leave.len());
            let given_up: Vec<bool> = seats
                .iter()
                .zip(*leave)
                .map(|(seat, how)| {
                    attending.note(id, *how);
                    attending.leave(id, *seat)
                })
                .collect();
            let (last, before) = given_up.split_last().expect("somebody leaves");
            assert_eq!(last, expected, "{leave:?}");
            assert!(before.iter().all(|given_up| !given_up), "{leave:?}");
            assert_eq!((attending.count(), attending.has(id)), (0, false));
        }
    }
}
