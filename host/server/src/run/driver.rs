//! The one owner of a run: it carries the call, keeps its row, and decides when it ends.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use longshore_catalog::tool::TaskMode;
use longshore_journal::call::{Answer, AskError};
use longshore_sandbox::control::{Control, StopReason};
use longshore_sandbox::ending::Ended;
use longshore_tasks::event::{Effect, Event, Outcome, Refused};
use longshore_tasks::question::{Fate, wire_key};
use longshore_tasks::store::{Commit, StoreError};
use longshore_tasks::task::{Progress, Status, Task, Usage};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::aside::Asides;
use super::desk::{Asking, Desk, Inbox};
use super::outside::Log;
use super::{CallFacts, Output, Reply, Turns};
use crate::admission::Place;
use crate::clock;
use crate::reason::RunReason;
use crate::server::Server;
use crate::wire::{self, Asked};

/// How a call is carried to its caller.
pub(crate) enum Carrier {
    /// Somebody waits for the result.
    Held {
        answer: oneshot::Sender<Reply>,
        asides: Option<Arc<Asides>>,
        status: Status,
    },
    /// The result is fetched later; this is the row as last committed.
    Task(Box<Task>),
    /// Another node has the row now, or it is gone: the run is let go of without a word.
    Lost,
}

/// The one owner of a run.
pub(crate) struct Driver {
    server: Server,
    call: Arc<CallFacts>,
    desk: Arc<Desk>,
    log: Arc<Log>,
    control: Control,
    carrier: Carrier,
    /// Keys that this call has used.
    used_keys: HashSet<String>,
    waiting: Option<Waiting>,
    /// What the guest said and the row does not show yet.
    unshown: Unshown,
    /// When the row may next show something new.
    show_from: Instant,
    /// When a held call that takes long becomes a task.
    budget_at: Option<Instant>,
    deadline_at: Instant,
    /// When the grace of a cancelled run is over, and why it is stopped then.
    grace: Option<(Instant, StopReason)>,
    _place: Place,
    turns: Turns,
}

/// What a driver is put in charge of.
pub(crate) struct Charge {
    pub(crate) server: Server,
    pub(crate) call: Arc<CallFacts>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) log: Arc<Log>,
    pub(crate) control: Control,
    pub(crate) carrier: Carrier,
    pub(crate) place: Place,
    pub(crate) turns: Turns,
}

/// Questions that are out.
struct Waiting {
    asked: Vec<(String, Asked)>,
    until: Option<Instant>,
    reply: oneshot::Sender<Result<Vec<Answer>, AskError>>,
}

#[derive(Default)]
struct Unshown {
    message: Option<String>,
    progress: Option<Progress>,
}

/// What came of an attempt to change the row.
enum Change {
    Done,
    Refused(Refused),
    Unavailable,
    Lost,
}

/// Whether to try again while the store cannot be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Until it works: the result exists nowhere else.
    Endless,
    /// Not at all: something newer will come.
    None,
}

/// Runs a driver until its run is over. Whatever happens to the driver, its task does not stay
/// `working` with nobody working on it.
pub(crate) fn spawn(driver: Driver, ended: oneshot::Receiver<Ended>) {
    let server = driver.server.clone();
    let call = Arc::clone(&driver.call);
    let control = driver.control.clone();
    let span =
        tracing::info_span!("run", call = %call.id, component = call.component, tool = call.tool);
    tokio::spawn(
        async move {
            let drive = tokio::spawn(driver.drive(ended).in_current_span());
            if let Err(panic) = drive.await {
                server.sandbox.stop(&control, StopReason::Shutdown);
                server.runs.ended(call.id, Output::default());
                let failure = wire::failure(
                    RunReason::HostFault,
                    "the server failed while it ran this call",
                );
                let event = Event::Ended {
                    outcome: Outcome::Failed(failure),
                    usage: Usage::default(),
                };
                let ended = server.change_row(call.id, None, &event).await;
                // Last, since the row is what counts.
                tracing::error!(%panic, "the driver of a run ended by a fault of ours");
                if let Err(error) = ended {
                    tracing::error!(%error, "the task of that run could not be ended");
                }
            }
        }
        .instrument(span),
    );
}

