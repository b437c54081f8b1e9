//! JSON Schemas and what they refuse.
//!
//! Schemas come from strangers and are checked against values from other strangers: nothing is ever fetched for a
//! reference, patterns run in linear time, and the size of a schema, the stack and the work of a check are bounded.

mod meter;
mod problem;
mod shape;

use std::collections::{BTreeSet, HashMap};

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

pub use self::problem::Problem;
use self::shape::Shape;
use crate::json::{self, cut};

/// The largest schema in bytes: far above any that people write, and quick to read.
pub const MAX_BYTES: usize = 256 * 1024;
/// The most JSON values in one schema, which bounds the time and memory of compiling it.
pub const MAX_VALUES: u64 = 10_000;
/// The most different patterns in one schema.
pub const MAX_PATTERNS: usize = 64;

/// How large one pattern may be when compiled, by steps: the smallest that holds it tells how slow it can be.
const PATTERN_BYTES: [u64; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// What one pattern may cache while it runs, for each thread that runs it.
const PATTERN_CACHE_BYTES: usize = 1 << 20;

/// The work of one check: enough for a megabyte of small values against several subschemas each, and at most a few
/// seconds for the worst schema.
const CHECK_STEPS: u64 = 4_000_000;
/// The work of finding out why a value is refused. Smaller, since errors are kept while it goes on.
const EXPLAIN_STEPS: u64 = 50_000;
/// The problems named at a time: a model mends a few and tries again.
const MAX_PROBLEMS: usize = 5;

/// What is wrong with a schema: a fragment that can follow its name, and names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SchemaFault(String);

impl SchemaFault {
    pub(crate) fn new(what: String) -> Self {
        Self(what)
    }
}

/// Checks a tool's input schema: an object schema that [`Compiled`] takes.
pub fn check_input(text: &str) -> Result<(), SchemaFault> {
    read_input(text).map(drop)
}

/// Checks a tool's output schema: any object that [`Compiled`] takes.
pub fn check_output(text: &str) -> Result<(), SchemaFault> {
    Compiled::compile(text).map(drop)
}

/// Reads an input schema and checks it.
pub(crate) fn read_input(text: &str) -> Result<Value, SchemaFault> {
    let value = read(text)?;
    if value.get("type") != Some(&Value::String("object".to_owned())) {
        return Err(SchemaFault(
            "describes no object; add \"type\": \"object\" to its root".to_owned(),
        ));
    }
    Compiled::of(&value)?;
    Ok(value)
}

/// A subschema with a certain keyword.
pub(crate) struct Annotated<'s> {
    /// Its JSON pointer, for people.
    pub(crate) place: String,
    /// The names of the properties that lead there, if nothing but `properties` does.
    pub(crate) properties: Option<Vec<&'s str>>,
    /// Its keywords.
    pub(crate) members: &'s Map<String, Value>,
}

/// The subschemas with that keyword, wherever they are.
pub(crate) fn annotated<'s>(
    schema: &'s Value,
    keyword: &str,
) -> Result<Vec<Annotated<'s>>, SchemaFault> {
    let shape = Shape::of(schema, Dialect::of(schema)?).map_err(SchemaFault)?;
    let found = shape.nodes.into_iter().filter_map(|node| {
        let members = node.value.as_object()?;
        members.contains_key(keyword).then(|| Annotated {
            place: place(&node.pointer),
            properties: node.properties,
            members,
        })
    });
    Ok(found.collect())
}

/// A schema that is ready to check values. Share it: compiling costs far more than checking.
#[derive(Debug)]
pub struct Compiled {
    validator: Validator,
}

impl Compiled {
    /// Compiles a schema: an object in dialect 2020-12 or draft-07 that is valid against its metaschema, with
    /// references to its own subschemas only and patterns without look-around and back references.
    pub fn compile(text: &str) -> Result<Self, SchemaFault> {
        Self::of(&read(text)?)
    }

    fn of(schema: &Value) -> Result<Self, SchemaFault> {
        let dialect = Dialect::of(schema)?;
        dialect.check(schema)?;
        let shape = Shape::of(schema, dialect).map_err(SchemaFault)?;
        let patterns = compiled_patterns(&shape)?;
        let metered = meter::metered(&shape, dialect, &patterns);
        let validator = options()
            .with_keyword(meter::KEYWORD, meter::keyword)
            .build(&metered)
            .map_err(|error| SchemaFault(format!("cannot be compiled: {}", shown(&error))))?;
        Ok(Self { validator })
    }

    /// Checks a value that nests at most 64 deep; the caller bounds its size. At most five problems are named.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Problem>> {
        match meter::within(CHECK_STEPS, || self.validator.is_valid(value)) {
            Some(true) => Ok(()),
            Some(false) => Err(self.explain(value)),
            None => Err(vec![Problem::at_root(
                "takes too much work to check against the schema; make the value smaller or the schema simpler",
            )]),
        }
    }

    fn explain(&self, value: &Value) -> Vec<Problem> {
        let all = meter::within(EXPLAIN_STEPS, || {
            let errors = self.validator.iter_errors(value);
            errors
                .take(MAX_PROBLEMS)
                .map(|error| Problem::of(&error))
                .collect()
        });
        let first = || {
            meter::within(EXPLAIN_STEPS, || {
                let error = self.validator.validate(value).err()?;
                Some(vec![Problem::of(&error)])
            })
            .flatten()
        };
        all.or_else(first)
            .unwrap_or_else(|| vec![Problem::at_root("does not match the schema")])
    }
}

