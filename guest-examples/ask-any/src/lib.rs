//! A tool that asks in whatever way it is told to, and says what came of it.

use std::time::Duration;

use longshore_guest::ask::{Answer, AskError, AskKind, Question};
use longshore_guest::{Argument, Context, tool};
use serde_json::json;

#[derive(Argument)]
#[tool(rename_all = "kebab-case")]
enum Way {
    Form,
    Page,
    Model,
    ModelWithTools,
    Folders,
    Nothing,
}

/// Asks once, and says what was answered, or why nothing was.
#[tool]
fn ask_any(
    /** In which way. */
    way: Way,
    /** How long it waits, in milliseconds. */
    wait_ms: Option<u64>,
    ctx: &Context,
) -> Result<String, AskError> {
    let question = match way {
        Way::Form => form(),
        Way::Page => Question::visit("Please sign in", "https://example.com/sign-in"),
        Way::Model => Question::sample(&json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Say something" } }],
            "maxTokens": 100,
        })),
        Way::ModelWithTools => Question::sample(&json!({
            "messages": [{ "role": "user", "content": { "type": "text", "text": "Say something" } }],
            "maxTokens": 100,
            "tools": [],
        })),
        Way::Folders => Question::Roots(None),
        Way::Nothing => return Ok(what_can_be_asked(ctx)),
    };
    let answer = match ctx.ask_one("question", &question, wait_ms.map(Duration::from_millis)) {
        // A tool of use ends here as well; this one says what it saw.
        Err(AskError::CallCancelled) => return Err(AskError::CallCancelled),
        Err(error) => return Ok(format!("{error:?}")),
        Ok(answer) => answer,
    };
    Ok(match answer {
        Answer::Accepted(content) => format!("accepted {}", content.unwrap_or_default()),
        Answer::Declined => "declined".to_owned(),
        Answer::Dismissed => "dismissed".to_owned(),
        Answer::Sampled(result) => format!("sampled {result}"),
        Answer::Roots(result) => format!("roots {result}"),
        Answer::Raw(result) => format!("raw {result}"),
    })
}

/// A form with a choice whose values have titles.
fn form() -> Question {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 10 },
            "colour": {
                "type": "string",
                "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }],
            },
        },
        "required": ["name"],
    });
    Question::form("Who are you?", &schema)
}

fn what_can_be_asked(ctx: &Context) -> String {
    let ways = [
        ("form", AskKind::Form),
        ("page", AskKind::Url),
        ("model", AskKind::Sample),
        ("model-with-tools", AskKind::SampleTools),
        ("folders", AskKind::Roots),
    ];
    let can: Vec<&str> = ways
        .into_iter()
        .filter(|(_, kind)| ctx.can_ask(*kind))
        .map(|(word, _)| word)
        .collect();
    can.join(" ")
}
