//! A tool that does not manage and says why.

use longshore_guest::{Description, Outcome, Tool};
use serde_json::json;

struct ToolError;

#[derive(serde::Deserialize)]
struct Arguments {
    message: String,
}

impl Tool for ToolError {
    const NAME: &'static str = "tool-error";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Answers with an error, to show how one looks.",
            input: json!({
                "type": "object",
                "properties": { "message": { "type": "string", "description": "What the error says." } },
                "required": ["message"],
            }),
            ..Description::default()
        }
    }

    fn call(arguments: Arguments) -> Outcome {
        Err(arguments.message.into())
    }
}

longshore_guest::export!(ToolError);
