//! Sessions: what MCP 2025-11-25 and 2025-06-18 ask otherwise than 2026-07-28. How they are told otherwise is in
//! [`out`] and [`task`].
//!
//! Most requests are the same in both eras and are read by the same code, as [`Request`]. Their results are written
//! once, for the newer era, and [`out::plain`] takes away what the older one does not know.

pub mod out;
pub mod task;

use std::borrow::Cow;

use serde_json::value::RawValue;

use self::task::TaskRequest;
use crate::capability::ClientCapabilities;
use crate::envelope::Envelope;
use crate::error::RpcError;
use crate::json::{self, NotPicked, is_object, shown};
use crate::meta::{LogLevel, Meta, Opened};
use crate::request::{Method, Param, Params, Request};
use crate::version::Revision;

/// The method that opens a session.
pub const INITIALIZE: &str = "initialize";

/// What a client opens a session with. Who it says that it is, is left out on purpose: nothing may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initialize {
    /// The revision that is settled by it.
    pub revision: Revision,
    /// What the client can do in that revision.
    pub capabilities: ClientCapabilities,
}

impl Initialize {
    /// Reads the parameters of `initialize`.
    pub fn read(envelope: &Envelope<'_>) -> Result<Self, RpcError> {
        let [asked, capabilities] = picked(envelope.params, ["protocolVersion", "capabilities"])?;
        let asked = asked
            .and_then(json::string)
            .ok_or_else(|| must_be("protocolVersion", "there, a string"))?;
        let capabilities = capabilities
            .filter(|capabilities| is_object(capabilities))
            .ok_or_else(|| must_be("capabilities", "there, an object"))?;
        let revision = Revision::settled(&asked);
        let capabilities = ClientCapabilities::parse(capabilities.get())?.in_session(revision);
        Ok(Self {
            revision,
            capabilities,
        })
    }
}

/// A request of a session with its parameters.
#[derive(Debug)]
pub enum SessionRequest<'a> {
    /// Whether somebody is there.
    Ping,
    /// Log messages of this level and above from now on.
    SetLevel(LogLevel),
    /// The contents of a resource changed: whether its client wants to hear of that from now on.
    Subscribe {
        /// Which.
        uri: Cow<'a, str>,
        /// Whether it does.
        is_wanted: bool,
    },
    /// What is asked in both eras.
    Shared(Request<'a>),
    /// `tools/call` as a task from the start (2025-11-25).
    CallAsTask {
        /// The call.
        call: Request<'a>,
        /// How long the task is to be kept, in milliseconds.
        ttl_ms: Option<u64>,
    },
    /// About such a task.
    Task(TaskRequest<'a>),
}

/// Reads a request of a session: method known (-32601) → parameters (-32602).
pub fn decode<'a>(
    envelope: &Envelope<'a>,
    opened: &Opened<'a>,
) -> Result<(Meta<'a>, SessionRequest<'a>), RpcError> {
    let params = Params::read(envelope.params)?;
    let meta = Meta::in_session(params.get(Param::Meta)?, opened)?;
    let has_tasks = opened.revision == Revision::R20251125;
    let request = match envelope.method.as_ref() {
        "ping" => SessionRequest::Ping,
        "logging/setLevel" => SessionRequest::SetLevel(level(envelope.params)?),
        "resources/subscribe" | "resources/unsubscribe" => SessionRequest::Subscribe {
            uri: params.string(Param::Uri)?,
            is_wanted: envelope.method == "resources/subscribe",
        },
        method if has_tasks && task::is_method(method) => {
            SessionRequest::Task(TaskRequest::read(method, envelope.params)?)
        }
        method => {
            let method = Method::parse(method)
                .filter(|method| method.is_in_sessions())
                .ok_or_else(|| RpcError::method_not_found_in(method, opened.revision))?;
            let request = Request::read(method, &params, &opened.capabilities)?.without_rounds();
            match task::wish(envelope.params)? {
                Some(ttl_ms) if has_tasks && method == Method::ToolsCall => {
                    SessionRequest::CallAsTask {
                        call: request,
                        ttl_ms,
                    }
                }
                _ => SessionRequest::Shared(request),
            }
        }
    };
    Ok((meta, request))
}

fn level(params: Option<&RawValue>) -> Result<LogLevel, RpcError> {
    let [level] = picked(params, ["level"])?;
    level
        .and_then(json::string)
        .and_then(|word| LogLevel::parse(&word))
        .ok_or_else(|| must_be("level", "one of the eight log levels"))
}

/// Members of `params`, which may be absent.
pub(crate) fn picked<'a, const N: usize>(
    params: Option<&'a RawValue>,
    keys: [&str; N],
) -> Result<[Option<&'a RawValue>; N], RpcError> {
    let Some(params) = params else {
        return Ok([None; N]);
    };
    let picked = json::pick(params.get(), &keys).map_err(|fault| {
        RpcError::invalid_params(match fault {
            NotPicked::Array | NotPicked::Scalar => "params must be an object".to_owned(),
            NotPicked::Malformed(error) => format!("params is not accepted: {error}"),
        })
    })?;
    match picked.repeated.iter().position(|twice| *twice) {
        Some(index) => Err(RpcError::invalid_params(format!(
            "params.{} stands twice",
            keys[index]
        ))),
        None => Ok(picked.values),
    }
}

pub(crate) fn must_be(param: &str, what: &str) -> RpcError {
    RpcError::invalid_params(format!("params.{param} must be {what}"))
}

/// What a client says instead of an answer: its own message, short.
#[must_use]
pub fn refusal(error: &RawValue) -> Cow<'_, str> {
    let message = json::pick(error.get(), &["message"])
        .ok()
        .and_then(|picked| picked.values[0])
        .and_then(json::string);
    match message {
        Some(message) => Cow::Owned(shown(&message).into_owned()),
        None => Cow::Borrowed("an error without a message"),
    }
}
