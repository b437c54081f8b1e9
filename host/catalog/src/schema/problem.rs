//! What is said about a value that a schema refuses.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::json::cut;

/// The longest message, in characters.
const MAX_MESSAGE: usize = 200;
/// The longest name or value in a message, in characters.
const MAX_SHOWN: usize = 80;
/// The names listed in a message.
const MAX_NAMES: usize = 4;

/// One place where a value does not match. The value itself is never repeated: it may be long or secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place in the value as a JSON pointer, `(root)` for the whole.
    pub path: String,
    /// What is wrong there: a fragment that can follow the place.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.path, self.message)
    }
}

impl Problem {
    pub(super) fn at_root(message: &str) -> Self {
        Self {
            path: super::place(""),
            message: message.to_owned(),
        }
    }

    pub(super) fn of(error: &ValidationError<'_>) -> Self {
        Self {
            path: super::place(error.instance_path().as_str()),
            message: cut(&message(error.kind()), MAX_MESSAGE),
        }
    }
}

fn message(kind: &Kind) -> String {
    match kind {
        Kind::Type { kind } => format!("is not of type {}", types(kind)),
        Kind::Required { property } => format!("lacks the property {}", value(property)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!(
                "has properties that the schema does not know: {}",
                names(unexpected)
            )
        }
        Kind::AdditionalItems { limit } => format!("has more than {limit} items"),
        Kind::UnevaluatedItems { .. } => "has items that the schema does not know".to_owned(),
        Kind::Enum { options } => format!("is none of {}", value(options)),
        Kind::Constant { expected_value } => format!("is not {}", value(expected_value)),
        Kind::Minimum { limit } => format!("is less than {}", value(limit)),
        Kind::Maximum { limit } => format!("is more than {}", value(limit)),
        Kind::ExclusiveMinimum { limit } => format!("is not more than {}", value(limit)),
        Kind::ExclusiveMaximum { limit } => format!("is not less than {}", value(limit)),
        Kind::MultipleOf { multiple_of } => format!("is not a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("is shorter than {limit} characters"),
        Kind::MaxLength { limit } => format!("is longer than {limit} characters"),
        Kind::MinItems { limit } => format!("has fewer than {limit} items"),
        Kind::MaxItems { limit } => format!("has more than {limit} items"),
        Kind::MinProperties { limit } => format!("has fewer than {limit} properties"),
        Kind::MaxProperties { limit } => format!("has more than {limit} properties"),
        Kind::UniqueItems => "has an item twice".to_owned(),
        Kind::Contains => "has too few or too many items that match `contains`".to_owned(),
        Kind::Pattern { pattern } => {
            format!("does not match the pattern {:?}", cut(pattern, MAX_SHOWN))
        }
        Kind::PropertyNames { error } => format!(
            "has a property whose name {}",
            cut(&message(error.kind()), MAX_SHOWN)
        ),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            format!("matches none of the {} allowed forms", context.len())
        }
        Kind::OneOfMultipleValid { .. } => "matches more than one of the allowed forms".to_owned(),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::Not { .. } => "matches what is not allowed".to_owned(),
        // Of the library's other kinds none can come from the keywords that we pass on.
        other => format!("does not match `{}`", cut(other.keyword(), MAX_SHOWN)),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(set) => {
            let names: Vec<String> = set.iter().map(|one| one.to_string()).collect();
            names.join(" or ")
        }
    }
}

/// A value of the schema, not of the instance.
fn value(value: &Value) -> String {
    cut(&value.to_string(), MAX_SHOWN)
}

fn names(all: &[String]) -> String {
    let shown: Vec<String> = all
        .iter()
        .take(MAX_NAMES)
        .map(|name| format!("{:?}", cut(name, 32)))
        .collect();
    let more = if all.len() > MAX_NAMES { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
