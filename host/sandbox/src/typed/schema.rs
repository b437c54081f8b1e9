//! Types as JSON Schema 2020-12.
//!
//! Of what JSON says less than a type, this is the form: a float that is no number is one of the texts `NaN`, `Infinity`
//! and `-Infinity`; an integer of 64 bits may be given as text, since some writers of JSON round it; `list<u8>` is
//! base64; `option` is the value or null, and an option of an option holds `{"some": …}`; a case without a payload is
//! its name, one with a payload is `{"name": payload}`; a result within a value is `{"ok": …}` or `{"err": …}`.

use serde_json::{Map, Value, json};
use wasmtime::component::types::{ComponentFunc, Type};

/// Types in one schema, once they are written out: more is more than a model can fill in.
pub(super) const MAX_TYPES: usize = 2_000;
/// Values in one schema, as whoever checks it counts them.
const MAX_VALUES: usize = 10_000;
/// Bytes of one schema, likewise.
const MAX_BYTES: usize = 256 * 1024;
/// Levels of arrays and objects in one schema: no reader is asked for more.
const MAX_DEPTH: usize = 60;

pub(super) const TOO_LARGE: &str = "its types are too large or nested too deeply to be written out";

/// The texts of floats that are no numbers.
pub(super) const NO_NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// The schema of what a function takes: an object of its parameters.
pub(super) fn input(kind: &ComponentFunc) -> Result<String, &'static str> {
    let mut writer = Writer::new(Reads::Yes);
    let params = kind.params().map(|(name, kind)| (name.to_owned(), kind));
    let schema = writer.object(params)?;
    text_of(&schema)
}

/// The schema of what a tool answers: an object.
pub(super) fn output(kind: &ComponentFunc) -> Result<String, &'static str> {
    let mut writer = Writer::new(Reads::No);
    let schema = match answered(kind) {
        Some(record @ Type::Record(_)) => writer.kind(&record)?,
        Some(other) => result_of(&writer.kind(&other)?),
        None => result_of(&json!({ "type": "null" })),
    };
    text_of(&schema)
}

/// What a function answers when it does not fail.
pub(super) fn answered(kind: &ComponentFunc) -> Option<Type> {
    match kind.results().next()? {
        Type::Result(result) => result.ok(),
        other => Some(other),
    }
}

fn result_of(schema: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { "result": schema },
        "required": ["result"],
        "additionalProperties": false,
    })
}

fn text_of(schema: &Value) -> Result<String, &'static str> {
    let mut values = 0;
    let is_fit = measure(schema, MAX_DEPTH, &mut values);
    let text = schema.to_string();
    if is_fit && text.len() <= MAX_BYTES {
        Ok(text)
    } else {
        Err(TOO_LARGE)
    }
}

fn measure(value: &Value, depth: usize, values: &mut usize) -> bool {
    *values += 1;
    let Some(inner) = depth.checked_sub(1) else {
        return !value.is_array() && !value.is_object();
    };
    *values <= MAX_VALUES
        && match value {
            Value::Array(items) => items.iter().all(|item| measure(item, inner, values)),
            Value::Object(members) => members.values().all(|item| measure(item, inner, values)),
            _ => true,
        }
}

/// Whether values of the schema are read: then they may come in more than one form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Yes,
    No,
}

struct Writer {
    reads: Reads,
    types: usize,
    bytes: usize,
}

impl Writer {
    fn new(reads: Reads) -> Self {
        Self {
            reads,
            types: MAX_TYPES,
            bytes: MAX_BYTES,
        }
    }

