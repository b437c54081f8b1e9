//! What crosses the line between a guest and its host.

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
    /// Any function of `changes`
    Changed(Change<'a>),
}

/// What an import call returns to the guest.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// Nothing.
    Done,
    /// To `call-id`.
    Text(String),
    /// To `is-cancelled`, `sleep` and `can-ask`.
    Flag(bool),
    /// To `time-left`.
    TimeLeft(Option<u64>),
    /// To `ask` and `ask-all`.
    Answers(Result<Vec<Answer>, AskError>),
    /// To `step-begin`.
    Step(Option<Vec<u8>>),
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
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The author's name for it.
    pub key: String,
    /// What is asked.
    pub ask: Ask,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
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
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
