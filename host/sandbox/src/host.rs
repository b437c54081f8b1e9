//! The imports of package `longshore:tool`, and the state of one run behind all imports.

use std::sync::Arc;
use std::time::Duration;

use longshore_journal::call::{
    Answer, Ask, AskError, AskKind, Change, LogLevel, Question, Request,
};
use longshore_journal::record::Shown;
use longshore_journal::world::{Asked, Wake, World};
use wasmtime::Result;

use crate::bindings::longshore::tool::{changes, restart_points, task as wit, types};
use crate::control::Control;
use crate::cpu::Meter;
use crate::fault::Halt;
use crate::grants::Grants;
use crate::host_wasi::HostWasi;
use crate::limiter::Limiter;
use crate::outside::{Outside, OwnedChange, Said};
use crate::rules::{Rules, Settled, shorten};
use crate::run::Trail;
use crate::sandbox::WasiKind;
use crate::wasi::Wasi;

/// What a Store holds: one run.
pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) wasi: Wasi,
    /// In place of that, where the sandbox was told so.
    pub(crate) host_wasi: Option<Box<HostWasi>>,
    pub(crate) limiter: Limiter,
    pub(crate) outside: Arc<dyn Outside>,
    control: Control,
    rules: Rules,
    status_bytes: u64,
    log_line_bytes: u64,
    /// Up to this call an earlier process has kept what was printed and logged.
    printed_through: u64,
    meter: Arc<Meter>,
}

/// What ends a wait before its time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wakeable {
    /// A cancel, which the guest is told of.
    ByCancel,
    /// Nothing but a stop.
    ByNothing,
}

impl State {
    pub(crate) fn new(
        kind: WasiKind,
        grants: &Grants,
        trail: &Trail,
        world: World,
        printed_through: u64,
        outside: Arc<dyn Outside>,
        control: Control,
    ) -> Result<Self> {
        let limits = &grants.limits;
        let rings = || (trail.stdout.clone(), trail.stderr.clone());
        let host_wasi = (kind == WasiKind::Host)
            .then(|| HostWasi::new(grants, Arc::clone(&outside), rings()).map(Box::new));
        let (stdout, stderr) = rings();
        Ok(Self {
            wasi: Wasi::new(grants, &world, stdout, stderr)?,
            host_wasi: host_wasi.transpose()?,
            rules: Rules::new(limits, world.asked()),
            world,
            limiter: Limiter::new(limits),
            outside,
            control,
            status_bytes: limits.status_bytes,
            log_line_bytes: limits.log_line_bytes,
            printed_through,
            meter: Arc::clone(&trail.meter),
        })
    }

    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// Every call of a function of `longshore:tool` comes through here, so that none is left uncounted.
    pub(crate) fn request(&mut self, request: &Request<'_>) -> Result<Settled> {
        self.note_live();
        self.world.begin_request(request)?;
        Ok(self.rules.settle(request)?)
    }

    /// From the first call that is not a repetition on, time is the run's own.
    pub(crate) fn note_live(&self) {
        if !self.world.is_replaying() {
            self.meter.went_live();
        }
    }

    /// The guest's clock now.
    pub(crate) fn clock(&mut self) -> Result<u64> {
        Ok(self.world.clock(|| self.outside.now_ms())?)
    }

    pub(crate) fn cancelled(&mut self) -> Result<bool> {
        self.control.set_cooperates();
        Ok(self.world.cancelled(|| self.control.is_cancelled())?)
    }

    /// The guest prints or logs in this call.
    pub(crate) fn says(&mut self) -> Result<Said> {
        let is_sure = self.world.is_replaying();
        self.world.says()?;
        Ok(Said {
            call: self.world.calls(),
            is_sure,
        })
    }

    /// A line of the log, as long as it may be.
    pub(crate) fn log_line(&self, line: &str) -> String {
        shorten(line, self.log_line_bytes)
    }

    /// Whether what is printed and logged now was not kept before.
    pub(crate) fn is_news(&self) -> bool {
        self.world.calls() > self.printed_through
    }

