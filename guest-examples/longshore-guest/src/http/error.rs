//! Why there is no response, and whether the request may have been carried out all the same.

use std::fmt;

use super::wasi::wasi::http::types::ErrorCode;
use crate::bindings::longshore::tool::types::CallError;

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// This is no URL, or no request.
    Invalid(String),
    /// The operator does not let this tool send it.
    Denied {
        /// To whom it was to go.
        host: String,
    },
    /// There is no way there: it was not sent.
    Unreachable {
        /// To whom it was to go.
        host: String,
        /// Why.
        why: String,
    },
    /// There was no response in time.
    TimedOut {
        /// From whom.
        host: String,
    },
    /// The response is larger than allowed.
    TooLarge {
        /// From whom.
        host: String,
    },
    /// The server died while it was under way: it may have been carried out, and may be yet.
    OutcomeUnknown {
        /// To whom it went.
        host: String,
    },
    /// Something else went wrong on the way.
    Broken {
        /// To whom it was to go.
        host: String,
        /// What.
        why: String,
    },
    /// What came is not what was wanted.
    Unreadable(String),
}

impl Error {
    /// Whether it may have been carried out: then one that changes something must not simply be sent again.
    #[must_use]
    pub fn may_have_happened(&self) -> bool {
        match self {
            Self::Invalid(_) | Self::Denied { .. } | Self::Unreachable { .. } => false,
            Self::TimedOut { .. }
            | Self::TooLarge { .. }
            | Self::OutcomeUnknown { .. }
            | Self::Broken { .. }
            | Self::Unreadable(_) => true,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) | Self::Unreadable(why) => f.write_str(why),
            Self::Denied { host } => write!(
                f,
                "this tool may not send this request to {host}: its operator can grant it"
            ),
            Self::Unreachable { host, why } => write!(f, "{host} cannot be reached: {why}"),
            Self::TimedOut { host } => write!(f, "{host} did not answer in time"),
            Self::TooLarge { host } => write!(f, "what {host} answered is too large"),
            Self::OutcomeUnknown { host } => write!(
                f,
                "outcome-unknown: the request to {host} may have been carried out, and may be yet"
            ),
            Self::Broken { host, why } => write!(f, "the request to {host} failed: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::tool(error.to_string())
    }
}

/// What the host says instead of a code, for what none of them means.
const OUTCOME_UNKNOWN: &str = "outcome-unknown";

pub(super) fn failure(host: &str, code: ErrorCode) -> Error {
    let host = host.to_owned();
    // What is not known to come before the request was sent is taken to come after it.
    let why = match code {
        ErrorCode::HttpRequestDenied => return Error::Denied { host },
        ErrorCode::HttpRequestUriInvalid | ErrorCode::HttpRequestMethodInvalid => {
            return Error::Invalid(format!("this is no request to {host}"));
        }
        ErrorCode::HttpRequestBodySize(_) => {
            return Error::Invalid(format!("the body is too large for a request to {host}"));
        }
        ErrorCode::HttpResponseTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout => return Error::TimedOut { host },
        ErrorCode::HttpResponseBodySize(_)
        | ErrorCode::HttpResponseHeaderSectionSize(_)
        | ErrorCode::HttpResponseHeaderSize(_) => return Error::TooLarge { host },
        ErrorCode::InternalError(Some(text)) if text.starts_with(OUTCOME_UNKNOWN) => {
            return Error::OutcomeUnknown { host };
        }
        ErrorCode::InternalError(Some(why)) => return Error::Broken { host, why },
        ErrorCode::DnsTimeout => "its name was not found in time",
        ErrorCode::DnsError(_) => "there is no such name",
        ErrorCode::DestinationIpProhibited => "it is at an address that tools are not let to",
        ErrorCode::ConnectionRefused => "it takes no connection",
        ErrorCode::ConnectionTimeout => "it took no connection in time",
        ErrorCode::ConnectionLimitReached => "too many requests are under way",
        ErrorCode::TlsCertificateError => "its certificate is not good",
        ErrorCode::TlsProtocolError => "there is no agreement about how to encrypt",
        code => {
            let why = match code {
                ErrorCode::ConnectionTerminated => "the connection broke".to_owned(),
                ErrorCode::HttpProtocolError => "what it answered is no HTTP".to_owned(),
                other => format!("{other:?}"),
            };
            return Error::Broken { host, why };
        }
    };
    Error::Unreachable {
        host,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::IntoOutcome as _;

    #[test]
    fn an_error_says_whom_it_is_about_and_whether_it_may_have_happened() {
        let internal = |text: &str| ErrorCode::InternalError(Some(text.to_owned()));
        let cases = [
            (
                ErrorCode::HttpRequestDenied,
                "its operator can grant it",
                false,
            ),
            (ErrorCode::HttpRequestUriInvalid, "no request to h", false),
            (
                ErrorCode::HttpRequestBodySize(None),
                "too large for a request to h",
                false,
            ),
            (
                ErrorCode::DnsTimeout,
                "h cannot be reached: its name",
                false,
            ),
            (ErrorCode::ConnectionTimeout, "h cannot be reached", false),
            (ErrorCode::ConnectionRefused, "h cannot be reached", false),
            (
                ErrorCode::HttpResponseTimeout,
                "h did not answer in time",
                true,
            ),
            (
                ErrorCode::HttpResponseBodySize(None),
                "what h answered is too large",
                true,
            ),
            (
                ErrorCode::ConnectionTerminated,
                "request to h failed: the connection broke",
                true,
            ),
            (ErrorCode::LoopDetected, "request to h failed", true),
            (internal("why"), "request to h failed: why", true),
            (
                internal("outcome-unknown: it may"),
                "outcome-unknown: the request to h",
                true,
            ),
        ];
        for (code, expected, may_have_happened) in cases {
            let error = failure("h", code);
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.may_have_happened(), may_have_happened, "{error}");
        }
    }

    #[test]
    fn an_error_is_the_answer_of_the_tool() {
        let host = "h".to_owned();
        let failed = || -> Result<String, Error> { Err(Error::TimedOut { host: host.clone() }) };
        let passed_on = || -> Result<String, CallError> { Ok(failed()?) };
        let expected = Err(CallError::tool("h did not answer in time"));
        assert_eq!(failed().into_outcome(), expected);
        assert_eq!(passed_on().into_outcome(), expected);
    }
}
