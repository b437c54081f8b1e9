//! A tool that is of no use to anybody if it takes long, and says so in its descriptor.

use std::time::Duration;

use longshore_guest::{Description, Outcome, TaskMode, Tool, task};
use serde_json::json;

/// What it may take, in milliseconds.
const DEADLINE_MS: u64 = 500;

struct Hurry;

#[derive(serde::Deserialize)]
struct Arguments {
    ms: u64,
}

impl Tool for Hurry {
    const NAME: &'static str = "hurry";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Works for a number of milliseconds, if half a second is enough.",
            input: json!({
                "type": "object",
                "properties": { "ms": { "type": "integer", "minimum": 0, "description": "How long." } },
                "required": ["ms"],
            }),
            task_mode: TaskMode::Always,
            extra: Some(json!({ "longshore/deadlineMs": DEADLINE_MS })),
            ..Description::default()
        }
    }

    fn call(Arguments { ms }: Arguments) -> Outcome {
        let left = task::time_left().ok_or("a call of this tool has a deadline")?;
        if left > Duration::from_millis(DEADLINE_MS) {
            return Err(format!("{left:?} are left, more than was asked for").into());
        }
        task::sleep(Duration::from_millis(ms))?;
        Ok(format!("made it in {ms} ms").into())
    }
}

longshore_guest::export!(Hurry);