/// The dialects that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Draft7,
    Draft202012,
}

impl Dialect {
    fn of(schema: &Value) -> Result<Self, SchemaFault> {
        let Some(named) = schema.get("$schema") else {
            return Ok(Self::Draft202012);
        };
        let uri = named.as_str().map(|uri| uri.trim_end_matches('#'));
        [Self::Draft202012, Self::Draft7]
            .into_iter()
            .find(|dialect| {
                uri == Some(dialect.uri())
                    || uri == Some(&dialect.uri().replacen("http:", "https:", 1))
            })
            .ok_or_else(|| {
                SchemaFault(format!(
                    "is in the dialect {}; use {} or {}",
                    cut(&named.to_string(), 80),
                    Self::Draft202012.uri(),
                    Self::Draft7.uri()
                ))
            })
    }

    fn uri(self) -> &'static str {
        match self {
            Self::Draft7 => "http://json-schema.org/draft-07/schema",
            Self::Draft202012 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// The keyword under which subschemas wait for references.
    fn store(self) -> &'static str {
        match self {
            Self::Draft7 => "definitions",
            Self::Draft202012 => "$defs",
        }
    }

    fn check(self, schema: &Value) -> Result<(), SchemaFault> {
        let checked = match self {
            Self::Draft7 => jsonschema::draft7::meta::validate(schema),
            Self::Draft202012 => jsonschema::draft202012::meta::validate(schema),
        };
        checked.map_err(|error| {
            let at = place(error.instance_path().as_str());
            SchemaFault(format!("is not a JSON Schema at {at}: {}", shown(&error)))
        })
    }
}

fn read(text: &str) -> Result<Value, SchemaFault> {
    let value = json::read(text, MAX_BYTES).map_err(SchemaFault)?;
    if !value.is_object() {
        return Err(SchemaFault("is not a JSON object".to_owned()));
    }
    let values = meter::count(&value);
    if values > MAX_VALUES {
        return Err(SchemaFault(format!(
            "has {values} values; make it at most {MAX_VALUES}"
        )));
    }
    Ok(value)
}

/// References outside are compiled out of the library, and refused before it sees them; offline all the same.
fn options() -> jsonschema::ValidationOptions<'static> {
    jsonschema::options()
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(pattern_options(PATTERN_BYTES[PATTERN_BYTES.len() - 1]))
}

fn pattern_options(bytes: u64) -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex()
        .size_limit(usize::try_from(bytes).unwrap_or(usize::MAX))
        .dfa_size_limit(PATTERN_CACHE_BYTES)
}

/// The compiled size of each pattern, or what is wrong with one.
fn compiled_patterns<'s>(shape: &Shape<'s>) -> Result<HashMap<&'s str, u64>, SchemaFault> {
    let mut found = BTreeSet::new();
    for node in &shape.nodes {
        found.extend(node.value.get("pattern").and_then(Value::as_str));
        let by_name = node.value.get("patternProperties");
        let names = by_name.and_then(Value::as_object).into_iter().flatten();
        found.extend(names.map(|(name, _)| name.as_str()));
    }
    if found.len() > MAX_PATTERNS {
        return Err(SchemaFault(format!(
            "has {} different patterns; make it at most {MAX_PATTERNS}",
            found.len()
        )));
    }
    found
        .into_iter()
        .map(|pattern| Ok((pattern, compiled_size(pattern)?)))
        .collect()
}

fn compiled_size(pattern: &str) -> Result<u64, SchemaFault> {
    let probe = json!({"pattern": pattern, "patternProperties": {pattern: true}});
    let builds = |bytes: u64| {
        options()
            .with_pattern_options(pattern_options(bytes))
            .build(&probe)
            .is_ok()
    };
    let largest = PATTERN_BYTES[PATTERN_BYTES.len() - 1];
    PATTERN_BYTES
        .into_iter()
        .find(|&bytes| builds(bytes))
        .ok_or_else(|| {
            let shown = cut(pattern, 80);
            SchemaFault(if builds(16 * largest) {
                format!("has the pattern {shown:?}, which compiles to more than {largest} bytes; repeat less in it")
            } else {
                format!(
                    "has the pattern {shown:?}, which is too large or not a regular expression that runs in linear \
                     time; do without look-around and back references"
                )
            })
        })
}

fn shown(error: &jsonschema::ValidationError<'_>) -> String {
    cut(&error.to_string(), 160)
}

/// A JSON pointer for people.
fn place(pointer: &str) -> String {
    if pointer.is_empty() {
        "(root)".to_owned()
    } else {
        cut(pointer, 200)
    }
}
