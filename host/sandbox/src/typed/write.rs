//! From values to JSON, never longer than it may be.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wasmtime::component::Val;
use wasmtime::component::types::{ComponentFunc, Type};

use super::schema;
use crate::ending::{Fault, FaultKind};
use crate::output::Answer;

/// What a function returned. What it returns as an error is told as one.
pub(super) fn answer(kind: &ComponentFunc, returned: &[Val], most: u64) -> Result<Answer, Fault> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut json = Json {
        text: String::new(),
        most,
    };
    let result = kind.results().next();
    let failed = match (&result, returned.first()) {
        (Some(Type::Result(kind)), Some(Val::Result(Err(payload)))) => Some((kind.err(), payload)),
        _ => None,
    };
    if let Some((kind, payload)) = failed {
        json.put("{\"error\":")?;
        json.payload(kind.as_ref(), payload.as_deref())?;
        let error = json.text["{\"error\":".len()..].to_owned();
        json.put("}")?;
        let text = match payload.as_deref() {
            Some(Val::String(text)) => text.clone(),
            Some(_) => error,
            None => "it failed and does not say why".to_owned(),
        };
        return Ok(Answer {
            is_error: true,
            // Whoever writes both measures them; a text that would not fit beside its data says nothing new.
            text: (text.len() + json.text.len() <= most / 2).then_some(text),
            json: json.text,
        });
    }
    let answered = schema::answered(kind);
    let value = match returned.first() {
        Some(Val::Result(Ok(payload))) if matches!(result, Some(Type::Result(_))) => {
            payload.as_deref()
        }
        other => other,
    };
    if let (Some(Type::Record(_)), _) = (&answered, value) {
        json.payload(answered.as_ref(), value)?;
    } else {
        json.put("{\"result\":")?;
        json.payload(answered.as_ref(), value)?;
        json.put("}")?;
    }
    Ok(Answer {
        is_error: false,
        text: None,
        json: json.text,
    })
}

struct Json {
    text: String,
    most: usize,
}

type Written = Result<(), Fault>;

fn not_of_its_type() -> Fault {
    Fault {
        kind: FaultKind::BadOutput,
        message: "a value is not of the type that the component says".to_owned(),
    }
}

impl Json {
    fn put(&mut self, text: &str) -> Written {
        if text.len() > self.most - self.text.len() {
            return Err(Fault {
                kind: FaultKind::OutputLimit,
                message: format!("the result has more than {} bytes as JSON", self.most),
            });
        }
        self.text.push_str(text);
        Ok(())
    }

    fn string(&mut self, text: &str) -> Written {
        if text.len() > self.most {
            return self.put(text);
        }
        self.put(&serde_json::Value::from(text).to_string())
    }

    fn integer(&mut self, number: impl std::fmt::Display) -> Written {
        self.put(&number.to_string())
    }

    /// What is there, or null.
    fn payload(&mut self, kind: Option<&Type>, value: Option<&Val>) -> Written {
        match (kind, value) {
            (Some(kind), Some(value)) => self.value(kind, value),
            (None, None) => self.put("null"),
            _ => Err(not_of_its_type()),
        }
    }

    fn tagged(&mut self, name: &str, kind: Option<&Type>, value: Option<&Val>) -> Written {
        self.put("{")?;
        self.string(name)?;
        self.put(":")?;
        self.payload(kind, value)?;
        self.put("}")
    }

