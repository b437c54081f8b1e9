//! What a tool is and what it says of itself.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::bindings::exports::longshore::tool::tools::{self, TaskMode};
use crate::result::Outcome;

/// One tool. Implement it on an empty type and give that to [`export!`](crate::export!).
pub trait Tool {
    /// The name that callers use: 1 to 64 of `A-Za-z0-9_.-`.
    const NAME: &'static str;

    /// The arguments, as they come out of the JSON object that the caller sent. `()` will not do for a tool without
    /// arguments, since JSON's `null` is no object: use [`NoArguments`].
    type Arguments: DeserializeOwned;

    /// What the tool is. Asked once, when the component is uploaded.
    fn describe() -> Description;

    /// Runs the tool. The host has checked the arguments against the schema; what still does not fit the type is a
    /// tool error before this is reached.
    fn call(arguments: Self::Arguments) -> Outcome;
}

/// The arguments of a tool that takes none. Members that a caller sends all the same are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct NoArguments {}

/// What a tool says of itself, to the host and to models.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// A name for people.
    pub title: Option<&'static str>,
    /// What the tool does and when to use it. Models choose by this.
    pub description: &'static str,
    /// A JSON Schema of the arguments, of type object.
    pub input: Value,
    /// A JSON Schema of the structured result, if there is one.
    pub output: Option<Value>,
    /// When a call becomes a task.
    pub task_mode: TaskMode,
    /// What a caller must be capable of.
    pub requires: Vec<Requirement>,
    /// A JSON object of further members of the MCP tool descriptor, such as `annotations`, `icons` and `_meta`, and
    /// `longshore/deadlineMs`.
    pub extra: Option<Value>,
}

impl Default for Description {
    /// A tool without arguments that becomes a task when it takes long.
    fn default() -> Self {
        Self {
            title: None,
            description: "",
            input: json!({ "type": "object", "properties": {} }),
            output: None,
            task_mode: TaskMode::Auto,
            requires: Vec::new(),
            extra: None,
        }
    }
}

impl Description {
    pub(crate) fn into_wire(self, name: &str) -> tools::Tool {
        tools::Tool {
            name: name.to_owned(),
            title: self.title.map(str::to_owned),
            description: self.description.to_owned(),
            input_schema: self.input.to_string(),
            output_schema: self.output.map(|schema| schema.to_string()),
            task_mode: self.task_mode,
            requires: self
                .requires
                .iter()
                .map(|word| word.as_str().to_owned())
                .collect(),
            extra: self.extra.map(|extra| extra.to_string()),
        }
    }
}

/// Something that a caller must be capable of before the tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Tasks: the result may be fetched later.
    Tasks,
    /// A question to the person, as a form or as a page.
    Elicitation,
    /// A form for the person.
    ElicitationForm,
    /// A page for the person to visit.
    ElicitationUrl,
    /// Text from the client's model.
    Sampling,
    /// Text from the client's model, with tools for it.
    SamplingTools,
    /// The client's folders.
    Roots,
}

impl Requirement {
    /// The word of the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Elicitation => "elicitation",
            Self::ElicitationForm => "elicitation.form",
            Self::ElicitationUrl => "elicitation.url",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling.tools",
            Self::Roots => "roots",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_keeps_every_member_on_the_wire() {
        let tool = Description {
            title: Some("Sum"),
            description: "Adds two numbers.",
            input: json!({ "type": "object", "required": ["a"] }),
            output: Some(json!({ "type": "number" })),
            task_mode: TaskMode::OnDetach,
            requires: vec![Requirement::Tasks, Requirement::ElicitationForm],
            extra: Some(json!({ "annotations": { "readOnlyHint": true } })),
        }
        .into_wire("sum");
        let expected = tools::Tool {
            name: "sum".to_owned(),
            title: Some("Sum".to_owned()),
            description: "Adds two numbers.".to_owned(),
            input_schema: r#"{"type":"object","required":["a"]}"#.to_owned(),
            output_schema: Some(r#"{"type":"number"}"#.to_owned()),
            task_mode: TaskMode::OnDetach,
            requires: vec!["tasks".to_owned(), "elicitation.form".to_owned()],
            extra: Some(r#"{"annotations":{"readOnlyHint":true}}"#.to_owned()),
        };
        assert_eq!(tool, expected);
    }

    #[test]
    fn no_arguments_come_out_of_any_object() {
        assert_eq!(
            serde_json::from_str::<NoArguments>("{}").unwrap(),
            NoArguments {}
        );
        assert_eq!(
            serde_json::from_str::<NoArguments>(r#"{"x":1}"#).unwrap(),
            NoArguments {}
        );
        assert!(serde_json::from_str::<NoArguments>("null").is_err());
    }
}
