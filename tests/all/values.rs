//! What components keep beyond their calls: once, however often the server dies, and each for itself.

use std::sync::Arc;
use std::time::Duration;

use longshore_tests::chance::Chance;
use longshore_tests::guests;
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server, command, run};
use longshore_tests::wait;
use serde_json::{Value, json};

/// Longer than any of this takes on a slow machine.
const SOON: Duration = Duration::from_secs(120);

fn counting() -> Options {
    Options::with_guests(&["counter"])
        .set("early_poll_ms", 0)
        .set("limits.cpu_ms", 3_600_000)
}

fn text(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result} has a text"))
}

/// What a counter says when it is called and waited for.
async fn count(client: &Client, arguments: Value) -> String {
    let id = client.start("counter", arguments).await;
    let task = client.until_ended(&id).await;
    assert_eq!(task["status"], "completed", "{task}");
    text(&task["result"]).to_owned()
}

async fn journal(server: &Server, id: &str) -> Value {
    let path = format!("/v1/tasks/{id}/journal");
    server.admin("GET", &path, "").await.json()
}

fn records<'j>(journal: &'j Value, what: &str) -> Vec<&'j Value> {
    journal["segments"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|segment| segment["records"].as_array().into_iter().flatten())
        .filter(|record| record["what"] == what)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_is_counted_once_however_often_the_server_is_killed() {
    const KILLS: usize = 20;
    const TIMES: usize = 1_000;
    let mut server = Server::start(counting()).await;
    let mut chance = Chance::new(5);
    let start = json!({ "times": TIMES, "pause_ms": 1 });
    let mut id = server.client().start("counter", start.clone()).await;
    let (mut kills, mut tasks) = (0, 1);
    while kills < KILLS {
        // Anywhere in what it does.
        tokio::time::sleep(Duration::from_millis(20 + chance.below(200) as u64)).await;
        let task = server.client().task(&id).await;
        if task["status"] == "completed" {
            let all = (tasks * TIMES).to_string();
            assert_eq!(text(&task["result"]), all, "after {kills} kills");
            id = server.client().start("counter", start.clone()).await;
            tasks += 1;
        }
        server.kill().await;
        kills += 1;
        server.restart().await;
    }
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["status"], "completed", "{task}");
    assert_eq!(text(&task["result"]), (tasks * TIMES).to_string());
    // All of it is in the journal: what it was about to do, and what came of that.
    let journal = journal(&server, &id).await;
    for what in ["change", "found"] {
        assert_eq!(records(&journal, what).len(), TIMES, "{what}");
    }
    println!("{tasks} tasks, {kills} kills, {TIMES} increments each");
}

#[tokio::test]
async fn two_tasks_at_once_lose_nothing_of_each_other() {
    let server = Server::start(counting()).await;
    let client = server.client();
    let arguments = json!({ "times": 200, "pause_ms": 1 });
    let ids = [
        client.start("counter", arguments.clone()).await,
        client.start("counter", arguments).await,
    ];
    for id in &ids {
        client.until_ended(id).await;
    }
    assert_eq!(count(&client, json!({})).await, "401");
}

/// An exported task is repeated where nothing is kept, and sees what it saw.
#[tokio::test]
async fn a_journal_tells_what_was_found_and_its_file_repeats_it() {
    let server = Server::start(counting()).await;
    let client = server.client();
    assert_eq!(count(&client, json!({})).await, "1");
    let id = client.start("counter", json!({ "times": 2 })).await;
    client.until_ended(&id).await;
    let journal = journal(&server, &id).await;
    let found: Vec<&Value> = records(&journal, "found")
        .into_iter()
        .map(|record| &record["detail"])
        .collect();
    assert_eq!(found, [&json!({ "number": 2 }), &json!({ "number": 3 })]);
    let file = server.data().join("task.json");
    let mut export = command(server.data());
    export
        .env("LONGSHORE_SERVER", format!("http://{}", client.address))
        .args(["tasks", "export", &id, "--output"])
        .arg(&file);
    let (code, _, errors) = run(export).await;
    assert_eq!(code, 0, "{errors}");
    let elsewhere = tempfile::tempdir().expect("a temporary folder can be made");
    let mut replay = command(elsewhere.path());
    replay.arg("replay").arg(&file).arg("--json");
    let (code, out, errors) = run(replay).await;
    assert_eq!(code, 0, "{out} {errors}");
    let replayed: Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(replayed["same"], true, "{replayed}");
}

