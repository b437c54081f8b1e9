//! The table: what each example is called with, and what a client must see.

mod conformance;
mod results;

use serde_json::{Value, json};

use self::results::{
    counted, every_kind, left_a_note, looked_three_times, needs_a_topic, ran, stepped, surveyed,
    was_rolled_once, was_rolled_twice, was_told_no,
};

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

/// The tool that is there in each language.
pub(super) const SURVEYS: [&str; 4] = [
    "survey",
    "survey-javascript",
    "survey-python",
    "survey-typescript",
];

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

/// Data, and the same as text.
fn structured(data: &str) -> Value {
    let value: Value = serde_json::from_str(data).expect("it is JSON");
    json!({ "content": [{ "type": "text", "text": data }], "structuredContent": value })
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
        // Nobody has granted them anything.
        row(
            "fetch",
            json!({ "url": "https://example.test/" }),
            Result(tool_error(
                "this tool may not send this request to example.test: its operator can grant it",
            )),
        ),
        row(
            "fetch-python",
            json!({ "url": "https://example.test/", "shown": 3.0 }),
            Result(tool_error(
                "this tool may not send this request to example.test: its operator can grant it",
            )),
        ),
        row(
            "fetch-typescript",
            json!({ "url": "https://example.test/" }),
            Result(tool_error(
                "this tool may not send this request to example.test: its operator can grant it",
            )),
        ),
        tool(
            "limits",
            "send",
            json!({ "url": "https://example.test/" }),
            Completed(tool_error(
                "this tool may not send this request to example.test: its operator can grant it",
            )),
        ),
        row(
            "order",
            json!({ "n": 2, "url": "https://example.test/" }),
            Completed(tool_error(
                "this tool may not send this request to example.test: its operator can grant it",
            )),
        ),
        row(
            "watch",
            json!({ "url": "https://example.test/" }),
            Result(tool_error(
                "the request to wait for is not sent: its operator can grant it",
            )),
        ),
        row(
            "watch",
            json!({ "url": "nowhere" }),
            Result(tool_error(
                "the wait is malformed: \"nowhere\" is no absolute URL, such as https://example.org/",
            )),
        ),
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
        row("counter", json!({}), Completed(says("1"))),
        row("counter", json!({ "times": 3 }), Completed(says("4"))),
        row(
            "counter",
            json!({ "key": "", "times": 1 }),
            Completed(tool_error("the key is empty")),
        ),
        row("notes", json!({ "notes": ["a"] }), ResultThat(left_a_note)),
        tool(
            "calc-library",
            "add",
            json!({ "a": { "numerator": 1, "denominator": 2 }, "b": { "numerator": "1", "denominator": 3 } }),
            Result(structured(r#"{"numerator":5,"denominator":6}"#)),
        ),
        tool(
            "calc-library",
            "area",
            json!({ "shape": { "rectangle": [2, 3.5] } }),
            Result(structured(r#"{"result":7.0}"#)),
        ),
        tool(
            "calc-library",
            "area",
            json!({ "shape": { "circle": "Infinity" } }),
            Result(structured(r#"{"result":"Infinity"}"#)),
        ),
        tool(
            "calc-library",
            "mean",
            json!({ "values": [1, 2], "weights": [1, 3] }),
            Result(structured(r#"{"result":1.75}"#)),
        ),
        tool(
            "calc-library",
            "mean",
            json!({ "values": [] }),
            Result(structured(r#"{"result":null}"#)),
        ),
        tool(
            "calc-library",
            "primes",
            json!({ "below": 12 }),
            Result(structured(r#"{"result":[2,3,5,7,11]}"#)),
        ),
        row(
            "wordcount-cli",
            json!({ "stdin": "one two\nthree\n" }),
            Result(json!({
                "content": [{ "type": "text", "text": "2 3 14\n" }],
                "structuredContent": { "exit": 0, "stdout": "2 3 14\n", "stderr": "", "files": {} },
            })),
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
    for name in SURVEYS {
        let tea = || json!({ "topic": "tea" });
        for (answer, outcome, mark) in [
            (accept(&json!({ "mark": 4 })), "answered", json!(4)),
            (declined(), "declined", Value::Null),
            (closed(), "declined", Value::Null),
        ] {
            rows.push(Row {
                answers: json!({ "mark": answer }),
                ..row(name, tea(), Completed(surveyed(outcome, &mark)))
            });
        }
        rows.push(Row {
            answers: Value::Null,
            ..row(name, tea(), Expected::Cancelled)
        });
        rows.push(row(
            name,
            json!({ "topic": "" }),
            CompletedThat(needs_a_topic),
        ));
    }
    for (name, code) in [
        ("run-python", "print(1)\n6 * 7"),
        ("run-js", "console.log(1); 6 * 7"),
    ] {
        rows.push(row(
            name,
            json!({ "code": code }),
            Result(ran(&json!(42), "1\n")),
        ));
    }
    rows.extend(conformance::rows());
    rows
}
