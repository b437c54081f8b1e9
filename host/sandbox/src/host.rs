//! The imports of package `longshore:tool`, and the state of one run behind all imports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use longshore_journal::call::{
    Answer, Ask, AskError, AskKind, Change, LogLevel, Question, Request, Response,
};
use longshore_journal::world::{Begun, World};
use longshore_policy::limits::Limits;
use wasmtime::Result;

use crate::bindings::longshore::tool::{changes, task as wit, types};
use crate::control::Control;
use crate::fault::Halt;
use crate::limiter::Limiter;
use crate::outside::{Outside, OwnedChange};
use crate::rules::{Rules, shorten};
use crate::run::Trail;
use crate::wasi::Wasi;

/// A line of the log, as the interface says.
const LOG_BYTES: u64 = 8 * 1024;

/// What a Store holds: one run.
pub(crate) struct State {
    pub(crate) wasi: Wasi,
    pub(crate) limiter: Limiter,
    line: Line,
}

/// The run's end of the line to the outside.
struct Line {
    world: World,
    rules: Rules,
    status_bytes: u64,
    outside: Arc<dyn Outside>,
    control: Control,
    /// Import calls so far, where they can be read when the instance is gone.
    calls: Arc<AtomicU64>,
}

impl State {
    pub(crate) fn new(
        limits: &Limits,
        trail: &Trail,
        outside: Arc<dyn Outside>,
        control: Control,
    ) -> Self {
        Self {
            wasi: Wasi::new(limits, trail.stdout.clone(), trail.stderr.clone()),
            limiter: Limiter::new(limits),
            line: Line {
                world: World::default(),
                rules: Rules::new(limits),
                status_bytes: limits.status_bytes,
                outside,
                control,
                calls: Arc::clone(&trail.calls),
            },
        }
    }

    pub(crate) fn control(&self) -> &Control {
        &self.line.control
    }
}

impl Line {
    /// Every import of the package comes through here, so that none is left uncounted.
    async fn call(&mut self, request: Request<'_>) -> Result<Response> {
        let begun = self.world.begin(&request);
        self.calls.store(self.world.calls(), Ordering::Release);
        let begun = begun.map_err(|misuse| Halt::Misuse(misuse.to_string()))?;
        let settled = self.rules.settle(&request)?;
        let number = match begun {
            Begun::Live(number) => number,
            Begun::Replayed(response) => return Ok(response),
        };
        let response = match settled {
            Some(response) => response,
            None => self.live(request).await?,
        };
        self.world.end(number, &response);
        Ok(response)
    }

    async fn live(&mut self, request: Request<'_>) -> Result<Response> {
        Ok(match request {
            Request::CallId => Response::Text(self.outside.call_id()),
            Request::SetStatus(message) => {
                self.outside.set_status(shorten(message, self.status_bytes));
                Response::Done
            }
            Request::ReportProgress {
                done,
                total,
                message,
            } => {
                let total = total.filter(|total| total.is_finite());
                let message = message.map(|message| shorten(message, self.status_bytes));
                self.outside.report_progress(done, total, message);
                Response::Done
            }
            Request::IsCancelled => {
                self.control.set_cooperates();
                Response::Flag(self.control.is_cancelled())
            }
            Request::TimeLeft => Response::TimeLeft(self.outside.time_left_ms()),
            Request::Sleep { ms } => Response::Flag(self.sleep(ms).await?),
            Request::Detach => {
                self.outside.detach();
                Response::Done
            }
            Request::CanAsk(kind) => Response::Flag(self.outside.can_ask(kind)),
            Request::Ask { questions, wait_ms } => {
                Response::Answers(self.ask(questions, wait_ms).await?)
            }
            Request::Log {
                level,
                logger,
                message,
            } => {
                self.outside.log(
                    level,
                    logger.map(str::to_owned),
                    shorten(message, LOG_BYTES),
                );
                Response::Done
            }
            // Nothing was recorded before, so every step is still to do.
            Request::StepBegin(_) => Response::Step(None),
            Request::StepEnd { .. } => Response::Done,
            Request::Changed(change) => {
                self.outside.changed(match change {
                    Change::Tools => OwnedChange::Tools,
                    Change::Prompts => OwnedChange::Prompts,
                    Change::Resources => OwnedChange::Resources,
                    Change::Resource(uri) => OwnedChange::Resource(uri.to_owned()),
                });
                Response::Done
            }
        })
    }

    /// Whether the time passed; false if a cancel came first.
    async fn sleep(&self, ms: u64) -> Result<bool> {
        self.control.set_cooperates();
        let slept = tokio::select! {
            biased;
            () = self.control.until_cancelled() => false,
            () = tokio::time::sleep(Duration::from_millis(ms)) => true,
        };
        self.go_on()?;
        Ok(slept)
    }

