//! Arguments that clients repeat as HTTP headers, by the annotation `x-mcp-header` (MCP 2026-07-28, Streamable HTTP,
//! custom headers from tool parameters).
//!
//! Clients must drop a tool whose annotations break the rules, so that such a tool is better refused at upload.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::json::cut;
use crate::schema::{self, SchemaFault};

/// The annotation.
const ANNOTATION: &str = "x-mcp-header";
/// The longest name; proxies bound whole header lines.
const MAX_NAME: usize = 64;

/// Words in the name of a property that holds a secret. Headers are logged by proxies on the way.
const SECRETS: [&str; 11] = [
    "apikey",
    "authorization",
    "bearer",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "token",
];

/// One argument that a client repeats in the header `Mcp-Param-` and this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParameter {
    /// What follows `Mcp-Param-`.
    pub name: String,
    /// The names of the properties that lead to the argument.
    pub path: Vec<String>,
    /// How its value is compared.
    pub kind: HeaderKind,
}

/// The type of an argument that is repeated as a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// The annotated arguments of an input schema, or what is wrong with an annotation.
pub fn parameters(input_schema: &str) -> Result<Vec<HeaderParameter>, SchemaFault> {
    of(&schema::read_input(input_schema)?).map_err(SchemaFault::new)
}

/// The same of a schema that was checked.
pub(crate) fn of(input_schema: &Value) -> Result<Vec<HeaderParameter>, String> {
    let mut found = Vec::new();
    let mut names = HashSet::new();
    for annotated in
        schema::annotated(input_schema, ANNOTATION).map_err(|fault| fault.to_string())?
    {
        let at = &annotated.place;
        let Some(path) = annotated.properties.filter(|path| !path.is_empty()) else {
            return Err(format!(
                "{ANNOTATION} at {at} is not on a property of the arguments, reached by `properties` alone; move it there"
            ));
        };
        let name = header_name(annotated.members).ok_or_else(|| {
            format!(
                "{ANNOTATION} at {at} is not a header name; use 1 to {MAX_NAME} letters, digits or !#$%&'*+-.^_`|~"
            )
        })?;
        let kind = kind(annotated.members).ok_or_else(|| {
            format!(
                "{ANNOTATION} at {at} is not on a string, integer or boolean; give the property one of these as its \
                 only `type`, or take the annotation away"
            )
        })?;
        if [path[path.len() - 1], name].into_iter().any(names_a_secret) {
            return Err(format!(
                "{ANNOTATION} at {at} would show a secret to every proxy on the way; take the annotation away"
            ));
        }
        if !names.insert(name.to_ascii_lowercase()) {
            return Err(format!(
                "{ANNOTATION} {:?} at {at} stands twice (case does not count); rename one",
                cut(name, MAX_NAME)
            ));
        }
        found.push(HeaderParameter {
            name: name.to_owned(),
            path: path.into_iter().map(str::to_owned).collect(),
            kind,
        });
    }
    Ok(found)
}

fn header_name(members: &Map<String, Value>) -> Option<&str> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    members
        .get(ANNOTATION)?
        .as_str()
        .filter(|name| (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_token))
}

fn kind(members: &Map<String, Value>) -> Option<HeaderKind> {
    match members.get("type")?.as_str()? {
        "string" => Some(HeaderKind::String),
        "integer" => Some(HeaderKind::Integer),
        "boolean" => Some(HeaderKind::Boolean),
        _ => None,
    }
}

/// Whether one word of the name, or two in a row, is that of a secret. `max_tokens` is none.
fn names_a_secret(name: &str) -> bool {
    let words = words(name);
    let pairs = words.windows(2).map(<[String]>::concat);
    words
        .iter()
        .cloned()
        .chain(pairs)
        .any(|word| SECRETS.contains(&word.as_str()))
}

/// The words of `apiKey`, `API-Key` and `api_key`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let starts = !letter.is_alphabetic() || (was_lower && letter.is_uppercase());
        if starts {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
            let last = words.len() - 1;
            words[last].extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}
