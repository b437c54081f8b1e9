//! A tool that asks two questions at once, which may be answered one after the other.

use longshore_guest::ask::{Question, Reply};
use longshore_guest::{CallError, Context, tool};
use serde_json::{Value, json};

/// Asks the person for a name and for a confirmation, and says what they answered.
#[tool(task_mode = "always")]
fn ask_two(ctx: &Context) -> Result<String, CallError> {
    let questions = [
        form("name", "What is your name?", "string"),
        form("confirm", "Is that so?", "boolean"),
    ]
    .map(|(key, question)| question.with_key(key));
    let answers = ctx.ask_all(&questions, None)?;
    let mut said = Vec::with_capacity(answers.len());
    for (question, answer) in questions.iter().zip(answers) {
        let key = &question.key;
        said.push(match answer.into_argument::<Value>()? {
            Reply::Accepted(content) => format!("{key}: {}", content[key]),
            Reply::Declined => format!("{key} was declined"),
            Reply::Dismissed => format!("{key} was closed"),
        });
    }
    Ok(said.join(", "))
}

/// A form of one field, which has the question's own key.
fn form(key: &'static str, message: &str, kind: &str) -> (&'static str, Question) {
    let schema =
        json!({ "type": "object", "properties": { key: { "type": kind } }, "required": [key] });
    (key, Question::form(message, &schema))
}
