//! From the JSON of a caller to the arguments of a function.
//!
//! Not by serde: a component then carries one reader of JSON and no code for each type that it could have been, and
//! an argument that does not fit is named to the model by its path.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::schema::Schema;

/// A type that an argument of a tool may have, or the answer to a form. Derive it for structs whose fields are
/// arguments themselves, and for enums that are a choice between words.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not a type that callers can give",
    note = "there are texts, numbers, `bool`, `Option`, `Vec`, maps with `String` keys, and `serde_json::Value`",
    note = "derive `longshore_guest::Argument` for a struct or an enum of your own"
)]
pub trait Argument: Schema + Sized {
    /// Reads a value. A caller may write an integer as `3.0`: JSON has one kind of number.
    ///
    /// # Errors
    /// What does not fit, and where.
    fn from_json(value: Value) -> Result<Self, Mismatch>;

    /// What stands in for a member that was left out.
    #[must_use]
    fn when_absent() -> Option<Self> {
        None
    }
}

/// What does not fit, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// From the value outwards.
    path: Vec<String>,
    why: String,
}

impl Mismatch {
    /// Something else was expected: `Mismatch::new("must be a text")`.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            why: why.into(),
        }
    }

    /// Of another kind than that.
    fn kind(expected: &str, found: &Value) -> Self {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Self::new(format!("must be {expected}, not {found}"))
    }

    /// The same, in the member or item of that name.
    #[must_use]
    pub fn within(mut self, name: impl Into<String>) -> Self {
        self.path.push(name.into());
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, name) in self.path.iter().rev().enumerate() {
            write!(f, "{}{name}", if n == 0 { "" } else { "." })?;
        }
        let gap = if self.path.is_empty() { "" } else { " " };
        write!(f, "{gap}{}", self.why)
    }
}

impl std::error::Error for Mismatch {}

/// The members of an object, which are taken out one by one.
#[derive(Debug)]
pub struct Members(Map<String, Value>);

impl Members {
    /// Those of this value.
    ///
    /// # Errors
    /// If it is no object.
    pub fn of(value: Value) -> Result<Self, Mismatch> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            other => Err(Mismatch::kind("an object", &other)),
        }
    }

    /// Takes one.
    ///
    /// # Errors
    /// If it does not fit its type, or is missing.
    pub fn take<T: Argument>(&mut self, name: &str) -> Result<T, Mismatch> {
        match self.0.get_mut(name) {
            Some(value) => T::from_json(value.take()).map_err(|mismatch| mismatch.within(name)),
            None => T::when_absent().ok_or_else(|| Mismatch::new("is missing").within(name)),
        }
    }

    /// Takes one that may be missing.
    ///
    /// # Errors
    /// If it does not fit its type.
    pub fn take_or<T: Argument>(
        &mut self,
        name: &str,
        default: impl FnOnce() -> T,
    ) -> Result<T, Mismatch> {
        if self.0.contains_key(name) {
            self.take(name)
        } else {
            Ok(default())
        }
    }
}

/// One of these words.
///
/// # Errors
/// If it is none of them.
pub fn choice(value: &Value, words: &[&'static str]) -> Result<&'static str, Mismatch> {
    let Some(text) = value.as_str() else {
        return Err(Mismatch::kind("a text", value));
    };
    words
        .iter()
        .find(|word| **word == text)
        .copied()
        .ok_or_else(|| Mismatch::new(format!("must be one of {}", words.join(", "))))
}

/// The whole number that this is, however it was written.
fn whole(number: &Number) -> Option<i128> {
    /// From here on not every whole number has a form as a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;

    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i128)
}

macro_rules! integers {
    ($($ty:ty)+) => {
        $(impl Argument for $ty {
            fn from_json(value: Value) -> Result<Self, Mismatch> {
                let Value::Number(number) = &value else {
                    return Err(Mismatch::kind("an integer", &value));
                };
                let whole = whole(number).ok_or_else(|| Mismatch::new("must be an integer"))?;
                Self::try_from(whole).map_err(|_| {
                    Mismatch::new(format!("must be from {} to {}", Self::MIN, Self::MAX))
                })
            }
        })+
    };
}

integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl Argument for f64 {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        value
            .as_f64()
            .ok_or_else(|| Mismatch::kind("a number", &value))
    }
}

impl Argument for f32 {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        f64::from_json(value).map(|number| number as Self)
    }
}

impl Argument for bool {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        value
            .as_bool()
            .ok_or_else(|| Mismatch::kind("true or false", &value))
    }
}

impl Argument for String {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        match value {
            Value::String(text) => Ok(text),
            other => Err(Mismatch::kind("a text", &other)),
        }
    }
}

impl Argument for char {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        let text = String::from_json(value)?;
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(letter),
            _ => Err(Mismatch::new("must be one letter")),
        }
    }
}

impl Argument for Value {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        Ok(value)
    }
}

impl Argument for Map<String, Value> {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        Members::of(value).map(|members| members.0)
    }
}

