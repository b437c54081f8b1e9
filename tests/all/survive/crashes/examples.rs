//! What each example is asked to do, and what must come of it however often its server dies.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// One example.
pub(super) struct Example {
    pub(super) name: &'static str,
    pub(super) arguments: fn() -> Value,
    /// What is answered to a key, the first time and at each further try.
    pub(super) answer: fn(&str, u64) -> Value,
    /// Keys that it asks, in their order.
    pub(super) keys: &'static [&'static str],
    /// How often it waits for answers.
    pub(super) asks: u64,
    /// What it has said and printed, by its own result.
    pub(super) said: fn(&Value) -> Said,
}

/// All that a run says beside its result.
pub(super) struct Said {
    /// What its result must be, as far as that does not depend on chance.
    pub(super) is_right: bool,
    pub(super) statuses: Vec<String>,
    pub(super) log: Vec<String>,
    pub(super) stdout: Vec<String>,
}

/// Those whose runs take milliseconds.
pub(super) const QUICK: [Example; 8] = [
    DICE,
    Example {
        name: "steps",
        arguments: || json!({ "n": 4 }),
        answer: nothing,
        keys: &[],
        asks: 0,
        said: |result| {
            let primes = [168, 303, 430, 550];
            Said {
                is_right: result["structuredContent"] == json!({ "primes": primes }),
                statuses: (1..=4).map(|n| format!("step {n} of 4")).collect(),
                log: (1..)
                    .zip(primes)
                    .map(|(n, found)| format!("step {n} found {found}"))
                    .collect(),
                stdout: Vec::new(),
            }
        },
    },
    Example {
        name: "counter",
        // A call whose id its client never got goes on beside the one that is made in its place.
        arguments: || {
            static CALLS: AtomicU64 = AtomicU64::new(0);
            let call = CALLS.fetch_add(1, Ordering::Relaxed);
            json!({ "times": 4, "key": format!("of call {call}") })
        },
        answer: nothing,
        keys: &[],
        asks: 0,
        said: |result| Said {
            is_right: text(result) == "4",
            statuses: Vec::new(),
            log: Vec::new(),
            stdout: Vec::new(),
        },
    },
    Example {
        name: "resumable",
        arguments: || json!({ "n": 4 }),
        answer: nothing,
        keys: &[],
        asks: 0,
        said: |result| Said {
            is_right: text(result) == "550 primes in 4 units",
            statuses: (1..=4).map(|n| format!("unit {n} of 4")).collect(),
            log: Vec::new(),
            stdout: Vec::new(),
        },
    },
    Example {
        name: "looks",
        arguments: || json!({ "n": 4 }),
        answer: nothing,
        keys: &[],
        asks: 0,
        said: |result| {
            let seen: Value = serde_json::from_str(&text(result)).unwrap_or_default();
            let looks: Vec<String> = seen["looks"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|look| look.as_str().map(str::to_owned))
                .collect();
            Said {
                is_right: looks.len() == 4,
                statuses: looks.clone(),
                log: looks,
                stdout: Vec::new(),
            }
        },
    },
    Example {
        name: "cleanup",
        arguments: || json!({}),
        answer: |_, _| json!({ "keep": false }),
        keys: &["keep"],
        asks: 1,
        said: |result| Said {
            is_right: text(result) == "removed",
            statuses: Vec::new(),
            log: vec!["made".to_owned(), "removed".to_owned()],
            stdout: Vec::new(),
        },
    },
    Example {
        name: "ask-two",
        arguments: || json!({}),
        answer: |key, _| match key {
            "name" => json!({ "name": "Ada" }),
            _ => json!({ "confirm": true }),
        },
        keys: &["name", "confirm"],
        asks: 1,
        said: |result| Said {
            is_right: text(result) == "name: \"Ada\", confirm: true",
            statuses: Vec::new(),
            log: Vec::new(),
            stdout: Vec::new(),
        },
    },
    Example {
        name: "approve",
        arguments: || json!({ "what": "it" }),
        answer: |_, _| json!({ "approve": true }),
        keys: &["approve"],
        asks: 1,
        said: |result| Said {
            is_right: text(result) == "done: it",
            statuses: Vec::new(),
            log: vec!["doing it".to_owned()],
            stdout: Vec::new(),
        },
    },
];

/// Those that begin with a whole interpreter.
pub(super) const SLOW: [Example; 2] = [
    Example {
        name: "dice-python",
        ..DICE
    },
    Example {
        name: "dice-typescript",
        ..DICE
    },
];

const DICE: Example = Example {
    name: "dice",
    arguments: || json!({}),
    answer: bet,
    keys: &["bet", "again"],
    asks: 2,
    said: rolled,
};

pub(super) fn example(name: &str) -> &'static Example {
    QUICK
        .iter()
        .find(|example| example.name == name)
        .expect("it is one of the quick ones")
}

fn nothing(_key: &str, _attempt: u64) -> Value {
    Value::Null
}

/// Another side each time that the answer to the one before it was not heard of.
fn bet(key: &str, attempt: u64) -> Value {
    match key.split('-').next() {
        Some("bet") => json!({ "bet": 1 + attempt % 6 }),
        _ => json!({ "again": true }),
    }
}

fn rolled(result: &Value) -> Said {
    let seen: Value = serde_json::from_str(&text(result)).unwrap_or_default();
    let rolls: Vec<&Value> = seen["rolls"].as_array().into_iter().flatten().collect();
    let mut stdout = vec!["the dice are on the table".to_owned()];
    stdout.extend(rolls.iter().map(|roll| format!("rolled {roll}")));
    Said {
        is_right: rolls.len() == 2 && seen["again"] == true,
        statuses: [
            "waiting for a bet",
            "rolling",
            "waiting to hear whether to go on",
        ]
        .map(str::to_owned)
        .to_vec(),
        log: Vec::new(),
        stdout,
    }
}

fn text(result: &Value) -> String {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_default().to_owned()
}
