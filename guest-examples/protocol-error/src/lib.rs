//! A tool that finds the request itself wrong.

use longshore_guest::{CallError, tool};

/// Answers with a JSON-RPC error, to show how one looks.
#[tool]
fn protocol_error(
    /// Its number.
    code: i32,
    /// What it says.
    message: String,
) -> Result<(), CallError> {
    Err(CallError::rpc(code, message))
}
