//! Calls that ask before they have a result: the answers come with the same call made again.

use std::time::Duration;

use longshore_guest::ask::{Answer, AskKind, Question, Reply};
use longshore_guest::{Argument, CallError, Context, tool};
use serde_json::{Value, json};

#[derive(Argument)]
struct Name {
    /// A name.
    name: String,
}

#[derive(Argument)]
struct Colour {
    /// A colour.
    color: String,
}

#[derive(Argument)]
struct Consent {
    /// Whether to go ahead.
    ok: bool,
}

fn name(ctx: &Context, key: &str) -> Result<String, CallError> {
    Ok(match ctx.ask(key, "What is your name?")? {
        Reply::Accepted(Name { name }) => name,
        Reply::Declined | Reply::Dismissed => "stranger".to_owned(),
    })
}

fn sampling(text: &str, most_tokens: u32) -> Question {
    Question::sample(&json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": text } }],
        "maxTokens": most_tokens,
    }))
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// The text of a sampled message.
fn sampled(answer: Answer) -> String {
    match answer {
        Answer::Sampled(message) => read(&message)["content"]["text"]
            .as_str()
            .unwrap_or("no text")
            .to_owned(),
        _ => "nothing".to_owned(),
    }
}

fn roots() -> Question {
    Question::Roots(Some("{}".to_owned()))
}

/// The roots, how many there are.
fn rooted(answer: Answer) -> String {
    match answer {
        Answer::Roots(list) => read(&list)["roots"]
            .as_array()
            .map_or(0, Vec::len)
            .to_string(),
        _ => "no".to_owned(),
    }
}

/// Asks for a name.
#[tool(name = "test_input_required_result_elicitation", task_mode = "never")]
fn elicitation(ctx: &Context) -> Result<String, CallError> {
    Ok(format!("Hello, {}!", name(ctx, "user_name")?))
}

/// Asks the client's model.
#[tool(name = "test_input_required_result_sampling", task_mode = "never")]
fn sample(ctx: &Context) -> Result<String, CallError> {
    let question = sampling("What is the capital of France?", 100);
    let answer = ctx.ask_one("capital_question", &question, None)?;
    Ok(format!("The model said: {}", sampled(answer)))
}

/// Asks for the client's roots.
#[tool(name = "test_input_required_result_list_roots", task_mode = "never")]
fn list_roots(ctx: &Context) -> Result<String, CallError> {
    let answer = ctx.ask_one("client_roots", &roots(), None)?;
    Ok(format!("The client has {} roots", rooted(answer)))
}

fn consent(ctx: &Context) -> Result<String, CallError> {
    Ok(match ctx.ask("confirm", "Go ahead?")? {
        Reply::Accepted(Consent { ok: true }) => "state-ok: gone ahead".to_owned(),
        Reply::Accepted(_) | Reply::Declined | Reply::Dismissed => "state-ok: left".to_owned(),
    })
}

/// Asks for consent, and goes on where it asked.
#[tool(name = "test_input_required_result_request_state", task_mode = "never")]
fn request_state(ctx: &Context) -> Result<String, CallError> {
    consent(ctx)
}

/// The same; what a client holds meanwhile cannot be changed.
#[tool(
    name = "test_input_required_result_tampered_state",
    task_mode = "never"
)]
fn tampered_state(ctx: &Context) -> Result<String, CallError> {
    consent(ctx)
}

/// Asks the person, the model and the client at once.
#[tool(
    name = "test_input_required_result_multiple_inputs",
    task_mode = "never"
)]
fn multiple_inputs(ctx: &Context) -> Result<String, CallError> {
    let questions = [
        Question::form_of::<Name>("What is your name?").with_key("user_name"),
        sampling("Say hello.", 50).with_key("greeting"),
        roots().with_key("client_roots"),
    ];
    let answers = ctx.ask_all(&questions, None)?;
    let [who, greeting, roots] = <[Answer; 3]>::try_from(answers)
        .map_err(|_| "three questions have three answers".to_owned())?;
    let who = match who.into_argument()? {
        Reply::Accepted(Name { name }) => name,
        Reply::Declined | Reply::Dismissed => "stranger".to_owned(),
    };
    Ok(format!(
        "{who}: {}, with {} roots",
        sampled(greeting),
        rooted(roots)
    ))
}

/// Asks for a name, and then for a colour.
#[tool(name = "test_input_required_result_multi_round", task_mode = "never")]
fn multi_round(ctx: &Context) -> Result<String, CallError> {
    let who = name(ctx, "step1")?;
    let colour = match ctx.ask("step2", "What is your favourite colour?")? {
        Reply::Accepted(Colour { color }) => color,
        Reply::Declined | Reply::Dismissed => "no colour".to_owned(),
    };
    Ok(format!("{who} likes {colour}"))
}

/// Asks whatever the client says that it can be asked.
#[tool(name = "test_input_required_result_capabilities", task_mode = "never")]
fn capabilities(ctx: &Context) -> Result<String, CallError> {
    if ctx.can_ask(AskKind::Form) {
        return Ok(format!("Hello, {}!", name(ctx, "user_name")?));
    }
    let answer = ctx.ask_one("greeting", &sampling("Say hello.", 50), None)?;
    Ok(sampled(answer))
}

/// Asks for a name before it becomes a task.
#[tool(
    name = "test_tool_with_task",
    task_mode = "on-detach",
    requires("tasks")
)]
fn asks_then_task(ctx: &Context) -> Result<String, CallError> {
    let who = name(ctx, "user_name")?;
    ctx.detach();
    ctx.sleep(Duration::from_millis(500))?;
    Ok(format!("Done for {who}"))
}
