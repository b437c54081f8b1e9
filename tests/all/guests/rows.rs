//! The table: what each example is called with, and what a client must see.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// No clock that is right stands before it.
const A_DAY_IN_2025_MS: u64 = 1_750_000_000_000;

/// One call.
pub(super) struct Row {
    pub(super) component: &'static str,
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    /// What is answered to each key that it asks. With `null` its task is cancelled at the first question.
    pub(super) answers: Value,
    pub(super) expected: Expected,
}

/// What comes of it. Results are compared whole, less what every result has.
pub(super) enum Expected {
    /// The answer to the call is this result.
    Result(Value),
    /// The answer to the call is a result of which this is true: for what a compiler may shift a little.
    ResultThat(fn(&Value) -> bool),
    /// The answer to the call is this error.
    Error(Problem),
    /// The call becomes a task, which completes with this result.
    Completed(Value),
    /// The call becomes a task, which completes with a result of which this is true: for what chance has a part in.
    CompletedThat(fn(&Value) -> bool),
    /// The call becomes a task, which ends as cancelled.
    Cancelled,
}

/// An error: its number, all of its data, and a part of its message.
pub(super) struct Problem {
    pub(super) code: i32,
    pub(super) data: Value,
    pub(super) says: &'static str,
}

fn row(component: &'static str, arguments: Value, expected: Expected) -> Row {
    tool(component, component, arguments, expected)
}

fn tool(component: &'static str, tool: &'static str, arguments: Value, expected: Expected) -> Row {
    Row {
        component,
        tool,
        arguments,
        answers: json!({}),
        expected,
    }
}

fn asking(component: &'static str, arguments: Value, answers: Value, text: &str) -> Row {
    Row {
        answers,
        ..row(component, arguments, Expected::Completed(says(text)))
    }
}

fn cancelled(component: &'static str) -> Row {
    Row {
        answers: Value::Null,
        ..row(component, json!({}), Expected::Cancelled)
    }
}

fn breaking(what: &'static str, expected: Expected) -> Row {
    row("limits", json!({ "what": what }), expected)
}

fn says(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn tool_error(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true })
}

/// The run was ended for that reason.
fn ended(code: i32, reason: &str, says: &'static str) -> Expected {
    Expected::Error(Problem {
        code,
        data: json!({ "reason": reason }),
        says,
    })
}

pub(super) fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

fn declined() -> Value {
    json!({ "action": "decline" })
}

fn closed() -> Value {
    json!({ "action": "cancel" })
}

