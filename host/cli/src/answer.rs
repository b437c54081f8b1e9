//! Questions of tasks: shown to a person, and the answer built from what the person typed.

use serde_json::{Map, Value, json};

use crate::output::{cell, line, lines};
use longshore_server::policy::nearest::nearest;

/// What the person says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Yes, with JSON where the question wants content.
    Accept(Option<String>),
    /// Yes, field by field, each `NAME=VALUE`.
    Fields(Vec<String>),
    /// No.
    Decline,
    /// Neither.
    Dismiss,
}

/// The kinds of question, by the methods of MCP 2026-07-28.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Form,
    Page,
    /// The client's model or its folders: the answer is the result that a client would send.
    Result,
}

fn kind(request: &Value) -> Kind {
    match (
        request["method"].as_str(),
        request["params"]["mode"].as_str(),
    ) {
        (Some("elicitation/create"), Some("url")) => Kind::Page,
        (Some("elicitation/create"), _) => Kind::Form,
        _ => Kind::Result,
    }
}

/// The question that is meant: the one of that key, or the only one.
pub(crate) fn choose<'a>(
    questions: &'a Map<String, Value>,
    key: Option<&str>,
) -> Result<(&'a str, &'a Value), String> {
    let keys = || {
        questions
            .keys()
            .map(|key| line(key))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match key {
        _ if questions.is_empty() => Err("the task asks nothing now".to_owned()),
        Some(key) => questions
            .get_key_value(key)
            .map(|(key, request)| (key.as_str(), request))
            .ok_or_else(|| format!("the task does not ask {:?}: it asks {}", line(key), keys())),
        None if questions.len() == 1 => {
            let (key, request) = questions.iter().next().expect("there is exactly one");
            Ok((key, request))
        }
        None => Err(format!(
            "the task asks several things: name one of the keys {}",
            keys()
        )),
    }
}

/// The answer to a question, as the admin API takes it.
pub(crate) fn build(request: &Value, reply: &Reply) -> Result<Value, String> {
    let kind = kind(request);
    match (reply, kind) {
        (Reply::Decline | Reply::Dismiss, Kind::Result) => {
            Err("the question is to a client's model or folders and can only be answered, with --accept JSON".to_owned())
        }
        (Reply::Decline, Kind::Form | Kind::Page) => Ok(json!({ "action": "decline" })),
        (Reply::Dismiss, Kind::Form | Kind::Page) => Ok(json!({ "action": "cancel" })),
        (Reply::Accept(None), Kind::Page) => Ok(json!({ "action": "accept" })),
        (Reply::Accept(Some(_)), Kind::Page) => {
            Err("the question is a page to visit: --accept without JSON says that it was".to_owned())
        }
        (Reply::Accept(None), Kind::Form) => Err("the question is a form: fill it in with --accept JSON, or --field NAME=VALUE for each field".to_owned()),
        (Reply::Accept(None), Kind::Result) => Err("the question needs its answer as --accept JSON".to_owned()),
        (Reply::Accept(Some(text)), Kind::Form) => Ok(json!({ "action": "accept", "content": parse(text)? })),
        (Reply::Accept(Some(text)), Kind::Result) => parse(text),
        (Reply::Fields(fields), Kind::Form) => {
            Ok(json!({ "action": "accept", "content": content(&request["params"]["requestedSchema"], fields)? }))
        }
        (Reply::Fields(_), Kind::Page | Kind::Result) => Err("the question is no form, so it has no fields".to_owned()),
    }
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("--accept is not JSON: {error}"))
}

/// The content of a form. Whether the values fit is the server's to say; here they only get the type
/// that their field wants.
fn content(schema: &Value, fields: &[String]) -> Result<Value, String> {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let mut content = Map::new();
    for field in fields {
        let (name, text) = field
            .split_once('=')
            .ok_or_else(|| format!("--field {field} has no value: write --field NAME=VALUE"))?;
        let Some(property) = properties.get(name) else {
            let names: Vec<&str> = properties.keys().map(String::as_str).collect();
            let meant = nearest(name, names.iter().copied()).map_or_else(
                || format!("it has {}", line(&names.join(", "))),
                |near| format!("is {} meant?", line(near)),
            );
            return Err(format!("the form has no field {name:?}: {meant}"));
        };
        let is_list = property["type"] == "array";
        let value = if is_list {
            Value::from(text)
        } else {
            typed(property, text)
                .map_err(|wanted| format!("the field {name} takes {wanted}, and {text:?} is not"))?
        };
        match content.get_mut(name) {
            None if is_list => drop(content.insert(name.to_owned(), json!([value]))),
            None => drop(content.insert(name.to_owned(), value)),
            Some(Value::Array(chosen)) if is_list => chosen.push(value),
            Some(_) => {
                return Err(format!(
                    "--field {name} is given twice, and the field takes one value"
                ));
            }
        }
    }
    Ok(Value::Object(content))
}

