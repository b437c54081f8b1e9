//! What a component may offer: each rule, with the reason for programs and a remedy for people.

use longshore_catalog::header::{HeaderKind, parameters};
use longshore_catalog::tool::{Offered, Refusal, Requirement, TaskMode, Tool, accept};
use serde_json::{Value, json};

fn offered(name: &str) -> Offered {
    Offered {
        name: name.to_owned(),
        title: None,
        description: "Says hello.".to_owned(),
        input_schema: r#"{"type":"object"}"#.to_owned(),
        output_schema: None,
        task_mode: TaskMode::Auto,
        requires: Vec::new(),
        extra: None,
    }
}

fn with(change: impl FnOnce(&mut Offered)) -> Offered {
    let mut tool = offered("tool");
    change(&mut tool);
    tool
}

fn refused(tools: &[Offered]) -> Refusal {
    accept(tools.to_vec()).expect_err(&format!("must be refused: {:.300}", format!("{tools:?}")))
}

#[test]
fn tools_are_kept_as_written_and_sorted_by_name() {
    let full = Offered {
        name: "b.Full-1_x".to_owned(),
        title: Some("Full".to_owned()),
        description: String::new(),
        input_schema: r#"{ "type":"object", "$defs":{"a":{"$anchor":"x"}} }"#.to_owned(),
        output_schema: Some(r#"{"type":"string"}"#.to_owned()),
        task_mode: TaskMode::Always,
        requires: ["roots", "tasks", "sampling.tools", "tasks"]
            .map(str::to_owned)
            .into(),
        extra: Some(
            r#"{"annotations":{"readOnlyHint":true},"longshore/deadlineMs":60000}"#.to_owned(),
        ),
    };
    let tools = accept(vec![offered("c"), full.clone(), offered("B"), offered("a")]).unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["B", "a", "b.Full-1_x", "c"]);
    assert_eq!(
        tools[2],
        Tool {
            name: full.name,
            title: full.title,
            description: full.description,
            input_schema: full.input_schema,
            output_schema: full.output_schema,
            task_mode: TaskMode::Always,
            requires: vec![
                Requirement::Tasks,
                Requirement::SamplingTools,
                Requirement::Roots
            ],
            extra: full.extra,
            deadline_ms: Some(60_000),
        }
    );
}

#[test]
fn names() {
    let longest = "x".repeat(64);
    for name in [
        "a",
        "A",
        "0",
        "-",
        ".",
        "a.b",
        "a_b",
        "a-b",
        "hello",
        "longshore",
        "longshore-x",
        &longest,
    ] {
        assert!(accept(vec![offered(name)]).is_ok(), "{name}");
    }
    let too_long = "x".repeat(65);
    for (name, reason) in [
        ("", "tool-name"),
        (too_long.as_str(), "tool-name"),
        ("tasks/get", "tool-name"),
        ("a b", "tool-name"),
        ("a:b", "tool-name"),
        ("h\u{435}llo", "tool-name"),
        ("a\r\nb", "tool-name"),
        ("a\0", "tool-name"),
        ("longshore_task_wait", "reserved"),
        ("longshore_", "reserved"),
        ("Longshore_task_list", "reserved"),
    ] {
        let refusal = refused(&[offered(name)]);
        assert_eq!(refusal.reason(), reason, "{name}: {refusal}");
    }
    // Not folded together.
    for other in ["Tool", "to_ol", "to-ol", "tool."] {
        assert!(
            accept(vec![offered("tool"), offered(other)]).is_ok(),
            "{other}"
        );
    }
    let twice = refused(&[offered("a"), offered("tool"), offered("b"), offered("tool")]);
    assert_eq!(twice, Refusal::DuplicateTool("tool".to_owned()));
    assert_eq!(twice.reason(), "duplicate-tool");
}

#[test]
fn how_many() {
    let tools = |count: usize| {
        (0..count)
            .map(|n| offered(&format!("t{n}")))
            .collect::<Vec<_>>()
    };
    assert_eq!(accept(tools(128)).unwrap().len(), 128);
    let refusal = refused(&tools(129));
    assert_eq!(refusal, Refusal::TooMany(129));
    assert_eq!(refusal.reason(), "list-tools");
}

