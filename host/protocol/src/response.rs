//! The envelope around an answer.

use crate::envelope::RequestId;
use crate::error::RpcError;
use crate::write::Object;

/// What the envelope adds to id and result, in bytes, rounded up.
const ENVELOPE_BYTES: usize = 48;

/// A response around a result that is text already, such as a stored one. The text must be one that this crate wrote.
#[must_use]
pub fn result(id: &RequestId, result: &str) -> String {
    result_with(id, result.len(), |out| out.push_str(result))
}

/// A response whose result is written straight into it. `capacity` is the expected size of the result in bytes; a
/// wrong guess costs time only.
#[must_use]
pub fn result_with(id: &RequestId, capacity: usize, write: impl FnOnce(&mut String)) -> String {
    let mut out = String::with_capacity(ENVELOPE_BYTES + id.as_json().len() + capacity);
    let mut object = Object::open(&mut out);
    object.text("jsonrpc", "2.0");
    object.ours("id", id.as_json());
    write(object.key("result"));
    object.close();
    out
}

/// An error response, without an id if the request's could not be read.
#[must_use]
pub fn error(id: Option<&RequestId>, error: &RpcError) -> String {
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.text("jsonrpc", "2.0");
    if let Some(id) = id {
        object.ours("id", id.as_json());
    }
    error.write_to(object.key("error"));
    object.close();
    out
}