/// A text as the value that its field wants; the error says what that is.
pub(crate) fn typed(property: &Value, text: &str) -> Result<Value, &'static str> {
    let wanted = match property["type"].as_str() {
        Some("boolean") => return yes_or_no(text).map(Value::from).ok_or("yes or no"),
        Some("integer") => "a whole number",
        Some("number") => "a number",
        _ => return Ok(Value::from(text)),
    };
    // JSON's own reading of it, so that what is sent is what was typed.
    let value: Option<Value> = serde_json::from_str(text).ok();
    value.filter(Value::is_number).ok_or(wanted)
}

/// What a person means by it.
pub(crate) fn yes_or_no(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// A question for people, indented, with how to answer it.
pub(crate) fn describe(key: &str, request: &Value) -> String {
    let params = &request["params"];
    let mut text = format!("question {}\n", line(key));
    if let Some(message) = params["message"].as_str() {
        for message_line in lines(message).lines() {
            text.push_str(&format!("  {message_line}\n"));
        }
    }
    match kind(request) {
        Kind::Page => text.push_str(&format!(
            "  to visit: {}\n  answer with --accept, --decline or --dismiss\n",
            cell(params, "url")
        )),
        Kind::Result => text.push_str(&format!(
            "  {} {}\n  answer with --accept JSON\n",
            cell(request, "method"),
            crate::output::json(params)
        )),
        Kind::Form => {
            let schema = &params["requestedSchema"];
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                text.push_str(&format!(
                    "  {}\n",
                    describe_field(name, property, &schema["required"])
                ));
            }
            text.push_str("  answer with --field NAME=VALUE for each, --accept JSON, --decline or --dismiss\n");
        }
    }
    text
}

/// A field on one line: its name, what it takes, and what its author says of it.
pub(crate) fn describe_field(name: &str, property: &Value, required: &Value) -> String {
    let mut wanted =
        choices(property).map_or_else(|| cell(property, "type"), |choices| choices.join(" | "));
    if property["type"] == "array" {
        wanted.push_str(", any number of times");
    }
    for (keyword, word) in [("format", ""), ("minimum", "from "), ("maximum", "to ")] {
        if property.get(keyword).is_some() {
            wanted.push_str(&format!(" {word}{}", cell(property, keyword)));
        }
    }
    if let Some(default) = property.get("default") {
        wanted.push_str(&format!(", default {}", crate::output::json(default)));
    }
    let is_required = required
        .as_array()
        .is_some_and(|names| names.iter().any(|required| required == name));
    if !is_required {
        wanted.push_str(", optional");
    }
    let said: Vec<String> = ["title", "description"]
        .into_iter()
        .filter(|member| property.get(*member).is_some())
        .map(|member| cell(property, member))
        .collect();
    let said = if said.is_empty() {
        String::new()
    } else {
        format!("  {}", said.join(": "))
    };
    format!("{} ({wanted}){said}", line(name))
}

