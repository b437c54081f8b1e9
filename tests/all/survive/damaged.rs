//! Tasks of which the store has lost something: they end and say what is missing, and nobody waits for them.

use std::sync::Arc;

use longshore_tests::process::{Options, Server};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{answer, cancel, shown, until_parked};

/// Parks as many tasks as there are damages, does one to each while no server runs and takes away the native code, and
/// gives back the server that finds them, with the tasks.
async fn damaged(tool: &str, damages: &[&str], then: Options) -> (Server, Vec<String>) {
    let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let options = Options::with_guests(&[tool]).set("warm", 0);
    let mut server = Server::start_in(Arc::clone(&data), options).await;
    let mut ids = Vec::new();
    for _ in damages {
        let id = server.client().start(tool, json!({})).await;
        let client = server.client();
        client.until_status(&id, "input_required").await;
        until_parked(&server, &id).await;
        if tool == "dice" {
            // So that it has been parked twice, and its journal has two segments.
            answer(&client, &id, "bet", json!({ "bet": 3 })).await;
            client.until_status(&id, "input_required").await;
            until_parked(&server, &id).await;
        }
        ids.push(id);
    }
    server.kill().await;
    let db = Connection::open(data.path().join("longshore.db")).expect("it can be opened");
    // The tasks were made one after the other.
    let keys: Vec<i64> = {
        let select = db.prepare("select key from task order by key");
        let mut select = select.expect("it is SQL");
        let keys = select.query_map([], |row| row.get(0));
        keys.and_then(Iterator::collect).expect("keys are numbers")
    };
    for (key, damage) in keys.iter().zip(damages) {
        let done = db.execute_batch(&damage.replace("KEY", &key.to_string()));
        done.unwrap_or_else(|error| panic!("{damage}: {error}"));
    }
    drop(db);
    std::fs::remove_dir_all(data.path().join("artifacts")).expect("there is native code");
    (Server::start_in(data, then).await, ids)
}

/// Its error, as that of a task which cannot go on.
fn host_fault(task: &Value) -> &str {
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(task["error"]["data"]["reason"], "host-fault", "{task}");
    task["error"]["message"].as_str().expect("it says why")
}

const JOURNALS: [&str; 5] = [
    "update task set base = 1 where key = KEY",
    "update task set segments = segments + 1 where key = KEY",
    "update task set segments = segments - 1 where key = KEY",
    "delete from segment where task = KEY and number = 0",
    "insert into segment select task, number + 1, epoch, first_call, last_call, frames, written_at \
     from segment where task = KEY order by number desc limit 1",
];

/// A row of which nothing can be made but one that has ended.
const NO_BASE: &str = "update task set base = 99 where key = KEY";

#[tokio::test]
async fn a_journal_that_is_not_whole_ends_its_task() {
    let (server, ids) = damaged("dice", &JOURNALS, Options::default()).await;
    let client = server.client();
    for (id, damage) in ids.iter().zip(JOURNALS) {
        answer(&client, id, "again", json!({ "again": true })).await;
        let task = client.until_ended(id).await;
        let message = host_fault(&task);
        assert!(message.contains("the journal "), "{damage}: {message}");
    }
    // Once for each, and not over and over.
    assert!(
        !server.errors().contains("tried again"),
        "{}",
        server.errors()
    );
}

#[tokio::test]
async fn a_task_whose_journal_is_not_whole_is_cancelled_all_the_same() {
    let (server, ids) = damaged(
        "dice",
        &[JOURNALS[1], JOURNALS[3], NO_BASE],
        Options::default(),
    )
    .await;
    let client = server.client();
    for id in &ids {
        cancel(&client, id).await;
        let task = client.until_ended(id).await;
        assert_eq!(task["status"], "cancelled", "{task}");
    }
}

#[tokio::test]
async fn a_component_that_the_store_has_not_any_more_ends_its_tasks() {
    let rows = [
        ("update component set bytes = x''", "are not those"),
        (
            "update component set bytes = cast(substr(bytes, 1, length(bytes) - 1) || x'77' as blob)",
            "are not those",
        ),
        ("delete from component", "has no component sha256:"),
    ];
    for (damage, says) in rows {
        let (server, ids) = damaged("ask-form", &[damage], Options::default()).await;
        let client = server.client();
        let person = json!({ "name": "Ada", "age": 36, "choice": "green" });
        answer(&client, &ids[0], "person", person).await;
        let task = client.until_ended(&ids[0]).await;
        let message = host_fault(&task);
        assert!(message.contains(says), "{damage}: {message}");
    }
}

#[tokio::test]
async fn a_component_that_the_store_has_lost_is_taken_from_its_file() {
    let damages = ["update component set bytes = x''"];
    // Answered while the file is still compiled.
    let then = Options {
        early: true,
        ..Options::with_guests(&["ask-form"])
    };
    let (server, ids) = damaged("ask-form", &damages, then).await;
    let client = server.client();
    let person = json!({ "name": "Ada", "age": 36, "choice": "green" });
    answer(&client, &ids[0], "person", person).await;
    let task = client.until_ended(&ids[0]).await;
    assert_eq!(task["status"], "completed", "{task}");
}

#[tokio::test]
async fn a_task_whose_row_takes_no_successor_ends_at_its_deadline() {
    let damage = format!("{NO_BASE}; update task set deadline_at = 1 where key = KEY");
    let (server, ids) = damaged("dice", &[&damage], Options::default()).await;
    let task = server.client().until_ended(&ids[0]).await;
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(task["error"]["data"]["reason"], "expired", "{task}");
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_in_nobodys_way() {
    let damages = [
        "update task set state = 'working', wake_at = 0, segments = -1 where key = KEY",
        "update task set version = version where key = KEY",
    ];
    let (server, ids) = damaged("dice", &damages, Options::default()).await;
    let client = server.client();
    let (_, error) = client.error("tasks/get", json!({ "taskId": ids[0] })).await;
    assert_eq!(error["data"]["reason"], "store-unavailable", "{error}");
    answer(&client, &ids[1], "again", json!({ "again": true })).await;
    client.until_ended(&ids[1]).await;
}

#[tokio::test]
async fn a_task_that_has_lost_what_it_printed_has_lost_nothing_else() {
    let damages = [
        "update output set body = x'00112233' where task = KEY",
        "update output set calls = -1 where task = KEY",
        "delete from output where task = KEY",
    ];
    let (server, ids) = damaged("dice", &damages, Options::default()).await;
    let client = server.client();
    for (id, damage) in ids.iter().zip(damages) {
        // It can be looked at.
        assert_eq!(shown(&server, id).await["status"], "input_required");
        answer(&client, id, "again", json!({ "again": false })).await;
        let task = client.until_ended(id).await;
        assert_eq!(task["status"], "completed", "{damage}: {task}");
        // And its past prints it again.
        let output = &shown(&server, id).await["output"];
        let stdout = output["stdout"].as_str().unwrap_or_default();
        assert!(stdout.starts_with("the dice are on the table"), "{output}");
    }
}

#[tokio::test]
async fn arguments_that_cannot_be_read_are_not_the_tools_fault() {
    let damages = [
        "update task set arguments = '{\"bet' where key = KEY",
        "update task set arguments = '[1, 2]' where key = KEY",
    ];
    let (server, ids) = damaged("dice", &damages, Options::default()).await;
    let client = server.client();
    for id in &ids {
        answer(&client, id, "again", json!({ "again": true })).await;
        let task = client.until_ended(id).await;
        assert_eq!(host_fault(&task), "its row has unreadable arguments");
    }
}
