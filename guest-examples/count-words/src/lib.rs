//! A tool that answers with data, and says how far it is while it works.

use longshore_guest::{Context, Schema, tool};

/// Lines between two reports: a report is a host call, and costs more than a short line.
const LINES: u64 = 1_000;

#[derive(Default, serde::Serialize, Schema)]
struct Counts {
    words: u64,
    lines: u64,
    characters: u64,
}

/// Counts the words, lines and characters of a text.
#[tool(output)]
fn count_words(
    /** What is counted. */
    text: String,
    ctx: &Context,
) -> Counts {
    let mut counts = Counts::default();
    let mut bytes = 0;
    for line in text.split_inclusive('\n') {
        counts.words += line.split_whitespace().count() as u64;
        counts.lines += 1;
        counts.characters += line.chars().count() as u64;
        bytes += line.len();
        if counts.lines.is_multiple_of(LINES) {
            ctx.progress(bytes as f64, text.len() as f64);
        }
    }
    counts
}
