//! Questions to the person, their client and its model.
//!
//! Each function here waits for the answer, for days if need be. The call becomes a task at its first question,
//! where the tool's mode and the caller allow it. With `?` a cancel ends the call as cancelled, and any other trouble
//! as a tool error.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::argument::Argument;
use crate::bindings::longshore::tool::task as host;
use crate::task::whole_millis;

pub use host::{Answer, AskError, AskKind, Form, KeyedQuestion, Question, Visit, can_ask};

/// What a person did with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<T> {
    /// They said yes, and filled in this.
    Accepted(T),
    /// They said no.
    Declined,
    /// They closed the question without saying either.
    Dismissed,
}

/// Shows a form and reads what was filled in. The schema is flat: an object whose properties are texts, numbers,
/// booleans or choices. `wait` is the longest time to wait, `None` until the deadline of the call.
///
/// # Errors
/// See [`AskError`]; `Invalid` too if what matches the schema does not fit `T`.
pub fn form<T: DeserializeOwned>(
    key: &str,
    message: &str,
    schema: &Value,
    wait: Option<Duration>,
) -> Result<Reply<T>, AskError> {
    one(key, &Question::form(message, schema), wait)?.into_reply()
}

/// Asks the person to visit a page, for what must not go through their client. Accepted means that they agreed to go.
///
/// # Errors
/// See [`AskError`].
pub fn visit(
    key: &str,
    message: &str,
    url: &str,
    wait: Option<Duration>,
) -> Result<Reply<()>, AskError> {
    one(key, &Question::visit(message, url), wait)?.into_reply()
}

/// Asks any one question.
///
/// # Errors
/// See [`AskError`].
pub fn one(key: &str, question: &Question, wait: Option<Duration>) -> Result<Answer, AskError> {
    host::ask(key, question, wait.map(whole_millis))
}

/// Asks several questions at once and waits for all: every answer, in the order of the questions, or none.
///
/// # Errors
/// See [`AskError`].
pub fn all(questions: &[KeyedQuestion], wait: Option<Duration>) -> Result<Vec<Answer>, AskError> {
    host::ask_all(questions, wait.map(whole_millis))
}

impl Question {
    /// A form.
    #[must_use]
    pub fn form(message: impl Into<String>, schema: &Value) -> Self {
        Self::Form(Form {
            message: message.into(),
            schema: schema.to_string(),
        })
    }

    /// A form with a field for each of `T`: texts, numbers, booleans and choices.
    #[must_use]
    pub fn form_of<T: Argument>(message: impl Into<String>) -> Self {
        Self::form(message, &T::schema())
    }

    /// A page to visit.
    #[must_use]
    pub fn visit(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(Visit {
            message: message.into(),
            url: url.into(),
        })
    }

    /// Text from the client's model: the parameters of `sampling/createMessage`.
    #[must_use]
    pub fn sample(parameters: &Value) -> Self {
        Self::Sample(parameters.to_string())
    }

    /// The same question with its key, for [`all`].
    #[must_use]
    pub fn with_key(self, key: impl Into<String>) -> KeyedQuestion {
        KeyedQuestion {
            key: key.into(),
            question: self,
        }
    }
}

impl Answer {
    /// Reads the answer to a form or to a page.
    ///
    /// # Errors
    /// `Invalid` if it does not fit `T`, or answers another kind of question.
    pub fn into_reply<T: DeserializeOwned>(self) -> Result<Reply<T>, AskError> {
        self.read(|content| serde_json::from_str(content).map_err(|error| error.to_string()))
    }

    /// Reads the answer to a form that was made for `T`.
    ///
    /// # Errors
    /// `Invalid` if it does not fit `T`, or answers another kind of question.
    pub fn into_argument<T: Argument>(self) -> Result<Reply<T>, AskError> {
        self.read(|content| {
            let value = serde_json::from_str(content).map_err(|error| error.to_string())?;
            T::from_json(value).map_err(|mismatch| mismatch.to_string())
        })
    }

    fn read<T>(self, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Reply<T>, AskError> {
        match self {
            Self::Accepted(content) => read(content.as_deref().unwrap_or("null"))
                .map(Reply::Accepted)
                .map_err(|why| {
                    AskError::Invalid(format!("the answer does not fit its type: {why}"))
                }),
            Self::Declined => Ok(Reply::Declined),
            Self::Dismissed => Ok(Reply::Dismissed),
            Self::Sampled(_) | Self::Roots(_) | Self::Raw(_) => Err(AskError::Invalid(
                "the answer belongs to another kind of question".to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accepted_form_is_read() {
        let reply = Answer::Accepted(Some(r#"{"ok":true}"#.to_owned())).into_reply::<Value>();
        assert_eq!(
            reply,
            Ok(Reply::Accepted(serde_json::json!({ "ok": true })))
        );
    }

    #[test]
    fn an_accepted_page_has_nothing_to_read() {
        assert_eq!(Answer::Accepted(None).into_reply(), Ok(Reply::Accepted(())));
    }

    #[test]
    fn no_and_closed_are_two_things() {
        assert_eq!(Answer::Declined.into_reply::<()>(), Ok(Reply::Declined));
        assert_eq!(Answer::Dismissed.into_reply::<()>(), Ok(Reply::Dismissed));
    }

    #[test]
    fn what_does_not_fit_is_invalid_and_names_why() {
        let Err(AskError::Invalid(why)) =
            Answer::Accepted(Some("{}".to_owned())).into_reply::<u8>()
        else {
            panic!("an object is no number")
        };
        assert!(why.contains("invalid type: map"), "{why}");
        assert!(matches!(
            Answer::Sampled("{}".to_owned()).into_reply::<Value>(),
            Err(AskError::Invalid(_))
        ));
    }

    #[test]
    fn a_question_carries_its_schema_as_json() {
        let schema = serde_json::json!({ "type": "object" });
        let question = Question::form("Who?", &schema).with_key("who");
        assert_eq!(question.key, "who");
        let Question::Form(form) = question.question else {
            panic!("a form")
        };
        assert_eq!(
            (&*form.message, &*form.schema),
            ("Who?", r#"{"type":"object"}"#)
        );
    }
}
