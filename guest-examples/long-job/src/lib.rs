//! A job of many steps: it says where it is, and stops when it is told to.

use std::time::Duration;

use longshore_guest::{Description, Outcome, TaskMode, Tool, task};
use serde_json::json;

struct LongJob;

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Arguments {
    steps: u32,
    step_ms: u64,
}

impl Tool for LongJob {
    const NAME: &'static str = "long-job";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Works through a number of steps, waiting in each.",
            input: json!({
                "type": "object",
                "properties": {
                    "steps": { "type": "integer", "minimum": 1, "maximum": u32::MAX, "description": "How many." },
                    "step-ms": { "type": "integer", "minimum": 0, "description": "Milliseconds in each." },
                },
                "required": ["steps", "step-ms"],
            }),
            task_mode: TaskMode::Always,
            ..Description::default()
        }
    }

    fn call(Arguments { steps, step_ms }: Arguments) -> Outcome {
        for step in 1..=steps {
            task::set_status(&format!("step {step} of {steps}"));
            task::report_progress(step.into(), Some(steps.into()), None);
            task::check_cancelled()?;
            task::sleep(Duration::from_millis(step_ms))?;
        }
        Ok(format!("done: {steps} steps").into())
    }
}

longshore_guest::export!(LongJob);