/// What can be chosen, if a field is a choice.
pub(crate) fn choices(property: &Value) -> Option<Vec<String>> {
    let of = if property["type"] == "array" {
        &property["items"]
    } else {
        property
    };
    let plain = of["enum"].as_array().map(|list| {
        list.iter()
            .filter_map(Value::as_str)
            .map(|choice| line(choice).into_owned())
            .collect()
    });
    plain.or_else(|| {
        let titled = of["oneOf"].as_array().or(of["anyOf"].as_array())?;
        Some(titled.iter().map(|choice| cell(choice, "const")).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Value {
        json!({
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Who\u{7} are you?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "name": { "type": "string", "title": "Name" },
                        "age": { "type": "integer", "minimum": 0 },
                        "size": { "type": "number" },
                        "sure": { "type": "boolean", "default": true },
                        "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
                    },
                    "required": ["name"],
                },
            },
        })
    }

    fn fields(list: &[&str]) -> Result<Value, String> {
        build(
            &form(),
            &Reply::Fields(list.iter().map(|&field| field.to_owned()).collect()),
        )
    }

    #[test]
    fn fields_get_the_types_of_their_form() {
        let answer = fields(&[
            "name=12=a",
            "age=36",
            "size=1.5",
            "sure=false",
            "tags=a",
            "tags=b",
        ])
        .unwrap();
        let expected =
            json!({ "name": "12=a", "age": 36, "size": 1.5, "sure": false, "tags": ["a", "b"] });
        assert_eq!(answer, json!({ "action": "accept", "content": expected }));
        assert_eq!(
            fields(&["name="]).unwrap()["content"],
            json!({ "name": "" })
        );
        assert_eq!(
            fields(&["tags=a"]).unwrap()["content"],
            json!({ "tags": ["a"] })
        );
    }

    #[test]
    fn wrong_fields_are_named() {
        let rows = [
            ("name", "no value"),
            ("nam=x", "is name meant?"),
            ("colour=x", "it has name, age, size, sure, tags"),
            ("age=old", "a whole number"),
            ("age=true", "a whole number"),
            ("sure=1", "yes or no"),
        ];
        for (field, expected) in rows {
            let fault = fields(&[field]).unwrap_err();
            assert!(fault.contains(expected), "{field}: {fault}");
        }
        assert!(fields(&["name=a", "name=b"]).unwrap_err().contains("twice"));
    }

    #[test]
    fn every_kind_takes_its_own_replies() {
        let page = json!({ "method": "elicitation/create", "params": { "mode": "url", "url": "https://x" } });
        let roots = json!({ "method": "roots/list", "params": {} });
        let accept = |text: &str| Reply::Accept(Some(text.to_owned()));
        assert_eq!(
            build(&form(), &accept("{\"name\":1}")).unwrap(),
            json!({ "action": "accept", "content": { "name": 1 } })
        );
        assert_eq!(
            build(&form(), &Reply::Decline).unwrap(),
            json!({ "action": "decline" })
        );
        assert_eq!(
            build(&page, &Reply::Dismiss).unwrap(),
            json!({ "action": "cancel" })
        );
        assert_eq!(
            build(&page, &Reply::Accept(None)).unwrap(),
            json!({ "action": "accept" })
        );
        assert_eq!(
            build(&roots, &accept("{\"roots\":[]}")).unwrap(),
            json!({ "roots": [] })
        );
        for (request, reply) in [
            (form(), Reply::Accept(None)),
            (form(), accept("{")),
            (page.clone(), accept("{}")),
            (page, Reply::Fields(vec!["a=b".to_owned()])),
            (roots.clone(), Reply::Accept(None)),
            (roots.clone(), Reply::Decline),
            (roots, Reply::Fields(Vec::new())),
        ] {
            build(&request, &reply).unwrap_err();
        }
    }

    #[test]
    fn a_key_is_needed_only_among_several() {
        let questions = |keys: &[&str]| {
            keys.iter()
                .map(|&key| (key.to_owned(), form()))
                .collect::<Map<_, _>>()
        };
        let one = questions(&["a"]);
        assert_eq!(choose(&one, None).unwrap().0, "a");
        let two = questions(&["a", "b"]);
        assert_eq!(choose(&two, Some("b")).unwrap().0, "b");
        assert!(choose(&two, None).unwrap_err().contains("a, b"));
        assert!(choose(&two, Some("c")).unwrap_err().contains("a, b"));
        assert!(
            choose(&questions(&[]), None)
                .unwrap_err()
                .contains("asks nothing")
        );
    }

    #[test]
    fn a_question_says_how_to_answer_it() {
        let text = describe("person", &form());
        assert!(text.starts_with("question person\n  Who\\u0007 are you?\n  name (string)  Name\n  age (integer from 0, optional)\n"), "{text}");
        assert!(
            text.contains("  tags (a | b, any number of times, optional)\n"),
            "{text}"
        );
        assert!(
            text.contains("  sure (boolean, default true, optional)\n"),
            "{text}"
        );
        assert!(text.contains("--field NAME=VALUE"), "{text}");
    }
}
