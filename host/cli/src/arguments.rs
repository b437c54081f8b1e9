//! Arguments of a tool, from what was typed to the JSON that its schema wants.

use serde_json::{Map, Value};

use crate::output::line;
use longshore_server::policy::nearest::nearest;

/// The arguments of a call: those typed one by one, or a whole object.
pub(crate) fn arguments(
    schema: &Value,
    single: &[String],
    whole: Option<&str>,
) -> Result<Value, String> {
    match whole {
        Some(text) => {
            let value: Value = serde_json::from_str(text)
                .map_err(|error| format!("--arguments is not JSON: {error}"))?;
            if value.is_object() {
                Ok(value)
            } else {
                Err("--arguments must be a JSON object, like '{\"name\":\"Ada\"}'".to_owned())
            }
        }
        None => each(schema, single).map(Value::Object),
    }
}

fn each(schema: &Value, single: &[String]) -> Result<Map<String, Value>, String> {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let mut arguments = Map::new();
    for argument in single {
        let (name, text) = argument
            .split_once('=')
            .ok_or_else(|| format!("--arg {argument} has no value: write --arg NAME=VALUE"))?;
        let property = match properties.get(name) {
            Some(property) => property,
            // Whether a tool takes more than it names is the schema's to say.
            None if schema["additionalProperties"] == false => {
                return Err(unknown(name, properties));
            }
            None => &Value::Null,
        };
        let value = typed(property, text)
            .map_err(|wanted| format!("--arg {name} takes {wanted}, and {text:?} is not"))?;
        if arguments.insert(name.to_owned(), value).is_some() {
            return Err(format!(
                "--arg {name} is given twice: write a list as JSON, like --arg '{name}=[1,2]'"
            ));
        }
    }
    Ok(arguments)
}

fn unknown(name: &str, properties: &Map<String, Value>) -> String {
    let meant = match nearest(name, properties.keys().map(String::as_str)) {
        Some(near) => format!("is {} meant?", line(near)),
        None if properties.is_empty() => "it takes none".to_owned(),
        None => {
            let names: Vec<&str> = properties.keys().map(String::as_str).collect();
            format!("it takes {}", line(&names.join(", ")))
        }
    };
    format!("the tool has no argument {name:?}: {meant}")
}

/// The kinds of value that a schema of a property allows; none if it does not say.
fn kinds(property: &Value) -> Vec<&str> {
    match &property["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// JSON's own reading of the text where the schema wants more than text, so that what is sent is what
/// was typed; the error says what is wanted.
fn typed(property: &Value, text: &str) -> Result<Value, String> {
    let kinds = kinds(property);
    let read: Option<Value> = serde_json::from_str(text).ok();
    if kinds.is_empty() {
        return Ok(read.unwrap_or_else(|| Value::from(text)));
    }
    match read.filter(|value| kinds.iter().any(|kind| is_of(value, kind))) {
        Some(value) => Ok(value),
        None if kinds.contains(&"string") => Ok(Value::from(text)),
        None => Err(kinds
            .iter()
            .map(|kind| wanted(kind))
            .collect::<Vec<_>>()
            .join(" or ")),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "boolean" => value.is_boolean(),
        // Whether a number is a whole one is the schema's to say.
        "integer" | "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // A string that was typed with its quotes stays as typed.
        _ => false,
    }
}

fn wanted(kind: &str) -> &'static str {
    match kind {
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "array" => "a JSON list",
        "object" => "a JSON object",
        "null" => "null",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "count": { "type": "integer" },
                "size": { "type": "number" },
                "sure": { "type": "boolean" },
                "list": { "type": "array" },
                "map": { "type": "object" },
                "any": {},
                "either": { "type": ["integer", "null", "string"] },
            },
            "additionalProperties": false,
        })
    }

    fn read(schema: &Value, list: &[&str]) -> Result<Value, String> {
        let list: Vec<String> = list.iter().map(|&argument| argument.to_owned()).collect();
        arguments(schema, &list, None)
    }

    #[test]
    fn the_schema_says_what_a_text_is() {
        let rows = [
            ("name=12=3", json!({ "name": "12=3" })),
            ("name=", json!({ "name": "" })),
            ("count=12", json!({ "count": 12 })),
            ("size=1.5", json!({ "size": 1.5 })),
            ("sure=true", json!({ "sure": true })),
            ("list=[1,\"a\"]", json!({ "list": [1, "a"] })),
            ("map={\"a\":{}}", json!({ "map": { "a": {} } })),
            ("any=12", json!({ "any": 12 })),
            ("any=twelve", json!({ "any": "twelve" })),
            ("either=12", json!({ "either": 12 })),
            ("either=null", json!({ "either": null })),
            ("either=true", json!({ "either": "true" })),
        ];
        for (argument, expected) in rows {
            assert_eq!(
                read(&schema(), &[argument]).unwrap(),
                expected,
                "{argument}"
            );
        }
        let both = read(&schema(), &["name=a", "count=1"]).unwrap();
        assert_eq!(both, json!({ "name": "a", "count": 1 }));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let rows: [(&[&str], &str); 9] = [
            (&["name"], "NAME=VALUE"),
            (&["nam=x"], "is name meant?"),
            (&["colour=x"], "it takes name, count"),
            (&["count=many"], "a whole number"),
            (&["count=true"], "a whole number"),
            (&["sure=yes"], "true or false"),
            (&["list=1"], "a JSON list"),
            (&["map=[]"], "a JSON object"),
            (&["name=a", "name=b"], "given twice"),
        ];
        for (list, expected) in rows {
            let fault = read(&schema(), list).unwrap_err();
            assert!(fault.contains(expected), "{list:?}: {fault}");
        }
        let closed = json!({ "additionalProperties": false });
        assert!(read(&closed, &["a=1"]).unwrap_err().contains("takes none"));
    }

    #[test]
    fn an_open_schema_takes_more() {
        let open = json!({ "properties": { "name": { "type": "string" } } });
        assert_eq!(read(&open, &["other=1"]).unwrap(), json!({ "other": 1 }));
    }

    #[test]
    fn a_whole_object_goes_as_it_is() {
        let whole = |text| arguments(&schema(), &[], Some(text));
        assert_eq!(whole("{\"x\":1}").unwrap(), json!({ "x": 1 }));
        assert!(whole("[1]").unwrap_err().contains("JSON object"));
        assert!(whole("{").unwrap_err().contains("not JSON"));
    }
}