impl Driver {
    pub(crate) fn new(charge: Charge) -> Self {
        let Charge {
            server,
            call,
            desk,
            log,
            control,
            carrier,
            place,
            turns,
        } = charge;
        let now = Instant::now();
        let has_budget = matches!(carrier, Carrier::Held { .. })
            && call.may_become_task()
            && call.task_mode == TaskMode::Auto;
        let budget = Duration::from_millis(server.settings.inline_budget_ms);
        let left = Duration::from_millis(call.deadline_at.since(clock::now()));
        let show_every = Duration::from_millis(server.settings.status_every_ms);
        Self {
            budget_at: has_budget.then(|| now + budget),
            deadline_at: now + left,
            server,
            call,
            desk,
            log,
            control,
            carrier,
            used_keys: HashSet::new(),
            waiting: None,
            unshown: Unshown::default(),
            // A call that is over before anybody looks costs no commit for what it said meanwhile.
            show_from: now + show_every,
            grace: None,
            _place: place,
            turns,
        }
    }

    async fn drive(mut self, mut ended: oneshot::Receiver<Ended>) {
        let desk = Arc::clone(&self.desk);
        // Somebody may have changed the row before this run could be shown its changes.
        if matches!(self.carrier, Carrier::Task(_)) {
            self.reload().await;
        }
        let ended = loop {
            let due = self.next_due();
            tokio::select! {
                biased;
                over = &mut ended => break over,
                () = desk.knocked() => {}
                () = tokio::time::sleep_until(due) => {}
            }
            let inbox = desk.take();
            self.attend(inbox).await;
            self.look_at_clock().await;
        };
        // What the guest said last belongs to the row that says how it ended.
        let last = desk.take();
        self.note_status(last.message, last.progress);
        self.finish(ended.ok()).await;
    }

    fn next_due(&self) -> Instant {
        let show_at = self.has_unshown().then_some(self.show_from);
        let answer_by = self.waiting.as_ref().and_then(|waiting| waiting.until);
        let grace_over = self.grace.map(|(at, _)| at);
        // After the deadline only the end of the grace, or of the run, is waited for.
        let deadline = self.grace.is_none().then_some(self.deadline_at);
        [self.budget_at, show_at, answer_by, grace_over, deadline]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or_else(|| Instant::now() + Duration::from_secs(3600))
    }

    /// What was left on the desk.
    async fn attend(&mut self, inbox: Inbox) {
        let Inbox {
            message,
            progress,
            detach,
            asking,
            row,
            gone,
        } = inbox;
        self.note_status(message, progress);
        if let Some(row) = row {
            self.see_row(*row);
        }
        if gone {
            // Also if it is a task by now: whoever had the reply in front of them did not take it.
            self.begin_cancel(StopReason::Abandoned);
        }
        if detach && self.call.may_become_task() {
            self.become_task().await;
        }
        if let Some(asking) = asking {
            self.ask(asking).await;
        }
    }

    async fn look_at_clock(&mut self) {
        let now = Instant::now();
        if self.budget_at.is_some_and(|at| at <= now) {
            self.budget_at = None;
            self.become_task().await;
        }
        if self
            .waiting
            .as_ref()
            .and_then(|waiting| waiting.until)
            .is_some_and(|at| at <= now)
        {
            self.stop_waiting().await;
        }
        if let Some((_, reason)) = self.grace.filter(|(at, _)| *at <= now) {
            self.server.sandbox.stop(&self.control, reason);
            self.grace = Some((now + Duration::from_secs(3600), reason));
        } else if self.grace.is_none() && self.deadline_at <= now {
            self.begin_cancel(StopReason::Expired);
        }
        if self.has_unshown() && self.show_from <= now {
            self.show_status().await;
        }
    }

    // Status

