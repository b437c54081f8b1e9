//! Every way in which a request fails, as it is told: one table from our errors to codes, to the status of HTTP, and to
//! whether it is worth trying again.

use longshore_protocol::error::{self, RpcError};

use crate::dispatch::DispatchError;
use crate::reason::{RequestReason, RunReason};
use crate::wire;

/// Which rules of HTTP an answer goes out under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// 2026-07-28: a status for each kind of error.
    Requests,
    /// Before it: an error of a method is an answer like any other. The clients of that time take another status for
    /// a broken connection, and never show the error.
    Sessions,
}

/// An error as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What the response says.
    pub(crate) error: RpcError,
    /// What HTTP says.
    pub(crate) status: u16,
    /// Whether the same request may fare better soon.
    pub(crate) try_again: bool,
}

/// The table.
pub(crate) fn told(error: DispatchError, era: Era) -> Failure {
    let (error, status, try_again) = match error {
        DispatchError::Refused(error) => {
            let status = error::http_status(&error);
            (error, status, false)
        }
        // The request was right and was served; what the tool made of it says nothing about HTTP.
        DispatchError::Run(error) => (error, 200, false),
        DispatchError::NoRoom { reason, message } => {
            let status = match reason {
                RunReason::QueueFull => 429,
                _ => 503,
            };
            (
                wire::rpc_error(&wire::failure(reason, message)),
                status,
                true,
            )
        }
    };
    let status = match era {
        Era::Requests => status,
        Era::Sessions => 200,
    };
    Failure {
        error,
        status,
        try_again,
    }
}

/// What is told if there is no session that a request belongs to: in a way that every client of sessions understands.
pub(crate) fn no_session(is_named: bool) -> Failure {
    let (status, message) = if is_named {
        (
            404,
            "there is no such session, or it has ended: open one with `initialize`",
        )
    } else {
        (
            400,
            "the header Mcp-Session-Id is missing: open a session with `initialize`",
        )
    };
    Failure {
        error: RpcError::invalid_request(message).with_data(RequestReason::NoSession.data()),
        status,
        try_again: false,
    }
}

#[cfg(test)]
mod tests {
    use longshore_protocol::capability::Capability;

    use super::*;

    /// An error, its code, its HTTP status in the newer era, and whether to try again. In a session all have 200.
    type Row = (DispatchError, i32, u16, bool);

    fn refused(error: RpcError, code: i32, status: u16) -> Row {
        (DispatchError::Refused(error), code, status, false)
    }

    fn run(error: RpcError, code: i32) -> Row {
        (DispatchError::Run(error), code, 200, false)
    }

    fn no_room(reason: RunReason, code: i32, status: u16) -> Row {
        let message = "m";
        (
            DispatchError::NoRoom { reason, message },
            code,
            status,
            true,
        )
    }

    #[test]
    fn every_error_has_its_code_and_its_status() {
        let capability = RpcError::missing_capability(&[Capability::Tasks]);
        let rows = [
            refused(RpcError::parse_error("m"), -32700, 400),
            refused(RpcError::invalid_request("m"), -32600, 400),
            refused(RpcError::method_not_found("m"), -32601, 404),
            refused(RpcError::invalid_params("m"), -32602, 400),
            refused(RpcError::internal("m"), -32603, 500),
            refused(RpcError::header_mismatch("m"), -32020, 400),
            refused(capability, -32021, 400),
            refused(RpcError::unsupported_version("m"), -32022, 400),
            run(RpcError::new(1000, "m"), 1000),
            run(RpcError::internal("m"), -32603),
            run(RpcError::invalid_params("m"), -32602),
            no_room(RunReason::Busy, 1019, 503),
            no_room(RunReason::QueueFull, 1020, 429),
        ];
        for (error, code, status, try_again) in rows {
            for (era, status) in [(Era::Requests, status), (Era::Sessions, 200)] {
                let failure = told(error.clone(), era);
                assert_eq!(
                    (failure.error.code, failure.status, failure.try_again),
                    (code, status, try_again),
                    "{error:?} {era:?}"
                );
                assert!(!failure.error.message.is_empty(), "{error:?}");
            }
        }
        for (is_named, status) in [(true, 404), (false, 400)] {
            let failure = no_session(is_named);
            assert_eq!((failure.error.code, failure.status), (-32600, status));
        }
    }

    #[test]
    fn a_guests_own_codes_pass_and_ours_stay_ours() {
        for reason in RunReason::ALL {
            let failure = told(
                DispatchError::Run(wire::rpc_error(&wire::failure(reason, "m"))),
                Era::Requests,
            );
            assert_eq!((failure.error.code, failure.status), (reason.code(), 200));
            let data = failure.error.data.unwrap_or_default();
            assert!(data.contains(reason.as_str()), "{data}");
        }
    }
}
