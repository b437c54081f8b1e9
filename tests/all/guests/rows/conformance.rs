//! Rows for what MCP's conformance suite calls.

use serde_json::{Value, json};

use super::results::every_kind;
use super::{Expected, Problem, Row, accept, declined, says, tool, tool_error};

/// What it calls.
pub(super) fn rows() -> Vec<Row> {
    use Expected::{Completed, Error, Result};
    let row = |name, arguments, expected| tool("conformance", name, arguments, expected);
    let plain = |name, text| row(name, json!({}), Result(says(text)));
    let content =
        |name, content: Value| row(name, json!({}), Result(json!({ "content": content })));
    let asking = |name, arguments, answers, text: &str| Row {
        answers,
        ..row(name, arguments, Completed(says(text)))
    };
    let kinds = &every_kind()["content"];
    let (pixel, silence) = (&kinds[1], &kinds[2]);
    let embedded = |uri: &str, mime_type: &str, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "text": text } });
    let named = |name: &str| accept(&json!({ "name": name, "confirm": true }));
    vec![
        row(
            "greet",
            json!({ "name": "Ada" }),
            Result(says("Hello, Ada!")),
        ),
        plain(
            "test_simple_text",
            "This is a simple text response for testing.",
        ),
        content("test_image_content", json!([pixel])),
        content("test_audio_content", json!([silence])),
        content(
            "test_embedded_resource",
            json!([embedded(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            )]),
        ),
        content(
            "test_multiple_content_types",
            json!([
                { "type": "text", "text": "Multiple content types test:" },
                pixel,
                embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
            ]),
        ),
        row(
            "test_error_handling",
            json!({}),
            Result(tool_error(
                "This tool intentionally returns an error for testing",
            )),
        ),
        plain("test_custom_header", "value: "),
        plain(
            "test_tool_with_progress",
            "Tool with progress executed successfully",
        ),
        plain("test_logging_tool", "Logging tool executed successfully"),
        plain(
            "test_tool_with_logging",
            "Tool with logging executed successfully",
        ),
        asking(
            "test_sampling",
            json!({ "prompt": "What is it?" }),
            json!({ "reply": { "role": "assistant", "model": "m", "content": { "type": "text", "text": "42" } } }),
            "LLM response: 42",
        ),
        asking(
            "test_elicitation",
            json!({ "message": "Who are you?" }),
            json!({ "answer": accept(&json!({ "username": "ada", "email": "ada@example.org" })) }),
            r#"User response: action=accept, content={"username":"ada","email":"ada@example.org"}"#,
        ),
        asking(
            "test_elicitation_sep1034_defaults",
            json!({}),
            json!({ "answer": declined() }),
            "User response: action=decline, content=",
        ),
        asking(
            "test_elicitation_sep1330_enums",
            json!({}),
            json!({ "answer": accept(&json!({ "legacyEnum": "opt1", "titledMulti": ["value2"] })) }),
            r#"User response: action=accept, content={"legacyEnum":"opt1","titledMulti":["value2"]}"#,
        ),
        plain(
            "test_missing_capability",
            "This client can be asked for sampling",
        ),
        plain("test_trigger_tool_change", "Told that the tools changed"),
        plain("test_trigger_prompt_change", "Told that the prompts changed"),
        plain(
            "test_trigger_resource_change",
            "Told that the resources changed",
        ),
        plain(
            "test_trigger_resource_update",
            "Told that the watched resource changed",
        ),
        row(
            "json_schema_2020_12_tool",
            // One of each kind of member is enough, so that their order says nothing.
            json!({ "email": "ada@example.org" }),
            Result(says(r#"Called with {"email":"ada@example.org"}"#)),
        ),
        asking(
            "test_streaming_elicitation",
            json!({}),
            json!({ "name": accept(&json!({ "name": "Ada" })) }),
            "Hello, Ada!",
        ),
        row(
            "slow_compute",
            json!({ "seconds": 0, "label": "nothing" }),
            Completed(says("Computed nothing in 0 s")),
        ),
        row(
            "failing_job",
            json!({}),
            Completed(tool_error("The job failed, as it always does")),
        ),
        row(
            "protocol_error_job",
            json!({}),
            Error(Problem {
                code: -32603,
                data: Value::Null,
                says: "The job broke, as it always does",
            }),
        ),
        asking(
            "confirm_delete",
            json!({ "filename": "a.txt" }),
            json!({ "confirm": accept(&json!({ "confirm": true })) }),
            "Deleted a.txt",
        ),
        asking(
            "confirm_delete",
            json!({ "filename": "a.txt" }),
            json!({ "confirm": declined() }),
            "Kept a.txt",
        ),
        asking(
            "multi_input",
            json!({}),
            json!({ "first": named("Ada"), "second": named("Grace") }),
            "Names: Ada, Grace",
        ),
    ]
    .into_iter()
    .chain(conformance_in_rounds())
    .collect()
}

/// What it calls again with answers.
fn conformance_in_rounds() -> Vec<Row> {
    let ada = accept(&json!({ "name": "Ada" }));
    let model = json!({ "role": "assistant", "content": { "type": "text", "text": "Paris" }, "model": "m" });
    let roots = json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b" }] });
    let ok = json!({ "confirm": accept(&json!({ "ok": true })) });
    let rows = [
        ("elicitation", json!({ "user_name": ada }), "Hello, Ada!"),
        (
            "sampling",
            json!({ "capital_question": model }),
            "The model said: Paris",
        ),
        (
            "list_roots",
            json!({ "client_roots": roots }),
            "The client has 2 roots",
        ),
        ("request_state", ok.clone(), "state-ok: gone ahead"),
        ("tampered_state", ok, "state-ok: gone ahead"),
        (
            "multiple_inputs",
            json!({ "user_name": ada, "greeting": model, "client_roots": roots }),
            "Ada: Paris, with 2 roots",
        ),
        (
            "multi_round",
            json!({ "step1": ada, "step2": accept(&json!({ "color": "green" })) }),
            "Ada likes green",
        ),
        ("capabilities", json!({ "user_name": ada }), "Hello, Ada!"),
    ];
    let mut rows: Vec<Row> = rows
        .into_iter()
        .map(|(name, answers, text)| Row {
            component: "conformance",
            tool: format!("test_input_required_result_{name}").leak(),
            arguments: json!({}),
            answers,
            expected: Expected::Result(says(text)),
        })
        .collect();
    rows.push(Row {
        component: "conformance",
        tool: "test_tool_with_task",
        arguments: json!({}),
        answers: json!({ "user_name": ada }),
        expected: Expected::Completed(says("Done for Ada")),
    });
    rows
}