    /// Waits until the guest's clock stands there. It has looked at it in this very call.
    pub(crate) async fn rest(&mut self, until: u64, wakeable: Wakeable) -> Result<Wake> {
        if until <= self.world.clock_seen() {
            return Ok(Wake::Time);
        }
        if let Some(wake) = self.world.wait(until)? {
            return Ok(wake);
        }
        // The records may have ended with that wait.
        if wakeable == Wakeable::ByNothing && self.settle_earlier().await? {
            return Ok(Wake::Exchange);
        }
        let wake = match wakeable {
            // A run that has sent something stays until it knows what came of it.
            _ if self.wasi.exchanges.is_waiting() => self.stay(until, wakeable).await,
            Wakeable::ByCancel => tokio::select! {
                biased;
                () = self.control.until_cancelled() => Wake::Cancelled,
                () = self.outside.wait_until(until) => Wake::Time,
            },
            Wakeable::ByNothing => tokio::select! {
                biased;
                _ = self.control.until_stopped() => Wake::Time,
                () = self.outside.wait_until(until) => Wake::Time,
            },
        };
        self.go_on()?;
        self.world.woke(wake, self.outside.now_ms())?;
        Ok(wake)
    }

    /// Waits in this process, also for what comes of the guest's requests if it looks for that.
    async fn stay(&mut self, until: u64, wakeable: Wakeable) -> Wake {
        // Some clocks cannot count to the end of time.
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let left = Duration::from_millis(until.saturating_sub(self.outside.now_ms())).min(FAR);
        let looks = wakeable == Wakeable::ByNothing;
        tokio::select! {
            biased;
            () = self.control.until_cancelled(), if wakeable == Wakeable::ByCancel => Wake::Cancelled,
            _ = self.control.until_stopped() => Wake::Time,
            () = self.wasi.exchanges.until_news(), if looks => Wake::Exchange,
            () = tokio::time::sleep(left) => Wake::Time,
        }
    }

    async fn answers(
        &mut self,
        questions: Vec<Question>,
        wait_ms: Option<u64>,
    ) -> Result<Result<Vec<Answer>, AskError>> {
        let settled = self.request(&Request::Ask {
            questions: &questions,
            wait_ms,
        })?;
        if let Settled::Answered(answers) = settled {
            return Ok(answers);
        }
        if self.cancelled()? {
            return Ok(Err(AskError::CallCancelled));
        }
        self.clock()?;
        match self.world.ask(&questions, wait_ms)? {
            Asked::Answered(answers) => Ok(answers),
            Asked::Live { until, before } => self.put(questions, until, before).await,
        }
    }

    /// Puts questions to whoever called, and records what comes back.
    pub(crate) async fn put(
        &mut self,
        questions: Vec<Question>,
        until: Option<u64>,
        before: bool,
    ) -> Result<Result<Vec<Answer>, AskError>> {
        let asked = questions.len();
        let answers = tokio::select! {
            biased;
            () = self.control.until_cancelled() => Err(AskError::CallCancelled),
            answers = self.outside.ask(questions, until, before) => answers,
        };
        self.go_on()?;
        if let Ok(answers) = &answers
            && answers.len() != asked
        {
            return Err(
                Halt::Bug(format!("{} answers to {asked} questions", answers.len())).into(),
            );
        }
        self.world.answered(&answers)?;
        Ok(answers)
    }

    fn changed(&mut self, change: &Change<'_>) -> Result<()> {
        self.request(&Request::Changed(change.clone()))?;
        if self.world.may_tell() {
            self.outside.changed(match change {
                Change::Tools => OwnedChange::Tools,
                Change::Prompts => OwnedChange::Prompts,
                Change::Resources => OwnedChange::Resources,
                Change::Resource(uri) => OwnedChange::Resource((*uri).to_owned()),
            });
        }
        Ok(())
    }