    fn note_status(&mut self, message: Option<String>, progress: Option<Progress>) {
        if let Carrier::Held { status, .. } = &mut self.carrier {
            // Nobody sees it yet; it is there from the start if the call becomes a task.
            status.message = message.or(status.message.take());
            status.progress = progress.or(status.progress);
            return;
        }
        if message.is_some() {
            self.unshown.message = message;
        }
        if progress.is_some() {
            self.unshown.progress = progress;
        }
    }

    fn has_unshown(&self) -> bool {
        self.unshown.message.is_some() || self.unshown.progress.is_some()
    }

    fn put_off_showing(&mut self) {
        self.show_from =
            Instant::now() + Duration::from_millis(self.server.settings.status_every_ms);
    }

    fn take_unshown(&mut self) -> Option<Event> {
        let Unshown { message, progress } = std::mem::take(&mut self.unshown);
        (message.is_some() || progress.is_some())
            .then_some(Event::StatusChanged { message, progress })
    }

    async fn show_status(&mut self) {
        let Some(event) = self.take_unshown() else {
            return;
        };
        self.put_off_showing();
        let _newer_status_will_come = self.commit(vec![event], Patience::None).await;
    }

    // Questions

    async fn ask(&mut self, asking: Asking) {
        let Asking {
            questions,
            wait_ms,
            reply,
        } = asking;
        let capabilities = &self.call.caller.capabilities;
        // Kept only if the questions are put: one that is refused uses up no key.
        let mut used = self.used_keys.clone();
        let asked: Result<Vec<(String, Asked)>, AskError> = questions
            .into_iter()
            .map(|question| {
                let asked = wire::asked(&question.ask, capabilities)?;
                let key = wire_key(&question.key, &used);
                used.insert(key.clone());
                Ok((key, asked))
            })
            .collect();
        let put = match asked {
            Ok(asked) => self.put_questions(&asked).await.map(|()| asked),
            Err(error) => Err(error),
        };
        let asked = match put {
            Ok(asked) => asked,
            Err(error) => {
                let _guest_is_gone = reply.send(Err(error));
                return;
            }
        };
        self.used_keys = used;
        let until = wait_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        self.waiting = Some(Waiting {
            asked,
            until,
            reply,
        });
    }

    async fn put_questions(&mut self, asked: &[(String, Asked)]) -> Result<(), AskError> {
        if matches!(self.carrier, Carrier::Held { .. }) {
            if !self.call.can_wait_for_answers() {
                return Err(AskError::Unsupported(
                    "this caller can be asked only in a task: it does not know tasks, or the tool does not become one"
                        .to_owned(),
                ));
            }
            if !self.become_task().await {
                return Err(AskError::Unsupported(
                    "the question cannot be kept now; try again later".to_owned(),
                ));
            }
        }
        let mut events: Vec<Event> = self.take_unshown().into_iter().collect();
        events.push(Event::Asked(
            asked.iter().map(|(key, asked)| asked.as_new(key)).collect(),
        ));
        match self.commit(events, Patience::Endless).await {
            Change::Done => Ok(()),
            Change::Refused(Refused::Ended | Refused::Cancelling | Refused::Nothing)
            | Change::Lost => Err(AskError::CallCancelled),
            Change::Refused(Refused::BadQuestions) => Err(AskError::Invalid(
                "a key is used twice among these questions".to_owned(),
            )),
            Change::Unavailable => Err(AskError::CallCancelled),
        }
    }

    /// The wait for answers is over; they may have come at the last moment.
    async fn stop_waiting(&mut self) {
        match self.commit(vec![Event::Withdrawn], Patience::Endless).await {
            Change::Refused(Refused::Nothing) => self.deliver_answers(),
            _ => self.settle(Err(AskError::TimedOut)),
        }
    }

