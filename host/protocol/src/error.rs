//! JSON-RPC errors: their codes, their data, and the HTTP status of each.

use crate::capability::{self, Capability};
use crate::json::shown;
use crate::version::Revision;
use crate::write::{Object, push_list, push_string};

/// Not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// JSON, but not a request.
pub const INVALID_REQUEST: i32 = -32600;
/// No such method in this revision.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// Parameters that are missing, malformed, or name nothing.
pub const INVALID_PARAMS: i32 = -32602;
/// A fault of the host.
pub const INTERNAL_ERROR: i32 = -32603;
/// A header is missing or contradicts the body.
pub const HEADER_MISMATCH: i32 = -32020;
/// The request needs something that its client did not declare.
pub const MISSING_CAPABILITY: i32 = -32021;
/// A revision that is not spoken here.
pub const UNSUPPORTED_VERSION: i32 = -32022;

/// What goes out as `error`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// One of the codes above, or the code of a run.
    pub code: i32,
    /// One line for people.
    pub message: String,
    /// More for programs: one JSON text. Whoever sets it vouches that it is one.
    pub data: Option<String>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The same with data, one JSON text.
    #[must_use]
    pub fn with_data(self, data: String) -> Self {
        Self {
            data: Some(data),
            ..self
        }
    }

    /// The body is not JSON.
    #[must_use]
    pub fn parse_error(message: impl Into<String>) -> Self {
        Self::new(PARSE_ERROR, message)
    }

    /// The body is JSON but no request.
    #[must_use]
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// There is no such method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::method_not_found_in(method, Revision::R20260728)
    }

    /// There is no such method in a session of that revision.
    #[must_use]
    pub fn method_not_found_in(method: &str, revision: Revision) -> Self {
        Self::new(
            METHOD_NOT_FOUND,
            format!(
                "method `{}` is not part of MCP {} as served here",
                shown(method),
                revision.as_str()
            ),
        )
    }

    /// The parameters are wrong, or name nothing that exists.
    #[must_use]
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The host failed. The message goes to the client: no paths, no addresses.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(INTERNAL_ERROR, message)
    }

    /// A header is missing, malformed or contradicts the body.
    #[must_use]
    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(HEADER_MISMATCH, message)
    }

    /// The client did not declare what the request needs.
    #[must_use]
    pub fn missing_capability(missing: &[Capability]) -> Self {
        let words: Vec<&str> = missing.iter().map(|capability| capability.word()).collect();
        let mut data = String::new();
        let mut object = Object::open(&mut data);
        capability::write_required(object.key("requiredCapabilities"), missing);
        object.close();
        Self::new(
            MISSING_CAPABILITY,
            format!(
                "this request needs a client that declares: {}",
                words.join(", ")
            ),
        )
        .with_data(data)
    }

    /// The revision asked for is not spoken here.
    #[must_use]
    pub fn unsupported_version(requested: &str) -> Self {
        let mut data = String::new();
        let mut object = Object::open(&mut data);
        push_list(object.key("supported"), Revision::NAMES, push_string);
        object.text("requested", requested);
        object.close();
        Self::new(
            UNSUPPORTED_VERSION,
            format!("protocol version `{}` is not spoken here", shown(requested)),
        )
        .with_data(data)
    }

    /// Writes the error object.
    pub fn write_to(&self, out: &mut String) {
        let mut object = Object::open(out);
        object.plain("code", self.code);
        object.text("message", &self.message);
        if let Some(data) = &self.data {
            object.raw("data", data);
        }
        object.close();
    }
}

/// The HTTP status under which a 2026-07-28 response with this error goes out (MCP 2026-07-28, Streamable HTTP and
/// the list of error codes; what these leave open follows the common practice of 400).
///
/// A code outside that list is what a run ended with. The request was served as it should be, so 200: a client's
/// transport must hand the error to its caller and not take it for a broken server. Refusals by load have a status
/// of their own (429, 503), which whoever refuses sets.
#[must_use]
pub fn http_status(error: &RpcError) -> u16 {
    match error.code {
        METHOD_NOT_FOUND => 404,
        INTERNAL_ERROR => 500,
        PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS => 400,
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION => 400,
        _ => 200,
    }
}