    async fn ask(
        &self,
        questions: &[Question],
        wait_ms: Option<u64>,
    ) -> Result<Result<Vec<Answer>, AskError>> {
        self.control.set_cooperates();
        let asked = questions.len();
        let answers = tokio::select! {
            biased;
            () = self.control.until_cancelled() => Err(AskError::CallCancelled),
            answers = self.outside.ask(questions.to_vec(), wait_ms) => answers,
        };
        self.go_on()?;
        if let Ok(answers) = &answers
            && answers.len() != asked
        {
            return Err(
                Halt::Bug(format!("{} answers to {asked} questions", answers.len())).into(),
            );
        }
        Ok(answers)
    }

    /// A guest that is to stop gets no more answers.
    fn go_on(&self) -> Result<()> {
        match self.control.stopped() {
            Some(reason) => Err(Halt::Stopped(reason).into()),
            None => Ok(()),
        }
    }
}

/// A response that does not belong to the request can only come from a record that is not this run's.
fn mismatch<T>(response: &Response) -> Result<T> {
    Err(Halt::Bug(format!("a response of another call: {response:?}")).into())
}

impl types::Host for State {}

impl wit::Host for State {
    async fn call_id(&mut self) -> Result<String> {
        match self.line.call(Request::CallId).await? {
            Response::Text(id) => Ok(id),
            other => mismatch(&other),
        }
    }

    async fn set_status(&mut self, message: String) -> Result<()> {
        self.line.call(Request::SetStatus(&message)).await.map(drop)
    }

    async fn report_progress(
        &mut self,
        done: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> Result<()> {
        let message = message.as_deref();
        self.line
            .call(Request::ReportProgress {
                done,
                total,
                message,
            })
            .await
            .map(drop)
    }

    async fn is_cancelled(&mut self) -> Result<bool> {
        match self.line.call(Request::IsCancelled).await? {
            Response::Flag(cancelled) => Ok(cancelled),
            other => mismatch(&other),
        }
    }

    async fn time_left(&mut self) -> Result<Option<u64>> {
        match self.line.call(Request::TimeLeft).await? {
            Response::TimeLeft(ms) => Ok(ms),
            other => mismatch(&other),
        }
    }

    async fn sleep(&mut self, ms: u64) -> Result<bool> {
        match self.line.call(Request::Sleep { ms }).await? {
            Response::Flag(slept) => Ok(slept),
            other => mismatch(&other),
        }
    }

    async fn detach(&mut self) -> Result<()> {
        self.line.call(Request::Detach).await.map(drop)
    }

    async fn can_ask(&mut self, kind: wit::AskKind) -> Result<bool> {
        let kind = match kind {
            wit::AskKind::Form => AskKind::Form,
            wit::AskKind::Url => AskKind::Url,
            wit::AskKind::Sample => AskKind::Sample,
            wit::AskKind::SampleTools => AskKind::SampleTools,
            wit::AskKind::Roots => AskKind::Roots,
        };
        match self.line.call(Request::CanAsk(kind)).await? {
            Response::Flag(can) => Ok(can),
            other => mismatch(&other),
        }
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
        match self
            .line
            .call(Request::Ask {
                questions: &questions,
                wait_ms,
            })
            .await?
        {
            Response::Answers(Ok(answers)) => Ok(Ok(answers.into_iter().map(answer).collect())),
            Response::Answers(Err(error)) => Ok(Err(ask_error(error))),
            other => mismatch(&other),
        }
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
        let request = Request::Log {
            level,
            logger: logger.as_deref(),
            message: &message,
        };
        self.line.call(request).await.map(drop)
    }

    async fn step_begin(&mut self, name: String) -> Result<Option<Vec<u8>>> {
        match self.line.call(Request::StepBegin(&name)).await? {
            Response::Step(value) => Ok(value),
            other => mismatch(&other),
        }
    }

    async fn step_end(&mut self, name: String, value: Vec<u8>) -> Result<()> {
        self.line
            .call(Request::StepEnd {
                name: &name,
                value: &value,
            })
            .await
            .map(drop)
    }

    async fn checkpoint(&mut self, _state: Vec<u8>) -> Result<()> {
        // A component that imports it was refused; this is the second lock on that door.
        Err(Halt::Misuse("this host saves no restart points".into()).into())
    }
}

impl changes::Host for State {
    async fn tools_changed(&mut self) -> Result<()> {
        self.line
            .call(Request::Changed(Change::Tools))
            .await
            .map(drop)
    }

    async fn prompts_changed(&mut self) -> Result<()> {
        self.line
            .call(Request::Changed(Change::Prompts))
            .await
            .map(drop)
    }

    async fn resources_changed(&mut self) -> Result<()> {
        self.line
            .call(Request::Changed(Change::Resources))
            .await
            .map(drop)
    }

    async fn resource_updated(&mut self, uri: String) -> Result<()> {
        self.line
            .call(Request::Changed(Change::Resource(&uri)))
            .await
            .map(drop)
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
