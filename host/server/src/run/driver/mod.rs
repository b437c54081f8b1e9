//! The one owner of a run: it carries the call, keeps its row and its journal, and decides when it ends.

mod ask;
mod rest;
mod row;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use longshore_catalog::tool::TaskMode;
use longshore_journal::call::AskError;
use longshore_journal::tape::Tape;
use longshore_sandbox::control::{Control, StopReason};
use longshore_sandbox::ending::Ended;
use longshore_sandbox::sandbox::Watch;
use longshore_tasks::event::{Event, Outcome};
use longshore_tasks::task::{Progress, Reach, Status, Task, Usage};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Instrument as _;

use self::ask::Waiting;
pub(crate) use self::rest::Seat;
use self::row::Patience;
use super::aside::Asides;
use super::desk::{Desk, Inbox, Resting};
use super::inquiry::Inquiries;
use super::outside::Log;
use super::record::Recorder;
use super::{CallFacts, Output, Reply, Turns};
use crate::clock;
use crate::marks::Mark;
use crate::reason::RunReason;
use crate::server::Server;
use crate::wire;

/// How often it is looked whether a run that is repeated has come to its end.
const REPLAY_LOOK: Duration = Duration::from_millis(20);
const AN_HOUR: Duration = Duration::from_secs(3600);

/// How a call is carried to its caller.
pub(crate) enum Carrier {
    /// Somebody waits for the result.
    Held {
        answer: oneshot::Sender<Reply>,
        asides: Option<Arc<Asides>>,
        /// Where its questions go, if it can be asked.
        inquiries: Option<Arc<Inquiries>>,
        status: Status,
    },
    /// The result is fetched later; this is the row as last committed.
    Task(Box<Task>),
    /// The task goes on later, here or elsewhere: its row says so.
    LetGo,
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
    watch: Watch,
    carrier: Carrier,
    tape: Tape,
    /// Keeps the journal, if the call has one.
    recorder: Option<Recorder>,
    /// What the guest had used by the last record of an earlier process: from there it goes on.
    used_before: Usage,
    /// What earlier processes put out.
    earlier: Option<Arc<Output>>,
    /// Keys that this call has used.
    used_keys: HashSet<String>,
    waiting: Option<Waiting>,
    resting: Option<Resting>,
    seat: Seat,
    /// What the guest said and the row does not show yet.
    unshown: Unshown,
    /// When the row may next show something new.
    show_from: Instant,
    /// When the journal is next kept, if nothing else keeps it before.
    flush_at: Instant,
    /// When a held call that takes long becomes a task.
    budget_at: Option<Instant>,
    /// When a held call has been held for as long as its client waits.
    hold_at: Option<Instant>,
    deadline_at: Instant,
    /// When the grace of a cancelled run is over, and why it is stopped then.
    grace: Option<(Instant, StopReason)>,
    /// Why a run is to be cancelled that still repeats what it did before: it will see it where it
    /// goes on.
    cancel_when_live: Option<StopReason>,
    /// When it is looked at again whether the run can be let go of, since the process goes down.
    leave_at: Option<Instant>,
    turns: Turns,
    /// For as long as it may be what brings processes down.
    mark: Option<Arc<Mark>>,
}

/// What a driver is put in charge of.
pub(crate) struct Charge {
    pub(crate) server: Server,
    pub(crate) call: Arc<CallFacts>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) log: Arc<Log>,
    pub(crate) control: Control,
    pub(crate) watch: Watch,
    pub(crate) carrier: Carrier,
    pub(crate) tape: Tape,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) earlier: Option<Arc<Output>>,
    pub(crate) seat: Seat,
    pub(crate) turns: Turns,
    pub(crate) mark: Option<Arc<Mark>>,
}

#[derive(Default)]
struct Unshown {
    message: Option<String>,
    progress: Option<Progress>,
}

