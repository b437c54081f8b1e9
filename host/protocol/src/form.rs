//! Which schemas a form may have: one flat object of simple fields (MCP 2026-07-28, elicitation, requested schema).
//! Clients draw an input for each field and know no other keywords, so that others are refused rather than ignored.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json::{self, shown};

/// The longest schema, in bytes. A person is to read the form.
pub const MAX_SCHEMA_BYTES: usize = 16 * 1024;

const ROOT: [&str; 7] = [
    "$schema",
    "type",
    "properties",
    "required",
    "title",
    "description",
    "additionalProperties",
];
const EVERY_FIELD: [&str; 4] = ["type", "title", "description", "default"];

/// Whether this schema can be a form; if not, what stands in the way, as a fragment.
pub fn check(schema: &RawValue) -> Result<(), String> {
    let text = schema.get();
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(format!(
            "the schema has {} bytes; at most {MAX_SCHEMA_BYTES} are accepted",
            text.len()
        ));
    }
    let schema = json::strict_value(text).map_err(|fault| format!("the schema {fault}"))?;
    let Value::Object(schema) = schema else {
        return Err("the schema is not an object".to_owned());
    };
    only(&schema, &[&ROOT]).map_err(|fault| format!("the schema {fault}"))?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("the schema must be of type `object`".to_owned());
    }
    for key in ["$schema", "title", "description"] {
        if schema.get(key).is_some_and(|value| !value.is_string()) {
            return Err(format!("`{key}` of the schema must be a string"));
        }
    }
    if schema
        .get("additionalProperties")
        .is_some_and(|value| !value.is_boolean())
    {
        return Err("`additionalProperties` of the schema must be true or false".to_owned());
    }
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return Err("the schema must have `properties`".to_owned());
    };
    for (name, field) in properties {
        check_field(field).map_err(|fault| format!("field `{}` {fault}", shown(name)))?;
    }
    match schema.get("required").map(strings) {
        None => Ok(()),
        Some(None) => Err("`required` must be a list of field names".to_owned()),
        Some(Some(required)) => match required
            .iter()
            .find(|name| !properties.contains_key(**name))
        {
            Some(name) => Err(format!(
                "`required` names `{}`, which is no field",
                shown(name)
            )),
            None => Ok(()),
        },
    }
}

fn check_field(field: &Value) -> Result<(), String> {
    let Value::Object(field) = field else {
        return Err("is not an object".to_owned());
    };
    for key in ["title", "description"] {
        if field.get(key).is_some_and(|value| !value.is_string()) {
            return Err(format!("has a `{key}` that is no string"));
        }
    }
    match field.get("type").and_then(Value::as_str) {
        Some("string") if field.contains_key("enum") => check_enum(field),
        Some("string") if field.contains_key("oneOf") => check_titled_enum(field),
        Some("string") => check_string(field),
        Some("number") => check_number(field, Value::is_number),
        Some("integer") => check_number(field, |value| value.is_i64() || value.is_u64()),
        Some("boolean") => {
            only(field, &[&EVERY_FIELD])?;
            check_default(field, Value::is_boolean)
        }
        Some("array") => check_choices(field),
        _ => Err("must be of type `string`, `number`, `integer`, `boolean` or `array`".to_owned()),
    }
}

fn check_string(field: &Map<String, Value>) -> Result<(), String> {
    only(
        field,
        &[&EVERY_FIELD, &["minLength", "maxLength", "format"]],
    )?;
    check_counts(field, "minLength", "maxLength")?;
    if field.get("format").is_some_and(|format| {
        !matches!(
            format.as_str(),
            Some("email" | "uri" | "date" | "date-time")
        )
    }) {
        return Err("has a `format` other than `email`, `uri`, `date` and `date-time`".to_owned());
    }
    check_default(field, Value::is_string)
}

fn check_number(field: &Map<String, Value>, is_number: fn(&Value) -> bool) -> Result<(), String> {
    only(field, &[&EVERY_FIELD, &["minimum", "maximum"]])?;
    let bound = |key: &str| match field.get(key).map(Value::as_f64) {
        Some(None) => Err(format!("has a `{key}` that is no number")),
        Some(bound) => Ok(bound),
        None => Ok(None),
    };
    if let (Some(least), Some(most)) = (bound("minimum")?, bound("maximum")?)
        && least > most
    {
        return Err("has a `minimum` above its `maximum`".to_owned());
    }
    check_default(field, is_number)
}

