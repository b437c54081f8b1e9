use longshore_protocol::form::{self, MAX_SCHEMA_BYTES};
use serde_json::{Value, json};

fn check(schema: &Value) -> Result<(), String> {
    let text = schema.to_string();
    form::check(serde_json::from_str(&text).unwrap())
}

fn with(field: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": {}});
    schema["properties"]["f"] = field;
    schema
}

#[test]
fn every_kind_of_field_is_accepted() {
    for field in [
        json!({"type": "string"}),
        json!({"type": "string", "title": "T", "description": "D", "default": "x", "minLength": 0, "maxLength": 5}),
        json!({"type": "string", "format": "email"}),
        json!({"type": "string", "format": "uri"}),
        json!({"type": "string", "format": "date"}),
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "number", "minimum": -1.5, "maximum": 3, "default": 0.5}),
        json!({"type": "integer", "minimum": 0, "maximum": 100, "default": 50}),
        json!({"type": "boolean", "default": false}),
        json!({"type": "string", "enum": ["a", "b"], "default": "b"}),
        json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}),
        json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2, "default": ["a"]}),
        json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "default": []}),
    ] {
        assert_eq!(check(&with(field.clone())), Ok(()), "{field}");
    }
    for schema in [
        json!({"type": "object", "properties": {}}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "T", "description": "D",
            "type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": false}),
    ] {
        assert_eq!(check(&schema), Ok(()), "{schema}");
    }
}

#[test]
fn other_fields_are_refused_by_name() {
    for (field, words) in [
        (json!(true), "is not an object"),
        (json!({}), "must be of type"),
        (
            json!({"type": "object", "properties": {}}),
            "must be of type",
        ),
        (json!({"type": "null"}), "must be of type"),
        (json!({"type": ["string", "null"]}), "must be of type"),
        (json!({"type": "string", "pattern": "^a$"}), "`pattern`"),
        (json!({"type": "string", "format": "password"}), "`format`"),
        (json!({"type": "string", "format": null}), "`format`"),
        (json!({"type": "string", "title": 5}), "`title`"),
        (
            json!({"type": "string", "minLength": 5, "maxLength": 4}),
            "`minLength`",
        ),
        (json!({"type": "string", "minLength": -1}), "`minLength`"),
        (json!({"type": "string", "maxLength": null}), "`maxLength`"),
        (json!({"type": "string", "default": 5}), "`default`"),
        (json!({"type": "string", "default": null}), "`default`"),
        (json!({"type": "string", "minimum": 5}), "`minimum`"),
        (
            json!({"type": "number", "exclusiveMinimum": 5}),
            "`exclusiveMinimum`",
        ),
        (json!({"type": "number", "minimum": "5"}), "`minimum`"),
        (
            json!({"type": "number", "minimum": 5, "maximum": 4}),
            "`minimum`",
        ),
        (json!({"type": "number", "enum": [1, 2]}), "`enum`"),
        (json!({"type": "integer", "default": 1.5}), "`default`"),
        (json!({"type": "boolean", "default": "true"}), "`default`"),
        (json!({"type": "boolean", "enum": [true]}), "`enum`"),
        (json!({"type": "string", "enum": []}), "`enum`"),
        (json!({"type": "string", "enum": ["a", 5]}), "`enum`"),
        (json!({"type": "string", "enum": null}), "`enum`"),
        (
            json!({"type": "string", "enum": ["a"], "default": "b"}),
            "`default`",
        ),
        (
            json!({"type": "string", "enum": ["a"], "enumNames": ["A", "B"]}),
            "`enumNames`",
        ),
        (
            json!({"type": "string", "enum": ["a"], "oneOf": [{"const": "a", "title": "A"}]}),
            "`oneOf`",
        ),
        (json!({"type": "string", "oneOf": []}), "`oneOf`"),
        (
            json!({"type": "string", "oneOf": [{"const": "a"}]}),
            "`oneOf`",
        ),
        (
            json!({"type": "string", "oneOf": [{"const": 1, "title": "A"}]}),
            "`oneOf`",
        ),
        (
            json!({"type": "string", "oneOf": [{"const": "a", "title": "A", "type": "string"}]}),
            "`oneOf`",
        ),
        (
            json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "A"}),
            "`default`",
        ),
        (json!({"type": "array"}), "`items`"),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            "`items.enum`",
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {}}}),
            "`properties`",
        ),
        (
            json!({"type": "array", "items": {"enum": ["a"]}}),
            "`items`",
        ),
        (
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}]}}),
            "`items.anyOf`",
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "uniqueItems": true}),
            "`uniqueItems`",
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": "a"}),
            "`default`",
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": ["b"]}),
            "`default`",
        ),
        (
            json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 3, "maxItems": 2}),
            "`minItems`",
        ),
        (json!({"$ref": "#/$defs/x"}), "must be of type"),
    ] {
        let fault = check(&with(field.clone())).expect_err(&field.to_string());
        assert!(
            fault.starts_with("field `f`") && fault.contains(words),
            "{field}: {fault}"
        );
    }
}

#[test]
fn the_form_itself_is_flat() {
    for (schema, words) in [
        (json!([]), "not an object"),
        (json!({"type": "object"}), "`properties`"),
        (json!({"properties": {}}), "`object`"),
        (json!({"type": "array", "properties": {}}), "`object`"),
        (json!({"type": "object", "properties": []}), "`properties`"),
        (
            json!({"type": "object", "properties": {}, "$defs": {}}),
            "`$defs`",
        ),
        (
            json!({"type": "object", "properties": {}, "allOf": []}),
            "`allOf`",
        ),
        (
            json!({"type": "object", "properties": {}, "required": ["a"]}),
            "`a`",
        ),
        (
            json!({"type": "object", "properties": {}, "required": "a"}),
            "`required`",
        ),
        (
            json!({"type": "object", "properties": {}, "title": 5}),
            "`title`",
        ),
        (
            json!({"type": "object", "properties": {}, "additionalProperties": {}}),
            "`additionalProperties`",
        ),
    ] {
        let fault = check(&schema).expect_err(&schema.to_string());
        assert!(fault.contains(words), "{schema}: {fault}");
    }
    let twice = r#"{"type":"object","properties":{"a":{"type":"boolean"},"a":{"type":"string"}}}"#;
    assert!(
        form::check(serde_json::from_str(twice).unwrap())
            .unwrap_err()
            .contains("`a`")
    );
    let of = |length: usize| {
        let empty = with(json!({"type": "string", "title": ""}))
            .to_string()
            .len();
        with(json!({"type": "string", "title": "t".repeat(length - empty)}))
    };
    assert_eq!(check(&of(MAX_SCHEMA_BYTES)), Ok(()));
    assert!(
        check(&of(MAX_SCHEMA_BYTES + 1))
            .unwrap_err()
            .contains("16385")
    );
}
