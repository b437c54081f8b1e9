//! What a tool answers, well or not.
//!
//! A text is a result: `Ok("done".into())`. A text is also a tool error, so `?` works on `Result<_, String>`:
//!
//! ```
//! # use longshore_guest::Outcome;
//! fn halve(number: u32) -> Outcome {
//!     if number % 2 == 1 {
//!         return Err(format!("{number} is odd: give an even number").into());
//!     }
//!     Ok((number / 2).to_string().into())
//! }
//! # assert!(halve(3).is_err());
//! ```

use std::any::Any;
use std::error::Error;
use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;

use crate::bindings::longshore::tool::task::AskError;
use crate::bindings::longshore::tool::types::{Block, CallError, RpcError, ToolResult};
use crate::kept;
use crate::schema::Schema;

/// How a call ends.
pub type Outcome = Result<ToolResult, CallError>;

/// What a tool may answer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of a tool",
    label = "not a text, a number or a `ToolResult`",
    note = "for an answer that is data, derive `Serialize` and `longshore_guest::Schema` and say `#[tool(output)]`"
)]
pub trait IntoResult {
    /// The result that this is.
    fn into_result(self) -> ToolResult;
}

impl IntoResult for ToolResult {
    fn into_result(self) -> ToolResult {
        self
    }
}

impl IntoResult for Vec<Block> {
    fn into_result(self) -> ToolResult {
        ToolResult::blocks(self)
    }
}

/// A tool that has done its work and has nothing to say.
impl IntoResult for () {
    fn into_result(self) -> ToolResult {
        ToolResult::blocks(Vec::new())
    }
}

macro_rules! into_text {
    ($($ty:ty)+) => {
        $(impl IntoResult for $ty {
            fn into_result(self) -> ToolResult {
                ToolResult::text(self.to_string())
            }
        })+
    };
}

into_text!(String &str bool char u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64);

/// What a tool may return: an answer, or a [`Result`] of one.
///
/// An error of any type is a tool error with its text, but [`CallError`], [`Cancelled`] and [`AskError`] keep their
/// meaning, in a `Box<dyn Error>` too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what a tool returns",
    label = "not a text, a number, a `ToolResult`, nor a `Result` of one",
    note = "for an answer that is data, derive `Serialize` and `longshore_guest::Schema` and say `#[tool(output)]`",
    note = "an error needs to be `Display`"
)]
pub trait IntoOutcome {
    /// How the call ends.
    ///
    /// # Errors
    /// If the tool did not manage.
    fn into_outcome(self) -> Outcome;
}

impl<T: IntoResult> IntoOutcome for T {
    fn into_outcome(self) -> Outcome {
        Ok(self.into_result())
    }
}

impl<T: IntoResult, E: Display + 'static> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        self.map(IntoResult::into_result).map_err(CallError::of)
    }
}

/// What a tool with `#[tool(output)]` may return: data that has a schema, or a [`Result`] of it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the answer of a tool with `output`",
    label = "not data with a schema, nor a `Result` of it",
    note = "derive `serde::Serialize` and `longshore_guest::Schema` for it",
    note = "an error needs to be `Display`"
)]
pub trait IntoData {
    /// The schema of the data.
    fn schema() -> Value;

    /// How the call ends.
    ///
    /// # Errors
    /// If the tool did not manage.
    fn into_data(self) -> Outcome;
}

impl<T: Serialize + Schema> IntoData for T {
    fn schema() -> Value {
        <T as Schema>::schema()
    }

    fn into_data(self) -> Outcome {
        ToolResult::structured(&self)
    }
}

impl<T: Serialize + Schema, E: Display + 'static> IntoData for Result<T, E> {
    fn schema() -> Value {
        <T as Schema>::schema()
    }

    fn into_data(self) -> Outcome {
        ToolResult::structured(&self.map_err(CallError::of)?)
    }
}

