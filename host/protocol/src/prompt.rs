//! Prompts: their descriptors, and what comes of filling one in; and proposals while somebody does.

use crate::content::Content;
use crate::extra::{self, Of};
use crate::json::JsonFault;
use crate::result::{self, ServerInfo};
use crate::write::{Object, push_list, push_string};

/// The most proposals that are sent (MCP 2026-07-28, Completion).
pub const MAX_VALUES: usize = 100;

/// What is known of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Prompt<'a> {
    /// Its name.
    pub name: &'a str,
    /// A name for people.
    pub title: Option<&'a str>,
    /// What it is for.
    pub description: Option<&'a str>,
    /// Its arguments, in the order in which people are asked for them.
    pub arguments: &'a [Argument<'a>],
    /// Further members, a JSON object from the guest. Of these `icons` and `_meta` are shown.
    pub extra: Option<&'a str>,
}

/// One argument of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    /// Its name.
    pub name: &'a str,
    /// What to give.
    pub description: Option<&'a str>,
    /// Whether the prompt is refused without it.
    pub required: bool,
}

impl Prompt<'_> {
    /// The descriptor as text, or what is wrong with the guest's JSON.
    pub fn descriptor(&self) -> Result<String, JsonFault> {
        let mut out = String::with_capacity(256);
        let mut prompt = Object::open(&mut out);
        prompt.text("name", self.name);
        prompt.optional_text("title", self.title);
        prompt.optional_text("description", self.description);
        push_list(prompt.key("arguments"), self.arguments, |out, argument| {
            let mut object = Object::open(out);
            object.text("name", argument.name);
            object.optional_text("description", argument.description);
            object.plain("required", argument.required);
            object.close();
        });
        extra::write_into(&mut prompt, self.extra, Of::Prompt)?;
        prompt.close();
        Ok(out)
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// One message of a prompt.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content<'a>,
}

/// The result of `prompts/get`.
#[must_use]
pub fn get_result(
    description: Option<&str>,
    messages: &[Message<'_>],
    server: &ServerInfo,
) -> String {
    let size: usize = messages.iter().map(|message| message.content.size()).sum();
    let mut out = String::with_capacity(size + 256);
    let mut result = result::open(&mut out, "complete");
    result.optional_text("description", description);
    push_list(result.key("messages"), messages, |out, message| {
        let mut object = Object::open(out);
        object.text(
            "role",
            match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
            },
        );
        message.content.write_to(object.key("content"));
        object.close();
    });
    server.write_meta(&mut result, None);
    result.close();
    out
}

/// Proposals.
#[derive(Clone, Copy, Debug)]
pub struct Completion<'a> {
    /// The best first. Only the first [`MAX_VALUES`] are sent.
    pub values: &'a [String],
    /// How many there are, if known.
    pub total: Option<u32>,
    /// Whether there are more than these.
    pub has_more: bool,
}

impl Completion<'_> {
    /// The result of `completion/complete`.
    #[must_use]
    pub fn to_json(&self, server: &ServerInfo) -> String {
        let sent = &self.values[..self.values.len().min(MAX_VALUES)];
        let has_more = self.has_more || sent.len() < self.values.len();
        let mut out = String::new();
        let mut result = result::open(&mut out, "complete");
        let mut completion = result.object("completion");
        push_list(completion.key("values"), sent, |out, value| {
            push_string(out, value);
        });
        if let Some(total) = self.total {
            completion.plain("total", total);
        }
        completion.plain("hasMore", has_more);
        completion.close();
        server.write_meta(&mut result, None);
        result.close();
        out
    }
}
