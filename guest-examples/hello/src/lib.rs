//! The smallest tool: one argument in, one text out.

use longshore_guest::tool;

/// Greets somebody by name.
#[tool]
fn hello(
    /** Who is greeted. */
    name: String,
) -> String {
    format!("Hello, {name}!")
}
