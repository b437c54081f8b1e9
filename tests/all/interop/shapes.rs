//! What the server says, held against what was published of MCP: the types that the Python SDK generates from the schemas
//! of 2025-11-25 and 2026-07-28, the schemas that ext-tasks has of its extension, and those of the TypeScript SDK of
//! 2025-06-18, whose schema nobody published as a package: it is covered by the parser of the clients of that time.

mod heard;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Duration;

use longshore_tests::mcp::Client;
use longshore_tests::pipes::data;
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, OLDEST, post};
use serde_json::{Value, json};

use super::script::{Language, output};
use heard::{Ear, MODERN};

/// How long a judge may take: some seconds on a busy machine, most of which it loads what it knows.
const JUDGING: Duration = Duration::from_secs(180);

/// Each message on which both sides of a script agree that it can be held against something, and its faults.
async fn judged(heard: &[Value], language: Language, file: &str) -> Vec<(usize, Vec<String>)> {
    let mut lines = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    for message in heard {
        writeln!(lines, "{message}").expect("it can be written");
    }
    let mut command = language.command(file).await;
    command.arg(lines.path());
    let printed = output(&mut command, file, JUDGING).await;
    let verdicts = printed.lines().map(|line| {
        let verdict: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let number = verdict["line"].as_u64().expect("a number");
        let faults = verdict["faults"].as_array().expect("a list").iter();
        let faults = faults.map(|fault| fault.as_str().expect("a text").to_owned());
        (
            usize::try_from(number).expect("it is small"),
            faults.collect(),
        )
    });
    verdicts.collect()
}