    /// What is left out when the run is repeated, or begins behind it, must not hold half of an exchange.
    fn has_no_request_open(&self, when: &str) -> Result<()> {
        if self.wasi.exchanges.is_open() {
            let message = format!(
                "{when} while a request is under way: take its response or let go of it first"
            );
            return Err(Halt::Misuse(message).into());
        }
        Ok(())
    }

    /// A guest that is to stop gets no more answers.
    pub(crate) fn go_on(&self) -> Result<()> {
        match self.control.stopped() {
            Some(reason) => Err(Halt::Stopped(reason).into()),
            None => Ok(()),
        }
    }
}

impl types::Host for State {}

impl wit::Host for State {
    async fn call_id(&mut self) -> Result<String> {
        self.request(&Request::CallId)?;
        Ok(self.outside.call_id())
    }

    async fn set_status(&mut self, message: String) -> Result<()> {
        self.request(&Request::SetStatus(&message))?;
        let message = shorten(&message, self.status_bytes);
        self.world.show(Shown {
            message: Some(message.clone()),
            progress: None,
        })?;
        self.outside.set_status(message);
        Ok(())
    }

    async fn report_progress(
        &mut self,
        done: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> Result<()> {
        self.request(&Request::ReportProgress {
            done,
            total,
            message: message.as_deref(),
        })?;
        if !self.world.comes_further(done) {
            return Ok(());
        }
        let total = total.filter(|total| total.is_finite());
        let message = message.map(|message| shorten(&message, self.status_bytes));
        self.world.show(Shown {
            message: message.clone(),
            progress: Some((done, total)),
        })?;
        self.outside.report_progress(done, total, message);
        Ok(())
    }

    async fn is_cancelled(&mut self) -> Result<bool> {
        self.request(&Request::IsCancelled)?;
        self.cancelled()
    }

    async fn time_left(&mut self) -> Result<Option<u64>> {
        self.request(&Request::TimeLeft)?;
        match self.outside.deadline_ms() {
            Some(deadline) => Ok(Some(deadline.saturating_sub(self.clock()?))),
            None => Ok(None),
        }
    }

    async fn sleep(&mut self, ms: u64) -> Result<bool> {
        self.request(&Request::Sleep { ms })?;
        if self.cancelled()? {
            return Ok(false);
        }
        let until = self.clock()?.saturating_add(ms);
        Ok(self.rest(until, Wakeable::ByCancel).await? == Wake::Time)
    }

    async fn detach(&mut self) -> Result<()> {
        self.request(&Request::Detach)?;
        if self.world.may_tell() {
            self.outside.detach();
        }
        Ok(())
    }

    async fn can_ask(&mut self, kind: wit::AskKind) -> Result<bool> {
        let kind = match kind {
            wit::AskKind::Form => AskKind::Form,
            wit::AskKind::Url => AskKind::Url,
            wit::AskKind::Sample => AskKind::Sample,
            wit::AskKind::SampleTools => AskKind::SampleTools,
            wit::AskKind::Roots => AskKind::Roots,
        };
        self.request(&Request::CanAsk(kind))?;
        Ok(self.outside.can_ask(kind))
    }

    async fn ask(
        &mut self,
        key: String,
        question: wit::Question,
        wait_ms: Option<u64>,
    ) -> Result<Result<wit::Answer, wit::AskError>> {
        let keyed = vec![wit::KeyedQuestion { key, question }];
        Ok(match self.ask_all(keyed, wait_ms).await? {
            Ok(answers) => Ok(answers
                .into_iter()
                .next()
                .expect("there are as many answers as questions")),
            Err(error) => Err(error),
        })
    }

    async fn ask_all(
        &mut self,
        questions: Vec<wit::KeyedQuestion>,
        wait_ms: Option<u64>,
    ) -> Result<Result<Vec<wit::Answer>, wit::AskError>> {
        let questions: Vec<Question> = questions.into_iter().map(question).collect();
        Ok(match self.answers(questions, wait_ms).await? {
            Ok(answers) => Ok(answers.into_iter().map(answer).collect()),
            Err(error) => Err(ask_error(error)),
        })
    }

    async fn log(
        &mut self,
        level: wit::Level,
        logger: Option<String>,
        message: String,
    ) -> Result<()> {
        let level = match level {
            wit::Level::Debug => LogLevel::Debug,
            wit::Level::Info => LogLevel::Info,
            wit::Level::Notice => LogLevel::Notice,
            wit::Level::Warning => LogLevel::Warning,
            wit::Level::Error => LogLevel::Error,
            wit::Level::Critical => LogLevel::Critical,
            wit::Level::Alert => LogLevel::Alert,
            wit::Level::Emergency => LogLevel::Emergency,
        };
        self.request(&Request::Log {
            level,
            logger: logger.as_deref(),
            message: &message,
        })?;
        let said = self.says()?;
        if self.is_news() {
            let message = self.log_line(&message);
            self.outside.log(said, level, logger, message);
        }
        Ok(())
    }

    async fn step_begin(&mut self, name: String) -> Result<Option<Vec<u8>>> {
        self.request(&Request::StepBegin(&name))?;
        self.has_no_request_open("a step begins")?;
        let done = self.world.step_begin(&name)?;
        self.wasi.keep_still(done.is_none());
        Ok(done)
    }

    async fn step_end(&mut self, name: String, value: Vec<u8>) -> Result<()> {
        self.request(&Request::StepEnd {
            name: &name,
            value: &value,
        })?;
        self.has_no_request_open("a step ends")?;
        self.world.step_end(&value)?;
        self.wasi.keep_still(false);
        // The guest may take it as done from here on.
        self.outside.settle().await;
        Ok(())
    }
}

impl restart_points::Host for State {
    async fn checkpoint(&mut self, state: Vec<u8>) -> Result<()> {
        self.request(&Request::Checkpoint(&state))?;
        self.has_no_request_open("a restart point is saved")?;
        self.world.checkpoint(&state)?;
        self.outside.settle().await;
        // What comes after is what a later process would do: it must not know what this instance knows.
        Err(Halt::Restart(state).into())
    }
}

impl changes::Host for State {
    async fn tools_changed(&mut self) -> Result<()> {
        self.changed(&Change::Tools)
    }

