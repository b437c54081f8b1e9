//! From JSON to values. The JSON was checked against the schema where there is one; what a schema cannot say is told here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use wasmtime::component::Val;
use wasmtime::component::types::{ComponentFunc, Type};

use super::schema::NO_NUMBERS;

/// What is wrong, and where.
struct Wrong {
    at: String,
    what: String,
}

type Read<T> = Result<T, Wrong>;

fn wrong<T>(what: impl Into<String>) -> Read<T> {
    Err(Wrong {
        at: String::new(),
        what: what.into(),
    })
}

impl Wrong {
    fn within(mut self, part: &str) -> Self {
        self.at.insert_str(0, part);
        self
    }
}

/// What a function is called with. Whatever is not given is left out, if it is an option.
pub(super) fn arguments(kind: &ComponentFunc, json: &str) -> Result<Vec<Val>, String> {
    let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let params = kind.params().map(|(name, kind)| (name.to_owned(), kind));
    let fields = fields(params, value).map_err(|wrong| {
        let at = crate::rules::shorten(&wrong.at, 200);
        format!("arguments{at}: {}", wrong.what)
    })?;
    Ok(fields.into_iter().map(|(_, value)| value).collect())
}

fn fields(kinds: impl Iterator<Item = (String, Type)>, value: Value) -> Read<Vec<(String, Val)>> {
    let Value::Object(mut given) = value else {
        return wrong("not an object");
    };
    let mut fields = Vec::new();
    for (name, kind) in kinds {
        let field = match given.remove(&name) {
            Some(value) => read(&kind, value),
            None if matches!(kind, Type::Option(_)) => Ok(Val::Option(None)),
            None => wrong("it is missing"),
        };
        let field = field.map_err(|wrong| wrong.within(&format!(".{name}")))?;
        fields.push((name, field));
    }
    match given.keys().next() {
        Some(name) => wrong(format!("there is no {name:?}")),
        None => Ok(fields),
    }
}

