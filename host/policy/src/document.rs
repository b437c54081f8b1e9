//! Policies as people write them: TOML in files and components, JSON on the way to a server.
//!
//! What is not understood is refused, by its place and with what may have been meant: a word that is skipped over
//! would be a bound that nobody keeps.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::limits::BOUNDS;
use crate::nearest::nearest;

/// Why a text is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub(crate) String);

/// Of a whole policy: far more than anybody writes.
pub const MOST_BYTES: usize = 64 * 1024;
/// Of each list in one: every request is compared with all of them.
const MOST_ITEMS: usize = 256;

/// What may stand somewhere.
pub(crate) enum Shape {
    /// A value, which its own type reads.
    Value,
    /// These keys.
    Table(&'static [(&'static str, Shape)]),
    /// The limits by their names.
    Limits,
    /// Names that are free to choose.
    Names,
    /// Any number of the same.
    List(&'static Shape),
}

/// Reads a text in TOML.
pub(crate) fn of_toml<T: DeserializeOwned>(text: &str, shape: &Shape) -> Result<T, Fault> {
    if text.len() > MOST_BYTES {
        return Err(Fault(format!(
            "it has {} bytes, at most {MOST_BYTES} are allowed",
            text.len()
        )));
    }
    // Where in the text something stands is in the first line of what the parser says.
    let value = toml::from_str(text).map_err(|error| Fault(sentence(&error.to_string())))?;
    of_json(value, shape)
}

/// Reads the same in JSON.
pub(crate) fn of_json<T: DeserializeOwned>(value: Value, shape: &Shape) -> Result<T, Fault> {
    check(&value, shape, "")?;
    serde_json::from_value(value).map_err(|error| Fault(sentence(&error.to_string())))
}

/// The lines of a parser's message that say where and what, without its picture of the place.
fn sentence(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.contains('|'))
        .collect();
    lines.join(": ")
}

fn check(value: &Value, shape: &Shape, at: &str) -> Result<(), Fault> {
    let known = |names: &[&str]| {
        let Value::Object(members) = value else {
            return Err(expected(at, "a table"));
        };
        match members.keys().find(|key| !names.contains(&key.as_str())) {
            Some(key) => Err(unknown(at, key, names)),
            None => Ok(()),
        }
    };
    match shape {
        Shape::Value => Ok(()),
        Shape::Limits => known(&BOUNDS.map(|bound| bound.name)),
        Shape::Names => match value {
            Value::Object(members) if members.len() <= MOST_ITEMS => Ok(()),
            Value::Object(_) => Err(too_many(at)),
            _ => Err(expected(at, "a table")),
        },
        Shape::List(of) => {
            let Value::Array(items) = value else {
                return Err(expected(at, "a list"));
            };
            if items.len() > MOST_ITEMS {
                return Err(too_many(at));
            }
            items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| check(item, of, &format!("{at}[{index}]")))
        }
        Shape::Table(keys) => {
            let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
            known(&names)?;
            keys.iter().try_for_each(|(name, shape)| {
                let at = if at.is_empty() {
                    (*name).to_owned()
                } else {
                    format!("{at}.{name}")
                };
                value
                    .get(name)
                    .map_or(Ok(()), |value| check(value, shape, &at))
            })
        }
    }
}

fn expected(at: &str, what: &str) -> Fault {
    let at = if at.is_empty() { "all of it" } else { at };
    Fault(format!("{at} must be {what}"))
}

fn too_many(at: &str) -> Fault {
    Fault(format!("{at} has more than {MOST_ITEMS} items"))
}

fn unknown(at: &str, key: &str, names: &[&str]) -> Fault {
    let key: String = key.chars().take(80).collect();
    let place = if at.is_empty() {
        key
    } else {
        format!("{at}.{key}")
    };
    let meant = match nearest(
        place.rsplit('.').next().unwrap_or_default(),
        names.iter().copied(),
    ) {
        Some(near) => format!("is `{near}` meant?"),
        None => format!("there are {}", names.join(", ")),
    };
    Fault(format!("{place:?} is not known: {meant}"))
}
