//! Tasks that may be what brings the server down.

use std::time::{SystemTime, UNIX_EPOCH};

use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{SOON, cancel, shown, until_live};

/// Lets the server die once more, and gives back the task as the next one has it.
async fn die(server: &mut Server, id: &str) -> Value {
    server.kill().await;
    server.restart().await;
    shown(server, id).await
}

#[tokio::test]
async fn a_task_that_ran_at_four_deaths_is_set_aside_until_somebody_says_so() {
    // Nothing of a guest that only computes is recorded, so its run never comes further.
    let options = Options::with_guests(&["spin", "hello"])
        .set("limits.cpu_ms", 3_600_000)
        .set("journal_every_ms", 3_600_000);
    let mut server = Server::start(options).await;
    let id = server
        .client()
        .start("spin", json!({ "seconds": 3_000 }))
        .await;
    for death in 1..=4 {
        until_live(&server, 1).await;
        let task = die(&mut server, &id).await;
        assert_eq!(task["status"], "working", "{death}: {task}");
        assert_eq!(task["quarantined"], death == 4, "{death}: {task}");
    }
    // Seen by its client, and in nobody's way.
    let seen = server.client().task(&id).await;
    let message = seen["statusMessage"].as_str().unwrap();
    assert!(message.contains("longshore tasks resume"), "{message}");
    assert_eq!(server.figures().await["runs"]["liveStores"], 0);
    server
        .client()
        .call("hello", json!({ "name": "Ada" }))
        .await;

    let resumed = server
        .admin("POST", &format!("/v1/tasks/{id}/resume"), "{}")
        .await;
    assert_eq!(resumed.status, 200);
    until_live(&server, 1).await;
    let again = server
        .admin("POST", &format!("/v1/tasks/{id}/resume"), "{}")
        .await;
    assert_eq!(again.status, 409, "it runs");
    cancel(&server.client(), &id).await;
    assert_eq!(
        server.client().until_ended(&id).await["status"],
        "cancelled"
    );
}

#[tokio::test]
async fn clean_restarts_make_nobody_a_suspect() {
    let options = Options::with_guests(&["spin"]).set("limits.cpu_ms", 3_600_000);
    let mut server = Server::start(options).await;
    let id = server
        .client()
        .start("spin", json!({ "seconds": 3_000 }))
        .await;
    for _ in 0..6 {
        until_live(&server, 1).await;
        assert_eq!(server.terminate().await, Some(0), "{}", server.errors());
        server.restart().await;
    }
    wait::until("the task to go on", SOON, || async {
        let task = shown(&server, &id).await;
        assert_eq!(task["quarantined"], false, "{task}");
        (task["parked"] == false).then_some(())
    })
    .await;
    cancel(&server.client(), &id).await;
    server.client().until_ended(&id).await;
}

/// What is set aside still ends when it was to end, and for who does not want it any more.
#[tokio::test]
async fn a_task_that_was_set_aside_expires_and_is_cancelled() {
    let options = Options::with_guests(&["spin"]).set("limits.cpu_ms", 3_600_000);
    let mut server = Server::start(options).await;
    let client = server.client();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.start("spin", json!({ "seconds": 3_000 })).await);
    }
    server.kill().await;
    // As after four deaths. The first is over when it is found, the second while the server looks on.
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let soon = now.expect("it is later than 1970").as_millis() + 5_000;
    let db = Connection::open(server.data().join("longshore.db")).expect("it can be opened");
    db.execute_batch(&format!(
        "update task set stalls = 4, owner = null; \
         update task set deadline_at = 1 where key = (select min(key) from task); \
         update task set deadline_at = {soon} where key = (select min(key) + 1 from task);"
    ))
    .expect("it can be changed");
    drop(db);
    server.restart().await;
    let client = server.client();
    for id in &ids[..2] {
        let task = client.until_ended(id).await;
        assert_eq!(task["status"], "failed", "{task}");
        assert_eq!(task["error"]["data"]["reason"], "expired", "{task}");
    }
    let task = shown(&server, &ids[2]).await;
    assert_eq!(task["quarantined"], true, "{task}");
    cancel(&client, &ids[2]).await;
    let task = client.until_ended(&ids[2]).await;
    assert_eq!(task["status"], "cancelled", "{task}");
    assert_eq!(server.figures().await["runs"]["started"], 0);
}

/// Whoever comes further between the deaths is innocent, also if the process lives for less than it takes until its
/// journal is kept by itself.
#[tokio::test]
async fn a_task_that_comes_further_each_time_is_never_set_aside() {
    let an_hour = 3_600_000;
    let options = Options::with_guests(&["long-job"])
        .set("journal_every_ms", an_hour)
        .set("status_every_ms", an_hour);
    let mut server = Server::start(options).await;
    let job = json!({ "steps": 100_000, "step-ms": 20 });
    let id = server.client().start("long-job", job).await;
    let mut kept = 0;
    for death in 1..=6 {
        if death > 1 {
            kept = wait::until("it to come further", SOON, || async {
                let task = shown(&server, &id).await;
                let segments = task["journalSegments"].as_u64()?;
                (segments > kept).then_some(segments)
            })
            .await;
        }
        let task = die(&mut server, &id).await;
        assert_eq!(task["quarantined"], false, "{death}: {task}");
    }
    cancel(&server.client(), &id).await;
    server.client().until_ended(&id).await;
}

/// Who only waits while processes die is not what brings them down, however often that happens.
#[tokio::test]
async fn a_task_that_waits_at_each_death_is_never_set_aside() {
    let an_hour = 3_600_000;
    let options = Options::with_guests(&["sleep"])
        .set("journal_every_ms", an_hour)
        .set("park_from_ms", an_hour);
    let mut server = Server::start(options).await;
    let id = server
        .client()
        .start("sleep", json!({ "seconds": 3_000 }))
        .await;
    for death in 1..=6 {
        until_live(&server, 1).await;
        wait::until("it to wait", SOON, || async {
            let runs = &server.figures().await["runs"];
            (runs["replaying"] == 0).then_some(())
        })
        .await;
        let task = die(&mut server, &id).await;
        assert_eq!(task["quarantined"], false, "{death}: {task}");
    }
    cancel(&server.client(), &id).await;
    server.client().until_ended(&id).await;
}