#[tokio::test]
async fn what_begins_anew_does_everything_anew() {
    let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let volatile = || counting().set("durable", false);
    let mut server = Server::start_in(Arc::clone(&data), volatile()).await;
    let client = server.client();
    let arguments = json!({ "times": 1_000, "pause_ms": 20 });
    let id = client.start("counter", arguments).await;
    let counted = wait::until("some of it to be counted", SOON, || async {
        let so_far: u64 = count(&client, json!({})).await.parse().ok()?;
        (so_far > 10).then_some(so_far)
    })
    .await;
    server.kill().await;
    let server = Server::start_in(data, volatile()).await;
    let client = server.client();
    let task = client.task(&id).await;
    assert_eq!(task["error"]["data"]["reason"], "interrupted", "{task}");
    // What was kept is there, and what comes now is none of what came before.
    let now: u64 = count(&client, json!({})).await.parse().unwrap();
    assert!(now > counted, "{now} after {counted}");
    let next: u64 = count(&client, json!({ "times": 3 })).await.parse().unwrap();
    assert_eq!(next, now + 3);
}

#[tokio::test]
async fn values_belong_to_a_name_and_go_only_when_that_is_asked_for() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    let bytes = std::fs::read(guests::component("counter")).expect("it was built");
    let values = async |name: &str| {
        let path = format!("/v1/components/{name}");
        server.admin("GET", &path, "").await.json()["values"].clone()
    };
    let remove = async |path: &str| {
        let path = format!("/v1/components/{path}");
        assert_eq!(
            server.admin("DELETE", &path, "").await.status,
            204,
            "{path}"
        );
    };
    server.upload("one", bytes.clone()).await;
    assert_eq!(values("one").await, json!({ "keys": 0, "bytes": 0 }));
    assert_eq!(count(&client, json!({ "times": 12 })).await, "12");
    assert_eq!(values("one").await, json!({ "keys": 1, "bytes": 7 }));

    // The same bytes under another name keep something else under the same key.
    remove("one").await;
    server.upload("two", bytes.clone()).await;
    assert_eq!(count(&client, json!({})).await, "1");
    remove("two?with_values=true").await;

    server.upload("one", bytes.clone()).await;
    assert_eq!(count(&client, json!({})).await, "13");
    remove("one?with_values=true").await;
    for name in ["one", "two"] {
        server.upload(name, bytes.clone()).await;
        assert_eq!(count(&client, json!({})).await, "1", "{name}");
        remove(name).await;
    }
}

#[tokio::test]
async fn a_component_keeps_so_much_and_is_told_when_that_is_full() {
    let server = Server::start(counting().set("limits.values", 2)).await;
    let client = server.client();
    let cases = [
        ("a".repeat(256), Ok("1")),
        (
            "a".repeat(257),
            Err("the key is 257 bytes; at most 256 are allowed"),
        ),
        ("b".to_owned(), Ok("1")),
        (
            "c".to_owned(),
            Err("a component may keep 2 keys, and keeps that many (limits.values)"),
        ),
        ("b".to_owned(), Ok("2")),
    ];
    for (key, expected) in cases {
        let id = client.start("counter", json!({ "key": key })).await;
        let result = client.until_ended(&id).await["result"].clone();
        let said = text(&result);
        let is_error = result["isError"] == true;
        assert_eq!(if is_error { Err(said) } else { Ok(said) }, expected);
    }
}

#[tokio::test]
async fn a_call_alone_begins_with_nothing_kept() {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    for _ in 0..2 {
        let mut alone = command(data.path());
        alone.arg("run").arg(guests::component("counter"));
        let (code, out, errors) = run(alone).await;
        assert_eq!((code, out.trim()), (0, "1"), "{errors}");
    }
}
