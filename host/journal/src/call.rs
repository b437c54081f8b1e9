//! What crosses the line between a guest and its host.

use serde::{Deserialize, Serialize};

use crate::import::Import;
use crate::path::Path;
use crate::values::Operation;

/// One import call, with what the guest passed.
#[derive(Clone, Debug, PartialEq)]
pub enum Request<'a> {
    /// `task.call-id`
    CallId,
    /// `task.set-status`
    SetStatus(&'a str),
    /// `task.report-progress`
    ReportProgress {
        /// Units done.
        done: f64,
        /// Units in all.
        total: Option<f64>,
        /// A line for a person.
        message: Option<&'a str>,
    },
    /// `task.is-cancelled`
    IsCancelled,
    /// `task.time-left`
    TimeLeft,
    /// `task.sleep`
    Sleep {
        /// For how long.
        ms: u64,
    },
    /// `task.detach`
    Detach,
    /// `task.can-ask`
    CanAsk(AskKind),
    /// `task.ask` and `task.ask-all`
    Ask {
        /// All that is asked at once, under the author's own keys.
        questions: &'a [Question],
        /// How long the guest is ready to wait.
        wait_ms: Option<u64>,
    },
    /// `task.log`
    Log {
        /// How grave.
        level: LogLevel,
        /// Which part of the guest speaks.
        logger: Option<&'a str>,
        /// What it says.
        message: &'a str,
    },
    /// `task.step-begin`
    StepBegin(&'a str),
    /// `task.step-end`
    StepEnd {
        /// The step.
        name: &'a str,
        /// Its product.
        value: &'a [u8],
    },
    /// `restart-points.checkpoint`
    Checkpoint(&'a [u8]),
    /// Any function of `changes`
    Changed(Change<'a>),
    /// `wait.poll`
    Poll {
        /// What is asked for and until when, one text.
        what: &'a str,
        /// How long the guest is ready to wait.
        wait_ms: Option<u64>,
    },
    /// Any function of `key-value` and `artifacts`
    Values(&'a Operation),
}

impl Request<'_> {
    /// The function that was called.
    #[must_use]
    pub fn import(&self) -> Import {
        const CALL_ID: Import = Import::new("longshore:tool/task.call-id");
        const SET_STATUS: Import = Import::new("longshore:tool/task.set-status");
        const REPORT_PROGRESS: Import = Import::new("longshore:tool/task.report-progress");
        const IS_CANCELLED: Import = Import::new("longshore:tool/task.is-cancelled");
        const TIME_LEFT: Import = Import::new("longshore:tool/task.time-left");
        const SLEEP: Import = Import::new("longshore:tool/task.sleep");
        const DETACH: Import = Import::new("longshore:tool/task.detach");
        const CAN_ASK: Import = Import::new("longshore:tool/task.can-ask");
        const ASK: Import = Import::new("longshore:tool/task.ask");
        const LOG: Import = Import::new("longshore:tool/task.log");
        const STEP_BEGIN: Import = Import::new("longshore:tool/task.step-begin");
        const STEP_END: Import = Import::new("longshore:tool/task.step-end");
        const CHECKPOINT: Import = Import::new("longshore:tool/restart-points.checkpoint");
        const TOOLS: Import = Import::new("longshore:tool/changes.tools-changed");
        const PROMPTS: Import = Import::new("longshore:tool/changes.prompts-changed");
        const RESOURCES: Import = Import::new("longshore:tool/changes.resources-changed");
        const RESOURCE: Import = Import::new("longshore:tool/changes.resource-updated");
        const POLL: Import = Import::new("longshore:tool/wait.poll");
        const GET: Import = Import::new("longshore:tool/key-value.get");
        const SET: Import = Import::new("longshore:tool/key-value.set");
        const DELETE: Import = Import::new("longshore:tool/key-value.delete");
        const LIST_KEYS: Import = Import::new("longshore:tool/key-value.list-keys");
        const INCREMENT: Import = Import::new("longshore:tool/key-value.increment");
        const SWAP: Import = Import::new("longshore:tool/key-value.swap");
        const PUT: Import = Import::new("longshore:tool/artifacts.put");
        match self {
            Self::CallId => CALL_ID,
            Self::SetStatus(_) => SET_STATUS,
            Self::ReportProgress { .. } => REPORT_PROGRESS,
            Self::IsCancelled => IS_CANCELLED,
            Self::TimeLeft => TIME_LEFT,
            Self::Sleep { .. } => SLEEP,
            Self::Detach => DETACH,
            Self::CanAsk(_) => CAN_ASK,
            Self::Ask { .. } => ASK,
            Self::Log { .. } => LOG,
            Self::StepBegin(_) => STEP_BEGIN,
            Self::StepEnd { .. } => STEP_END,
            Self::Checkpoint(_) => CHECKPOINT,
            Self::Changed(Change::Tools) => TOOLS,
            Self::Changed(Change::Prompts) => PROMPTS,
            Self::Changed(Change::Resources) => RESOURCES,
            Self::Changed(Change::Resource(_)) => RESOURCE,
            Self::Poll { .. } => POLL,
            Self::Values(Operation::Get { .. }) => GET,
            Self::Values(Operation::Set { .. }) => SET,
            Self::Values(Operation::Delete { .. }) => DELETE,
            Self::Values(Operation::List { .. }) => LIST_KEYS,
            Self::Values(Operation::Increment { .. }) => INCREMENT,
            Self::Values(Operation::Swap { .. }) => SWAP,
            Self::Values(Operation::Put { .. }) => PUT,
        }
    }

    /// Takes what was passed into the guest's path.
    pub(crate) fn mix_into(&self, path: &mut Path) {
        let mut option = |text: Option<&str>| match text {
            Some(text) => path.mix_bytes(text.as_bytes()),
            None => path.mix(u64::MAX),
        };
        match self {
            Self::CallId
            | Self::IsCancelled
            | Self::TimeLeft
            | Self::Detach
            | Self::Changed(Change::Tools | Change::Prompts | Change::Resources) => {}
            Self::SetStatus(text)
            | Self::StepBegin(text)
            | Self::Changed(Change::Resource(text)) => path.mix_bytes(text.as_bytes()),
            Self::Poll { what, wait_ms } => {
                path.mix(wait_ms.unwrap_or(u64::MAX));
                path.mix_bytes(what.as_bytes());
            }
            Self::ReportProgress {
                done,
                total,
                message,
            } => {
                option(*message);
                path.mix(done.to_bits());
                path.mix(total.map_or(u64::MAX, f64::to_bits));
            }
            Self::Sleep { ms } => path.mix(*ms),
            Self::CanAsk(kind) => path.mix(*kind as u64),
            Self::Ask { questions, wait_ms } => {
                path.mix(wait_ms.unwrap_or(u64::MAX));
                path.mix(questions.len() as u64);
                for question in *questions {
                    question.mix_into(path);
                }
            }
            Self::Log {
                level,
                logger,
                message,
            } => {
                option(*logger);
                path.mix(*level as u64);
                path.mix_bytes(message.as_bytes());
            }
            Self::StepEnd { name, value } => {
                path.mix_bytes(name.as_bytes());
                path.mix_bytes(value);
            }
            Self::Checkpoint(state) => path.mix_bytes(state),
            Self::Values(operation) => operation.mix_into(path),
        }
    }
}

impl Question {
    /// Whether nobody is asked.
    #[must_use]
    pub fn is_wait(&self) -> bool {
        matches!(self.ask, Ask::Wait(_))
    }

    fn mix_into(&self, path: &mut Path) {
        path.mix_bytes(self.key.as_bytes());
        let parts: [&str; 2] = match &self.ask {
            Ask::Form { message, schema } => [message, schema],
            Ask::Url { message, url } => [message, url],
            Ask::Sample(json) => ["sample", json],
            Ask::Roots(None) => ["roots", ""],
            Ask::Roots(Some(json)) => ["roots", json],
            Ask::Raw(json) => ["raw", json],
            Ask::Wait(json) => ["wait", json],
        };
        for part in parts {
            path.mix_bytes(part.as_bytes());
        }
    }
}

/// What kinds of question a client may be able to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskKind {
    /// A form.
    Form,
    /// An address to visit.
    Url,
    /// A model's reply.
    Sample,
    /// A model's reply with tools.
    SampleTools,
    /// The client's roots.
    Roots,
}

/// One question as its author asks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The author's name for it.
    pub key: String,
    /// What is asked.
    pub ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// A form for a person.
    Form {
        /// What the form is for.
        message: String,
        /// JSON Schema of a flat object.
        schema: String,
    },
    /// An address that a person is to visit.
    Url {
        /// What it is for.
        message: String,
        /// The address.
        url: String,
    },
    /// `sampling/createMessage` parameters, JSON.
    Sample(String),
    /// `roots/list`, with parameters if any, JSON.
    Roots(Option<String>),
    /// A whole input request, JSON.
    Raw(String),
    /// Something that the host looks for or takes in by itself, JSON: nobody is asked.
    Wait(String),
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// A person agreed; JSON of the form's content.
    Accepted(Option<String>),
    /// A person refused.
    Declined,
    /// A person closed the question.
    Dismissed,
    /// A model's reply, JSON.
    Sampled(String),
    /// The client's roots, JSON.
    Roots(String),
    /// The whole answer, JSON.
    Raw(String),
}

/// Why nothing came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskError {
    /// This caller cannot be asked, or not in this way.
    Unsupported(String),
    /// The question breaks a rule.
    Invalid(String),
    /// Too many questions, or too large ones.
    Limit(String),
    /// The wait ended first.
    TimedOut,
    /// The call is being cancelled.
    CallCancelled,
}

/// How grave a log line is (RFC 5424).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LogLevel {
    /// For whoever is looking for a fault.
    Debug,
    /// What happens.
    Info,
    /// What happens and matters.
    Notice,
    /// What may be wrong.
    Warning,
    /// What is wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Somebody must act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// The word of RFC 5424 that MCP uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

/// What a component says has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// Its tools.
    Tools,
    /// Its prompts.
    Prompts,
    /// Its resources.
    Resources,
    /// One resource.
    Resource(&'a str),
}
