//! A tool that asks two questions at once, which may be answered one after the other.

use longshore_guest::ask::{self, Question, Reply};
use longshore_guest::tool::NoArguments;
use longshore_guest::{Description, Outcome, TaskMode, Tool};
use serde_json::{Value, json};

struct AskTwo;

impl Tool for AskTwo {
    const NAME: &'static str = "ask-two";
    type Arguments = NoArguments;

    fn describe() -> Description {
        Description {
            description: "Asks the person for a name and for a confirmation, and says what they answered.",
            task_mode: TaskMode::Always,
            ..Description::default()
        }
    }

    fn call(_: NoArguments) -> Outcome {
        let questions = [
            form("name", "What is your name?", "string"),
            form("confirm", "Is that so?", "boolean"),
        ]
        .map(|(key, question)| question.with_key(key));
        let answers = ask::all(&questions, None)?;
        let mut said = Vec::with_capacity(answers.len());
        for (question, answer) in questions.iter().zip(answers) {
            let key = &question.key;
            said.push(match answer.into_reply::<Value>()? {
                Reply::Accepted(content) => format!("{key}: {}", content[key]),
                Reply::Declined => format!("{key} was declined"),
                Reply::Dismissed => format!("{key} was closed"),
            });
        }
        Ok(said.join(", ").into())
    }
}

/// A form of one field, which has the question's own key.
fn form(key: &'static str, message: &str, kind: &str) -> (&'static str, Question) {
    let schema =
        json!({ "type": "object", "properties": { key: { "type": kind } }, "required": [key] });
    (key, Question::form(message, &schema))
}

longshore_guest::export!(AskTwo);
