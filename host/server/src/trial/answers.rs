//! Answers that fit their questions, from nothing but the questions.

use longshore_journal::call::{Answer, Ask};
use longshore_journal::http::Response;
use longshore_sandbox::poll::{Met, Poll, Until};
use serde_json::{Map, Value, json};

use crate::wire::Asked;

/// An answer: mostly yes, now and then no.
pub(super) fn to(ask: &Ask, asked: &Asked, chance: u64) -> Answer {
    match (ask, chance) {
        (Ask::Form { .. } | Ask::Url { .. }, 0) => Answer::Declined,
        (Ask::Form { .. } | Ask::Url { .. }, 1) => Answer::Dismissed,
        (Ask::Form { schema, .. }, _) => {
            let schema: Value = serde_json::from_str(schema).unwrap_or_default();
            Answer::Accepted(Some(fill(&schema).to_string()))
        }
        (Ask::Url { .. }, _) => Answer::Accepted(None),
        (Ask::Sample(_), _) => Answer::Sampled(
            json!({ "role": "assistant", "model": "script", "stopReason": "endTurn",
                    "content": { "type": "text", "text": format!("reply {chance}") } })
            .to_string(),
        ),
        (Ask::Roots(_), _) => Answer::Roots(json!({ "roots": [] }).to_string()),
        (Ask::Wait(what), chance) => Answer::Raw(met(what, chance)),
        (Ask::Raw(_), _) => asked
            .answer(&json!({ "action": "decline" }).to_string())
            .unwrap_or(Answer::Declined),
    }
}

/// A response that is what is waited for, as near as a script can come to it.
fn met(what: &str, chance: u64) -> String {
    let until = serde_json::from_str::<Poll>(what).map(|poll| poll.until);
    let (status, body) = match until {
        Ok(Until::Status(statuses)) => (statuses.first().copied().unwrap_or(200), json!({})),
        Ok(Until::Equals { pointer, values }) => {
            let value = values.into_iter().next().unwrap_or_default();
            let names = pointer
                .split('/')
                .skip(1)
                .map(|name| name.replace("~1", "/").replace("~0", "~"));
            let names: Vec<String> = names.collect();
            (
                200,
                names
                    .into_iter()
                    .rev()
                    .fold(value, |inside, name| json!({ name: inside })),
            )
        }
        Ok(Until::Success | Until::Differs { .. }) | Err(_) => (200, json!({ "reply": chance })),
    };
    let response = Response {
        status,
        fields: vec![(
            "content-type".to_owned(),
            b"application/json".to_vec().into(),
        )],
        body: body.to_string().into_bytes().into(),
    };
    serde_json::to_string(&Met::of(&response)).unwrap_or_default()
}

/// A value for every field that has to be there, and for those that have a default.
fn fill(schema: &Value) -> Value {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut filled = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(default) = field.get("default") {
            filled.insert(name.clone(), default.clone());
        } else if required.contains(&name.as_str()) {
            filled.insert(name.clone(), value(field));
        }
    }
    Value::Object(filled)
}

fn value(field: &Value) -> Value {
    let first_choice = |field: &Value| {
        field["enum"]
            .get(0)
            .or_else(|| field["oneOf"].get(0).and_then(|choice| choice.get("const")))
            .or_else(|| field["anyOf"].get(0).and_then(|choice| choice.get("const")))
            .cloned()
    };
    if let Some(choice) = first_choice(field) {
        return choice;
    }
    match field["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer" | "number") => {
            let least = field["minimum"].as_f64().unwrap_or(0.0).ceil();
            let most = field["maximum"].as_f64().unwrap_or(f64::MAX);
            json!(least.max(1.0_f64.min(most)))
        }
        Some("array") => {
            let least = field["minItems"].as_u64().unwrap_or(0);
            let choice = first_choice(&field["items"]).unwrap_or_default();
            let count = usize::try_from(least).unwrap_or(0);
            json!(vec![choice; count])
        }
        _ => {
            let text = match field["format"].as_str() {
                Some("email") => "ada@example.org",
                Some("uri") => "https://example.org/",
                Some("date") => "2026-01-01",
                Some("date-time") => "2026-01-01T00:00:00Z",
                _ => "text",
            };
            let least = field["minLength"].as_u64().unwrap_or(0);
            let missing = usize::try_from(least)
                .unwrap_or(0)
                .saturating_sub(text.len());
            json!(format!("{text}{}", "x".repeat(missing)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_filled_in_so_that_it_fits() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 6 },
                "mail": { "type": "string", "format": "email" },
                "age": { "type": "integer", "minimum": 18 },
                "share": { "type": "number", "maximum": 0.5 },
                "yes": { "type": "boolean" },
                "color": { "type": "string", "enum": ["red", "green"] },
                "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }] },
                "some": { "type": "array", "minItems": 1, "items": { "type": "string", "enum": ["a"] } },
                "left": { "type": "string" },
                "known": { "type": "string", "default": "d" }
            },
            "required": ["name", "mail", "age", "share", "yes", "color", "size", "some"]
        });
        let filled = fill(&schema);
        let compiled = longshore_catalog::schema::Compiled::compile(&schema.to_string()).unwrap();
        assert!(compiled.check(&filled).is_ok(), "{filled}");
        assert_eq!(filled["known"], "d");
        assert!(filled.get("left").is_none());
    }
}