/// What kind of message it is, in few words.
fn kind_of(line: &Value) -> String {
    let message = &line["message"];
    let (kind, method) = (&line["kind"], &line["method"]);
    let [kind, method] = [kind, method].map(|word| word.as_str().unwrap_or_default());
    let result = &message["result"];
    let more = match kind {
        "error" => message["error"]["code"].to_string(),
        "result" if result["status"].is_string() => {
            let (result_type, status) = (&result["resultType"], &result["status"]);
            let [result_type, status] =
                [result_type, status].map(|word| word.as_str().unwrap_or_default());
            format!("{result_type} {status}")
        }
        "result" if result["task"].is_object() => "task".to_owned(),
        "result" => result["resultType"].as_str().unwrap_or_default().to_owned(),
        _ => message["params"]["status"]
            .as_str()
            .or(message["params"]["mode"].as_str())
            .unwrap_or_default()
            .to_owned(),
    };
    let method = if kind == "error" { "" } else { method };
    let words = format!("{kind} {method} {more}");
    words.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Has all of it judged, and says which kinds of message there were.
async fn check(heard: &[Value]) -> BTreeSet<String> {
    let mut verdicts = judged(heard, Language::Python, "shapes.py").await;
    verdicts.extend(judged(heard, Language::JavaScript, "shapes.mjs").await);
    let mut faults = Vec::new();
    for (number, found) in &verdicts {
        let line = &heard[*number];
        for fault in found {
            faults.push(format!("{fault}\n    in {line}"));
        }
    }
    let seen: BTreeSet<usize> = verdicts.iter().map(|(number, _)| *number).collect();
    for (number, line) in heard.iter().enumerate() {
        if !seen.contains(&number) {
            faults.push(format!(
                "nothing was published to hold this against: {line}"
            ));
        }
    }
    println!("{} messages, {} verdicts", heard.len(), verdicts.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    heard.iter().map(kind_of).collect()
}

fn assert_kinds(seen: &BTreeSet<String>, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|kind| (*kind).to_owned()).collect();
    let missing: Vec<&String> = expected.difference(seen).collect();
    let more: Vec<&String> = seen.difference(&expected).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing: {missing:#?}, more: {more:#?}"
    );
}

/// What is said in a session of either revision.
const IN_SESSIONS: [&str; 26] = [
    "error -32002",
    "error -32601",
    "error -32602",
    "error 1000",
    "notification notifications/cancelled",
    "notification notifications/message",
    "notification notifications/progress",
    "notification notifications/prompts/list_changed",
    "notification notifications/resources/list_changed",
    "notification notifications/resources/updated",
    "notification notifications/tools/list_changed",
    "request roots/list",
    "request sampling/createMessage",
    "result completion/complete",
    "result initialize",
    "result logging/setLevel",
    "result ping",
    "result prompts/get",
    "result prompts/list",
    "result resources/list",
    "result resources/read",
    "result resources/subscribe",
    "result resources/templates/list",
    "result resources/unsubscribe",
    "result tools/call",
    "result tools/list",
];

/// What 2025-11-25 has beyond that.
const OF_THE_NEWEST: [&str; 14] = [
    "error -32603",
    "error 1014",
    "error -32600",
    "error -32700",
    "request elicitation/create form",
    "request elicitation/create url",
    "result tasks/cancel cancelled",
    "result tasks/get cancelled",
    "result tasks/get completed",
    "result tasks/get failed",
    "result tasks/get working",
    "result tasks/list",
    "result tasks/result",
    "result tools/call task",
];

#[tokio::test]
async fn of_2025_06_18_fits_the_parser_of_that_time() {
    let data = data();
    let mut ear = Ear::open(data.path(), OLDEST).await;
    // It has no form for an error without an id, so that there is none for what cannot be read.
    ear.hear_a_session().await;
    let seen = check(&ear.close().await).await;
    let expected: Vec<&str> = IN_SESSIONS
        .into_iter()
        .chain(["request elicitation/create"])
        .collect();
    assert_kinds(&seen, &expected);
}

#[tokio::test]
async fn of_2025_11_25_fits_the_types_of_its_schema() {
    let data = data();
    let mut ear = Ear::open(data.path(), NEWEST).await;
    ear.speak_nonsense().await;
    ear.hear_a_session().await;
    ear.hear_tasks_of_a_session().await;
    let seen = check(&ear.close().await).await;
    let expected: Vec<&str> = IN_SESSIONS.into_iter().chain(OF_THE_NEWEST).collect();
    assert_kinds(&seen, &expected);
}

/// What is only said over HTTP.
async fn of_a_header_that_does_not_fit() -> Value {
    let server = Server::start(Options::default()).await;
    let request = server.client().request("tools/list", json!({}));
    let mut headers = Client::headers(&request);
    headers.retain(|(name, _)| name != "mcp-method");
    let reply = post(server.address, &headers, &request).await;
    let message = reply.json();
    json!({ "revision": MODERN, "kind": "error", "method": "tools/list", "message": message })
}

#[tokio::test]
async fn of_2026_07_28_fits_the_types_of_its_schema_and_of_the_extension() {
    let data = data();
    let mut ear = Ear::open(data.path(), MODERN).await;
    ear.speak_nonsense().await;
    ear.hear_requests().await;
    ear.hear_tasks().await;
    let mut heard = ear.close().await;
    heard.push(of_a_header_that_does_not_fit().await);
    let seen = check(&heard).await;
    let expected = [
        "error -32020",
        "error -32021",
        "error -32022",
        "error -32600",
        "error -32601",
        "error -32602",
        "error -32700",
        "error 1000",
        "notification notifications/message",
        "notification notifications/progress",
        "notification notifications/prompts/list_changed",
        "notification notifications/resources/list_changed",
        "notification notifications/resources/updated",
        "notification notifications/subscriptions/acknowledged",
        "notification notifications/tasks cancelled",
        "notification notifications/tasks completed",
        "notification notifications/tasks failed",
        "notification notifications/tasks input_required",
        "notification notifications/tasks working",
        "notification notifications/tools/list_changed",
        "result completion/complete complete",
        "result prompts/get complete",
        "result prompts/get input_required",
        "result prompts/list complete",
        "result resources/list complete",
        "result resources/read complete",
        "result resources/templates/list complete",
        "result server/discover complete",
        "result subscriptions/listen complete",
        "result tasks/cancel complete",
        "result tasks/get complete cancelled",
        "result tasks/get complete completed",
        "result tasks/get complete failed",
        "result tasks/get complete input_required",
        "result tasks/get complete working",
        "result tasks/update complete",
        "result tools/call complete",
        "result tools/call input_required",
        "result tools/call task working",
        "result tools/list complete",
    ];
    assert_kinds(&seen, &expected);
}

/// That the judges judge: whatever is bent is found.
#[tokio::test]
async fn what_does_not_fit_is_found() {
    let good = |revision: &str| {
        json!({
            "revision": revision,
            "kind": "result",
            "method": "tools/call",
            "message": {
                "jsonrpc": "2.0",
                "id": 1,
                "result": { "resultType": "complete", "content": [{ "type": "text", "text": "x" }] },
            },
        })
    };
    let bends: [fn(&mut Value); 4] = [
        |message| message["jsonrpc"] = json!("1.0"),
        |message| message["result"]["content"] = json!({}),
        |message| message["result"]["content"][0]["type"] = json!("song"),
        |message| {
            drop(
                message["result"]["content"][0]
                    .as_object_mut()
                    .and_then(|it| it.remove("text")),
            )
        },
    ];
    let judges = [
        (NEWEST, Language::Python, "shapes.py"),
        (MODERN, Language::Python, "shapes.py"),
        (OLDEST, Language::JavaScript, "shapes.mjs"),
    ];
    for (revision, language, file) in judges {
        let mut heard = vec![good(revision)];
        if revision != MODERN {
            let result = heard[0]["message"]["result"].as_object_mut();
            drop(result.and_then(|result| result.remove("resultType")));
        }
        for bend in bends {
            let mut line = heard[0].clone();
            bend(&mut line["message"]);
            heard.push(line);
        }
        for (number, faults) in judged(&heard, language, file).await {
            assert_eq!(
                faults.is_empty(),
                number == 0,
                "{}: {faults:?}",
                heard[number]
            );
        }
    }
}