impl<T: Argument> Argument for Option<T> {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        match value {
            Value::Null => Ok(None),
            value => T::from_json(value).map(Some),
        }
    }

    fn when_absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Argument> Argument for Vec<T> {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        match value {
            Value::Array(items) => items
                .into_iter()
                .enumerate()
                .map(|(n, item)| {
                    T::from_json(item).map_err(|mismatch| mismatch.within(n.to_string()))
                })
                .collect(),
            other => Err(Mismatch::kind("a list", &other)),
        }
    }
}

impl<T: Argument> Argument for BTreeMap<String, T> {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        entries(value).collect()
    }
}

impl<T: Argument> Argument for HashMap<String, T> {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        entries(value).collect()
    }
}

fn entries<T: Argument>(value: Value) -> impl Iterator<Item = Result<(String, T), Mismatch>> {
    let (members, mismatch) = match Members::of(value) {
        Ok(members) => (members.0, None),
        Err(mismatch) => (Map::new(), Some(mismatch)),
    };
    let read = |(name, value): (String, Value)| match T::from_json(value) {
        Ok(value) => Ok((name, value)),
        Err(mismatch) => Err(mismatch.within(name)),
    };
    mismatch
        .map(Err)
        .into_iter()
        .chain(members.into_iter().map(read))
}

impl<T: Argument> Argument for Box<T> {
    fn from_json(value: Value) -> Result<Self, Mismatch> {
        T::from_json(value).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Argument;

    #[derive(Debug, PartialEq, Argument)]
    struct Trip {
        stops: Vec<Stop>,
        days: u8,
        #[tool(default = 2)]
        people: u32,
        #[tool(default)]
        is_fast: bool,
        note: Option<String>,
    }

    #[derive(Debug, PartialEq, Argument)]
    struct Stop {
        #[tool(name = "where")]
        place: String,
        by: By,
    }

    #[derive(Debug, PartialEq, Argument)]
    #[tool(rename_all = "kebab-case")]
    enum By {
        Train,
        NightBus,
    }

    fn trip(value: Value) -> Result<Trip, String> {
        Trip::from_json(value).map_err(|mismatch| mismatch.to_string())
    }

    #[test]
    fn a_nested_value_is_read() {
        let read = trip(json!({
            "stops": [{ "where": "Leith", "by": "night-bus" }],
            "days": 3.0,
            "note": null,
        }));
        let expected = Trip {
            stops: vec![Stop {
                place: "Leith".to_owned(),
                by: By::NightBus,
            }],
            days: 3,
            people: 2,
            is_fast: false,
            note: None,
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn a_mismatch_names_its_place() {
        let stop =
            |stop: Value| json!({ "stops": [{ "where": "", "by": "train" }, stop], "days": 1 });
        for (value, text) in [
            (json!([]), "must be an object, not a list"),
            (json!({ "stops": [] }), "days is missing"),
            (
                json!({ "stops": [], "days": "1" }),
                "days must be an integer, not a text",
            ),
            (
                json!({ "stops": [], "days": 1.5 }),
                "days must be an integer",
            ),
            (
                json!({ "stops": [], "days": 256 }),
                "days must be from 0 to 255",
            ),
            (
                json!({ "stops": [], "days": -1.0 }),
                "days must be from 0 to 255",
            ),
            (
                stop(json!({ "where": "", "by": "plane" })),
                "stops.1.by must be one of train, night-bus",
            ),
            (
                stop(json!({ "where": true, "by": "train" })),
                "stops.1.where must be a text, not a boolean",
            ),
        ] {
            assert_eq!(trip(value), Err(text.to_owned()));
        }
    }

    #[test]
    fn integers_come_in_every_form_that_is_exact() {
        assert_eq!(u64::from_json(json!(u64::MAX)), Ok(u64::MAX));
        assert_eq!(i64::from_json(json!(i64::MIN)), Ok(i64::MIN));
        assert_eq!(i64::from_json(json!(-3.0)), Ok(-3));
        assert_eq!(u8::from_json(json!(-0.0)), Ok(0));
        assert!(i64::from_json(json!(1e300)).is_err());
        assert!(
            u64::from_json(json!(1e17)).is_err(),
            "it may have been another number"
        );
        assert_eq!(f64::from_json(json!(3)), Ok(3.0));
    }

    #[test]
    fn maps_lists_and_anything() {
        let map = BTreeMap::from_json(json!({ "a": [1, null] }));
        assert_eq!(
            map,
            Ok(BTreeMap::from([("a".to_owned(), vec![Some(1_u8), None])]))
        );
        let wrong = HashMap::<String, bool>::from_json(json!({ "a": 1 }));
        assert_eq!(
            wrong.unwrap_err().to_string(),
            "a must be true or false, not a number"
        );
        assert!(HashMap::<String, bool>::from_json(json!([])).is_err());
        assert_eq!(Value::from_json(json!([1])), Ok(json!([1])));
        assert_eq!(char::from_json(json!("ä")), Ok('ä'));
        assert!(char::from_json(json!("ab")).is_err());
    }
}
