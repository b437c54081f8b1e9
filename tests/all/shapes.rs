//! Components that know nothing of Longshore: libraries and programs, called over MCP, as tasks, and after a crash.

use std::time::Duration;

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::{Value, json};

/// Both, with calls that become tasks at once and hold nothing while they wait.
fn both() -> Options {
    Options::with_guests(&["calc-library", "wordcount-cli"])
        .set("inline_budget_ms", 1)
        .set("park_from_ms", 0)
        .set("warm", 0)
}

/// What takes some seconds, as a tool, its arguments and its data at the end.
fn slow() -> [(&'static str, Value, Value); 2] {
    let text = "one two\n";
    [
        (
            "primes",
            json!({ "below": 6, "pause-ms": 2_000 }),
            json!({ "result": [2, 3, 5] }),
        ),
        (
            "wordcount-cli",
            json!({
                "args": ["--pause", "2000", "--output", "d/report", "a", "d/b"],
                "files": { "a": text, "d/b": { "base64": "AAEC/w==" } },
            }),
            json!({
                "exit": 0, "stdout": "", "stderr": "",
                "files": { "d/report": "1 2 8 a\n0 1 4 d/b\n" },
            }),
        ),
    ]
}

fn data(task: &Value) -> &Value {
    assert_eq!(task["status"], "completed", "{task}");
    &task["result"]["structuredContent"]
}

async fn until_parked(server: &Server, id: &str) {
    let path = format!("/v1/tasks/{id}");
    wait::until("a task to be parked", Duration::from_secs(60), || async {
        let task = server.admin("GET", &path, "").await.json();
        (task["parked"] == true).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_task_of_a_library_or_a_program_survives_its_server() {
    let mut server = Server::start(both()).await;
    let mut tasks = Vec::new();
    for (tool, arguments, result) in slow() {
        tasks.push((server.client().start(tool, arguments).await, result));
    }
    for (id, _) in &tasks {
        until_parked(&server, id).await;
    }
    for _ in 0..2 {
        server.kill().await;
        server.restart().await;
    }
    for (id, result) in &tasks {
        let task = server.client().until_ended(id).await;
        assert_eq!(data(&task), result);
    }
}

#[tokio::test]
async fn a_task_of_a_library_or_a_program_is_cancelled() {
    let server = Server::start(both()).await;
    let client = server.client();
    for (tool, arguments, _) in slow() {
        let id = client.start(tool, arguments).await;
        client.result("tasks/cancel", json!({ "taskId": id })).await;
        assert_eq!(
            client.until_ended(&id).await["status"],
            "cancelled",
            "{tool}"
        );
    }
    server.until_live(0, Duration::from_secs(10)).await;
}

/// The same bytes are two tools under two names, also for whoever finds them in the store, and a task that began as
/// one goes on when only the other is left.
#[tokio::test]
async fn a_program_has_the_name_of_its_component() {
    let bytes = std::fs::read(longshore_tests::guests::component("wordcount-cli"));
    let bytes = bytes.expect("it can be read");
    let mut server = Server::start(Options::default().set("inline_budget_ms", 1)).await;
    for name in ["first", "second"] {
        let reply = server.upload(name, bytes.clone()).await;
        assert_eq!(reply.json()["tools"], json!([name]));
        assert_eq!(reply.json()["shape"], "command");
    }
    let (_, arguments, result) = &slow()[1];
    let id = server.client().start("first", arguments.clone()).await;
    let gone = server.admin("DELETE", "/v1/components/first", "").await;
    assert_eq!(gone.status, 204);
    server.kill().await;
    server.restart().await;
    let task = server.client().until_ended(&id).await;
    assert_eq!(data(&task), result);
    assert_eq!(names(&server.client()).await, ["second"]);
    server.upload("first", bytes).await;
    server.terminate().await;
    server.restart().await;
    assert_eq!(names(&server.client()).await, ["first", "second"]);
}

async fn names(client: &Client) -> Vec<String> {
    let listed = client.result("tools/list", json!({})).await;
    let tools = listed["tools"].as_array().into_iter().flatten();
    let mut names: Vec<String> = tools
        .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn what_does_not_fit_is_told_to_whoever_called() {
    let server = Server::start(Options::with_guests(&["calc-library", "wordcount-cli"])).await;
    let client = server.client();
    let fraction = |numerator: Value, denominator: i64| json!({ "numerator": numerator, "denominator": denominator });
    let half = fraction(json!(1), 2);
    let rows = [
        (
            "add",
            json!({ "a": half, "b": fraction(json!(1), 0) }),
            "division-by-zero",
        ),
        (
            "add",
            json!({ "a": half, "b": fraction(json!("9223372036854775808"), 1) }),
            "not an integer of its type",
        ),
        ("add", json!({ "a": half }), "property \"b\""),
        ("area", json!({ "shape": { "square": 1 } }), "input schema"),
        (
            "wordcount-cli",
            json!({ "files": { "../etc": "" } }),
            "give a relative path",
        ),
        ("wordcount-cli", json!({ "args": ["missing"] }), "missing: "),
        ("wordcount-cli", json!({ "env": {} }), "env"),
    ];
    for (tool, arguments, says) in rows {
        let result = client.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(says), "{says:?} is not in {text:?}");
    }
}