/// Runs a driver until its run is over. Whatever happens to the driver, its task does not stay
/// `working` with nobody working on it.
pub(crate) fn spawn(driver: Driver, ended: oneshot::Receiver<Ended>) {
    let server = driver.server.clone();
    let call = Arc::clone(&driver.call);
    let control = driver.control.clone();
    let span = tracing::info_span!("run", call = %call.id, component = call.component, target = call.target.name(), traceparent = call.traceparent);
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

/// What a run that has ended comes to, and what it has put out.
pub(super) fn came_of(
    server: &Server,
    call: &CallFacts,
    log: &Log,
    why_stopped: Option<StopReason>,
    ended: Ended,
) -> (Outcome, Output) {
    let (log, log_dropped) = log.read();
    let outcome = wire::outcome(call, ended.ending, why_stopped, &ended.stderr, &server.info);
    let output = Output {
        stdout: ended.stdout,
        stderr: ended.stderr,
        log,
        log_dropped,
    };
    (outcome, output)
}

impl Driver {
    pub(crate) fn new(charge: Charge) -> Self {
        let Charge {
            server,
            call,
            desk,
            log,
            control,
            watch,
            carrier,
            tape,
            recorder,
            earlier,
            seat,
            turns,
            mark,
        } = charge;
        let now = Instant::now();
        let is_unseen = match &carrier {
            Carrier::Held { .. } => true,
            Carrier::Task(row) => row.reach == Reach::Again,
            Carrier::LetGo | Carrier::Lost => false,
        };
        let has_budget = is_unseen && call.may_become_task() && call.task_mode == TaskMode::Auto;
        let budget = Duration::from_millis(server.settings.inline_budget_ms);
        let left = Duration::from_millis(call.deadline_at.since(clock::now()));
        let show_every = Duration::from_millis(server.settings.status_every_ms);
        let flush_every = match &carrier {
            Carrier::Task(row) => row::flush_every(row, &server.settings),
            _ => Duration::from_millis(server.settings.journal_every_ms),
        };
        let (used_before, used_keys) = match &carrier {
            Carrier::Task(row) => (
                row.journal.used,
                row.questions
                    .iter()
                    .map(|asked| asked.key.clone())
                    .collect(),
            ),
            _ => Default::default(),
        };
        let mut driver = Self {
            budget_at: has_budget.then(|| now + budget),
            hold_at: None,
            deadline_at: now + left,
            server,
            call,
            desk,
            log,
            control,
            watch,
            carrier,
            tape,
            recorder,
            used_before,
            earlier,
            used_keys,
            waiting: None,
            resting: None,
            seat,
            unshown: Unshown::default(),
            // A call that is over before anybody looks costs no commit for what it said meanwhile.
            show_from: now + show_every,
            flush_at: now + flush_every,
            grace: None,
            cancel_when_live: None,
            leave_at: None,
            turns,
            mark,
        };
        driver.hold_at = driver.hold().map(|hold| now + hold);
        driver
    }

    /// How long its caller waits before the call goes on as a task, if it may. Of a call that was made again, whoever
    /// waits for it has a clock of their own.
    fn hold(&self) -> Option<Duration> {
        let settings = &self.server.settings;
        match &self.carrier {
            Carrier::Held { asides, .. } if self.call.may_be_handed_off() && settings.handoff => {
                let hears = asides
                    .as_ref()
                    .is_some_and(|asides| asides.tells_progress());
                Some(settings.hold(hears))
            }
            _ => None,
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
                () = self.seat.entered() => self.go_on(),
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
        let is_task = matches!(self.carrier, Carrier::Task(_));
        let show_at = self.has_unshown().then_some(self.show_from);
        let answer_by = self.waiting.as_ref().and_then(Waiting::until);
        let rest_by = self.resting.as_ref().and_then(Resting::until);
        let grace_over = self.grace.map(|(at, _)| at);
        let replay_look = self.cancel_when_live.map(|_| Instant::now() + REPLAY_LOOK);
        // A run that waits records nothing.
        let is_paused = self.waiting.is_some() || self.resting.is_some();
        let flush_at = (is_task && !is_paused).then_some(self.flush_at);
        // After the deadline only the end of the grace, or of the run, is waited for.
        let deadline = self.grace.is_none().then_some(self.deadline_at);
        [
            self.budget_at,
            self.hold_at,
            show_at,
            answer_by,
            rest_by,
            self.seat.park_at(),
            flush_at,
            grace_over,
            replay_look,
            self.leave_at,
            deadline,
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or_else(|| Instant::now() + AN_HOUR)
    }

    /// What was left on the desk.
    async fn attend(&mut self, inbox: Inbox) {
        let Inbox {
            message,
            progress,
            detach,
            asking,
            answers,
            resting,
            settling,
            row,
            gone,
            leaving,
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
        if let Some(settled) = settling {
            self.keep_journal(Patience::Endless).await;
            let _guest_is_gone = settled.send(());
        }
        if let Some(asking) = asking {
            self.ask(asking).await;
        }
        self.take_answers(answers);
        if let Some(resting) = resting {
            self.resting = Some(resting);
            self.pause();
        }
        if leaving {
            self.leave().await;
        }
    }

    async fn look_at_clock(&mut self) {
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.budget_at) {
            self.budget_at = None;
            self.become_task().await;
        }
        if is_due(self.hold_at) {
            if self.waiting.is_some() {
                // Its caller is asked and not left without a word: the time that it waits begins again.
                self.hold_at = self.hold().map(|hold| now + hold);
            } else {
                self.hold_at = None;
                self.become_task().await;
            }
        }
        if is_due(self.waiting.as_ref().and_then(Waiting::until)) {
            self.stop_waiting().await;
        }
        if is_due(self.resting.as_ref().and_then(Resting::until)) {
            self.sit_down();
        }
        if let Some(reason) = self.cancel_when_live
            && !self.tape.is_replaying()
        {
            self.cancel_when_live = None;
            self.begin_cancel(reason);
        }
        if let Some((_, reason)) = self.grace.filter(|(at, _)| *at <= now) {
            self.server.sandbox.stop(&self.control, reason);
            self.grace = Some((now + AN_HOUR, reason));
        } else if self.grace.is_none() && self.deadline_at <= now {
            self.expire(now);
        }
        if self.has_unshown() && self.show_from <= now {
            self.show_status().await;
        }
        if self.leave_at.take_if(|at| *at <= now).is_some() {
            self.leave().await;
        }
        if self.flush_at <= now {
            self.keep_journal(Patience::None).await;
        }
        if is_due(self.seat.park_at()) {
            self.park().await;
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

    /// A run that repeats what it did before says nothing that its row did not show, or leave out, then.
    fn has_unshown(&self) -> bool {
        (self.unshown.message.is_some() || self.unshown.progress.is_some())
            && !self.tape.is_replaying()
    }

    fn put_off_showing(&mut self) {
        self.show_from =
            Instant::now() + Duration::from_millis(self.server.settings.status_every_ms);
    }

    fn take_unshown(&mut self) -> Option<Event> {
        if self.tape.is_replaying() {
            return None;
        }
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

    // The end

    /// Tells the guest that it is cancelled, and stops it: after its grace if it looks and has anything to clean up, else at once.
    fn begin_cancel(&mut self, reason: StopReason) {
        if self.grace.is_some() {
            return;
        }
        if !self.call.policy.cleanup {
            // Not told first: it would begin to do what it has nothing to do.
            self.withdraw();
            self.resting = None;
            self.server.sandbox.stop(&self.control, reason);
            self.grace = Some((Instant::now() + AN_HOUR, reason));
            return;
        }
        self.server.sandbox.cancel(&self.control);
        if self.tape.is_replaying() {
            // What it did before, it did without knowing. It sees this where it goes on.
            self.cancel_when_live = Some(reason);
            return;
        }
        self.withdraw();
        self.settle(Err(AskError::CallCancelled));
        self.resting = None;
        let grace = Duration::from_millis(self.server.settings.grace_ms);
        if self.control.cooperates() {
            // The deadline holds for whoever cleans up as well.
            let over = (Instant::now() + grace).min(self.deadline_at);
            self.grace = Some((over, reason));
        } else {
            self.server.sandbox.stop(&self.control, reason);
            self.grace = Some((Instant::now() + AN_HOUR, reason));
        }
    }

    /// The deadline is there: the run is stopped where it stands. What it waits for does not return to it, so that it can
    /// neither go on nor end in another way; also if it still repeats what it did before.
    fn expire(&mut self, now: Instant) {
        // It was cancelled before, and did not come to hear of it.
        let reason = self.cancel_when_live.take().unwrap_or(StopReason::Expired);
        self.server.sandbox.stop(&self.control, reason);
        self.withdraw();
        self.waiting = None;
        self.resting = None;
        self.deadline_at = now + AN_HOUR;
        self.grace = Some((now + AN_HOUR, reason));
    }

    /// What the guest has used by where it is now. An earlier process may have come further.
    fn usage(&self) -> Usage {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Usage {
            active_ms: self.used_before.active_ms + millis(self.watch.active()),
            cpu_ms: self.used_before.cpu_ms + millis(self.watch.cpu()),
        }
    }

    async fn finish(mut self, ended: Option<Ended>) {
        if let Some(ended) = &ended {
            self.turns.note(Duration::from_micros(ended.cpu_us));
        }
        // A guest that was told where it went on may be quicker than whoever waits for it to go on.
        let why_stopped = self
            .grace
            .map(|(_, reason)| reason)
            .or(self.cancel_when_live);
        let (outcome, output) = match ended {
            Some(ended) => came_of(&self.server, &self.call, &self.log, why_stopped, ended),
            None => {
                let failure =
                    wire::failure(RunReason::HostFault, "the run ended without saying how");
                (Outcome::Failed(failure), Output::default())
            }
        };
        let output = match self.earlier.take() {
            Some(earlier) => earlier.followed_by(output, &self.call.policy.limits),
            None => output,
        };
        match std::mem::replace(&mut self.carrier, Carrier::Lost) {
            Carrier::Held { answer, .. } => {
                if self.desk.has_changed() {
                    self.forget_changes().await;
                }
                let _caller_is_gone = answer.send(Reply::Ended(wire::held_result(outcome)));
                tracing::debug!("the call has ended");
            }
            Carrier::Task(row) => {
                self.carrier = Carrier::Task(row);
                self.end_task(outcome, &output).await;
            }
            Carrier::LetGo => {
                self.server.runs.gone(self.call.id);
                // Whatever happened to the row while the run was still here has told nobody else.
                self.server.look_after(self.call.id);
                return;
            }
            Carrier::Lost => {}
        }
        self.server.runs.ended(self.call.id, output);
    }

    /// Nobody asks again for what came of the changes of a held call, and what it left is kept for so long.
    async fn forget_changes(&self) {
        let (server, id) = (&self.server, self.call.id);
        let until = clock::now().plus(self.call.retention_ms);
        let kept = async {
            server.artifacts.left_until(id, until).await?;
            server.values.forget(id).await
        };
        if let Err(error) = kept.await {
            // The next process does it.
            tracing::warn!(%error, "what a call has kept could not be given its time");
        }
    }

    async fn end_task(&mut self, outcome: Outcome, output: &Output) {
        let usage = self.usage();
        let mut events: Vec<Event> = self.take_unshown().into_iter().collect();
        events.push(Event::Ended { outcome, usage });
        match self
            .commit_with(events, Some(output), Patience::Endless)
            .await
        {
            row::Change::Done => tracing::debug!("the task has ended"),
            // Somebody ended it first, and the first end counts.
            row::Change::Refused(_) | row::Change::Lost | row::Change::Unavailable => {
                tracing::debug!("the task had ended before");
            }
        }
    }
}
