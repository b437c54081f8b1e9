//! Prompts: what a component lets people choose and fill in.
//!
//! Only a component with a `#[prompt]` exports `longshore:tool/prompts`. The macro writes that export into the
//! author's own crate: here it would be part of every component.

use std::any::Any;
use std::fmt::Display;

use serde_json::{Map, Value};

use crate::ask::AskError;
use crate::bindings::longshore::tool::types::{Block, RpcError};
use crate::completion::Completer;
use crate::panic::install_hook;
use crate::result::{Cancelled, INTERNAL, why_unanswered};

use self::bindings::exports::longshore::tool::prompts::{Argument, Guest, Prompt};
pub use self::bindings::exports::longshore::tool::prompts::{
    Message, PromptError, PromptResult, Role,
};

/// What the macro's export names.
pub mod bindings {
    #![expect(missing_docs, reason = "what the generator adds has none")]

    wit_bindgen::generate!({
        inline: "
            package longshore:guest-prompts;

            world prompter {
                export longshore:tool/prompts@0.1.0;
            }
        ",
        path: "../../wit",
        world: "longshore:guest-prompts/prompter",
        with: { "longshore:tool/types@0.1.0": crate::bindings::longshore::tool::types },
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
    });
}

/// What filling in a prompt comes to.
pub type Prompted = Result<PromptResult, PromptError>;

impl Message {
    /// What the person says.
    #[must_use]
    pub fn user(content: impl Into<Block>) -> Self {
        Self {
            role: Role::User,
            content: content.into(),
        }
    }

    /// What the model says.
    #[must_use]
    pub fn assistant(content: impl Into<Block>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
        }
    }
}

impl From<String> for Block {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Block {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// What a prompt may return.
///
/// A text or a [`Block`] is one message of the person, a list of [`Message`]s a whole conversation. An error of any
/// type says what is wrong with an argument; [`PromptError`], [`Cancelled`] and [`AskError`] keep their meaning.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what a prompt says",
    label = "not a text, a `Block`, a `Vec<Message>`, a `PromptResult`, nor a `Result` of one",
    note = "an error needs to be `Display`"
)]
pub trait IntoPrompt {
    /// The prompt that this is.
    ///
    /// # Errors
    /// Why there is none.
    fn into_prompt(self) -> Prompted;
}

impl IntoPrompt for PromptResult {
    fn into_prompt(self) -> Prompted {
        Ok(self)
    }
}

impl IntoPrompt for Vec<Message> {
    fn into_prompt(self) -> Prompted {
        Ok(PromptResult {
            description: None,
            messages: self,
        })
    }
}

impl IntoPrompt for Block {
    fn into_prompt(self) -> Prompted {
        vec![Message::user(self)].into_prompt()
    }
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Prompted {
        Block::from(self).into_prompt()
    }
}

impl IntoPrompt for &str {
    fn into_prompt(self) -> Prompted {
        Block::from(self).into_prompt()
    }
}

impl<T: IntoPrompt, E: Display + 'static> IntoPrompt for Result<T, E> {
    fn into_prompt(self) -> Prompted {
        self.map_err(error_of)?.into_prompt()
    }
}

/// What an error of any type means.
fn error_of<E: Display + 'static>(error: E) -> PromptError {
    let mut error = Some(error);
    let any: &mut dyn Any = &mut error;
    if let Some(known) = any.downcast_mut::<Option<PromptError>>() {
        return known.take().unwrap_or(PromptError::Cancelled);
    }
    if any.is::<Option<Cancelled>>() {
        return PromptError::Cancelled;
    }
    if let Some(Some(asked)) = any.downcast_mut::<Option<AskError>>().map(Option::take) {
        return asked.into();
    }
    PromptError::Invalid(error.map(|error| format!("{error:#}")).unwrap_or_default())
}

impl From<AskError> for PromptError {
    /// A question that a cancel ended ends the prompt as cancelled; of any other trouble it is told.
    fn from(error: AskError) -> Self {
        match error {
            AskError::CallCancelled => Self::Cancelled,
            error => Self::Protocol(RpcError {
                code: INTERNAL,
                message: why_unanswered(&error),
                data: None,
            }),
        }
    }
}

impl From<Cancelled> for PromptError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// A type that an argument of a prompt may have: people type texts.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a prompt",
    label = "people type texts",
    note = "take a `String`, or an `Option<String>` for what may be left out"
)]
pub trait PromptArgument: Sized {
    /// Whether the prompt is refused without it.
    const REQUIRED: bool;

    /// Reads what was given, if anything was.
    fn of(given: Option<String>) -> Option<Self>;
}

impl PromptArgument for String {
    const REQUIRED: bool = true;

    fn of(given: Option<String>) -> Option<Self> {
        given
    }
}

impl PromptArgument for Option<String> {
    const REQUIRED: bool = false;

    fn of(given: Option<String>) -> Option<Self> {
        Some(given)
    }
}

/// The arguments of a prompt, which are taken out one by one.
#[derive(Debug)]
pub struct Given(Map<String, Value>);

