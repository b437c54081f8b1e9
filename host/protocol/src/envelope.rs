//! The first stage: bytes → one JSON-RPC message whose parameters are still text.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::json::{self, MAX_DEPTH, NotPicked, shown};

/// The longest id or progress token accepted, in bytes of JSON. Both are kept and sent back on every message that
/// belongs to them; a real one is a number or a UUID.
pub const MAX_ID_BYTES: usize = 1024;

/// One message from a client.
#[derive(Debug)]
pub enum Message<'a> {
    /// It wants an answer.
    Request(Envelope<'a>),
    /// It wants none.
    Notification(NotificationEnvelope<'a>),
    /// It answers what was asked in a session.
    Response(ResponseEnvelope<'a>),
}

/// A request, its parameters unread.
#[derive(Debug)]
pub struct Envelope<'a> {
    /// What the answer repeats.
    pub id: RequestId,
    /// What is asked.
    pub method: Cow<'a, str>,
    /// With what, as text.
    pub params: Option<&'a RawValue>,
}

/// A notification, its parameters unread.
#[derive(Debug)]
pub struct NotificationEnvelope<'a> {
    /// What is told.
    pub method: Cow<'a, str>,
    /// With what, as text.
    pub params: Option<&'a RawValue>,
}

/// What somebody answers, unread.
#[derive(Debug)]
pub struct ResponseEnvelope<'a> {
    /// To what.
    pub id: RequestId,
    /// The result, or the error.
    pub outcome: Result<&'a RawValue, &'a RawValue>,
}

impl ResponseEnvelope<'_> {
    /// Refuses it where nothing was asked.
    #[must_use]
    pub fn unasked(self) -> Refusal {
        Refusal {
            id: Some(self.id),
            error: RpcError::invalid_request("a response is not accepted: nothing was asked here"),
        }
    }
}

/// Why bytes are no message. It is answered under the id if that could be read, else without one.
#[derive(Debug)]
pub struct Refusal {
    /// The id, if it could be read.
    pub id: Option<RequestId>,
    /// -32700 or -32600.
    pub error: RpcError,
}

/// The id of a request: the client's string or integer as JSON text, so that the answer repeats value and type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// Reads an id from JSON text. A float or null is none; integers may have any size and sign.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().and_then(Self::from_raw)
    }

    pub(crate) fn from_raw(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        if text.len() > MAX_ID_BYTES {
            return None;
        }
        if json::is_integer(text) {
            return Some(Self(text.into()));
        }
        // Written anew where it has escapes, so that equal ids are equal texts.
        match json::string(raw)? {
            Cow::Borrowed(_) => Some(Self(text.into())),
            Cow::Owned(string) => {
                let mut out = String::with_capacity(text.len());
                crate::write::push_string(&mut out, &string);
                Some(Self(out.into()))
            }
        }
    }

    /// The JSON text.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

const KEYS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Reads one message. Batches are refused: no revision that is spoken here has them.
pub fn parse(body: &[u8]) -> Result<Message<'_>, Refusal> {
    let nameless = |error| Refusal { id: None, error };
    let text = std::str::from_utf8(body).map_err(|error| {
        nameless(RpcError::parse_error(format!(
            "the body is not UTF-8: {error}"
        )))
    })?;
    if text.starts_with('\u{feff}') {
        return Err(nameless(RpcError::parse_error(
            "the body begins with a byte order mark; send it without",
        )));
    }
    if !json::is_shallow(body) {
        return Err(nameless(RpcError::invalid_request(format!(
            "the body is nested deeper than {MAX_DEPTH}"
        ))));
    }
    let picked = json::pick(text, &KEYS).map_err(|fault| {
        nameless(match fault {
            NotPicked::Malformed(error) => {
                RpcError::parse_error(format!("the body is not one JSON text: {error}"))
            }
            NotPicked::Array => RpcError::invalid_request(
                "batches are not part of this protocol; send one message per body",
            ),
            NotPicked::Scalar => RpcError::invalid_request("the body is not a JSON object"),
        })
    })?;
    let [jsonrpc, raw_id, method, params, result, error] = picked.values;
    let [_, id_twice, ..] = picked.repeated;
    let id = raw_id.filter(|_| !id_twice).and_then(RequestId::from_raw);
    let refuse = |message: &str| Refusal {
        id: id.clone(),
        error: RpcError::invalid_request(message),
    };

    if let Some(index) = picked.repeated.iter().position(|twice| *twice) {
        return Err(refuse(&format!(
            "the member `{}` stands twice",
            KEYS[index]
        )));
    }
    if jsonrpc.and_then(json::string).as_deref() != Some("2.0") {
        return Err(refuse("`jsonrpc` must be \"2.0\""));
    }
    if raw_id.is_some_and(|raw| raw.get().starts_with('"') && raw.get().len() <= MAX_ID_BYTES)
        && id.is_none()
    {
        return Err(refuse(
            "`id` is a string with half of a surrogate pair (like \\ud800), which is no text",
        ));
    }
    if raw_id.is_some() && id.is_none() {
        return Err(refuse(&format!(
            "`id` must be a string or an integer, of at most {MAX_ID_BYTES} bytes"
        )));
    }
    let outcome = match (result, error) {
        (None, None) => None,
        (Some(result), None) => Some(Ok(result)),
        (None, Some(error)) => Some(Err(error)),
        (Some(_), Some(_)) => return Err(refuse("a response has `result` or `error`, not both")),
    };
    if let Some(outcome) = outcome {
        return match (id, method) {
            (Some(id), None) => Ok(Message::Response(ResponseEnvelope { id, outcome })),
            (None, None) => Err(Refusal {
                id: None,
                error: RpcError::invalid_request("a response needs the `id` of what it answers"),
            }),
            (id, Some(_)) => Err(Refusal {
                id,
                error: RpcError::invalid_request(
                    "a message with a `method` has no `result` or `error`",
                ),
            }),
        };
    }
    let Some(method) = method else {
        return Err(refuse("`method` is missing"));
    };
    let Some(method) = json::string(method) else {
        return Err(refuse(&format!(
            "`method` must be a string, not {}",
            shown(method.get())
        )));
    };
    Ok(match id {
        Some(id) => Message::Request(Envelope { id, method, params }),
        None => Message::Notification(NotificationEnvelope { method, params }),
    })
}