    fn name(&mut self, name: &str) -> Result<String, &'static str> {
        self.bytes = self.bytes.checked_sub(name.len()).ok_or(TOO_LARGE)?;
        Ok(name.to_owned())
    }

    fn names<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<String>, &'static str> {
        names.map(|name| self.name(name)).collect()
    }

    fn kind(&mut self, kind: &Type) -> Result<Value, &'static str> {
        self.types = self.types.checked_sub(1).ok_or(TOO_LARGE)?;
        Ok(match kind {
            Type::Bool => json!({ "type": "boolean" }),
            Type::S8 => integer(i8::MIN, i8::MAX),
            Type::U8 => integer(u8::MIN, u8::MAX),
            Type::S16 => integer(i16::MIN, i16::MAX),
            Type::U16 => integer(u16::MIN, u16::MAX),
            Type::S32 => integer(i32::MIN, i32::MAX),
            Type::U32 => integer(u32::MIN, u32::MAX),
            Type::S64 => self.long(integer(i64::MIN, i64::MAX), "^-?[0-9]{1,20}$"),
            Type::U64 => self.long(integer(u64::MIN, u64::MAX), "^[0-9]{1,20}$"),
            Type::Float32 | Type::Float64 => {
                json!({ "anyOf": [{ "type": "number" }, { "enum": NO_NUMBERS }] })
            }
            Type::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
            Type::String => json!({ "type": "string" }),
            Type::List(list) => match list.ty() {
                Type::U8 => json!({ "type": "string", "contentEncoding": "base64" }),
                item => json!({ "type": "array", "items": self.kind(&item)? }),
            },
            Type::Tuple(tuple) => {
                let parts = tuple.types().map(|part| self.kind(&part));
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                let count = parts.len();
                json!({
                    "type": "array",
                    "prefixItems": parts,
                    "items": false,
                    "minItems": count,
                    "maxItems": count,
                })
            }
            Type::Record(record) => {
                let fields = record.fields();
                self.object(fields.map(|field| (field.name.to_owned(), field.ty)))?
            }
            Type::Variant(variant) => {
                let mut cases = Vec::new();
                for case in variant.cases() {
                    let name = self.name(case.name)?;
                    cases.push(match case.ty {
                        Some(payload) => tagged(&name, &self.kind(&payload)?),
                        None => json!({ "const": name }),
                    });
                }
                json!({ "oneOf": cases })
            }
            Type::Enum(names) => {
                json!({ "type": "string", "enum": self.names(names.names())? })
            }
            Type::Flags(names) => json!({
                "type": "array",
                "items": { "type": "string", "enum": self.names(names.names())? },
                "uniqueItems": true,
            }),
            Type::Option(option) => {
                let inner = option.ty();
                let some = self.kind(&inner)?;
                let some = if matches!(inner, Type::Option(_)) {
                    tagged("some", &some)
                } else {
                    some
                };
                json!({ "anyOf": [some, { "type": "null" }] })
            }
            Type::Result(result) => {
                let mut side = |payload: Option<Type>| match payload {
                    Some(payload) => self.kind(&payload),
                    None => Ok(json!({ "type": "null" })),
                };
                let (ok, err) = (side(result.ok())?, side(result.err())?);
                json!({ "oneOf": [tagged("ok", &ok), tagged("err", &err)] })
            }
            Type::Own(_)
            | Type::Borrow(_)
            | Type::Future(_)
            | Type::Stream(_)
            | Type::ErrorContext
            | Type::Map(_)
            | Type::FixedLengthList(_) => return Err("it uses what has no form in JSON"),
        })
    }

    /// An integer beyond what a float holds: as text, too, where it is read.
    fn long(&self, mut schema: Value, pattern: &str) -> Value {
        if self.reads == Reads::Yes
            && let Some(members) = schema.as_object_mut()
        {
            members.insert("type".to_owned(), json!(["integer", "string"]));
            members.insert("pattern".to_owned(), pattern.into());
        }
        schema
    }

    fn object(
        &mut self,
        fields: impl Iterator<Item = (String, Type)>,
    ) -> Result<Value, &'static str> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, kind) in fields {
            let name = self.name(&name)?;
            if !matches!(kind, Type::Option(_)) {
                required.push(name.clone());
            }
            properties.insert(name, self.kind(&kind)?);
        }
        Ok(json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }))
    }
}

fn integer<T: Into<Value>>(least: T, most: T) -> Value {
    let (least, most): (Value, Value) = (least.into(), most.into());
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

fn tagged(name: &str, schema: &Value) -> Value {
    json!({
        "type": "object",
        "properties": { name: schema },
        "required": [name],
        "additionalProperties": false,
    })
}
