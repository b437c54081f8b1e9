//! A bound on the work of checking a value.
//!
//! A few references make a schema whose check takes time exponential in the depth of the value, and the validator has
//! no way to be stopped. So it never sees the author's schema itself: it sees an equivalent one in which every
//! subschema first pays for its own work, and unwinds out of the validator when nothing is left to pay with.

use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::paths::Location;
use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value, json};

use super::Dialect;
use super::shape::{STORE_MAP, Shape};

/// The keyword that pays. Authors' unknown keywords never reach the validator, so that nobody else can use it.
pub(super) const KEYWORD: &str = "longshore/meter";

/// The keywords that decide, besides those that hold subschemas. All others are annotations; so is `format`, as the
/// dialect 2020-12 has it unless a schema asks otherwise.
const DECIDING: [&str; 20] = [
    "const",
    "dependentRequired",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
    "type",
    "uniqueItems",
];

/// Division of two numbers as fractions of any length: dear against comparing them.
const DIVISION_STEPS: u64 = 64;
/// Elements or members looked at in one step.
const PER_STEP: u64 = 8;
/// Bytes of text compared or counted in one step.
const TEXT_PER_STEP: u64 = 1024;
/// Bytes of text times bytes of a compiled pattern matched in one step, if the matcher has to fall back to its slowest
/// form.
const MATCH_PER_STEP: u64 = 4096;

thread_local! {
    /// What the check that runs on this thread may still spend. The validator runs to its end where it was called.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// The payload of an unwinding that is ours.
struct Spent;

/// Runs `check` with so many steps to spend. `None` if they did not suffice.
pub(super) fn within<T>(steps: u64, check: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(steps);
    // Nothing that the validator changes on the way is seen afterwards: its state is made anew for each check, and
    // what it caches is cached when complete.
    let outcome: Result<T, Box<dyn Any + Send>> = catch_unwind(AssertUnwindSafe(check));
    match outcome {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Spent>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

fn spend(steps: u64) {
    match LEFT.get().checked_sub(steps) {
        Some(left) => LEFT.set(left),
        None => resume_unwind(Box::new(Spent)),
    }
}

/// What one subschema costs each time it is applied.
struct Meter {
    /// Whatever the value.
    fixed: u64,
    /// Bytes of the compiled pattern for strings.
    pattern: u64,
    /// Bytes of the compiled patterns for names of properties.
    names: u64,
    /// Whether items are compared with each other.
    unique: bool,
}

impl Meter {
    fn of(members: &Map<String, Value>, patterns: &HashMap<&str, u64>) -> Self {
        let size = |keyword| members.get(keyword).map_or(0, count);
        let len = |keyword| match members.get(keyword) {
            Some(Value::Object(entries)) => entries.len() as u64,
            _ => 0,
        };
        let listed = size("const")
            + size("enum")
            + size("required")
            + size("dependentRequired")
            + size("type")
            + len("properties");
        let cost = |pattern: &str| patterns.get(pattern).copied().unwrap_or(0);
        Self {
            fixed: 1
                + listed / PER_STEP
                + u64::from(members.contains_key("multipleOf")) * DIVISION_STEPS,
            pattern: members
                .get("pattern")
                .and_then(Value::as_str)
                .map_or(0, cost),
            names: members
                .get("patternProperties")
                .and_then(Value::as_object)
                .map_or(0, |entries| entries.keys().map(|name| cost(name)).sum()),
            unique: members.get("uniqueItems") == Some(&Value::Bool(true)),
        }
    }

    fn to_value(&self) -> Value {
        json!([self.fixed, self.pattern, self.names, self.unique])
    }

    fn from_value(value: &Value) -> Option<Self> {
        Some(Self {
            fixed: value.get(0)?.as_u64()?,
            pattern: value.get(1)?.as_u64()?,
            names: value.get(2)?.as_u64()?,
            unique: value.get(3)?.as_bool()?,
        })
    }

    fn steps(&self, instance: &Value) -> u64 {
        let varying = match instance {
            Value::String(text) => {
                let bytes = text.len() as u64;
                bytes / TEXT_PER_STEP + bytes * self.pattern / MATCH_PER_STEP
            }
            Value::Array(_) if self.unique => count(instance),
            Value::Array(items) => items.len() as u64 / PER_STEP,
            Value::Object(members) if self.names > 0 => {
                let bytes: usize = members.keys().map(String::len).sum();
                members.len() as u64 + bytes as u64 * self.names / MATCH_PER_STEP
            }
            Value::Object(members) => members.len() as u64 / PER_STEP,
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        };
        self.fixed + varying
    }
}

impl<'i> Keyword<'i> for Meter {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        spend(self.steps(instance));
        Ok(())
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        spend(self.steps(instance));
        true
    }
}

/// Makes the paying keyword from its value in a metered schema.
pub(super) fn keyword<'a>(
    _parent: &'a Map<String, Value>,
    value: &'a Value,
    _location: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    match Meter::from_value(value) {
        Some(meter) => Ok(Box::new(meter)),
        None => Err(ValidationError::custom("is not a meter")),
    }
}

/// The values in a value, itself included.
pub(super) fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<u64>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// An equivalent schema in which every subschema pays first. `patterns` gives the compiled size of each pattern.
///
/// What references point at moves to the root's store under a name of ours, so that no pointer has to be rewritten
/// for the levels that are added. There is one resource only, so that a dynamic reference is a plain one.
pub(super) fn metered(shape: &Shape<'_>, dialect: Dialect, patterns: &HashMap<&str, u64>) -> Value {
    let mut writer = Writer {
        shape,
        dialect,
        patterns,
        targets: vec![false; shape.nodes.len()],
    };
    writer.targets[ROOT] = true;
    for node in &shape.nodes {
        for target in node.targets() {
            writer.targets[target] = true;
        }
    }
    let store: Map<String, Value> = (0..shape.nodes.len())
        .filter(|&index| writer.targets[index])
        .map(|index| (stored_name(index), writer.subschema(index)))
        .collect();
    let mut root = writer.reference(ROOT);
    root["$schema"] = dialect.uri().into();
    root[dialect.store()] = store.into();
    root
}

const ROOT: usize = 0;

struct Writer<'w> {
    shape: &'w Shape<'w>,
    dialect: Dialect,
    patterns: &'w HashMap<&'w str, u64>,
    /// Which subschemas references point at.
    targets: Vec<bool>,
}

