//! What a call leaves for whoever called, to be read when they like: for as long as what came of the call is kept.
//!
//! ```no_run
//! use longshore_guest::{Block, CallError, ToolResult, artifacts, tool};
//!
//! /// Draws a report.
//! #[tool]
//! fn report() -> Result<ToolResult, CallError> {
//!     let link = artifacts::put("report.csv", "text/csv", "day,calls\n1,7\n")?;
//!     Ok(ToolResult::blocks(vec![Block::ResourceLink(link)]))
//! }
//! # fn main() {}
//! ```

pub use crate::bindings::longshore::tool::types::Link;
pub use crate::kept::Error;

use crate::bindings::longshore::tool::artifacts as host;

/// Keeps bytes of that media type, and gives a link to them for the tool's result. Only whoever called can follow it.
///
/// # Errors
/// If it is too large, or the call has left too much; if name or media type cannot be one.
pub fn put(name: &str, mime_type: &str, data: impl AsRef<[u8]>) -> Result<Link, Error> {
    let uri = host::put(name, mime_type, data.as_ref())?;
    Ok(Link {
        uri,
        name: name.to_owned(),
        mime_type: Some(mime_type.to_owned()),
        description: None,
    })
}
