//! A question put to the person at the prompt, field by field.

use std::fmt;

use longshore_server::local::check_field;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::answer::{self, choices, describe_field, yes_or_no};
use crate::output::{line, lines};
use crate::prompt::{Prompt, say};

/// How to answer, said once before the first question.
const RULES: &str = "  (Ctrl-D declines; an empty line takes the default, or leaves out what is optional; \"\" is an empty text)\n";

/// The answer to a request, as a client would send it.
pub(crate) async fn ask(prompt: &mut Prompt, request: &str, is_first: bool) -> Value {
    let asked: Value = serde_json::from_str(request).unwrap_or_default();
    let params = &asked["params"];
    let mut text = String::new();
    for message_line in lines(params["message"].as_str().unwrap_or_default()).lines() {
        text.push_str(&format!("? {message_line}\n"));
    }
    if is_first {
        text.push_str(RULES);
    }
    say(&text);
    let accepted = if params["mode"] == "url" {
        let page = line(params["url"].as_str().unwrap_or_default()).into_owned();
        say(&format!("  to visit: {page}\n"));
        confirm(prompt, "  visited? [y/n] ").await.then_some(None)
    } else {
        let schema = &params["requestedSchema"];
        let order = order(request);
        if order.is_empty() {
            confirm(prompt, "  agreed? [y/n] ")
                .await
                .then(|| Some(json!({})))
        } else {
            fill(prompt, schema, &order).await.map(Some)
        }
    };
    match accepted {
        Some(Some(content)) => json!({ "action": "accept", "content": content }),
        Some(None) => json!({ "action": "accept" }),
        None => json!({ "action": "decline" }),
    }
}

async fn confirm(prompt: &mut Prompt, asking: &str) -> bool {
    loop {
        match prompt.line(asking).await {
            None => return false,
            Some(text) => {
                if let Some(said) = yes_or_no(&text) {
                    return said;
                }
            }
        }
    }
}

/// The content of a form; none if the person declines.
async fn fill(prompt: &mut Prompt, schema: &Value, order: &[String]) -> Option<Value> {
    let mut content = Map::new();
    for name in order {
        let property = &schema["properties"][name];
        let asking = format!(
            "  {}: ",
            describe_field(name, property, &schema["required"])
        );
        let is_required = schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|required| required == name));
        let value = loop {
            let text = prompt.line(&asking).await?;
            match read(property, is_required, &text) {
                Ok(value) => break value,
                Err(fault) => say(&format!("  {}\n", lines(&fault))),
            }
        };
        if let Some(value) = value {
            content.insert(name.clone(), value);
        }
    }
    Some(Value::Object(content))
}

/// What a line says for a field; none if it leaves it out.
fn read(property: &Value, is_required: bool, text: &str) -> Result<Option<Value>, String> {
    if text.is_empty() {
        return match property.get("default") {
            Some(default) => Ok(Some(default.clone())),
            None if is_required => Err("this one needs an answer".to_owned()),
            None => Ok(None),
        };
    }
    let value = if property["type"] == "array" {
        text.split(',')
            .map(|part| choice(property, part.trim()))
            .collect()
    } else if choices(property).is_some() {
        choice(property, text)
    } else if text == "\"\"" {
        json!("")
    } else {
        answer::typed(property, text).map_err(|wanted| format!("this one takes {wanted}"))?
    };
    match (check_field(property, &value), choices(property)) {
        (Ok(()), _) => Ok(Some(value)),
        (Err(_), Some(choices)) => Err(format!("this one takes {}", choices.join(" | "))),
        (Err(fault), None) => Err(format!("this {fault}")),
    }
}

/// The choice that is meant: itself, itself but for capitals, or its title.
fn choice(property: &Value, text: &str) -> Value {
    let of = if property["type"] == "array" {
        &property["items"]
    } else {
        property
    };
    let plain = of["enum"].as_array().into_iter().flatten();
    let titled = of["oneOf"].as_array().or(of["anyOf"].as_array());
    let pairs: Vec<(&str, Option<&str>)> = plain
        .filter_map(|choice| Some((choice.as_str()?, None)))
        .chain(
            titled
                .into_iter()
                .flatten()
                .filter_map(|choice| Some((choice["const"].as_str()?, choice["title"].as_str()))),
        )
        .collect();
    let exact = pairs.iter().find(|(choice, _)| *choice == text);
    let near = || {
        pairs.iter().find(|(choice, title)| {
            choice.eq_ignore_ascii_case(text)
                || title.is_some_and(|title| title.eq_ignore_ascii_case(text))
        })
    };
    Value::from(exact.or_else(near).map_or(text, |(choice, _)| *choice))
}

/// The names of a form's fields in the order of their author, which a map does not keep.
fn order(request: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Request {
        params: Params,
    }
    #[derive(serde::Deserialize)]
    struct Params {
        #[serde(rename = "requestedSchema")]
        schema: Schema,
    }
    #[derive(serde::Deserialize)]
    struct Schema {
        #[serde(default)]
        properties: Names,
    }
    serde_json::from_str(request).map_or_else(
        |_| Vec::new(),
        |Request { params }| params.schema.properties.0,
    )
}

#[derive(Default)]
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Names, M::Error> {
                let mut names = Vec::new();
                while let Some((name, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }

        from.deserialize_map(Keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_the_order_of_their_author() {
        let request = r#"{"method":"elicitation/create","params":{"message":"m","requestedSchema":
            {"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}}}"#;
        assert_eq!(order(request), ["z", "a"]);
        assert!(order("{}").is_empty());
    }

    #[test]
    fn lines_become_values_or_say_why_not() {
        let text = json!({ "type": "string", "maxLength": 3 });
        let age = json!({ "type": "integer", "minimum": 0, "maximum": 150 });
        let sure = json!({ "type": "boolean", "default": true });
        let colour = json!({ "type": "string", "enum": ["red", "Red", "green"] });
        let size = json!({ "type": "string", "oneOf": [{ "const": "s", "title": "Small" }, { "const": "l", "title": "Large" }] });
        let tags = json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "maxItems": 2 });
        let good = [
            (&text, "abc", Some(json!("abc"))),
            (&text, "\"\"", Some(json!(""))),
            (&text, "", None),
            (&age, "36", Some(json!(36))),
            (&sure, "", Some(json!(true))),
            (&sure, "No", Some(json!(false))),
            (&colour, "Red", Some(json!("Red"))),
            (&colour, "GREEN", Some(json!("green"))),
            (&size, "large", Some(json!("l"))),
            (&size, "s", Some(json!("s"))),
            (&tags, "a, b", Some(json!(["a", "b"]))),
        ];
        for (property, text, expected) in good {
            assert_eq!(read(property, false, text), Ok(expected), "{text:?}");
        }
        let bad = [
            (&text, "abcd", "this "),
            (&text, "", "needs an answer"),
            (&age, "old", "a whole number"),
            (&age, "151", "this "),
            (&age, "1.5", "this "),
            (&sure, "perhaps", "yes or no"),
            (&colour, "blue", "red | Red | green"),
            (&size, "medium", "s | l"),
            (&tags, "a,c", "a | b"),
        ];
        for (property, text, expected) in bad {
            let fault = read(property, true, text).unwrap_err();
            assert!(fault.contains(expected), "{text:?}: {fault}");
        }
    }
}
