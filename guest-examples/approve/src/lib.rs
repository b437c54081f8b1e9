//! A tool that asks before it does something that cannot be undone.

use longshore_guest::ask::{self, Reply};
use longshore_guest::task::{self, Level};
use longshore_guest::{Description, Outcome, TaskMode, Tool};
use serde_json::json;

struct Approve;

#[derive(serde::Deserialize)]
struct Arguments {
    what: String,
}

#[derive(serde::Deserialize)]
struct Decision {
    approve: bool,
}

impl Tool for Approve {
    const NAME: &'static str = "approve";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Does something once the person has approved it; here it only writes to its log.",
            input: json!({
                "type": "object",
                "properties": { "what": { "type": "string", "description": "What is to be done." } },
                "required": ["what"],
            }),
            task_mode: TaskMode::Always,
            ..Description::default()
        }
    }

    fn call(Arguments { what }: Arguments) -> Outcome {
        let schema = json!({
            "type": "object",
            "properties": { "approve": { "type": "boolean", "title": "Go ahead" } },
            "required": ["approve"],
        });
        match ask::form("approve", &format!("Do this? {what}"), &schema, None)? {
            Reply::Accepted(Decision { approve: true }) => {
                task::log(Level::Notice, &format!("doing {what}"));
                Ok(format!("done: {what}").into())
            }
            Reply::Accepted(_) | Reply::Declined | Reply::Dismissed => {
                Ok(format!("not approved: {what}").into())
            }
        }
    }
}

longshore_guest::export!(Approve);
