//! A tool that answers with data, and says how far it is while it works.

use longshore_guest::{Description, Outcome, Tool, ToolResult, task};
use serde_json::json;

/// Lines between two reports: a report is a host call, and costs more than a short line.
const LINES: u64 = 1_000;

struct CountWords;

#[derive(serde::Deserialize)]
struct Arguments {
    text: String,
}

#[derive(Default, serde::Serialize)]
struct Counts {
    words: u64,
    lines: u64,
    characters: u64,
}

impl Tool for CountWords {
    const NAME: &'static str = "count-words";
    type Arguments = Arguments;

    fn describe() -> Description {
        let count = json!({ "type": "integer", "minimum": 0 });
        Description {
            description: "Counts the words, lines and characters of a text.",
            input: json!({
                "type": "object",
                "properties": { "text": { "type": "string", "description": "What is counted." } },
                "required": ["text"],
            }),
            output: Some(json!({
                "type": "object",
                "properties": { "words": count, "lines": count, "characters": count },
                "required": ["words", "lines", "characters"],
                "additionalProperties": false,
            })),
            ..Description::default()
        }
    }

    fn call(Arguments { text }: Arguments) -> Outcome {
        let mut counts = Counts::default();
        let mut bytes = 0;
        for line in text.split_inclusive('\n') {
            counts.words += line.split_whitespace().count() as u64;
            counts.lines += 1;
            counts.characters += line.chars().count() as u64;
            bytes += line.len();
            if counts.lines.is_multiple_of(LINES) {
                task::report_progress(bytes as f64, Some(text.len() as f64), None);
            }
        }
        ToolResult::structured(&counts)
    }
}

longshore_guest::export!(CountWords);
