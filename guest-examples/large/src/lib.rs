//! A tool with a long answer.

use longshore_guest::{Description, Outcome, Tool};
use serde_json::json;

/// Far above what a result may hold, far below what the sandbox gives.
const MOST: usize = 16 << 20;

struct Large;

#[derive(serde::Deserialize)]
struct Arguments {
    bytes: usize,
}

impl Tool for Large {
    const NAME: &'static str = "large";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Answers with a text of a number of bytes.",
            input: json!({
                "type": "object",
                "properties": {
                    "bytes": { "type": "integer", "minimum": 0, "maximum": MOST, "description": "How many." },
                },
                "required": ["bytes"],
            }),
            ..Description::default()
        }
    }

    fn call(Arguments { bytes }: Arguments) -> Outcome {
        Ok("x".repeat(bytes).into())
    }
}

longshore_guest::export!(Large);
