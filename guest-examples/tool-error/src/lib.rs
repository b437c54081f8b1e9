//! A tool that does not manage and says why.

use longshore_guest::tool;

/// Answers with an error, to show how one looks.
#[tool]
fn tool_error(
    /** What the error says. */
    message: String,
) -> Result<String, String> {
    Err(message)
}
