//! Tasks that may be what brings the server down.

use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::json;

use super::{SOON, cancel, shown, until_live};

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
        server.kill().await;
        server.restart().await;
        let task = shown(&server, &id).await;
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
