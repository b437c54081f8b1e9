//! JSON Schemas of types.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use crate::argument::Argument;

/// A type whose values have a form in JSON that can be described. Derive it, with serde's `Serialize`, for a result
/// that is data; [`Argument`](crate::Argument) includes it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema",
    label = "not a type that callers can see",
    note = "there are texts, numbers, `bool`, `Option`, `Vec`, maps with `String` keys, and `serde_json::Value`",
    note = "derive `longshore_guest::Schema` for a struct or an enum of your own"
)]
pub trait Schema {
    /// Whether a member of this type may be left out.
    const IS_OPTIONAL: bool = false;

    /// The schema. It must come to an end: a type that contains itself has none.
    fn schema() -> Value;

    /// The schema of a member of this type, where leaving it out stands for nothing.
    #[must_use]
    fn member_schema() -> Value {
        Self::schema()
    }
}

/// A member of an object, as the macros describe it.
#[derive(Debug)]
pub struct Member {
    name: &'static str,
    schema: Value,
    is_required: bool,
}

impl Member {
    /// A member that callers give: left out if there is none.
    #[must_use]
    pub fn taken<T: Argument>(name: &'static str) -> Self {
        Self::given_or_left_out::<T>(name)
    }

    /// A member that serde writes: `null` if there is none.
    #[must_use]
    pub fn given<T: Schema>(name: &'static str) -> Self {
        Self {
            name,
            schema: T::schema(),
            is_required: true,
        }
    }

    /// A member that serde writes: left out if there is none.
    #[must_use]
    pub fn given_or_left_out<T: Schema>(name: &'static str) -> Self {
        Self {
            name,
            schema: T::member_schema(),
            is_required: !T::IS_OPTIONAL,
        }
    }

    /// With one more keyword of JSON Schema, or another value for it.
    #[must_use]
    pub fn with(mut self, keyword: &'static str, value: impl Into<Value>) -> Self {
        put(&mut self.schema, keyword, value.into());
        self
    }

    /// It may be left out.
    #[must_use]
    pub fn optional(self) -> Self {
        Self {
            is_required: false,
            ..self
        }
    }
}

/// The schema of an object of these members and no others.
#[must_use]
pub fn object(members: Vec<Member>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for member in members {
        if member.is_required {
            required.push(Value::from(member.name));
        }
        properties.insert(member.name.to_owned(), member.schema);
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    schema.into()
}

/// A schema with its description.
#[must_use]
pub fn described(mut schema: Value, text: &str) -> Value {
    put(&mut schema, "description", text.into());
    schema
}

fn put(schema: &mut Value, keyword: &str, value: Value) {
    if let Value::Object(schema) = schema {
        schema.insert(keyword.to_owned(), value);
    }
}

macro_rules! simple {
    ($($ty:ty => $schema:tt;)+) => {
        $(impl Schema for $ty {
            fn schema() -> Value {
                json!($schema)
            }
        })+
    };
}

simple! {
    String => { "type": "string" };
    char => { "type": "string", "minLength": 1, "maxLength": 1 };
    bool => { "type": "boolean" };
    f32 => { "type": "number" };
    f64 => { "type": "number" };
    u8 => { "type": "integer", "minimum": 0, "maximum": (u8::MAX) };
    u16 => { "type": "integer", "minimum": 0, "maximum": (u16::MAX) };
    u32 => { "type": "integer", "minimum": 0, "maximum": (u32::MAX) };
    // The widest are beyond what JSON carries between most programs: a bound there would say nothing.
    u64 => { "type": "integer", "minimum": 0 };
    usize => { "type": "integer", "minimum": 0, "maximum": (u32::MAX) };
    i8 => { "type": "integer", "minimum": (i8::MIN), "maximum": (i8::MAX) };
    i16 => { "type": "integer", "minimum": (i16::MIN), "maximum": (i16::MAX) };
    i32 => { "type": "integer", "minimum": (i32::MIN), "maximum": (i32::MAX) };
    i64 => { "type": "integer" };
    isize => { "type": "integer", "minimum": (i32::MIN), "maximum": (i32::MAX) };
    Value => {};
    Map<String, Value> => { "type": "object" };
}

impl<T: Schema> Schema for Option<T> {
    const IS_OPTIONAL: bool = true;

    fn schema() -> Value {
        json!({ "anyOf": [T::schema(), { "type": "null" }] })
    }

    fn member_schema() -> Value {
        T::schema()
    }
}

impl<T: Schema> Schema for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

impl<T: Schema> Schema for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}

impl<T: Schema> Schema for HashMap<String, T> {
    fn schema() -> Value {
        BTreeMap::<String, T>::schema()
    }
}

impl<T: Schema> Schema for Box<T> {
    fn schema() -> Value {
        T::schema()
    }
}
