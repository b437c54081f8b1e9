//! A tool with a long answer.

use longshore_guest::tool;

/// Far above what a result may hold, far below what the sandbox gives.
const MOST: usize = 16 << 20;

/// Answers with a text of a number of bytes.
#[tool]
fn large(
    /// How many.
    #[tool(maximum = MOST)]
    bytes: usize,
) -> String {
    "x".repeat(bytes)
}
