//! What the suite expects of tools in the revisions that have sessions: they ask while their caller waits.

use std::time::Duration;

use longshore_guest::ask::{Answer, Question};
use longshore_guest::task::Level;
use longshore_guest::{CallError, Context, tool};
use serde_json::{Value, json};

/// Between two lines of the log.
const PAUSE: Duration = Duration::from_millis(50);

/// Writes three lines to the log.
#[tool(name = "test_tool_with_logging", task_mode = "never")]
fn tool_with_logging(ctx: &Context) -> Result<&'static str, CallError> {
    ctx.log(Level::Info, "Tool execution started");
    ctx.sleep(PAUSE)?;
    ctx.log(Level::Info, "Tool processing data");
    ctx.sleep(PAUSE)?;
    ctx.log(Level::Info, "Tool execution completed");
    Ok("Tool with logging executed successfully")
}

/// Asks the client's model.
#[tool(name = "test_sampling")]
fn sampling(
    /// What it is asked.
    prompt: String,
    ctx: &Context,
) -> Result<String, CallError> {
    let question = Question::sample(&json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
        "maxTokens": 100,
    }));
    let Answer::Sampled(result) = ctx.ask_one("reply", &question, None)? else {
        return Err("the model was not asked".into());
    };
    let result: Value = serde_json::from_str(&result).map_err(|error| error.to_string())?;
    let text = result["content"]["text"].as_str().unwrap_or("No response");
    Ok(format!("LLM response: {text}"))
}

/// Asks the person.
#[tool(name = "test_elicitation")]
fn elicitation(
    /// What they are told.
    message: String,
    ctx: &Context,
) -> Result<String, CallError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    });
    ask(ctx, &message, &schema)
}

/// Asks with a default for each kind of field.
#[tool(name = "test_elicitation_sep1034_defaults")]
fn elicitation_defaults(ctx: &Context) -> Result<String, CallError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "User name", "default": "John Doe" },
            "age": { "type": "integer", "description": "User age", "default": 30 },
            "score": { "type": "number", "description": "User score", "default": 95.5 },
            "status": {
                "type": "string",
                "description": "User status",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "description": "Verification status", "default": true },
        },
        "required": [],
    });
    ask(
        ctx,
        "Please review and update the form fields with defaults",
        &schema,
    )
}

/// Asks with each kind of choice.
#[tool(name = "test_elicitation_sep1330_enums")]
fn elicitation_enums(ctx: &Context) -> Result<String, CallError> {
    let titled = |n: u8| json!({ "const": format!("value{n}"), "title": format!("Title {n}") });
    let titles = [titled(1), titled(2), titled(3)];
    let options = ["option1", "option2", "option3"];
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": options },
            "titledSingle": { "type": "string", "oneOf": titles },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
            "titledMulti": { "type": "array", "items": { "anyOf": titles } },
        },
        "required": [],
    });
    ask(ctx, "Please select options from the enum fields", &schema)
}

fn ask(ctx: &Context, message: &str, schema: &Value) -> Result<String, CallError> {
    let answer = ctx.ask_one("answer", &Question::form(message, schema), None)?;
    let (action, content) = match answer {
        Answer::Accepted(content) => ("accept", content.unwrap_or_default()),
        Answer::Declined => ("decline", String::new()),
        _ => ("cancel", String::new()),
    };
    Ok(format!("User response: action={action}, content={content}"))
}