    async fn prompts_changed(&mut self) -> Result<()> {
        self.changed(&Change::Prompts)
    }

    async fn resources_changed(&mut self) -> Result<()> {
        self.changed(&Change::Resources)
    }

    async fn resource_updated(&mut self, uri: String) -> Result<()> {
        self.changed(&Change::Resource(&uri))
    }
}

fn question(given: wit::KeyedQuestion) -> Question {
    let ask = match given.question {
        wit::Question::Form(wit::Form { message, schema }) => Ask::Form { message, schema },
        wit::Question::Url(wit::Visit { message, url }) => Ask::Url { message, url },
        wit::Question::Sample(json) => Ask::Sample(json),
        wit::Question::Roots(json) => Ask::Roots(json),
        wit::Question::Raw(json) => Ask::Raw(json),
    };
    Question {
        key: given.key,
        ask,
    }
}

fn answer(given: Answer) -> wit::Answer {
    match given {
        Answer::Accepted(json) => wit::Answer::Accepted(json),
        Answer::Declined => wit::Answer::Declined,
        Answer::Dismissed => wit::Answer::Dismissed,
        Answer::Sampled(json) => wit::Answer::Sampled(json),
        Answer::Roots(json) => wit::Answer::Roots(json),
        Answer::Raw(json) => wit::Answer::Raw(json),
    }
}

fn ask_error(given: AskError) -> wit::AskError {
    match given {
        AskError::Unsupported(text) => wit::AskError::Unsupported(text),
        AskError::Invalid(text) => wit::AskError::Invalid(text),
        AskError::Limit(text) => wit::AskError::Limit(text),
        AskError::TimedOut => wit::AskError::TimedOut,
        AskError::CallCancelled => wit::AskError::CallCancelled,
    }
}