#[test]
fn fields() {
    let extra = |text: &str| with(|tool| tool.extra = Some(text.to_owned()));
    let limits = [
        with(|tool| tool.title = Some("x".repeat(255))),
        with(|tool| tool.description = "x".repeat(8192)),
        extra("{}"),
        extra(r#"{"_meta":{"a":1},"icons":[],"annotations":{}}"#),
        extra(&json!({"x": "y".repeat(65_000)}).to_string()),
        extra(r#"{"longshore/deadlineMs":1}"#),
    ];
    for tool in limits {
        accept(vec![tool]).unwrap();
    }
    let rows = [
        (
            with(|tool| tool.title = Some("x".repeat(256))),
            "at most 255",
        ),
        (
            with(|tool| tool.description = "x".repeat(8193)),
            "at most 8192",
        ),
        (
            with(|tool| tool.requires = vec!["task".to_owned()]),
            "\"task\" is not known",
        ),
        (
            with(|tool| tool.requires = vec!["Tasks".to_owned()]),
            "use tasks, elicitation, elicitation.form",
        ),
        (with(|tool| tool.requires = vec![String::new()]), "roots"),
        (extra(""), "is not JSON"),
        (extra("[]"), "not a JSON object"),
        (extra(r#"{"a":1,"a":2}"#), "stands twice"),
        (
            extra(&format!("{{\"a\":{}{}}}", "[".repeat(64), "]".repeat(64))),
            "nested deeper than 64",
        ),
        (
            extra(&json!({"x": "y".repeat(65_536)}).to_string()),
            "at most 65536",
        ),
        (extra(r#"{"name":"other"}"#), "use the field"),
        (extra(r#"{"inputSchema":{}}"#), "use the field"),
        (
            extra(r#"{"execution":{"taskSupport":"required"}}"#),
            "use the field",
        ),
        (
            extra(r#"{"longshore/deadlineMS":5}"#),
            "longshore/deadlineMs",
        ),
        (
            extra(r#"{"longshore/deadlineMs":0}"#),
            "positive whole number",
        ),
        (
            extra(r#"{"longshore/deadlineMs":-5}"#),
            "positive whole number",
        ),
        (
            extra(r#"{"longshore/deadlineMs":1.5}"#),
            "positive whole number",
        ),
        (
            extra(r#"{"longshore/deadlineMs":"5"}"#),
            "positive whole number",
        ),
        (
            extra(r#"{"longshore/deadlineMs":18446744073709551615}"#),
            "positive whole number",
        ),
    ];
    for (tool, says) in rows {
        let refusal = refused(&[tool]);
        assert_eq!(refusal.reason(), "list-tools", "{refusal}");
        let text = refusal.to_string();
        assert!(
            text.contains("\"tool\"") && text.contains(says),
            "{text}\n  not {says}"
        );
    }
}

#[test]
fn schemas() {
    for (tool, which) in [
        (with(|tool| tool.input_schema = "null".to_owned()), "input"),
        (
            with(|tool| tool.input_schema = r#"{"type":"array"}"#.to_owned()),
            "input",
        ),
        (
            with(|tool| tool.output_schema = Some("[]".to_owned())),
            "output",
        ),
        (
            with(|tool| tool.output_schema = Some(r#"{"type":"objekt"}"#.to_owned())),
            "output",
        ),
    ] {
        let refusal = refused(&[tool]);
        assert_eq!(refusal.reason(), "schema");
        assert!(
            refusal
                .to_string()
                .starts_with(&format!("tool \"tool\": its {which} schema ")),
            "{refusal}"
        );
    }
}

/// One property of the arguments with that name and schema, beside others.
fn property(name: &str, schema: &Value) -> Value {
    json!({"type": "object", "properties": {name: schema}})
}

#[test]
fn header_annotations() {
    let string = |header: &str| json!({"type": "string", "x-mcp-header": header});
    let accepted = json!({"type": "object", "properties": {
        "region": string("Region"),
        "x-mcp-header": {"type": "number"},
        "inner": {"type": "object", "properties": {"max_tokens": {"type": "integer", "x-mcp-header": "Max-Tokens"}}},
        "dry": {"type": "boolean", "x-mcp-header": "dry", "default": {"x-mcp-header": ""}},
    }});
    let text = accepted.to_string();
    accept(vec![with(|tool| tool.input_schema.clone_from(&text))]).unwrap();
    let mut found: Vec<_> = parameters(&text)
        .unwrap()
        .into_iter()
        .map(|one| (one.name, one.path.join("/"), one.kind))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        found,
        [
            (
                "Max-Tokens".to_owned(),
                "inner/max_tokens".to_owned(),
                HeaderKind::Integer
            ),
            ("Region".to_owned(), "region".to_owned(), HeaderKind::String),
            ("dry".to_owned(), "dry".to_owned(), HeaderKind::Boolean),
        ]
    );

    let mut rows = vec![
        (
            json!({"type": "object", "x-mcp-header": "Root"}),
            "not on a property",
        ),
        (
            property("a", &json!({"type": "array", "items": string("Item")})),
            "not on a property",
        ),
        (
            property("a", &json!({"anyOf": [string("Any")]})),
            "not on a property",
        ),
        (
            property("a", &json!({"if": string("If")})),
            "not on a property",
        ),
        (
            json!({"type": "object", "allOf": [property("a", &string("All"))]}),
            "not on a property",
        ),
        (
            json!({"type": "object", "additionalProperties": string("More")}),
            "not on a property",
        ),
        (
            json!({"type": "object", "patternProperties": {"^a": string("Like")}}),
            "not on a property",
        ),
        (
            json!({"type": "object", "$defs": {"a": string("Def")}, "properties": {"a": {"$ref": "#/$defs/a"}}}),
            "not on a property",
        ),
        (
            json!({"type": "object", "dependentSchemas": {"a": property("b", &string("Dep"))}}),
            "not on a property",
        ),
        (
            property("a", &json!({"type": "string", "x-mcp-header": 3})),
            "not a header name",
        ),
        (
            property("a", &json!({"type": "string", "x-mcp-header": null})),
            "not a header name",
        ),
        (
            json!({"type": "object", "properties": {"a": string("Same"), "b": string("sAME")}}),
            "stands twice",
        ),
        (
            json!({"type": "object", "properties": {"a": string("X"), "b": property("c", &string("X"))}}),
            "stands twice",
        ),
        (property("a", &string("X-Api-Key")), "secret"),
    ];
    rows.push((
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {"$ref": "#/definitions/o", "properties": {"b": string("Ignored")}}},
            "definitions": {"o": {}},
        }),
        "not on a property",
    ));
    let long = "x".repeat(65);
    for name in [
        "",
        " ",
        "a b",
        "a\r\nX: y",
        "a:b",
        "\u{e4}",
        "a\0",
        "a(b)",
        long.as_str(),
    ] {
        rows.push((property("a", &string(name)), "not a header name"));
    }
    for kind in [
        json!("number"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!(["string", "null"]),
    ] {
        rows.push((
            property("a", &json!({"type": kind, "x-mcp-header": "A"})),
            "not on a string, integer or boolean",
        ));
    }
    rows.push((
        property("a", &json!({"x-mcp-header": "A"})),
        "not on a string, integer or boolean",
    ));
    for secret in [
        "password",
        "token",
        "accessToken",
        "api_key",
        "API-Key",
        "client.secret",
        "userPassword2",
        "privateKey",
    ] {
        rows.push((property(secret, &string("A")), "secret"));
    }
    for (schema, says) in rows {
        let refusal = refused(&[with(|tool| tool.input_schema = schema.to_string())]);
        assert_eq!(refusal.reason(), "x-mcp-header", "{schema}: {refusal}");
        let text = refusal.to_string();
        assert!(
            text.contains(says) && !text.contains(['\r', '\n']),
            "{text}\n  not {says}"
        );
    }
}

#[test]
fn every_requirement_has_one_word() {
    for known in Requirement::ALL {
        assert_eq!(known.word().parse(), Ok(known));
        assert_eq!(serde_json::to_value(known).unwrap(), json!(known.word()));
    }
}
