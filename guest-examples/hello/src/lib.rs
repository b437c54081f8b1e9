//! The smallest tool: one argument in, one text out.

use longshore_guest::{Description, Outcome, Tool};
use serde_json::json;

struct Hello;

#[derive(serde::Deserialize)]
struct Arguments {
    name: String,
}

impl Tool for Hello {
    const NAME: &'static str = "hello";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Greets somebody by name.",
            input: json!({
                "type": "object",
                "properties": { "name": { "type": "string", "description": "Who is greeted." } },
                "required": ["name"],
            }),
            ..Description::default()
        }
    }

    fn call(arguments: Arguments) -> Outcome {
        Ok(format!("Hello, {}!", arguments.name).into())
    }
}

longshore_guest::export!(Hello);