pub(super) fn rows() -> Vec<Row> {
    use Expected::{Completed, CompletedThat, Error, Result, ResultThat};
    let ada = || accept(&json!({ "name": "Ada", "age": 36, "choice": "green" }));
    let mut rows = vec![
        row(
            "hello",
            json!({ "name": "Ada" }),
            Result(says("Hello, Ada!")),
        ),
        row("hello", json!({ "name": "" }), Result(says("Hello, !"))),
        row(
            "tool-error",
            json!({ "message": "no" }),
            Result(tool_error("no")),
        ),
        row(
            "panic",
            json!({}),
            ended(1000, "trap", "this tool panics on purpose"),
        ),
        row(
            "long-job",
            json!({ "steps": 3, "step-ms": 1 }),
            Completed(says("done: 3 steps")),
        ),
        row(
            "spin",
            json!({ "seconds": 0.2 }),
            Completed(says("spun for 0.2 s")),
        ),
        row(
            "grind",
            json!({ "units": 1 }),
            Completed(says("1 units: 8a9c30a9c2380001")),
        ),
        row(
            "sleep",
            json!({ "seconds": 0.05 }),
            Completed(says("slept")),
        ),
        row(
            "hurry",
            json!({ "ms": 1 }),
            Completed(says("made it in 1 ms")),
        ),
        // Questions
        asking(
            "ask-form",
            json!({}),
            json!({ "person": ada() }),
            "Ada is 36 and chose green",
        ),
        asking(
            "ask-form",
            json!({}),
            json!({ "person": declined() }),
            "the person declined to answer",
        ),
        asking(
            "ask-form",
            json!({}),
            json!({ "person": closed() }),
            "the person closed the question",
        ),
        row(
            "ask-any",
            json!({ "way": "nothing" }),
            Expected::Result(says("form page model folders")),
        ),
        asking(
            "ask-any",
            json!({ "way": "form" }),
            json!({ "question": accept(&json!({ "name": "Ada" })) }),
            r#"accepted {"name":"Ada"}"#,
        ),
        asking(
            "ask-two",
            json!({}),
            json!({ "name": accept(&json!({ "name": "Ada" })), "confirm": accept(&json!({ "confirm": true })) }),
            r#"name: "Ada", confirm: true"#,
        ),
        asking(
            "ask-two",
            json!({}),
            json!({ "name": declined(), "confirm": closed() }),
            "name was declined, confirm was closed",
        ),
        asking(
            "approve",
            json!({ "what": "the launch" }),
            json!({ "approve": accept(&json!({ "approve": true })) }),
            "done: the launch",
        ),
        asking(
            "approve",
            json!({ "what": "the launch" }),
            json!({ "approve": accept(&json!({ "approve": false })) }),
            "not approved: the launch",
        ),
        asking(
            "approve",
            json!({ "what": "the launch" }),
            json!({ "approve": declined() }),
            "not approved: the launch",
        ),
        asking(
            "cleanup",
            json!({}),
            json!({ "keep": accept(&json!({ "keep": true })) }),
            "kept",
        ),
        asking(
            "cleanup",
            json!({}),
            json!({ "keep": declined() }),
            "removed",
        ),
        cancelled("cleanup"),
        // Pieces of work
        row(
            "steps",
            json!({ "n": 3 }),
            Completed(stepped(&[168, 303, 430])),
        ),
        row("steps", json!({ "n": 0 }), Completed(stepped(&[]))),
        row(
            "resumable",
            json!({ "n": 3 }),
            Completed(says("430 primes in 3 units")),
        ),
        row(
            "looks",
            json!({ "n": 3 }),
            CompletedThat(looked_three_times),
        ),
        // Results
        row(
            "count-words",
            json!({ "text": "one two\nthree ä\n" }),
            Result(counted(4, 2, 16)),
        ),
        row(
            "count-words",
            json!({ "text": "x y\n".repeat(5_000) }),
            Result(counted(10_000, 5_000, 20_000)),
        ),
        row(
            "count-words",
            json!({ "text": "" }),
            Result(counted(0, 0, 0)),
        ),
        row("content", json!({}), Result(every_kind())),
        row("large", json!({ "bytes": 0 }), Result(says(""))),
        row(
            "large",
            json!({ "bytes": 1_000_000 }),
            Result(says(&"x".repeat(1_000_000))),
        ),
        row(
            "large",
            json!({ "bytes": 2_000_000 }),
            ended(1007, "output-limit", "more than 1048576 bytes"),
        ),
        // Above what one host call may carry, where the engine refuses before the bytes are looked at.
        row(
            "large",
            json!({ "bytes": 5_000_000 }),
            ended(1007, "output-limit", ""),
        ),
        tool("explore", "environment", json!({}), Result(says("{}"))),
        tool(
            "explore",
            "touch",
            json!({ "what": "write", "path": "/scratch/note", "to": "text" }),
            Result(says("written")),
        ),
        tool(
            "explore",
            "touch",
            json!({ "what": "list", "path": "/scratch" }),
            Result(says("listed ")),
        ),
        tool(
            "explore",
            "touch",
            json!({ "what": "read", "path": "/etc/passwd" }),
            ResultThat(|result| {
                let text = result["content"][0]["text"].as_str();
                text.is_some_and(|text| text.starts_with("refused: "))
            }),
        ),
        row(
            "flood",
            json!({ "bytes": 100 }),
            Result(says("printed 100 bytes")),
        ),
        row(
            "flood",
            json!({ "bytes": 512_000 }),
            Result(says("printed 512000 bytes")),
        ),
        row("hog", json!({ "mib": 8 }), Result(says("held 8 MiB"))),
        row("hog", json!({ "mib": 4_000 }), ResultThat(was_told_no)),
        // Errors of the protocol
        row(
            "protocol-error",
            json!({ "code": 4711, "message": "no such account" }),
            Error(Problem {
                code: 4711,
                data: Value::Null,
                says: "no such account",
            }),
        ),
        row(
            "protocol-error",
            json!({ "code": -32602, "message": "no such account" }),
            Error(Problem {
                code: -32602,
                data: Value::Null,
                says: "no such account",
            }),
        ),
        row(
            "protocol-error",
            json!({ "code": -32021, "message": "not mine to say" }),
            Error(Problem {
                code: -32603,
                data: json!({ "code": -32021 }),
                says: "not mine to say",
            }),
        ),
        // Modes
        tool(
            "modes",
            "modes-never",
            json!({ "ms": 1 }),
            Result(says("never after 1 ms")),
        ),
        tool(
            "modes",
            "modes-on-detach",
            json!({ "ms": 1 }),
            Result(says("on-detach after 1 ms")),
        ),
        tool(
            "modes",
            "modes-on-detach",
            json!({ "ms": 500, "detach": true }),
            Completed(says("on-detach after 500 ms")),
        ),
        tool(
            "modes",
            "modes-auto",
            json!({ "ms": 1 }),
            Result(says("auto after 1 ms")),
        ),
        tool(
            "modes",
            "modes-auto",
            json!({ "ms": 500, "detach": true }),
            Completed(says("auto after 500 ms")),
        ),
        tool(
            "modes",
            "modes-always",
            json!({ "ms": 1 }),
            Completed(says("always after 1 ms")),
        ),
        // Rules that are broken
        breaking(
            "recursion",
            ended(1001, "stack-overflow", "call stack exhausted"),
        ),
        breaking("exit", ended(1010, "exit", "exited with status 1")),
        breaking("random", ended(1006, "hostcall-limit", "exceeds limit")),
        breaking(
            "loop",
            ended(1002, "cpu-limit", "more than 1500 ms of CPU time"),
        ),
        breaking(
            "stubborn",
            ended(1002, "cpu-limit", "more than 1500 ms of CPU time"),
        ),
        breaking("trap", ended(1000, "trap", "unreachable")),
        breaking("status", Result(says("set 10000 statuses"))),
        breaking(
            "questions",
            Result(tool_error(
                "the question is over a limit: 17 questions at once; at most 16 may be open",
            )),
        ),
        breaking(
            "output",
            ended(1007, "output-limit", "more than 1048576 bytes"),
        ),
        breaking(
            "cancelled",
            ended(1009, "bad-output", "nobody cancelled it"),
        ),
        tool(
            "limits",
            "reach",
            json!({ "what": "random", "amount": 1000 }),
            Completed(says("got 1000 bytes")),
        ),
        tool(
            "limits",
            "reach",
            json!({ "what": "handles", "amount": 20_000 }),
            ended(1005, "handle-limit", "more handles than allowed"),
        ),
        breaking(
            "nested-step",
            ended(1000, "trap", r#"step-begin within the step "outer""#),
        ),
    ];
    // The same in each language
    for name in ["dice", "dice-python", "dice-typescript"] {
        let bets = json!({ "bet": accept(&json!({ "bet": 3 })), "again": accept(&json!({ "again": true })) });
        let bets_not = json!({ "bet": declined(), "again": closed() });
        for (answers, is_fine) in [
            (bets, was_rolled_twice as fn(&Value) -> bool),
            (bets_not, was_rolled_once),
        ] {
            rows.push(Row {
                answers,
                ..row(name, json!({}), CompletedThat(is_fine))
            });
        }
        rows.push(cancelled(name));
    }
    rows.extend(conformance());
    rows
}

/// What MCP's conformance suite calls.
fn conformance() -> Vec<Row> {
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

fn counted(words: u64, lines: u64, characters: u64) -> Value {
    let structured = json!({ "words": words, "lines": lines, "characters": characters });
    let text = format!(r#"{{"words":{words},"lines":{lines},"characters":{characters}}}"#);
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": structured })
}

/// Primes below 1000, 2000 and so on.
fn stepped(primes: &[u32]) -> Value {
    let structured = json!({ "primes": primes });
    let list = serde_json::to_string(primes).expect("numbers have a JSON form");
    let text = format!(r#"{{"primes":{list}}}"#);
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": structured })
}

fn looked_three_times(result: &Value) -> bool {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let seen: Value = serde_json::from_str(text).unwrap_or_default();
    let looks: Vec<&str> = seen["looks"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    // There are as many primes below 12,003.
    seen["primes"] == 1438
        && looks.len() == 3
        && (1..)
            .zip(&looks)
            .all(|(n, look)| look.starts_with(&format!("look {n} of 3 at ")))
}

fn was_rolled_twice(result: &Value) -> bool {
    was_rolled(result, &json!(3), &json!(true), 2)
}

fn was_rolled_once(result: &Value) -> bool {
    was_rolled(result, &Value::Null, &Value::Null, 1)
}

/// The result tells those answers, that many rolls of a die, and clocks that go on: later at the end than before, and
/// at least by the two times of 20 ms that were waited.
fn was_rolled(result: &Value, bet: &Value, again: &Value, rolls: usize) -> bool {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let Ok(seen) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    let numbers = |key: &str| -> Vec<u64> {
        let list = seen[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_u64).collect()
    };
    let sides: BTreeSet<u64> = numbers("sides").into_iter().collect();
    let rolled = numbers("rolls");
    let (wall, steady) = (numbers("wallMs"), numbers("steadyMs"));
    let random = seen["random"].as_str().unwrap_or_default();
    result["content"].as_array().map(Vec::len) == Some(1)
        && seen["bet"] == *bet
        && seen["again"] == *again
        && rolled.len() == rolls
        && rolled.iter().all(|side| sides.contains(side))
        && sides.into_iter().eq(1..=6)
        && random.len() == 16
        && u64::from_str_radix(random, 16).is_ok()
        && matches!(*wall, [before, after] if before > A_DAY_IN_2025_MS && before + 40 <= after)
        && matches!(*steady, [between, end] if between >= 40 && between <= end)
}

fn every_kind() -> Value {
    json!({
        "content": [
            { "type": "text", "text": "plain text" },
            {
                "type": "image",
                "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==",
                "mimeType": "image/png",
            },
            {
                "type": "audio",
                "data": "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA",
                "mimeType": "audio/wav",
            },
            {
                "type": "resource_link",
                "uri": "https://example.org/report",
                "name": "report",
                "mimeType": "text/html",
                "description": "A report to read.",
            },
            { "type": "resource_link", "uri": "https://example.org/bare", "name": "bare" },
            { "type": "resource", "resource": { "uri": "example:note", "mimeType": "text/plain", "text": "a note" } },
            { "type": "resource", "resource": { "uri": "example:bytes", "blob": "AAEC/w==" } },
            {
                "type": "text",
                "text": "for the person only",
                "annotations": { "audience": ["user"], "priority": 0.5 },
            },
        ],
        "_meta": { "example.org/kinds": 6 },
    })
}

/// It got nearly the 64 MiB of a run: less what a program needs for itself, and never more.
fn was_told_no(result: &Value) -> bool {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let mib = text
        .strip_prefix("the sandbox gave only ")
        .and_then(|rest| rest.strip_suffix(" MiB"));
    let mib: u32 = mib.and_then(|mib| mib.parse().ok()).unwrap_or(0);
    result["isError"] == true && (56..64).contains(&mib)
}
