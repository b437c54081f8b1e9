//! Which schemas are accepted, and that accepted ones mean what they say.

mod common;

use common::Random;
use longshore_catalog::schema::{Compiled, check_input, check_output};
use serde_json::{Map, Value, json};

fn refused(text: &str) -> String {
    check_input(text)
        .expect_err(&format!("must be refused: {text:.200}"))
        .to_string()
}

#[test]
fn schemas_that_people_write_are_accepted() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "definitions": {"a": {"type": "string"}}, "properties": {"a": {"$ref": "#/definitions/a"}}}),
        json!({"$id": "https://example.com/tool", "type": "object", "properties": {"a": {"$ref": "#/$defs/a%20b"}}, "$defs": {"a b": {"type": "string"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "#item"}}, "$defs": {"i": {"$anchor": "item", "type": "string"}}}),
        json!({"type": "object", "$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}}}),
        json!({"type": "object", "properties": {"a/b~c": {"type": "string"}, "d": {"$ref": "#/properties/a~1b~0c"}}}),
        json!({"type": "object", "properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}, "$schema": {}}}),
        json!({"type": "object", "properties": {"tree": {"$ref": "#"}}}),
        json!({"type": "object", "properties": {"mail": {"pattern": "^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$"}}}),
        json!({"type": "object", "enum": [{"$ref": "http://example.com/"}], "default": {"$id": "x"}}),
        json!({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {}}),
    ] {
        assert_eq!(check_input(&schema.to_string()), Ok(()), "{schema}");
    }
    let odd = r#"{"type":"array","items":{"type":"integer"}}"#;
    assert_eq!(check_output(odd), Ok(()));
}

#[test]
fn each_rule_refuses_and_names_the_remedy() {
    let deep = format!(
        "{{\"type\":\"object\",\"not\":{}{}",
        "{\"not\":".repeat(70),
        "}".repeat(71)
    );
    let chain: Map<String, Value> = (0..40)
        .map(|n| {
            (
                format!("d{n}"),
                json!({"$ref": format!("#/$defs/d{}", n + 1)}),
            )
        })
        .chain([("d40".to_owned(), json!({}))])
        .collect();
    let rows: Vec<(String, &str)> = vec![
        ("".into(), "is not JSON"),
        ("{".into(), "is not JSON"),
        ("{} {}".into(), "is not JSON"),
        ("null".into(), "is not a JSON object"),
        ("true".into(), "is not a JSON object"),
        ("[]".into(), "is not a JSON object"),
        ("{}".into(), "add \"type\": \"object\""),
        (r#"{"type":["object"]}"#.into(), "add \"type\": \"object\""),
        (r#"{"type":"string"}"#.into(), "add \"type\": \"object\""),
        (r#"{"type":"object","type":"object"}"#.into(), "stands twice"),
        (deep, "nested deeper than 64"),
        (format!(r#"{{"type":"object","title":"{}"}}"#, "x".repeat(300_000)), "make it at most 262144"),
        (json!({"type": "object", "enum": vec![0; 10_001]}).to_string(), "make it at most 10000"),
        (json!({"type": "object", "properties": 3}).to_string(), "is not a JSON Schema at /properties"),
        (json!({"type": "object", "properties": {"a": {"type": "strnig"}}}).to_string(), "at /properties/a/type"),
        (json!({"type": "object", "minProperties": -1}).to_string(), "is not a JSON Schema"),
        (json!({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}).to_string(), "use https://json-schema.org/draft/2020-12/schema"),
        (json!({"$schema": "http://127.0.0.1:1/schema", "type": "object"}).to_string(), "is in the dialect"),
        (json!({"$schema": 3, "type": "object"}).to_string(), "is in the dialect"),
        (json!({"type": "object", "$defs": {"a": {"$id": "https://example.com/a"}}}).to_string(), "has an `$id` at /$defs/a"),
        (json!({"type": "object", "$defs": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}}).to_string(), "only the root"),
        (json!({"type": "object", "$ref": "http://169.254.169.254/latest"}).to_string(), "copy it"),
        (json!({"type": "object", "$ref": "file:///etc/passwd"}).to_string(), "copy it"),
        (json!({"type": "object", "$dynamicRef": "other.json#a"}).to_string(), "copy it"),
        (json!({"$id": "https://example.com/a", "type": "object", "properties": {"b": {"$ref": "https://example.com/a"}}}).to_string(), "copy it"),
        (json!({"type": "object", "$ref": ""}).to_string(), "copy it"),
        (json!({"type": "object", "$ref": "#/$defs/none"}).to_string(), "where no subschema is"),
        (json!({"type": "object", "$ref": "#none"}).to_string(), "where no subschema is"),
        (json!({"type": "object", "x": {"y": {}}, "$ref": "#/x/y"}).to_string(), "put one under `$defs`"),
        (json!({"type": "object", "const": {"y": {}}, "$ref": "#/const/y"}).to_string(), "put one under `$defs`"),
        (json!({"type": "object", "$ref": "#"}).to_string(), "refers to itself"),
        (json!({"type": "object", "allOf": [{"$ref": "#"}]}).to_string(), "refers to itself"),
        (json!({"type": "object", "not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"if": {"$ref": "#/$defs/a"}}}}).to_string(), "refers to itself"),
        (json!({"type": "object", "$dynamicAnchor": "a", "anyOf": [{"$dynamicRef": "#a"}]}).to_string(), "refers to itself"),
        (json!({"type": "object", "$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}).to_string(), "rename one"),
        (json!({"type": "object", "$defs": chain, "$ref": "#/$defs/d0"}).to_string(), "flatten it"),
        (json!({"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}).to_string(), "look-around"),
        (json!({"type": "object", "properties": {"a": {"pattern": "(a)\\1"}}}).to_string(), "look-around"),
        (json!({"type": "object", "patternProperties": {"(?<!a)b": {}}}).to_string(), "look-around"),
        (json!({"type": "object", "properties": {"a": {"pattern": "(a{100}){100}"}}}).to_string(), "repeat less"),
        (json!({"type": "object", "properties": {"a": {"pattern": "("}}}).to_string(), "pattern"),
        (json!({"type": "object", "properties": (0..65).map(|n| (format!("p{n}"), json!({"pattern": format!("^{n}$")}))).collect::<Map<_, _>>()}).to_string(), "at most 64"),
    ];
    for (text, says) in rows {
        let fault = refused(&text);
        assert!(
            fault.contains(says),
            "{text:.120}\n  says {fault}\n  not {says}"
        );
        assert!(fault.len() < 700, "{fault}");
    }
}

#[test]
fn problems_name_the_place_and_never_the_value() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 3},
            "s": {"type": ["string", "null"], "maxLength": 3},
            "c": {"enum": ["red", "green"]},
            "l": {"type": "array", "items": {"$ref": "#/$defs/part"}},
            "a/b": {"const": 1},
            "u": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["n"],
        "additionalProperties": false,
        "$defs": {"part": {"type": "object", "required": ["id"]}},
    });
    let compiled = Compiled::compile(&schema.to_string()).unwrap();
    let secret = "hunter2".repeat(1000);
    for (value, problems) in [
        (json!({}), vec!["(root) lacks the property \"n\""]),
        (json!([1]), vec!["(root) is not of type object"]),
        (json!({"n": 2}), vec!["/n is less than 3"]),
        (json!({"n": secret}), vec!["/n is not of type integer"]),
        (
            json!({"n": 3, "s": 4}),
            vec!["/s is not of type null or string"],
        ),
        (
            json!({"n": 3, "s": secret}),
            vec!["/s is longer than 3 characters"],
        ),
        (
            json!({"n": 3, "c": secret}),
            vec!["/c is none of [\"red\",\"green\"]"],
        ),
        (
            json!({"n": 3, "l": [{"id": 1}, {}]}),
            vec!["/l/1 lacks the property \"id\""],
        ),
        (json!({"n": 3, "a/b": 2}), vec!["/a~1b is not 1"]),
        (
            json!({"n": 3, "u": true}),
            vec!["/u matches none of the 2 allowed forms"],
        ),
        (
            json!({"n": 3, "zz": 1}),
            vec!["(root) has properties that the schema does not know: \"zz\""],
        ),
    ] {
        let shown: Vec<String> = compiled
            .check(&value)
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect();
        let same_types = |text: &String| text.replace("string or null", "null or string");
        assert_eq!(
            shown.iter().map(same_types).collect::<Vec<_>>(),
            problems,
            "{:.80}",
            value.to_string()
        );
    }
    assert_eq!(
        compiled.check(&json!({"n": 3, "s": null, "l": [{"id": 0}]})),
        Ok(())
    );

    let many = json!({"n": 3, "l": vec![0; 100]});
    assert_eq!(compiled.check(&many).unwrap_err().len(), 5);
    let unknown: Map<String, Value> = (0..100)
        .map(|n| (format!("{n}{secret}"), json!(1)))
        .collect();
    for problem in compiled.check(&Value::Object(unknown)).unwrap_err() {
        assert!(
            problem.message.chars().count() <= 201 && problem.path.chars().count() <= 201,
            "{problem}"
        );
    }
}

#[test]
fn draft_07_ignores_what_stands_beside_a_reference() {
    let schema = |dialect: &str| {
        json!({
            "$schema": dialect,
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/text", "maxLength": 1, "allOf": [{"$ref": "#/properties/a"}]}},
            "definitions": {"text": {"type": "string"}},
        })
        .to_string()
    };
    let seven = Compiled::compile(&schema("http://json-schema.org/draft-07/schema#")).unwrap();
    assert_eq!(seven.check(&json!({"a": "long"})), Ok(()));
    assert!(seven.check(&json!({"a": 1})).is_err());
    let newer = refused(&schema("https://json-schema.org/draft/2020-12/schema"));
    assert!(newer.contains("refers to itself"), "{newer}");
}

#[test]
fn dynamic_references_and_anchors_are_followed() {
    let schema = json!({
        "type": "object",
        "$dynamicAnchor": "node",
        "properties": {"next": {"$dynamicRef": "#node", "maxProperties": 1}, "name": {"$ref": "#name"}},
        "required": ["name"],
        "$defs": {"x/y z": {"$anchor": "name", "type": "string"}},
    });
    let compiled = Compiled::compile(&schema.to_string()).unwrap();
    assert_eq!(
        compiled.check(&json!({"name": "a", "next": {"name": "b"}})),
        Ok(())
    );
    for value in [
        json!({"name": 1}),
        json!({"name": "a", "next": {}}),
        json!({"name": "a", "next": {"name": 1}}),
        json!({"name": "a", "next": {"name": "b", "next": {"name": "c"}}}),
    ] {
        assert!(compiled.check(&value).is_err(), "{value}");
    }
}

#[test]
fn annotations_and_formats_do_not_decide() {
    let compiled = Compiled::compile(
        &json!({"type": "object", "properties": {"a": {"format": "date", "contentMediaType": "application/json", "x-own": 1, "longshore/meter": 7}}})
            .to_string(),
    )
    .unwrap();
    assert_eq!(compiled.check(&json!({"a": "no date"})), Ok(()));
}

/// The schema that is checked is not the one that the author wrote, so both must decide alike. The library's own
/// reading of the author's schema is the measure.
#[test]
fn what_is_checked_means_what_was_written() {
    let (mut compared, mut matched) = (0, 0);
    for seed in 0..1500 {
        let mut random = Random::seeded(seed);
        let defs: Map<String, Value> = (0..3)
            .map(|n| (format!("d{n}"), schema(&mut random, 3)))
            .collect();
        let mut root = schema(&mut random, 3);
        let Value::Object(members) = &mut root else {
            continue;
        };
        members.insert("$defs".into(), defs.into());
        let draft7 = random.below(4) == 0;
        if draft7 {
            members.insert(
                "$schema".into(),
                "http://json-schema.org/draft-07/schema#".into(),
            );
        }
        let Ok(ours) = Compiled::compile(&root.to_string()) else {
            continue;
        };
        let theirs = jsonschema::options()
            .should_validate_formats(false)
            .build(&root)
            .unwrap();
        for _ in 0..12 {
            let value = value(&mut random, 3);
            let valid = ours.check(&value).is_ok();
            assert_eq!(
                valid,
                theirs.is_valid(&value),
                "seed {seed}\n{root}\n{value}"
            );
            compared += 1;
            matched += usize::from(valid);
        }
    }
    assert!(
        compared > 4_000 && matched > compared / 10 && matched < compared * 9 / 10,
        "{matched} of {compared}"
    );
}

fn schema(random: &mut Random, depth: usize) -> Value {
    if depth == 0 || random.below(8) == 0 {
        return random
            .pick(&[
                json!(true),
                json!({}),
                json!({"type": "string", "minLength": 1}),
                json!({"type": ["integer", "object"]}),
                json!({"enum": [1, "a", [], {"a": 1}]}),
                json!({"const": "a"}),
                json!({"pattern": "^a"}),
                json!({"multipleOf": 2, "maximum": 3}),
                json!(false),
            ])
            .clone();
    }
    let mut members = Map::new();
    for _ in 0..1 + random.below(3) {
        let mut sub = || schema(random, depth - 1);
        let (one, two) = (sub(), sub());
        let (keyword, value) = match random.below(22) {
            0 => ("allOf", json!([one, two])),
            1 => ("anyOf", json!([one, two])),
            2 => ("oneOf", json!([one, two])),
            3 => ("not", one),
            4 => ("if", one),
            5 => ("then", one),
            6 => ("else", one),
            7 => ("properties", json!({"a": one, "b": two})),
            8 => ("patternProperties", json!({"^a": one, "c": two})),
            9 => ("additionalProperties", one),
            10 => ("propertyNames", one),
            11 => ("unevaluatedProperties", one),
            12 => ("items", one),
            13 => ("prefixItems", json!([one, two])),
            14 => ("contains", one),
            15 => ("unevaluatedItems", one),
            16 => ("dependentSchemas", json!({"a": one})),
            17 => ("required", json!(["a"])),
            18 => ("uniqueItems", json!(true)),
            19 => ("dependencies", json!({"a": ["b"], "b": one})),
            20 => ("$ref", json!(format!("#/$defs/d{}", random.below(3)))),
            _ => ("type", json!(*random.pick(&["object", "array"]))),
        };
        members.insert(keyword.to_owned(), value);
    }
    Value::Object(members)
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 12 }) {
        0 => json!(null),
        1 => json!(random.below(5)),
        2 => json!("a"),
        3 => json!("bc"),
        4 => json!(true),
        5 => json!(1.5),
        6 | 7 => (0..random.below(4))
            .map(|_| value(random, depth - 1))
            .collect(),
        _ => {
            let mut members = Map::new();
            for _ in 0..random.below(4) {
                let name = *random.pick(&["a", "b", "ac", "d"]);
                members.insert(name.to_owned(), value(random, depth - 1));
            }
            Value::Object(members)
        }
    }
}