impl ToolResult {
    /// A result that is one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks(vec![Block::Text(text.into())])
    }

    /// A result of any blocks.
    #[must_use]
    pub fn blocks(content: Vec<Block>) -> Self {
        Self {
            content,
            structured: None,
            meta: None,
        }
    }

    /// A result that is data, and the same as text for clients that read only that.
    ///
    /// # Errors
    /// When the value has no JSON form, such as a map whose keys are not texts: a tool error that says so.
    pub fn structured(value: &impl Serialize) -> Outcome {
        let json = serde_json::to_string(value)
            .map_err(|error| format!("cannot give the result as JSON: {error}"))?;
        Ok(Self {
            structured: Some(json.clone()),
            ..Self::text(json)
        })
    }

    /// The same result with this `_meta`, a JSON object.
    #[must_use]
    pub fn with_meta(self, meta: &Value) -> Self {
        Self {
            meta: Some(meta.to_string()),
            ..self
        }
    }
}

impl From<String> for ToolResult {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolResult {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl CallError {
    /// What an error of any type means.
    fn of<E: Display + 'static>(error: E) -> Self {
        let mut error = Some(error);
        let known = known::<Self>(&mut error)
            .or_else(|| known::<Cancelled>(&mut error).map(Self::from))
            .or_else(|| known::<AskError>(&mut error).map(Self::from))
            .or_else(|| known::<Box<dyn Error>>(&mut error).map(Self::of_boxed))
            .or_else(|| {
                known::<Box<dyn Error + Send + Sync>>(&mut error).map(|error| Self::of_boxed(error))
            });
        // The alternate form is the one in which error types that keep their causes show them.
        known.unwrap_or_else(|| {
            Self::tool(error.map(|error| format!("{error:#}")).unwrap_or_default())
        })
    }

    fn of_boxed(error: Box<dyn Error>) -> Self {
        error
            .downcast::<Self>()
            .map(|error| *error)
            .or_else(|error| {
                error
                    .downcast::<Cancelled>()
                    .map(|error| Self::from(*error))
            })
            .or_else(|error| error.downcast::<AskError>().map(|error| Self::from(*error)))
            .unwrap_or_else(|error| Self::tool(error.to_string()))
    }

    /// A tool error: the model reads the text and may try again.
    #[must_use]
    pub fn tool(text: impl Into<String>) -> Self {
        Self::Failed(ToolResult::text(text))
    }

    /// A JSON-RPC error: the request itself made no sense. Codes of your own lie outside -32768 to -32000.
    #[must_use]
    pub fn rpc(code: i32, message: impl Into<String>) -> Self {
        Self::Protocol(RpcError {
            code,
            message: message.into(),
            data: None,
        })
    }
}

/// Takes the error if it is of that type.
fn known<T: 'static>(error: &mut dyn Any) -> Option<T> {
    error.downcast_mut::<Option<T>>().and_then(Option::take)
}

impl From<String> for CallError {
    fn from(text: String) -> Self {
        Self::tool(text)
    }
}

impl From<&str> for CallError {
    fn from(text: &str) -> Self {
        Self::tool(text)
    }
}

impl From<std::io::Error> for CallError {
    fn from(error: std::io::Error) -> Self {
        Self::tool(error.to_string())
    }
}

impl From<serde_json::Error> for CallError {
    fn from(error: serde_json::Error) -> Self {
        Self::tool(error.to_string())
    }
}

impl From<Cancelled> for CallError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<kept::Error> for CallError {
    fn from(error: kept::Error) -> Self {
        Self::tool(error.to_string())
    }
}

impl From<AskError> for CallError {
    /// A question that a cancel ended ends the call as cancelled, any other as a tool error.
    fn from(error: AskError) -> Self {
        match error {
            AskError::CallCancelled => Self::Cancelled,
            error => Self::tool(why_unanswered(&error)),
        }
    }
}

/// JSON-RPC 2.0, internal error.
pub(crate) const INTERNAL: i32 = -32603;

/// What became of a question, for whoever is told instead of the answer.
pub(crate) fn why_unanswered(error: &AskError) -> String {
    match error {
        AskError::CallCancelled => "the call was cancelled".to_owned(),
        AskError::TimedOut => "nobody answered the question in time".to_owned(),
        AskError::Unsupported(why) => format!("this client cannot be asked: {why}"),
        AskError::Invalid(why) => format!("the question is malformed: {why}"),
        AskError::Limit(why) => format!("the question is over a limit: {why}"),
    }
}