fn read(kind: &Type, value: Value) -> Read<Val> {
    Ok(match kind {
        Type::Bool => match value {
            Value::Bool(value) => Val::Bool(value),
            _ => return wrong("neither true nor false"),
        },
        Type::S8 => Val::S8(integer(&value)?),
        Type::U8 => Val::U8(integer(&value)?),
        Type::S16 => Val::S16(integer(&value)?),
        Type::U16 => Val::U16(integer(&value)?),
        Type::S32 => Val::S32(integer(&value)?),
        Type::U32 => Val::U32(integer(&value)?),
        Type::S64 => Val::S64(integer(&value)?),
        Type::U64 => Val::U64(integer(&value)?),
        Type::Float32 => Val::Float32(narrow(float(&value)?)),
        Type::Float64 => Val::Float64(float(&value)?),
        Type::Char => {
            let text = text(value)?;
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(only), None) => Val::Char(only),
                _ => return wrong("not one character"),
            }
        }
        Type::String => Val::String(text(value)?),
        Type::List(list) => match list.ty() {
            Type::U8 => match STANDARD.decode(text(value)?) {
                Ok(bytes) => Val::List(bytes.into_iter().map(Val::U8).collect()),
                Err(error) => return wrong(format!("not base64: {error}")),
            },
            item => {
                let items = array(value)?.into_iter().enumerate();
                let items = items.map(|(index, value)| at(index, read(&item, value)));
                Val::List(items.collect::<Read<_>>()?)
            }
        },
        Type::Tuple(tuple) => {
            let given = array(value)?;
            let count = tuple.types().len();
            if given.len() != count {
                return wrong(format!("{} items in place of {count}", given.len()));
            }
            let parts = tuple.types().zip(given).enumerate();
            let parts = parts.map(|(index, (kind, value))| at(index, read(&kind, value)));
            Val::Tuple(parts.collect::<Read<_>>()?)
        }
        Type::Record(record) => {
            let kinds = record.fields();
            let kinds = kinds.map(|field| (field.name.to_owned(), field.ty));
            Val::Record(fields(kinds, value)?)
        }
        Type::Variant(variant) => {
            let (name, payload) = match value {
                Value::String(name) => (name, None),
                Value::Object(members) => {
                    let (name, payload) = only(members)?;
                    (name, Some(payload))
                }
                _ => return wrong("neither the name of a case nor an object of one"),
            };
            let Some(case) = variant.cases().find(|case| case.name == name) else {
                return wrong(format!("there is no case {name:?}"));
            };
            let payload = match (case.ty, payload) {
                (None, None) => None,
                (Some(kind), Some(value)) => {
                    let payload = read(&kind, value);
                    Some(payload.map_err(|wrong| wrong.within(&format!(".{name}")))?)
                }
                (None, Some(_)) => return wrong(format!("case {name:?} has no payload")),
                (Some(_), None) => return wrong(format!("case {name:?} needs a payload")),
            };
            Val::Variant(name, payload.map(Box::new))
        }
        Type::Enum(names) => {
            let name = text(value)?;
            if names.names().all(|known| known != name) {
                return wrong(format!("there is no {name:?}"));
            }
            Val::Enum(name)
        }
        Type::Flags(names) => {
            let given = array(value)?.into_iter().map(text);
            let given = given.collect::<Read<Vec<String>>>()?;
            let mut set: Vec<bool> = vec![false; names.names().len()];
            for name in &given {
                match names.names().position(|known| known == name) {
                    Some(index) if !set[index] => set[index] = true,
                    Some(_) => return wrong(format!("{name:?} stands twice")),
                    None => return wrong(format!("there is no {name:?}")),
                }
            }
            let set = names.names().zip(set).filter(|(_, is_set)| *is_set);
            Val::Flags(set.map(|(name, _)| name.to_owned()).collect())
        }
        Type::Option(option) => match (option.ty(), value) {
            (_, Value::Null) => Val::Option(None),
            (inner @ Type::Option(_), Value::Object(members)) => {
                let (name, value) = only(members)?;
                if name != "some" {
                    return wrong(format!("{name:?} in place of \"some\""));
                }
                Val::Option(Some(Box::new(read(&inner, value)?)))
            }
            (Type::Option(_), _) => return wrong("neither null nor an object with \"some\""),
            (inner, value) => Val::Option(Some(Box::new(read(&inner, value)?))),
        },
        Type::Result(result) => {
            let Value::Object(members) = value else {
                return wrong("not an object with \"ok\" or \"err\"");
            };
            let (name, value) = only(members)?;
            let side = |kind: Option<Type>, value: Value| match kind {
                Some(kind) => Ok(Some(Box::new(read(&kind, value)?))),
                None if value.is_null() => Ok(None),
                None => wrong("it has no payload: give null"),
            };
            let read = match name.as_str() {
                "ok" => side(result.ok(), value).map(Ok),
                "err" => side(result.err(), value).map(Err),
                _ => return wrong(format!("{name:?} in place of \"ok\" or \"err\"")),
            };
            Val::Result(read.map_err(|wrong| wrong.within(&format!(".{name}")))?)
        }
        Type::Own(_)
        | Type::Borrow(_)
        | Type::Future(_)
        | Type::Stream(_)
        | Type::ErrorContext
        | Type::Map(_)
        | Type::FixedLengthList(_) => return wrong("it has no form in JSON"),
    })
}

fn at<T>(index: usize, read: Read<T>) -> Read<T> {
    read.map_err(|wrong| wrong.within(&format!("[{index}]")))
}

fn text(value: Value) -> Read<String> {
    match value {
        Value::String(text) => Ok(text),
        _ => wrong("not a text"),
    }
}

fn array(value: Value) -> Read<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items),
        _ => wrong("not an array"),
    }
}

fn only(members: Map<String, Value>) -> Read<(String, Value)> {
    let mut members = members.into_iter();
    match (members.next(), members.next()) {
        (Some(only), None) => Ok(only),
        _ => wrong("not an object with one member"),
    }
}

/// Every integer that a schema takes as one: also one that is written as a float, as long as that is exact.
fn integer<T: TryFrom<i128>>(value: &Value) -> Read<T> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let read = match value {
        Value::Number(number) => {
            let signed = number.as_i64().map(i128::from);
            signed.or(number.as_u64().map(i128::from)).or_else(|| {
                let float = number.as_f64()?;
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "it is whole and below two to the 53rd"
                )]
                (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i128)
            })
        }
        Value::String(text) => text.parse::<i128>().ok(),
        _ => None,
    };
    match read.and_then(|number| T::try_from(number).ok()) {
        Some(number) => Ok(number),
        None => wrong("not an integer of its type"),
    }
}

fn float(value: &Value) -> Read<f64> {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(number) => Ok(number),
            None => wrong("not a number"),
        },
        Value::String(text) if NO_NUMBERS.contains(&text.as_str()) => Ok(match text.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            _ => f64::NEG_INFINITY,
        }),
        _ => wrong("neither a number nor \"NaN\", \"Infinity\" or \"-Infinity\""),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a float of 32 bits is the nearest to what was given"
)]
fn narrow(float: f64) -> f32 {
    float as f32
}