    /// Gives the guest its answers once all are there.
    fn deliver_answers(&mut self) {
        let (Carrier::Task(row), Some(waiting)) = (&self.carrier, &self.waiting) else {
            return;
        };
        let answers: Option<Vec<Answer>> = waiting
            .asked
            .iter()
            .map(|(key, asked)| {
                let question = row.questions.iter().find(|question| question.key == *key)?;
                match &question.fate {
                    Fate::Answered(answer) => asked.answer(&answer.0),
                    Fate::Open | Fate::Withdrawn => None,
                }
            })
            .collect();
        if let Some(answers) = answers {
            self.settle(Ok(answers));
        }
    }

    fn settle(&mut self, answers: Result<Vec<Answer>, AskError>) {
        if let Some(waiting) = self.waiting.take() {
            let _guest_is_gone = waiting.reply.send(answers);
        }
    }

    // The row

    /// Makes the call a task, if it is not one, and tells the caller. False if it stays held.
    async fn become_task(&mut self) -> bool {
        let Carrier::Held { status, .. } = &self.carrier else {
            return true;
        };
        let row = self
            .call
            .new_row(clock::now(), self.server.node.clone(), status.clone());
        if let Err(error) = self.server.tasks.create(row.clone(), None).await {
            tracing::warn!(%error, "a held call could not become a task; it is tried again");
            self.budget_at = Some(Instant::now() + Duration::from_secs(1));
            return false;
        }
        self.budget_at = None;
        self.put_off_showing();
        let before = std::mem::replace(&mut self.carrier, Carrier::Task(Box::new(row.clone())));
        if let Carrier::Held { answer, asides, .. } = before {
            // Of a task is told what its row shows, to whoever asks for that.
            if let Some(asides) = asides {
                asides.close();
            }
            if answer.send(Reply::Task(Box::new(row))).is_err() {
                // Nobody has the task's id, so nobody will ever ask for its result.
                self.begin_cancel(StopReason::Abandoned);
            }
        }
        true
    }

    /// The row as somebody else left it.
    fn see_row(&mut self, row: Task) {
        let Carrier::Task(known) = &mut self.carrier else {
            return;
        };
        if row.version > known.version {
            **known = row;
        }
        self.act_on_row();
    }

    fn act_on_row(&mut self) {
        let Carrier::Task(row) = &self.carrier else {
            return;
        };
        if row.state.name().is_final() {
            // Somebody ended it: whatever the run still does is of no use.
            self.server
                .sandbox
                .stop(&self.control, StopReason::Cancelled);
        } else if row.cancel_requested_at.is_some() {
            self.begin_cancel(StopReason::Cancelled);
        }
        self.deliver_answers();
    }