    fn list<'v>(&mut self, items: impl Iterator<Item = (Type, &'v Val)>) -> Written {
        self.put("[")?;
        for (index, (kind, value)) in items.enumerate() {
            if index > 0 {
                self.put(",")?;
            }
            self.value(&kind, value)?;
        }
        self.put("]")
    }

    fn value(&mut self, kind: &Type, value: &Val) -> Written {
        match (kind, value) {
            (Type::Bool, Val::Bool(value)) => self.put(if *value { "true" } else { "false" }),
            (Type::S8, Val::S8(value)) => self.integer(value),
            (Type::U8, Val::U8(value)) => self.integer(value),
            (Type::S16, Val::S16(value)) => self.integer(value),
            (Type::U16, Val::U16(value)) => self.integer(value),
            (Type::S32, Val::S32(value)) => self.integer(value),
            (Type::U32, Val::U32(value)) => self.integer(value),
            (Type::S64, Val::S64(value)) => self.integer(value),
            (Type::U64, Val::U64(value)) => self.integer(value),
            (Type::Float32, Val::Float32(value)) => self.put(&of_f32(*value)),
            (Type::Float64, Val::Float64(value)) => self.put(&of_f64(*value)),
            (Type::Char, Val::Char(value)) => self.string(value.encode_utf8(&mut [0; 4])),
            (Type::String, Val::String(value)) => self.string(value),
            (Type::List(list), Val::List(items)) => match list.ty() {
                Type::U8 => self.bytes(items),
                item => self.list(items.iter().map(|value| (item.clone(), value))),
            },
            (Type::Tuple(tuple), Val::Tuple(parts)) => self.list(tuple.types().zip(parts)),
            (Type::Record(record), Val::Record(fields)) => {
                self.put("{")?;
                for (index, (field, (name, value))) in record.fields().zip(fields).enumerate() {
                    if index > 0 {
                        self.put(",")?;
                    }
                    self.string(name)?;
                    self.put(":")?;
                    self.value(&field.ty, value)?;
                }
                self.put("}")
            }
            (Type::Variant(variant), Val::Variant(name, payload)) => {
                let case = variant.cases().find(|case| case.name == name);
                match (case.ok_or_else(not_of_its_type)?.ty, payload) {
                    (None, None) => self.string(name),
                    (kind, payload) => self.tagged(name, kind.as_ref(), payload.as_deref()),
                }
            }
            (Type::Enum(_), Val::Enum(name)) => self.string(name),
            (Type::Flags(_), Val::Flags(names)) => {
                self.put("[")?;
                for (index, name) in names.iter().enumerate() {
                    if index > 0 {
                        self.put(",")?;
                    }
                    self.string(name)?;
                }
                self.put("]")
            }
            (Type::Option(_), Val::Option(None)) => self.put("null"),
            (Type::Option(option), Val::Option(Some(value))) => match option.ty() {
                inner @ Type::Option(_) => self.tagged("some", Some(&inner), Some(value)),
                inner => self.value(&inner, value),
            },
            (Type::Result(result), Val::Result(value)) => match value {
                Ok(value) => self.tagged("ok", result.ok().as_ref(), value.as_deref()),
                Err(value) => self.tagged("err", result.err().as_ref(), value.as_deref()),
            },
            _ => Err(not_of_its_type()),
        }
    }

    fn bytes(&mut self, items: &[Val]) -> Written {
        let bytes = items.iter().map(|item| match item {
            Val::U8(byte) => Ok(*byte),
            _ => Err(not_of_its_type()),
        });
        let bytes = bytes.collect::<Result<Vec<u8>, Fault>>()?;
        self.string(&STANDARD.encode(bytes))
    }
}

/// The shortest text that is read as the same number.
fn of_f64(number: f64) -> String {
    match serde_json::Number::from_f64(number) {
        Some(number) => number.to_string(),
        None => no_number(number),
    }
}

/// Likewise. The shortest text of a float of 32 bits is read as one of 64 first, which may lie halfway to another.
fn of_f32(number: f32) -> String {
    if !number.is_finite() {
        return no_number(number.into());
    }
    let short = serde_json::to_string(&number).unwrap_or_default();
    let is_read_back = short.parse::<f64>().is_ok_and(|wide| {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is read in the same way"
        )]
        let narrow = wide as f32;
        narrow.to_bits() == number.to_bits()
    });
    if is_read_back {
        short
    } else {
        of_f64(number.into())
    }
}

fn no_number(number: f64) -> String {
    let name = if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    format!("\"{name}\"")
}
