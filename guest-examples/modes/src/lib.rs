//! The same work under each task mode: what differs is how the caller gets the result.

use std::time::Duration;

use longshore_guest::{Description, Outcome, TaskMode, Tool, task};
use serde_json::{Value, json};

#[derive(serde::Deserialize)]
struct Work {
    ms: u64,
    #[serde(default)]
    detach: bool,
}

fn describe(task_mode: TaskMode, can_detach: bool) -> Description {
    let mut properties = json!({
        "ms": { "type": "integer", "minimum": 0, "description": "Milliseconds of work." },
    });
    if can_detach {
        properties["detach"] =
            json!({ "type": "boolean", "description": "Whether nobody need wait." });
    }
    Description {
        description: "Works for a while, to show when a call becomes a task.",
        input: json!({
            "type": "object",
            "properties": properties,
            "required": ["ms"],
            "additionalProperties": Value::Bool(false),
        }),
        task_mode,
        ..Description::default()
    }
}

fn work(mode: &str, Work { ms, detach }: Work) -> Outcome {
    if detach {
        task::detach();
    }
    task::sleep(Duration::from_millis(ms))?;
    Ok(format!("{mode} after {ms} ms").into())
}

struct Never;

impl Tool for Never {
    const NAME: &'static str = "modes-never";
    type Arguments = Work;

    fn describe() -> Description {
        describe(TaskMode::Never, false)
    }

    fn call(arguments: Work) -> Outcome {
        work("never", arguments)
    }
}

struct OnDetach;

impl Tool for OnDetach {
    const NAME: &'static str = "modes-on-detach";
    type Arguments = Work;

    fn describe() -> Description {
        describe(TaskMode::OnDetach, true)
    }

    fn call(arguments: Work) -> Outcome {
        work("on-detach", arguments)
    }
}

struct Auto;

impl Tool for Auto {
    const NAME: &'static str = "modes-auto";
    type Arguments = Work;

    fn describe() -> Description {
        describe(TaskMode::Auto, true)
    }

    fn call(arguments: Work) -> Outcome {
        work("auto", arguments)
    }
}

struct Always;

impl Tool for Always {
    const NAME: &'static str = "modes-always";
    type Arguments = Work;

    fn describe() -> Description {
        describe(TaskMode::Always, false)
    }

    fn call(arguments: Work) -> Outcome {
        work("always", arguments)
    }
}

longshore_guest::export!(Never, OnDetach, Auto, Always);
