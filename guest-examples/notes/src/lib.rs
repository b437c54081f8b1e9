//! Notes that are written into a file, and left as an artifact for whoever called.

use std::fs::{self, File};
use std::io::Write as _;

use longshore_guest::{Block, CallError, ToolResult, artifacts, tool};

/// Where the file is while the call runs. Nobody else sees it there.
const FILE: &str = "/scratch/notes.md";

/// Writes notes down, and links to them: they can be read for as long as the result.
#[tool]
fn notes(
    /// One note each.
    notes: Vec<String>,
) -> Result<ToolResult, CallError> {
    let mut file = File::create(FILE)?;
    for note in &notes {
        writeln!(file, "- {note}")?;
    }
    let link = artifacts::put("notes.md", "text/markdown", fs::read(FILE)?)?;
    Ok(ToolResult::blocks(vec![Block::ResourceLink(link)]))
}