    /// Commits the row after these events, against whatever others do to it meanwhile.
    async fn commit(&mut self, events: Vec<Event>, patience: Patience) -> Change {
        let mut pause = Duration::from_millis(50);
        loop {
            let Carrier::Task(row) = &self.carrier else {
                return Change::Lost;
            };
            let now = clock::now();
            let mut next = (**row).clone();
            let mut is_seen = false;
            for event in &events {
                match next.apply(event.clone(), now) {
                    Ok(step) => {
                        next = step.task;
                        // The other effects are this run's own doing.
                        is_seen |= step.effects.contains(&Effect::Notify);
                    }
                    // A status that says nothing new must not keep what follows it from being done.
                    Err(Refused::Nothing) if matches!(event, Event::StatusChanged { .. }) => {}
                    Err(refused) => return Change::Refused(refused),
                }
            }
            if next.version == row.version {
                return Change::Refused(Refused::Nothing);
            }
            let commit = Commit {
                from_version: row.version,
                from_epoch: row.lease.epoch,
                task: next.clone(),
                segment: None,
            };
            match self.server.tasks.commit(commit).await {
                Ok(()) => {
                    if is_seen {
                        self.server.tell_of(&next);
                    }
                    self.carrier = Carrier::Task(Box::new(next));
                    return Change::Done;
                }
                Err(StoreError::Conflict) => {
                    if !self.reload().await {
                        return Change::Lost;
                    }
                }
                Err(StoreError::Fenced | StoreError::Missing | StoreError::Exists) => {
                    self.lose();
                    return Change::Lost;
                }
                Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_))) => {
                    if patience == Patience::None {
                        return Change::Unavailable;
                    }
                    tracing::warn!(%error, "a change of a task waits for the store");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(5));
                    // The write may have happened and only its answer been lost.
                    if !self.reload().await {
                        return Change::Lost;
                    }
                }
            }
        }
    }

    /// Reads the row again. False if it is not this run's any more.
    async fn reload(&mut self) -> bool {
        match self.server.tasks.get(self.call.id).await {
            Ok(Some(row)) => {
                // It may be a commit of ours whose answer was lost; telling of one twice does no harm.
                self.server.tell_of(&row);
                self.see_row(row);
                true
            }
            Ok(None) => {
                self.lose();
                false
            }
            // The next attempt to commit meets the same trouble and waits.
            Err(_) => true,
        }
    }

    fn lose(&mut self) {
        self.carrier = Carrier::Lost;
        self.server
            .sandbox
            .stop(&self.control, StopReason::Shutdown);
    }

    // The end

    /// Tells the guest that it is cancelled, and stops it: after its grace if it looks, else at once.
    fn begin_cancel(&mut self, reason: StopReason) {
        if self.grace.is_some() {
            return;
        }
        self.server.sandbox.cancel(&self.control);
        self.settle(Err(AskError::CallCancelled));
        let grace = Duration::from_millis(self.server.settings.grace_ms);
        if self.control.cooperates() {
            self.grace = Some((Instant::now() + grace, reason));
        } else {
            self.server.sandbox.stop(&self.control, reason);
            self.grace = Some((Instant::now() + Duration::from_secs(3600), reason));
        }
    }

    async fn finish(mut self, ended: Option<Ended>) {
        let spent = ended.as_ref().map_or_else(Usage::default, |ended| Usage {
            active_ms: ended.active_us / 1_000,
            cpu_ms: ended.cpu_us / 1_000,
        });
        if let Some(ended) = &ended {
            self.turns.note(Duration::from_micros(ended.cpu_us));
        }
        let (outcome, output) = match ended {
            Some(ended) => {
                let (log, log_dropped) = self.log.read();
                let why_stopped = self.grace.map(|(_, reason)| reason);
                let outcome = wire::outcome(
                    &self.call,
                    ended.ending,
                    why_stopped,
                    &ended.stderr,
                    &self.server.info,
                );
                (
                    outcome,
                    Output {
                        stdout: ended.stdout,
                        stderr: ended.stderr,
                        log,
                        log_dropped,
                        cpu_ms: None,
                    },
                )
            }
            None => {
                let failure =
                    wire::failure(RunReason::HostFault, "the run ended without saying how");
                (Outcome::Failed(failure), Output::default())
            }
        };
        match std::mem::replace(&mut self.carrier, Carrier::Lost) {
            Carrier::Held { answer, .. } => {
                let _caller_is_gone = answer.send(Reply::Ended(wire::held_result(outcome)));
            }
            Carrier::Task(row) => {
                self.carrier = Carrier::Task(row);
                self.end_task(outcome, spent).await;
            }
            Carrier::Lost => {}
        }
        self.server.runs.ended(self.call.id, output);
    }

    async fn end_task(&mut self, outcome: Outcome, spent: Usage) {
        let Carrier::Task(row) = &self.carrier else {
            return;
        };
        let usage = Usage {
            active_ms: row.usage.active_ms + spent.active_ms,
            cpu_ms: row.usage.cpu_ms + spent.cpu_ms,
        };
        let mut events: Vec<Event> = self.take_unshown().into_iter().collect();
        events.push(Event::Ended { outcome, usage });
        match self.commit(events, Patience::Endless).await {
            Change::Done => tracing::debug!("the task has ended"),
            // Somebody ended it first, and the first end counts.
            Change::Refused(_) | Change::Lost | Change::Unavailable => {
                tracing::debug!("the task had ended before");
            }
        }
    }
}
