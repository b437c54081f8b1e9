//! Where a page of a list ended, as a text that means nothing to a client.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::error::RpcError;

/// The first byte, so that a later form is told from this one.
const VERSION: u8 = 1;

/// The longest name in a cursor, in bytes, that of a resource; a longer one was not written here.
const MAX_NAME_BYTES: usize = crate::resource::MAX_URI_BYTES;

/// The cursor after the item of that name, in a list that is ordered by name. It stays good while the list changes.
#[must_use]
pub fn encode(last: &str) -> String {
    let mut bytes = Vec::with_capacity(1 + last.len());
    bytes.push(VERSION);
    bytes.extend_from_slice(last.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The name in the cursor; -32602 if it was not written here.
pub fn decode(cursor: &str) -> Result<String, RpcError> {
    let refused = || {
        RpcError::invalid_params("params.cursor is not one of this server's; list again without it")
    };
    if cursor.len() > (1 + MAX_NAME_BYTES) * 2 {
        return Err(refused());
    }
    let mut bytes = BASE64_URL_SAFE_NO_PAD
        .decode(cursor)
        .map_err(|_| refused())?;
    if bytes.first() != Some(&VERSION) || bytes.len() > 1 + MAX_NAME_BYTES {
        return Err(refused());
    }
    bytes.remove(0);
    String::from_utf8(bytes)
        .ok()
        .filter(|name| !name.is_empty())
        .ok_or_else(refused)
}