/// The call was cancelled: clean up and return. With `?` it becomes [`CallError::Cancelled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;

impl std::fmt::Display for Cancelled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the call was cancelled")
    }
}

impl std::error::Error for Cancelled {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_any_kind_is_a_result() {
        assert_eq!("a".into_outcome(), Ok(ToolResult::text("a")));
        assert_eq!(1.5.into_outcome(), Ok(ToolResult::text("1.5")));
        assert_eq!(().into_outcome(), Ok(ToolResult::blocks(Vec::new())));
        assert_eq!(
            Ok::<_, String>(true).into_outcome(),
            Ok(ToolResult::text("true"))
        );
    }

    #[test]
    fn an_error_of_any_type_is_a_tool_error_unless_it_means_more() {
        let ended = |outcome: Outcome| outcome.unwrap_err();
        let number = "x".parse::<u8>().unwrap_err();
        assert_eq!(
            ended(Err::<(), _>(number).into_outcome()),
            CallError::tool("invalid digit found in string")
        );
        let rpc = CallError::rpc(7, "no");
        assert_eq!(ended(Err::<(), _>(rpc.clone()).into_outcome()), rpc);
        assert_eq!(
            ended(Err::<(), _>(Cancelled).into_outcome()),
            CallError::Cancelled
        );
        assert_eq!(
            ended(Err::<(), _>(AskError::CallCancelled).into_outcome()),
            CallError::Cancelled
        );
        let boxed: Box<dyn Error> = Box::new(rpc.clone());
        assert_eq!(ended(Err::<(), _>(boxed).into_outcome()), rpc);
        let boxed: Box<dyn Error + Send + Sync> = Box::new(Cancelled);
        assert_eq!(
            ended(Err::<(), _>(boxed).into_outcome()),
            CallError::Cancelled
        );
        let boxed: Box<dyn Error> = "no".into();
        assert_eq!(
            ended(Err::<(), _>(boxed).into_outcome()),
            CallError::tool("no")
        );
    }

    #[test]
    fn data_brings_its_schema() {
        let outcome = Ok::<_, String>(vec![1_u64]).into_data();
        assert_eq!(outcome.unwrap().structured.as_deref(), Some("[1]"));
        assert_eq!(
            <Result<Vec<u64>, String> as IntoData>::schema(),
            serde_json::json!({ "type": "array", "items": { "type": "integer", "minimum": 0 } })
        );
    }

    #[test]
    fn a_structured_result_says_the_same_as_text() {
        let result = ToolResult::structured(&serde_json::json!({ "sum": 3 })).unwrap();
        assert_eq!(result.structured.as_deref(), Some(r#"{"sum":3}"#));
        assert_eq!(result.content, [Block::Text(r#"{"sum":3}"#.to_owned())]);
        assert_eq!(result.meta, None);
    }

    #[test]
    fn what_has_no_json_form_is_a_tool_error() {
        let map = std::collections::HashMap::from([((1, 2), 3)]);
        let Err(CallError::Failed(result)) = ToolResult::structured(&map) else {
            panic!("a tool error")
        };
        let [Block::Text(text)] = &*result.content else {
            panic!("one text")
        };
        assert!(
            text.starts_with("cannot give the result as JSON: "),
            "{text}"
        );
    }

    #[test]
    fn only_a_cancel_ends_a_call_as_cancelled() {
        assert_eq!(
            CallError::from(AskError::CallCancelled),
            CallError::Cancelled
        );
        assert_eq!(CallError::from(Cancelled), CallError::Cancelled);
        for error in [
            AskError::TimedOut,
            AskError::Unsupported("no forms".to_owned()),
            AskError::Invalid("no key".to_owned()),
            AskError::Limit("16 open".to_owned()),
        ] {
            assert!(matches!(CallError::from(error), CallError::Failed(_)));
        }
    }
}
