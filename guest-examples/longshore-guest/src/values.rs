//! What the component keeps beyond its calls: values by their keys. They belong to the name that it is served under;
//! every change takes place once, also if the server dies.
//!
//! ```no_run
//! use longshore_guest::{tool, values};
//!
//! /// Counts its calls.
//! #[tool]
//! fn count() -> Result<i64, values::Error> {
//!     values::increment("calls", 1)
//! }
//! # fn main() {}
//! ```

pub use crate::kept::Error;

use crate::bindings::longshore::tool::key_value as host;

/// The value of that key.
///
/// # Errors
/// If the key cannot be one.
pub fn get(key: &str) -> Result<Option<Vec<u8>>, Error> {
    Ok(host::get(key)?)
}

/// Gives the key that value, in place of an earlier one.
///
/// # Errors
/// If the key cannot be one, or there is no room.
pub fn set(key: &str, value: impl AsRef<[u8]>) -> Result<(), Error> {
    Ok(host::set(key, value.as_ref())?)
}

/// Takes the key away. It may have been away before.
///
/// # Errors
/// If the key cannot be one.
pub fn delete(key: &str) -> Result<(), Error> {
    Ok(host::delete(key)?)
}

/// All keys that begin with that text, in the order of their bytes. They are fetched in pages, so that what others do
/// meanwhile may be seen in part.
///
/// # Errors
/// If no key can begin so.
pub fn keys(prefix: &str) -> Result<Vec<String>, Error> {
    const PAGE: u32 = 1_000;
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let page = host::list_keys(prefix, after.as_deref(), PAGE)?;
        keys.extend(page.keys);
        after = page.next;
        if after.is_none() {
            return Ok(keys);
        }
    }
}

/// Adds to the number at that key, which is 0 if there is none, and gives the sum.
///
/// # Errors
/// If what is there is no number, the sum is too large, or there is no room.
pub fn increment(key: &str, delta: i64) -> Result<i64, Error> {
    Ok(host::increment(key, delta)?)
}

/// Gives the key the value `new` if its value is `expected`, where `None` is no value, and says whether it was.
///
/// # Errors
/// If the key cannot be one, or there is no room.
pub fn swap(key: &str, expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Error> {
    Ok(host::swap(key, expected, new)?)
}
