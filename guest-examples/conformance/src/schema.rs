//! A schema that must come out as it went in.

use longshore_guest::{Description, Outcome, Tool};
use serde_json::{Map, Value, json};

struct SchemaTool;

impl Tool for SchemaTool {
    const NAME: &'static str = "json_schema_2020_12_tool";
    type Arguments = Map<String, Value>;

    fn describe() -> Description {
        Description {
            description: "Tool with JSON Schema 2020-12 features",
            input: json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {
                    "address": {
                        "$anchor": "addressDef",
                        "type": "object",
                        "properties": {
                            "street": { "type": "string" },
                            "city": { "type": "string" },
                        },
                    },
                },
                "properties": {
                    "name": { "type": "string" },
                    "address": { "$ref": "#/$defs/address" },
                    "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                    "phone": { "type": "string" },
                    "email": { "type": "string" },
                },
                "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
                "if": {
                    "properties": { "contactMethod": { "const": "phone" } },
                    "required": ["contactMethod"],
                },
                "then": { "required": ["phone"] },
                "else": { "required": ["email"] },
                "additionalProperties": false,
            }),
            ..Description::default()
        }
    }

    fn call(arguments: Map<String, Value>) -> Outcome {
        Ok(format!("Called with {}", Value::Object(arguments)).into())
    }
}

longshore_guest::export!(SchemaTool);
