//! A tool that only waits: it uses no CPU, and a cancel wakes it.

use std::time::Duration;

use longshore_guest::{Description, Outcome, TaskMode, Tool, task};
use serde_json::json;

struct Sleep;

#[derive(serde::Deserialize)]
struct Arguments {
    seconds: f64,
}

impl Tool for Sleep {
    const NAME: &'static str = "sleep";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Waits for a number of seconds.",
            input: json!({
                "type": "object",
                "properties": { "seconds": { "type": "number", "minimum": 0, "description": "How long." } },
                "required": ["seconds"],
            }),
            task_mode: TaskMode::Always,
            ..Description::default()
        }
    }

    fn call(Arguments { seconds }: Arguments) -> Outcome {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|error| format!("cannot sleep for {seconds} s: {error}"))?;
        task::sleep(time)?;
        Ok("slept".into())
    }
}

longshore_guest::export!(Sleep);
