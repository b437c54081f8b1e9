//! Agents on a desktop: they start the server themselves, speak an older revision, know nothing of tasks, and give a call
//! up when it takes too long.
//!
//! The tool takes a minute and a half, and the defaults are made for that. Usually all of it is twenty times as fast;
//! `LONGSHORE_TEST_ROUNDS=2` takes the whole time.

use std::time::{Duration, Instant};

use longshore_tests::effort::rounds;
use longshore_tests::pipes::{Pipes, data};
use longshore_tests::process::{command, run};
use longshore_tests::session::OLDEST;
use serde_json::{Value, json};

/// How long the tool takes.
const TAKES_MS: u64 = 90_000;
/// Calls that a person would let a model make for one result.
const CALLS: u64 = 6;
/// After this long without an answer most such clients give a call up, whatever the server says meanwhile.
const GIVES_UP_MS: u64 = 60_000;
/// After this long without a sign of life the others do.
const IDLE_MS: u64 = 300_000;

/// What of the defaults such a client meets.
const KEYS: [&str; 4] = ["hold_ms", "hold_progress_ms", "follow_ms", "beat_ms"];

/// The defaults, as the program tells them.
async fn defaults() -> [u64; 4] {
    let data = data();
    let mut serve = command(data.path());
    serve.args(["serve", "--print-config", "--json"]);
    let (code, out, err) = run(serve).await;
    assert_eq!(code, 0, "{err}");
    let settings: Value = serde_json::from_str(&out).expect("it is JSON");
    KEYS.map(|key| {
        settings[key]["value"]
            .as_u64()
            .unwrap_or_else(|| panic!("{key} in {settings}"))
    })
}

/// How many times faster than in life everything is.
fn faster() -> u64 {
    if rounds(1) > 1 { 1 } else { 20 }
}

/// Such an agent, and a server that is as much faster as the tool is.
async fn agent(data: &std::path::Path) -> Pipes {
    let mut arguments = Vec::new();
    for (key, value) in KEYS.into_iter().zip(defaults().await) {
        arguments.extend(["--set".to_owned(), format!("{key}={}", value / faster())]);
    }
    arguments.push(
        longshore_tests::guests::component("sleep")
            .display()
            .to_string(),
    );
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut pipes = Pipes::start_with(data, &arguments);
    pipes.open(OLDEST, json!({})).await;
    // It is compiled before anybody looks at a clock.
    let first = pipes.result("tools/call", call(0)).await;
    assert_eq!(text(&first), "slept");
    pipes
}

fn call(takes_ms: u64) -> Value {
    let seconds = Duration::from_millis(takes_ms).as_secs_f64();
    json!({ "name": "sleep", "arguments": { "seconds": seconds } })
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text in {result}"))
}

/// The next call, as a model takes it from what it reads: one of the tools that it knows, and the object behind it.
fn told_to_call(said: &str, tools: &[String]) -> Value {
    let tool = tools.iter().find(|tool| said.contains(tool.as_str()));
    let tool = tool.unwrap_or_else(|| panic!("no tool is named in {said:?}"));
    let arguments = said
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    let arguments = match arguments {
        Some((inside, _)) => serde_json::from_str(&format!("{{{inside}}}")).expect("it is JSON"),
        None => {
            let id = said.split_whitespace().find(|word| word.len() == 36);
            json!({ "taskId": id.unwrap_or_else(|| panic!("no id in {said:?}")) })
        }
    };
    json!({ "name": tool, "arguments": arguments })
}

#[tokio::test]
async fn a_model_gets_the_result_of_a_long_tool_in_few_calls() {
    let data = data();
    let mut pipes = agent(data.path()).await;
    let listed = pipes.result("tools/list", json!({})).await;
    let tools: Vec<String> = listed["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .filter(|name| name.starts_with("longshore_task_"))
        .map(str::to_owned)
        .collect();
    let (mut next, mut calls) = (call(TAKES_MS / faster()), 0);
    let began = Instant::now();
    loop {
        let sent = Instant::now();
        let result = pipes.result("tools/call", next).await;
        calls += 1;
        let waited = sent.elapsed();
        assert!(
            waited < Duration::from_millis(GIVES_UP_MS),
            "call {calls} took {waited:?}"
        );
        assert!(result.get("isError").is_none(), "{result}");
        if text(&result) == "slept" {
            break;
        }
        next = told_to_call(text(&result), &tools);
    }
    println!("{calls} calls, {:?}", began.elapsed());
    assert!((2..=CALLS).contains(&calls), "{calls} calls");
    assert_eq!(pipes.end().await.1, Some(0));
}

#[tokio::test]
async fn who_hears_of_progress_simply_waits() {
    let data = data();
    let mut pipes = agent(data.path()).await;
    let mut params = call(TAKES_MS / faster());
    params["_meta"] = json!({ "progressToken": "p" });
    let id = pipes.ask("tools/call", params).await;
    let (mut heard, mut beats, mut last) = (Instant::now(), 0, -1.0);
    let response = loop {
        let message = pipes.next().await.expect("it goes on");
        let silence = std::mem::replace(&mut heard, Instant::now()).elapsed();
        assert!(
            silence < Duration::from_millis(IDLE_MS / faster()),
            "nothing was said for {silence:?}"
        );
        if message["id"] == json!(id) {
            break message;
        }
        if message["method"] != "notifications/progress" {
            continue;
        }
        assert_eq!(message["params"]["progressToken"], "p", "{message}");
        let progress = message["params"]["progress"].as_f64().expect("a number");
        assert!(progress > last, "{progress} after {last}");
        (last, beats) = (progress, beats + 1);
    };
    assert_eq!(text(&response["result"]), "slept", "{response}");
    println!("one call, {beats} beats");
    assert!(beats >= 3, "{beats} beats");
    assert_eq!(pipes.end().await.1, Some(0));
}

#[tokio::test]
async fn the_defaults_are_made_for_such_agents() {
    let [hold, hold_progress, follow, beat] = defaults().await;
    // The call itself, and as many waits as it takes to the end.
    let calls = 1 + (TAKES_MS - hold).div_ceil(follow);
    println!(
        "a call of {TAKES_MS} ms, held for {hold} ms and followed for {follow} ms each: {calls} calls; \
         with progress held for {hold_progress} ms, a beat every {beat} ms"
    );
    assert!(calls <= CALLS, "{calls} calls");
    for (key, wait) in [("hold_ms", hold), ("follow_ms", follow)] {
        assert!(2 * wait <= GIVES_UP_MS, "{key} = {wait}");
    }
    assert!(hold_progress > TAKES_MS && hold_progress < IDLE_MS);
    // Some that are not heard in time do no harm.
    assert!(3 * beat <= GIVES_UP_MS, "beat_ms = {beat}");
}