impl Writer<'_> {
    fn subschema(&self, index: usize) -> Value {
        let node = &self.shape.nodes[index];
        let Some(members) = node.value.as_object() else {
            return node.value.clone();
        };
        let mut rest = Map::new();
        for (keyword, value) in members {
            if STORE_MAP.contains(&keyword.as_str()) {
                continue;
            }
            if let Some(value) = self.member(keyword, value) {
                rest.insert(keyword.clone(), value);
            }
        }
        if let Some(target) = node.target("$dynamicRef") {
            let all = rest.entry("allOf").or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.push(self.reference(target));
            }
        }
        if let Some(target) = node.target("$ref") {
            rest.insert("$ref".to_owned(), self.reference(target)["$ref"].take());
        }
        json!({"allOf": [{KEYWORD: Meter::of(members, self.patterns).to_value()}, rest]})
    }

    /// The value of a keyword with its subschemas replaced, or nothing if the keyword decides nothing.
    fn member(&self, keyword: &str, value: &Value) -> Option<Value> {
        if DECIDING.contains(&keyword) {
            return Some(value.clone());
        }
        if let Some(index) = self.shape.index_of(value) {
            return Some(self.applied(index));
        }
        let applied = |value: &Value| match self.shape.index_of(value) {
            Some(index) => self.applied(index),
            // The names that a member of draft-07's `dependencies` may list instead.
            None => value.clone(),
        };
        match value {
            Value::Array(items) if Shape::holds_list(keyword) => {
                Some(items.iter().map(applied).collect())
            }
            Value::Object(members) if Shape::holds_map(keyword) => Some(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), applied(value)))
                    .collect(),
            ),
            _ => None,
        }
    }

    fn applied(&self, index: usize) -> Value {
        if self.targets[index] {
            self.reference(index)
        } else {
            self.subschema(index)
        }
    }

    fn reference(&self, index: usize) -> Value {
        json!({"$ref": format!("#/{}/{}", self.dialect.store(), stored_name(index))})
    }
}

fn stored_name(index: usize) -> String {
    format!("s{index}")
}
