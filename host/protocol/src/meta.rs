//! `_meta` of a request: which revision, what the client can do, and what it wants along with the answer.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::capability::ClientCapabilities;
use crate::envelope::RequestId;
use crate::error::RpcError;
use crate::json::{self, Picked, is_object, shown};
use crate::version::Revision;

/// The longest idempotency key, in bytes; it is part of an index.
pub const MAX_IDEMPOTENCY_KEY_BYTES: usize = 256;

/// The longest `tracestate` passed on, in characters; W3C Trace Context asks for at least this.
pub const MAX_TRACESTATE_BYTES: usize = 512;

/// The longest `baggage` passed on, in bytes; W3C Baggage asks for at least this.
pub const MAX_BAGGAGE_BYTES: usize = 8192;

/// What each request says about itself. `clientInfo` is left out on purpose: nothing may depend on it.
#[derive(Clone, Debug)]
pub struct Meta<'a> {
    /// The revision it speaks.
    pub revision: Revision,
    /// What its client can do.
    pub capabilities: ClientCapabilities,
    /// The same as the client wrote it, for keeping.
    pub capabilities_json: &'a str,
    /// Present if progress is wanted.
    pub progress_token: Option<ProgressToken>,
    /// Present if log messages are wanted: those of this level and above.
    pub log_level: Option<LogLevel>,
    /// Where this request belongs in a trace.
    pub trace: TraceContext<'a>,
    /// `longshore/idempotencyKey`: the same call again joins the first.
    pub idempotency_key: Option<Cow<'a, str>>,
    /// `longshore/deadlineMs`: the longest that the call may live.
    pub deadline_ms: Option<u64>,
}

/// What progress notifications repeat: a string or an integer, in the client's own type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgressToken(RequestId);

impl ProgressToken {
    /// Reads a token from JSON text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        RequestId::parse(text).map(Self)
    }

    /// The JSON text.
    #[must_use]
    pub fn as_json(&self) -> &str {
        self.0.as_json()
    }
}

/// How much a log message matters (RFC 5424), from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// For whoever looks for a mistake.
    Debug,
    /// The ordinary course of things.
    Info,
    /// Ordinary, but worth a look.
    Notice,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Somebody must act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// Every level, from least to most.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Its word on the wire.
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

    /// The level of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// W3C Trace Context and Baggage. What is malformed is as good as absent: a bad trace must not fail a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext<'a> {
    /// The parent, if it is well formed.
    pub traceparent: Option<Cow<'a, str>>,
    /// What vendors add; only beside a parent.
    pub tracestate: Option<Cow<'a, str>>,
    /// What the application adds.
    pub baggage: Option<Cow<'a, str>>,
}

const KEYS: [&str; 9] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "progressToken",
    "io.modelcontextprotocol/logLevel",
    "traceparent",
    "tracestate",
    "baggage",
    "longshore/idempotencyKey",
    "longshore/deadlineMs",
];

/// `_meta` with its two required members seen, and the rest not yet looked at: a request that speaks another
/// revision is refused for that before anything that the other revision may write differently.
pub(crate) struct Opening<'a> {
    pub(crate) version: Cow<'a, str>,
    capabilities: &'a RawValue,
    picked: Picked<'a, 9>,
}

impl<'a> Opening<'a> {
    pub(crate) fn read(meta: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let Some(meta) = meta else {
            return Err(missing("params._meta"));
        };
        let picked = pick(meta)?;
        let [version, capabilities, ..] = picked.values;
        let version = version.ok_or_else(|| missing(KEYS[0]))?;
        let version = json::string(version).ok_or_else(|| wrong(KEYS[0], "a string"))?;
        let capabilities = capabilities.ok_or_else(|| missing(KEYS[1]))?;
        if !is_object(capabilities) {
            return Err(wrong(KEYS[1], "an object"));
        }
        Ok(Self {
            version,
            capabilities,
            picked,
        })
    }

    pub(crate) fn capabilities(&self) -> Result<ClientCapabilities, RpcError> {
        ClientCapabilities::parse(self.capabilities.get())
    }

    pub(crate) fn finish(
        self,
        revision: Revision,
        capabilities: ClientCapabilities,
    ) -> Result<Meta<'a>, RpcError> {
        let [
            _,
            _,
            token,
            level,
            traceparent,
            tracestate,
            baggage,
            key,
            deadline,
        ] = self.picked.values;
        Ok(Meta {
            revision,
            capabilities,
            capabilities_json: self.capabilities.get(),
            progress_token: token.map(progress_token).transpose()?,
            log_level: level.map(log_level).transpose()?,
            trace: trace_context(traceparent, tracestate, baggage),
            idempotency_key: key.map(idempotency_key).transpose()?,
            deadline_ms: deadline.map(deadline_ms).transpose()?,
        })
    }
}

/// What is known of whoever opened a session, since its requests do not say it again.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// The revision that was settled.
    pub revision: Revision,
    /// What the client can do.
    pub capabilities: ClientCapabilities,
    /// The same as JSON, for keeping.
    pub capabilities_json: &'a str,
    /// The level of log messages that it wants to hear, if it said so.
    pub log_level: Option<LogLevel>,
}

