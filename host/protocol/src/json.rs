//! JSON text from outside: how deep it may go, and how to take members out without building a tree.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

/// The deepest nesting accepted in any text. The guest contract promises as much; a deeper text serves only to
/// exhaust the stack of a recursive reader, here, in a guest or in a client.
pub const MAX_DEPTH: usize = 64;

/// Why a text was refused: a fragment that can follow the name of what was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonFault(pub(crate) String);

/// Whether brackets nest no deeper than [`MAX_DEPTH`]. One pass over the bytes, without recursion and before any
/// parser; a text that is not JSON may pass and is left to the parser.
#[must_use]
pub fn is_shallow(text: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for &byte in text {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return false;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

/// Reads one whole text strictly: at most [`MAX_DEPTH`] deep, no member named twice, no broken escape, no number that
/// fits nowhere. For arguments and for JSON from guests, where two readers that differ about a repeated member would
/// let one of them be fooled.
pub fn strict_value(text: &str) -> Result<Value, JsonFault> {
    if !is_shallow(text.as_bytes()) {
        return Err(JsonFault(format!("is nested deeper than {MAX_DEPTH}")));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| JsonFault(format!("is not accepted as JSON: {error}")))
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Strict)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.contains_key(&key) {
                return Err(de::Error::custom(format_args!(
                    "the member `{}` stands twice",
                    shown(&key)
                )));
            }
            let value = map.next_value_seed(Strict)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

/// The chosen members of one object, each as the text it was.
pub(crate) struct Picked<'a, const N: usize> {
    /// In the order of the keys asked for.
    pub(crate) values: [Option<&'a RawValue>; N],
    /// For each key, whether it stood more than once.
    pub(crate) repeated: [bool; N],
}

/// What a text is instead of an object.
#[derive(Debug)]
pub(crate) enum NotPicked {
    /// Not JSON at all; the parser's words.
    Malformed(String),
    /// A list.
    Array,
    /// Some other value.
    Scalar,
}

/// Takes the members named `keys` out of an object. Others are skipped, so that only a repeated member that matters
/// is a fault; it is reported rather than refused, since a refusal may still need another member (the id).
pub(crate) fn pick<'a, const N: usize>(
    text: &'a str,
    keys: &[&str; N],
) -> Result<Picked<'a, N>, NotPicked> {
    let malformed = |error: serde_json::Error| NotPicked::Malformed(error.to_string());
    let first = text.trim_ascii_start().bytes().next();
    if first != Some(b'{') {
        serde_json::from_str::<IgnoredAny>(text).map_err(malformed)?;
        return Err(if first == Some(b'[') {
            NotPicked::Array
        } else {
            NotPicked::Scalar
        });
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader
        .deserialize_map(Pick { keys })
        .and_then(|picked| reader.end().map(|()| picked))
        .map_err(malformed)
}

struct Pick<'k, const N: usize> {
    keys: &'k [&'k str; N],
}

impl<'de, const N: usize> Visitor<'de> for Pick<'_, N> {
    type Value = Picked<'de, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut picked = Picked {
            values: [None; N],
            repeated: [false; N],
        };
        while let Some(index) = map.next_key_seed(IndexOf { keys: self.keys })? {
            let Some(index) = index else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let before = picked.values[index].replace(map.next_value()?);
            picked.repeated[index] |= before.is_some();
        }
        Ok(picked)
    }
}

/// Reads a key as its place among the wanted ones, without keeping its text.
struct IndexOf<'k> {
    keys: &'k [&'k str],
}

impl<'de> DeserializeSeed<'de> for IndexOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: de::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IndexOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.keys.iter().position(|key| *key == name))
    }
}

/// All members of an object in their order.
pub(crate) type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// Reads all members of an object, each value as the text it was. A repeated member is refused.
pub(crate) fn members(text: &str) -> Result<Members<'_>, JsonFault> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = (&mut reader)
        .deserialize_map(All)
        .and_then(|members| reader.end().map(|()| members))
        .map_err(|error| JsonFault(format!("is not accepted as a JSON object: {error}")))?;
    let mut seen = HashSet::with_capacity(members.len());
    match members.iter().find(|(key, _)| !seen.insert(key.as_ref())) {
        Some((key, _)) => Err(JsonFault(format!("has the member `{}` twice", shown(key)))),
        None => Ok(members),
    }
}

struct All;

impl<'de> Visitor<'de> for All {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = map.next_key::<&RawValue>()? {
            let key = string(key)
                .ok_or_else(|| de::Error::custom("a member name with a broken escape"))?;
            members.push((key, map.next_value()?));
        }
        Ok(members)
    }
}

/// The value as a string, borrowed unless it has escapes.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The value as a non-negative integer.
pub(crate) fn unsigned(raw: &RawValue) -> Option<u64> {
    raw.get().parse().ok()
}

/// Whether the value is an object. The text was read as JSON before, so that its first character decides.
pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Whether a number is written as an integer, of whatever size.
pub(crate) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Text of others as part of a message: short enough that an error is no echo of a body.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    const SHOWN_CHARS: usize = 80;
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
