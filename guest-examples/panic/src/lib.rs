//! A tool with a bug: its caller gets a readable line, and nobody else notices.

use longshore_guest::tool;

/// Panics, to show what becomes of it.
#[tool]
fn panic() {
    panic!("this tool panics on purpose")
}