impl<'a> Meta<'a> {
    /// What a request of a session says of itself, beside what the session says of all.
    pub(crate) fn in_session(
        meta: Option<&'a RawValue>,
        opened: &Opened<'a>,
    ) -> Result<Self, RpcError> {
        let picked = meta.map(pick).transpose()?;
        let values = picked.map_or([None; 9], |picked| picked.values);
        let [
            _,
            _,
            token,
            _,
            traceparent,
            tracestate,
            baggage,
            key,
            deadline,
        ] = values;
        Ok(Self {
            revision: opened.revision,
            capabilities: opened.capabilities,
            capabilities_json: opened.capabilities_json,
            progress_token: token.map(progress_token).transpose()?,
            log_level: opened.log_level,
            trace: trace_context(traceparent, tracestate, baggage),
            idempotency_key: key.map(idempotency_key).transpose()?,
            deadline_ms: deadline.map(deadline_ms).transpose()?,
        })
    }
}

/// Whether the parameters of a request name a revision in their `_meta`, whichever: then each of its kind says for
/// itself what is needed, and no session is looked for.
#[must_use]
pub fn names_revision(params: Option<&RawValue>) -> bool {
    fn member<'a>(object: &'a RawValue, key: &str) -> Option<&'a RawValue> {
        json::pick(object.get(), &[key]).ok()?.values[0]
    }
    params
        .and_then(|params| member(params, "_meta"))
        .and_then(|meta| member(meta, KEYS[0]))
        .is_some()
}

fn pick(meta: &RawValue) -> Result<Picked<'_, 9>, RpcError> {
    let picked = json::pick(meta.get(), &KEYS)
        .map_err(|_| RpcError::invalid_params("params._meta must be an object"))?;
    match picked.repeated.iter().position(|twice| *twice) {
        Some(index) => Err(RpcError::invalid_params(format!(
            "params._meta has `{}` twice",
            KEYS[index]
        ))),
        None => Ok(picked),
    }
}

/// A client of an older revision reads no more than this message, so it names what would be understood.
fn missing(what: &str) -> RpcError {
    RpcError::invalid_params(format!(
        "{what} is missing; this server speaks MCP {}, where params._meta of each request holds \
         io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities, and {} after \
         `initialize`, in the session that its answer names",
        Revision::NAMES.join(", "),
        Revision::SESSION_NAMES.join(" and ")
    ))
}

fn wrong(key: &str, expected: &str) -> RpcError {
    RpcError::invalid_params(format!("`{key}` in params._meta must be {expected}"))
}

fn progress_token(raw: &RawValue) -> Result<ProgressToken, RpcError> {
    RequestId::from_raw(raw)
        .map(ProgressToken)
        .ok_or_else(|| wrong(KEYS[2], "a short string or an integer"))
}

fn log_level(raw: &RawValue) -> Result<LogLevel, RpcError> {
    json::string(raw)
        .and_then(|word| LogLevel::parse(&word))
        .ok_or_else(|| {
            wrong(
                KEYS[3],
                &format!("one of the eight log levels, not {}", shown(raw.get())),
            )
        })
}

fn idempotency_key(raw: &RawValue) -> Result<Cow<'_, str>, RpcError> {
    json::string(raw)
        .filter(|key| (1..=MAX_IDEMPOTENCY_KEY_BYTES).contains(&key.len()))
        .ok_or_else(|| {
            wrong(
                KEYS[7],
                &format!("a string of 1 to {MAX_IDEMPOTENCY_KEY_BYTES} bytes"),
            )
        })
}

fn deadline_ms(raw: &RawValue) -> Result<u64, RpcError> {
    json::unsigned(raw)
        .filter(|ms| *ms > 0)
        .ok_or_else(|| wrong(KEYS[8], "a positive integer"))
}

fn trace_context<'a>(
    traceparent: Option<&'a RawValue>,
    tracestate: Option<&'a RawValue>,
    baggage: Option<&'a RawValue>,
) -> TraceContext<'a> {
    let traceparent = traceparent
        .and_then(json::string)
        .filter(|text| is_traceparent(text));
    let tracestate = tracestate
        .filter(|_| traceparent.is_some())
        .and_then(json::string)
        .filter(|text| is_printable(text, MAX_TRACESTATE_BYTES));
    let baggage = baggage
        .and_then(json::string)
        .filter(|text| is_printable(text, MAX_BAGGAGE_BYTES));
    TraceContext {
        traceparent,
        tracestate,
        baggage,
    }
}

fn is_printable(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// `version-trace-parent-flags` in lower-case hex. Version 00 has these four fields and no more; a later version may
/// add some, which is why nothing but `ff` is refused.
fn is_traceparent(text: &str) -> bool {
    let hex = |field: &str, length: usize| {
        field.len() == length
            && field
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let zero = |field: &str| field.bytes().all(|byte| byte == b'0');
    let mut fields = text.splitn(5, '-');
    let mut next = || fields.next().unwrap_or_default();
    let (version, trace, parent, flags) = (next(), next(), next(), next());
    let more = fields.next();
    hex(version, 2)
        && version != "ff"
        && hex(trace, 32)
        && !zero(trace)
        && hex(parent, 16)
        && !zero(parent)
        && hex(flags, 2)
        && (version != "00" || more.is_none())
        && is_printable(text, MAX_TRACESTATE_BYTES)
}