fn check_enum(field: &Map<String, Value>) -> Result<(), String> {
    only(field, &[&EVERY_FIELD, &["enum", "enumNames"]])?;
    let choices = choices(&field["enum"], "enum")?;
    // The older way to give titles; `oneOf` is the present one.
    if let Some(names) = field.get("enumNames")
        && strings(names).is_none_or(|names| names.len() != choices.len())
    {
        return Err("has `enumNames` that are not one string for each choice".to_owned());
    }
    check_default(field, |default| is_one_of(default, &choices))
}

fn check_titled_enum(field: &Map<String, Value>) -> Result<(), String> {
    only(field, &[&EVERY_FIELD, &["oneOf"]])?;
    let choices = titled_choices(&field["oneOf"], "oneOf")?;
    check_default(field, |default| is_one_of(default, &choices))
}

fn check_choices(field: &Map<String, Value>) -> Result<(), String> {
    only(field, &[&EVERY_FIELD, &["items", "minItems", "maxItems"]])?;
    check_counts(field, "minItems", "maxItems")?;
    let Some(Value::Object(items)) = field.get("items") else {
        return Err("must have `items`".to_owned());
    };
    let choices = if let Some(titled) = items.get("anyOf") {
        only(items, &[&["anyOf"]]).map_err(|fault| format!("in its `items` {fault}"))?;
        titled_choices(titled, "items.anyOf")?
    } else {
        only(items, &[&["type", "enum"]]).map_err(|fault| format!("in its `items` {fault}"))?;
        if items.get("type").and_then(Value::as_str) != Some("string") {
            return Err(
                "must have `items` that are strings with an `enum` or titled choices".to_owned(),
            );
        }
        choices(items.get("enum").unwrap_or(&Value::Null), "items.enum")?
    };
    check_default(field, |default| {
        default
            .as_array()
            .is_some_and(|chosen| chosen.iter().all(|choice| is_one_of(choice, &choices)))
    })
}

fn choices<'a>(list: &'a Value, key: &str) -> Result<Vec<&'a str>, String> {
    strings(list)
        .filter(|choices| !choices.is_empty())
        .ok_or_else(|| format!("must have in `{key}` a list of one or more strings"))
}

fn titled_choices<'a>(list: &'a Value, key: &str) -> Result<Vec<&'a str>, String> {
    let choice = |choice: &'a Value| {
        let members = choice.as_object()?;
        only(members, &[&["const", "title"]]).ok()?;
        members.get("title")?.as_str()?;
        members.get("const")?.as_str()
    };
    list.as_array()
        .filter(|list| !list.is_empty())
        .and_then(|list| list.iter().map(choice).collect())
        .ok_or_else(|| {
            format!(
                "must have in `{key}` a list of choices, each with a string `const` and `title`"
            )
        })
}

fn check_counts(field: &Map<String, Value>, least: &str, most: &str) -> Result<(), String> {
    let count = |key: &str| match field.get(key).map(Value::as_u64) {
        Some(None) => Err(format!("has a `{key}` that is no count")),
        Some(count) => Ok(count),
        None => Ok(None),
    };
    match (count(least)?, count(most)?) {
        (Some(a), Some(b)) if a > b => Err(format!("has a `{least}` above its `{most}`")),
        _ => Ok(()),
    }
}

fn check_default(field: &Map<String, Value>, fits: impl Fn(&Value) -> bool) -> Result<(), String> {
    match field.get("default") {
        Some(default) if !fits(default) => Err("has a `default` that is no value of it".to_owned()),
        _ => Ok(()),
    }
}

fn is_one_of(value: &Value, choices: &[&str]) -> bool {
    value.as_str().is_some_and(|value| choices.contains(&value))
}

fn strings(list: &Value) -> Option<Vec<&str>> {
    list.as_array()?.iter().map(Value::as_str).collect()
}

fn only(members: &Map<String, Value>, allowed: &[&[&str]]) -> Result<(), String> {
    match members
        .keys()
        .find(|key| !allowed.iter().any(|keys| keys.contains(&key.as_str())))
    {
        Some(key) => Err(format!(
            "has `{}`, which a form cannot have there",
            shown(key)
        )),
        None => Ok(()),
    }
}
