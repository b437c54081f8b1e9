//! What every client calls, and what it has to see.

use serde_json::{Value, json};

/// What a call becomes for a client that knows tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Becomes {
    /// It is answered at once.
    Answer,
    /// It is a task.
    Task,
    /// It is a task that asks.
    Question,
}

/// One call.
#[derive(Debug)]
pub(super) struct Case {
    what: &'static str,
    tool: &'static str,
    arguments: Value,
    /// What the call's `_meta` holds beyond what every client writes there.
    meta: Value,
    /// The answer to whatever it asks.
    answer: Value,
    /// Whether it is cancelled as soon as it is there.
    cancel: bool,
    pub(super) becomes: Becomes,
    end: Value,
}

impl Case {
    /// As a script reads it: everything but what is to come of it.
    pub(super) fn given(&self) -> Value {
        json!({
            "what": self.what,
            "tool": self.tool,
            "arguments": self.arguments,
            "meta": self.meta,
            "answer": self.answer,
            "cancel": self.cancel,
        })
    }

    /// Compares with what a client saw.
    pub(super) fn check(&self, seen: &Value) {
        let mut seen = seen.clone();
        let members = seen.as_object_mut().expect("a line is an object");
        assert_eq!(members.remove("what"), Some(json!(self.what)));
        if let Some(states) = members.remove("seen") {
            self.check_states(&states);
        }
        assert_eq!(seen, self.end, "{}", self.what);
    }

    /// The states of its task as they were seen; none if it was no task.
    fn check_states(&self, states: &Value) {
        let what = self.what;
        if self.becomes == Becomes::Answer {
            assert_eq!(states, &Value::Null, "{what}");
            return;
        }
        let states: Vec<&str> = states
            .as_array()
            .unwrap_or_else(|| panic!("{what}: no task"))
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let last = match self.end["end"].as_str() {
            Some("result") => "completed",
            Some(end) => end,
            None => panic!("{what} has no end"),
        };
        assert_eq!(states.first(), Some(&"working"), "{what}");
        assert_eq!(states.last(), Some(&last), "{what}");
        // Between the answer and the end it may be seen at work again, or not.
        let asks = self.becomes == Becomes::Question;
        assert_eq!(
            states.contains(&"input_required"),
            asks,
            "{what}: {states:?}"
        );
    }
}

/// The components that the cases call.
pub(super) const GUESTS: [&str; 7] = [
    "ask-form",
    "content",
    "count-words",
    "hello",
    "long-job",
    "panic",
    "tool-error",
];

/// A component that has something to read and to fill in, and nothing to call.
pub(super) const LIBRARY: &str = "cookbook";

/// What every client sees of it, by the rules of that revision.
pub(super) fn library(revision: &str) -> Value {
    // MCP 2026-07-28 took the code of its own away.
    let missing = if revision == "2026-07-28" {
        -32602
    } else {
        -32002
    };
    json!({
        "what": "library",
        "resources": ["recipe:all"],
        "templates": ["recipe:{dish}"],
        "prompts": ["plan-meal"],
        "read": [
            "recipe:all",
            "text/plain",
            "omelette\npancakes\nporridge",
            "Beat three eggs with salt. Fry them in butter, and fold.",
        ],
        "missing": missing,
        "prompt": [
            ["user", "Plan a meal for two with omelette."],
            ["assistant", "It is made like this: Beat three eggs with salt. Fry them in butter, and fold."],
            ["user", "What goes with it?"],
        ],
        "proposed": [["pancakes", "porridge"], ["omelette"]],
    })
}

/// How many of the cases become tasks.
pub(super) fn tasks(cases: &[Case]) -> usize {
    cases
        .iter()
        .filter(|case| case.becomes != Becomes::Answer)
        .count()
}

/// How many of the cases ask.
pub(super) fn questions(cases: &[Case]) -> usize {
    cases
        .iter()
        .filter(|case| case.becomes == Becomes::Question)
        .count()
}

