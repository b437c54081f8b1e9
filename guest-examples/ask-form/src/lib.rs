//! A tool that needs an answer from the person before it can go on.

use longshore_guest::ask::{self, Reply};
use longshore_guest::tool::NoArguments;
use longshore_guest::{Description, Outcome, TaskMode, Tool};
use serde_json::json;

struct AskForm;

#[derive(serde::Deserialize)]
struct Person {
    name: String,
    // JSON has one kind of number: a client may send 36.0, which is an integer to the schema.
    age: f64,
    choice: String,
}

impl Tool for AskForm {
    const NAME: &'static str = "ask-form";
    type Arguments = NoArguments;

    fn describe() -> Description {
        Description {
            description: "Asks the person for a name, an age and a colour, and says what they answered.",
            task_mode: TaskMode::Always,
            ..Description::default()
        }
    }

    fn call(_: NoArguments) -> Outcome {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "title": "Name" },
                "age": { "type": "integer", "title": "Age", "minimum": 0, "maximum": 150 },
                "choice": { "type": "string", "title": "Favourite colour", "enum": ["red", "green", "blue"] },
            },
            "required": ["name", "age", "choice"],
        });
        Ok(match ask::form("person", "Who are you?", &schema, None)? {
            Reply::Accepted(Person { name, age, choice }) => {
                format!("{name} is {age} and chose {choice}").into()
            }
            Reply::Declined => "the person declined to answer".into(),
            Reply::Dismissed => "the person closed the question".into(),
        })
    }
}

longshore_guest::export!(AskForm);
