//! Results that are too long for a row, and what is true of those that are never quite the same.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// No clock that is right stands before it.
const A_DAY_IN_2025_MS: u64 = 1_750_000_000_000;

pub(super) fn counted(words: u64, lines: u64, characters: u64) -> Value {
    let structured = json!({ "words": words, "lines": lines, "characters": characters });
    let text = format!(r#"{{"words":{words},"lines":{lines},"characters":{characters}}}"#);
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": structured })
}

/// Primes below 1000, 2000 and so on.
pub(super) fn stepped(primes: &[u32]) -> Value {
    let structured = json!({ "primes": primes });
    let list = serde_json::to_string(primes).expect("numbers have a JSON form");
    let text = format!(r#"{{"primes":{list}}}"#);
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": structured })
}

/// What a survey of "tea" in three rounds found. Its text is the same data, in the letters of its language.
pub(super) fn surveyed(answer: &str, mark: &Value) -> Value {
    data(&json!({ "topic": "tea", "rounds": 3, "seen": "tea", "answer": answer, "mark": mark }))
}

/// What code came to.
pub(super) fn ran(value: &Value, printed: &str) -> Value {
    data(&json!({ "value": value, "printed": printed }))
}

/// A result that is data; see [`with_read_text`] for its text.
fn data(structured: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": structured }], "structuredContent": structured })
}

/// The refusal of an argument is one line that says what is wrong with it, whatever else a language says there.
pub(super) fn needs_a_topic(result: &Value) -> bool {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    result["isError"] == true
        && text.contains("a survey needs a topic")
        && text.lines().count() == 1
}

pub(super) fn looked_three_times(result: &Value) -> bool {
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

pub(super) fn was_rolled_twice(result: &Value) -> bool {
    was_rolled(result, &json!(3), &json!(true), 2)
}

pub(super) fn was_rolled_once(result: &Value) -> bool {
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

pub(super) fn every_kind() -> Value {
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
pub(super) fn was_told_no(result: &Value) -> bool {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let mib = text
        .strip_prefix("the sandbox gave only ")
        .and_then(|rest| rest.strip_suffix(" MiB"));
    let mib: u32 = mib.and_then(|mib| mib.parse().ok()).unwrap_or(0);
    result["isError"] == true && (56..64).contains(&mib)
}

/// A link that leads to an artifact; to which is the server's secret.
pub(super) fn left_a_note(result: &Value) -> bool {
    let link = &result["content"][0];
    let uri = link["uri"].as_str().unwrap_or_default();
    uri.starts_with("longshore://artifacts/")
        && (&link["type"], &link["name"], &link["mimeType"])
            == (
                &json!("resource_link"),
                &json!("notes.md"),
                &json!("text/markdown"),
            )
}
