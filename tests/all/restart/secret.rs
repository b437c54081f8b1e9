//! The secret of a data directory and the tasks that need it.

use std::path::Path;
use std::sync::Arc;

use longshore_tests::process::{Options, Server};
use serde_json::json;
use tempfile::TempDir;

use super::data::refuses;

fn guests() -> Options {
    Options::with_guests(&["dice"]).set("warm", 0)
}

/// A data directory in which two tasks wait for an answer.
async fn with_tasks() -> (Arc<TempDir>, Vec<String>) {
    let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let mut server = Server::start_in(Arc::clone(&data), guests()).await;
    let client = server.client();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = client.start("dice", json!({})).await;
        client.until_status(&id, "input_required").await;
        ids.push(id);
    }
    server.kill().await;
    (data, ids)
}

/// A way to lose a secret, and what is said of it.
type Way = (&'static str, fn(&Path), &'static str);

const WAYS: [Way; 3] = [
    (
        "missing",
        |file| std::fs::remove_file(file).expect("there is one"),
        "is missing",
    ),
    (
        "flipped",
        |file| {
            let mut bytes = std::fs::read(file).expect("it can be read");
            bytes[0] ^= 1;
            std::fs::write(file, bytes).expect("it can be written");
        },
        "is another secret",
    ),
    (
        "cut off",
        |file| std::fs::write(file, "short").expect("it can be written"),
        "does not hold 32 bytes",
    ),
];

async fn answer(server: &Server, id: &str) {
    let responses = json!({ "bet": { "action": "accept", "content": { "bet": 3 } } });
    let params = json!({ "taskId": id, "inputResponses": responses });
    server.client().result("tasks/update", params).await;
}

#[tokio::test]
async fn a_secret_that_is_not_that_of_its_tasks_is_refused_until_it_is_restored() {
    let (data, ids) = with_tasks().await;
    let file = data.path().join("secret");
    let secret = std::fs::read(&file).expect("there is one");
    for (way, lose, says) in WAYS {
        lose(&file);
        for _ in 0..2 {
            let said = refuses(data.path()).await;
            assert!(said.contains(says), "{way}: {said}");
            assert!(said.contains("restore it"), "{way}: {said}");
            if says != WAYS[2].2 {
                assert!(said.contains("2 unfinished tasks"), "{way}: {said}");
                assert!(said.contains("--give-up-sealed"), "{way}: {said}");
            }
        }
        std::fs::write(&file, &secret).expect("it can be written");
    }
    let server = Server::start_in(data, guests()).await;
    for id in &ids {
        answer(&server, id).await;
        server.client().until_status(id, "input_required").await;
    }
}

#[tokio::test]
async fn tasks_of_a_lost_secret_are_given_up_by_who_says_so() {
    let (data, ids) = with_tasks().await;
    std::fs::remove_file(data.path().join("secret")).expect("there is one");
    refuses(data.path()).await;
    let mut gives_up = guests();
    gives_up.arguments.push("--give-up-sealed".to_owned());
    let mut server = Server::start_in(Arc::clone(&data), gives_up).await;
    for id in &ids {
        let task = server.client().task(id).await;
        assert_eq!(task["status"], "failed", "{task}");
        assert_eq!(task["error"]["data"]["reason"], "interrupted", "{task}");
        assert!(server.errors().contains(id), "{}", server.errors());
    }
    let id = server.client().start("dice", json!({})).await;
    server.client().until_status(&id, "input_required").await;
    server.kill().await;
    // The new secret is the one from now on; who says so with it gives up nothing.
    let mut again = guests();
    again.arguments.push("--give-up-sealed".to_owned());
    let server = Server::start_in(data, again).await;
    answer(&server, &id).await;
    server.client().until_status(&id, "input_required").await;
}

#[tokio::test]
async fn a_secret_that_no_task_needs_may_be_lost() {
    let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let file = data.path().join("secret");
    for (way, lose, _) in &WAYS[..2] {
        let mut server = Server::start_in(Arc::clone(&data), guests()).await;
        server.terminate().await;
        lose(&file);
        let mut server = Server::start_in(Arc::clone(&data), guests()).await;
        let client = server.client();
        let id = client.start("dice", json!({})).await;
        client.until_status(&id, "input_required").await;
        server.kill().await;
        let secret = std::fs::read(&file).expect("there is one");
        lose(&file);
        refuses(data.path()).await;
        std::fs::write(&file, secret).expect("it can be written");
        let mut server = Server::start_in(Arc::clone(&data), guests()).await;
        answer(&server, &id).await;
        server.client().until_status(&id, "input_required").await;
        let client = server.client();
        client.result("tasks/cancel", json!({ "taskId": id })).await;
        let task = client.until_ended(&id).await;
        assert_eq!(task["status"], "cancelled", "{way}: {task}");
        server.terminate().await;
    }
}

/// As it is after an upgrade from a version that noted nothing.
#[tokio::test]
async fn a_database_that_knows_no_secret_learns_it() {
    let (data, ids) = with_tasks().await;
    let db =
        rusqlite::Connection::open(data.path().join("longshore.db")).expect("it can be opened");
    db.execute("delete from secret", []).expect("it is SQL");
    drop(db);
    let mut server = Server::start_in(Arc::clone(&data), guests()).await;
    answer(&server, &ids[0]).await;
    server
        .client()
        .until_status(&ids[0], "input_required")
        .await;
    server.kill().await;
    WAYS[1].1(&data.path().join("secret"));
    let said = refuses(data.path()).await;
    assert!(said.contains("is another secret"), "{said}");
}