impl Given {
    /// Takes one.
    ///
    /// # Errors
    /// If it is missing.
    pub fn take<T: PromptArgument>(&mut self, name: &str) -> Result<T, PromptError> {
        let given = match self.0.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        T::of(given).ok_or_else(|| PromptError::Invalid(format!("{name} is missing")))
    }
}

/// One argument of a prompt, as it is listed.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentEntry {
    /// Its name.
    pub name: &'static str,
    /// What to give.
    pub description: Option<&'static str>,
    /// Whether the prompt is refused without it.
    pub required: bool,
}

/// One row of a component's table of prompts.
#[derive(Debug, Clone, Copy)]
pub struct PromptEntry {
    /// Its name.
    pub name: &'static str,
    /// A name for people.
    pub title: Option<&'static str>,
    /// What it is for.
    pub description: &'static str,
    /// Its arguments.
    pub arguments: &'static [ArgumentEntry],
    /// Who proposes what an argument could be.
    pub completers: &'static [(&'static str, Completer)],
    /// Fills it in.
    pub get: fn(&mut Given) -> Prompted,
}

inventory::collect!(PromptEntry);

/// The way to a component's prompts.
#[derive(Debug, Clone, Copy)]
pub struct Prompts;

impl Guest for Prompts {
    fn list_prompts() -> Vec<Prompt> {
        install_hook();
        let mut listed: Vec<Prompt> = inventory::iter::<PromptEntry>().map(described).collect();
        listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        listed
    }

    fn get_prompt(name: String, arguments: String) -> Prompted {
        install_hook();
        get(inventory::iter::<PromptEntry>(), &name, &arguments)
    }
}

fn described(entry: &PromptEntry) -> Prompt {
    let arguments = entry.arguments.iter().map(|argument| Argument {
        name: argument.name.to_owned(),
        description: argument.description.map(str::to_owned),
        required: argument.required,
    });
    Prompt {
        name: entry.name.to_owned(),
        title: entry.title.map(str::to_owned),
        description: Some(entry.description.to_owned()),
        arguments: arguments.collect(),
        extra: None,
    }
}

fn get<'e>(
    entries: impl IntoIterator<Item = &'e PromptEntry>,
    name: &str,
    arguments: &str,
) -> Prompted {
    let invalid = |text: String| PromptError::Invalid(text);
    let entry = entries
        .into_iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| invalid(format!("no prompt {name} in this component")))?;
    let given = serde_json::from_str(arguments)
        .map_err(|error| invalid(format!("the arguments of {name} do not fit: {error}")))?;
    (entry.get)(&mut Given(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: PromptEntry = PromptEntry {
        name: "greet",
        title: Some("Greet"),
        description: "Greets.",
        arguments: &[ArgumentEntry {
            name: "who",
            description: None,
            required: true,
        }],
        completers: &[],
        get: |given| {
            let who: String = given.take("who")?;
            let how: Option<String> = given.take("how")?;
            format!("{} {who}", how.unwrap_or_else(|| "Hello".to_owned())).into_prompt()
        },
    };

    fn said(prompted: Prompted) -> String {
        let prompt = prompted.unwrap();
        match &*prompt.messages {
            [
                Message {
                    role: Role::User,
                    content: Block::Text(text),
                },
            ] => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_prompt_gets_its_arguments() {
        let get = |arguments: &str| get(&[ENTRY], "greet", arguments);
        assert_eq!(said(get(r#"{"who":"Ann"}"#)), "Hello Ann");
        assert_eq!(
            said(get(r#"{"who":"Ann","how":"Good day,"}"#)),
            "Good day, Ann"
        );
        let missing = get("{}").unwrap_err();
        assert!(matches!(missing, PromptError::Invalid(text) if text == "who is missing"));
        let unknown = super::get(&[ENTRY], "other", "{}");
        assert!(matches!(unknown, Err(PromptError::Invalid(_))));
        let listed = described(&ENTRY);
        assert_eq!(
            (&*listed.name, &*listed.arguments[0].name),
            ("greet", "who")
        );
    }

    #[test]
    fn an_error_of_any_type_is_about_an_argument_unless_it_means_more() {
        let ended = |prompted: Prompted| prompted.unwrap_err();
        let wrong = ended(Err::<String, _>("no such day").into_prompt());
        assert!(matches!(wrong, PromptError::Invalid(text) if text == "no such day"));
        let cancelled = ended(Err::<String, _>(Cancelled).into_prompt());
        assert!(matches!(cancelled, PromptError::Cancelled));
        let cancelled = ended(Err::<String, _>(AskError::CallCancelled).into_prompt());
        assert!(matches!(cancelled, PromptError::Cancelled));
        let known = ended(Err::<String, _>(PromptError::Cancelled).into_prompt());
        assert!(matches!(known, PromptError::Cancelled));
    }

    #[test]
    fn a_conversation_is_a_list_of_messages() {
        let messages = vec![Message::user("a"), Message::assistant("b".to_owned())];
        assert_eq!(messages.clone().into_prompt().unwrap().messages, messages);
    }
}