fn call(what: &'static str, tool: &'static str, arguments: Value, end: Value) -> Case {
    Case {
        what,
        tool,
        arguments,
        meta: json!({}),
        answer: Value::Null,
        cancel: false,
        becomes: Becomes::Answer,
        end,
    }
}

fn says(text: &str, is_error: bool) -> Value {
    json!({ "end": "result", "isError": is_error, "kinds": ["text"], "texts": [text], "structured": null })
}

/// An answer to the form of `ask-form`.
fn answered(what: &'static str, answer: Value, text: &str) -> Case {
    Case {
        answer,
        becomes: Becomes::Question,
        ..call(what, "ask-form", json!({}), says(text, false))
    }
}

/// A job that would take longer than any test.
fn endless(what: &'static str, end: Value) -> Case {
    Case {
        becomes: Becomes::Task,
        ..call(
            what,
            "long-job",
            json!({ "steps": 1_000, "step-ms": 100 }),
            end,
        )
    }
}

/// Those that a client without tasks can make: it waits for each, and answers what is asked meanwhile.
pub(super) fn held() -> Vec<Case> {
    all()
        .into_iter()
        .filter(|case| !case.cancel)
        .map(|mut case| {
            case.becomes = Becomes::Answer;
            if case.end["end"] == "failed" {
                case.end["end"] = json!("error");
            }
            case
        })
        .collect()
}

/// All of them, in the order in which they are called.
pub(super) fn all() -> Vec<Case> {
    let counts = json!({ "words": 3, "lines": 2, "characters": 13 });
    let kinds = [
        "text",
        "image",
        "audio",
        "resource_link",
        "resource_link",
        "resource",
        "resource",
        "text",
    ];
    let form = json!({ "name": "Ada", "age": 36, "choice": "green" });
    vec![
        call(
            "call",
            "hello",
            json!({ "name": "Ada" }),
            says("Hello, Ada!", false),
        ),
        call(
            "structured",
            "count-words",
            json!({ "text": "one two\nthree" }),
            json!({
                "end": "result",
                "isError": false,
                "kinds": ["text"],
                "texts": [r#"{"words":3,"lines":2,"characters":13}"#],
                "structured": counts,
            }),
        ),
        call(
            "content",
            "content",
            json!({}),
            json!({
                "end": "result",
                "isError": false,
                "kinds": kinds,
                "texts": ["plain text", "for the person only"],
                "structured": null,
            }),
        ),
        call(
            "error",
            "tool-error",
            json!({ "message": "no luck" }),
            says("no luck", true),
        ),
        call(
            "misfit",
            "hello",
            json!({ "name": 7 }),
            says(
                "the arguments do not fit the tool's input schema: /name is not of type string",
                true,
            ),
        ),
        call(
            "broken",
            "panic",
            json!({}),
            json!({ "end": "error", "code": 1000, "reason": "trap" }),
        ),
        call(
            "unknown",
            "none",
            json!({}),
            json!({ "end": "error", "code": -32602, "reason": null }),
        ),
        Case {
            becomes: Becomes::Task,
            ..call(
                "task",
                "long-job",
                json!({ "steps": 3, "step-ms": 200 }),
                says("done: 3 steps", false),
            )
        },
        answered(
            "accept",
            json!({ "action": "accept", "content": form }),
            "Ada is 36 and chose green",
        ),
        answered(
            "decline",
            json!({ "action": "decline" }),
            "the person declined to answer",
        ),
        answered(
            "dismiss",
            json!({ "action": "cancel" }),
            "the person closed the question",
        ),
        Case {
            cancel: true,
            ..endless("cancel", json!({ "end": "cancelled" }))
        },
        Case {
            // It outlives it by far.
            meta: json!({ "longshore/deadlineMs": 300 }),
            ..endless(
                "failed",
                json!({ "end": "failed", "code": 1013, "reason": "expired" }),
            )
        },
    ]
}
