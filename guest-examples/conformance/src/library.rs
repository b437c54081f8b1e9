//! What is read, and what is filled in.

use longshore_guest::ask::Reply;
use longshore_guest::bindings::longshore::tool::types::{Body, Embedded};
use longshore_guest::prompt::{Message, PromptError};
use longshore_guest::{Argument, Block, Context, changes, prompt, resource, tool};

use crate::answers::{PIXEL, pixel};

/// A text that is always the same.
#[resource("test://static-text", mime_type = "text/plain")]
fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// An image that is always the same.
#[resource("test://static-binary", mime_type = "image/png")]
fn static_binary() -> &'static [u8] {
    PIXEL
}

/// Data by number.
#[resource("test://template/{id}/data", mime_type = "application/json")]
fn template_data(#[resource(complete = ids)] id: String) -> String {
    serde_json::json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") })
        .to_string()
}

fn ids(typed: &str) -> Vec<&'static str> {
    starting_with(typed, &["1", "12", "123"])
}

/// A text that is said to change.
#[resource("test://watched-resource", mime_type = "text/plain")]
fn watched_resource() -> &'static str {
    "This is the content of the watched resource."
}

/// Tells those who subscribed to it that the watched resource changed.
#[tool(name = "test_trigger_resource_update", task_mode = "never")]
fn trigger_resource_update() -> &'static str {
    changes::resource_updated("test://watched-resource");
    "Told that the watched resource changed"
}

/// Tells the clients that listen to read the list of resources again.
#[tool(name = "test_trigger_resource_change", task_mode = "never")]
fn trigger_resource_change() -> &'static str {
    changes::resources_changed();
    "Told that the resources changed"
}

/// Tells the clients that listen to read the list of prompts again.
#[tool(name = "test_trigger_prompt_change", task_mode = "never")]
fn trigger_prompt_change() -> &'static str {
    changes::prompts_changed();
    "Told that the prompts changed"
}

/// Says one thing.
#[prompt(name = "test_simple_prompt")]
fn simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

/// Says what it is given.
#[prompt(name = "test_prompt_with_arguments")]
fn prompt_with_arguments(
    /// The first.
    #[prompt(complete = first_words)]
    arg1: String,
    /// The second.
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

fn first_words(typed: &str) -> Vec<&'static str> {
    starting_with(typed, &["paris", "park", "party"])
}

/// Shows a resource and asks for something to be done with it.
#[prompt(name = "test_prompt_with_embedded_resource")]
fn prompt_with_embedded_resource(
    /// The URI that the resource goes by.
    #[prompt(name = "resourceUri")]
    resource_uri: String,
) -> Vec<Message> {
    let shown = Block::Embedded(Embedded {
        uri: resource_uri,
        mime_type: Some("text/plain".to_owned()),
        body: Body::Text("Embedded resource content for testing.".to_owned()),
    });
    vec![
        Message::user(shown),
        Message::user("Please process the embedded resource above."),
    ]
}

/// Shows an image and asks for something to be done with it.
#[prompt(name = "test_prompt_with_image")]
fn prompt_with_image() -> Vec<Message> {
    vec![
        Message::user(pixel()),
        Message::user("Please analyze the image above."),
    ]
}

#[derive(Argument)]
struct UserContext {
    /// What it is for.
    context: String,
}

/// Asks what it is for before it says anything.
#[prompt(name = "test_input_required_result_prompt")]
fn prompt_that_asks(ctx: &Context) -> Result<String, PromptError> {
    let reply = ctx
        .ask("user_context", "What context should the prompt use?")
        .map_err(PromptError::from)?;
    Ok(match reply {
        Reply::Accepted(UserContext { context }) => format!("A prompt for: {context}"),
        Reply::Declined | Reply::Dismissed => "A prompt for nothing in particular".to_owned(),
    })
}

fn starting_with(typed: &str, words: &[&'static str]) -> Vec<&'static str> {
    let words = words.iter().copied();
    words.filter(|word| word.starts_with(typed)).collect()
}
