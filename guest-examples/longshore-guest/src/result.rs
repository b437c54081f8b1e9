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

use serde::Serialize;
use serde_json::Value;

use crate::bindings::longshore::tool::task::AskError;
use crate::bindings::longshore::tool::types::{Block, CallError, RpcError, ToolResult};

/// How a call ends.
pub type Outcome = Result<ToolResult, CallError>;

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

impl From<AskError> for CallError {
    /// A question that a cancel ended ends the call as cancelled, any other as a tool error.
    fn from(error: AskError) -> Self {
        match error {
            AskError::CallCancelled => Self::Cancelled,
            AskError::TimedOut => Self::tool("nobody answered the question in time"),
            AskError::Unsupported(why) => Self::tool(format!("this client cannot be asked: {why}")),
            AskError::Invalid(why) => Self::tool(format!("the question is malformed: {why}")),
            AskError::Limit(why) => Self::tool(format!("the question is over a limit: {why}")),
        }
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
