//! Tasks that wait without an instance.

use longshore_tests::process::{Options, Server};
use serde_json::json;

use super::{answer, cancel, log, shown, until_live, until_parked};
use crate::survive::SOON;
use longshore_tests::wait;

/// Nothing keeps its memory while it waits.
fn cold(names: &[&str]) -> Options {
    Options::with_guests(names).set("warm", 0)
}

/// Everything keeps its memory while it waits.
fn warm(names: &[&str]) -> Options {
    Options::with_guests(names).set("warm_ms", 3_600_000)
}

#[tokio::test]
async fn a_parked_question_is_answered_as_if_nothing_had_happened() {
    let server = Server::start(cold(&["dice"])).await;
    let client = server.client();
    let id = client.start("dice", json!({})).await;
    client.until_status(&id, "input_required").await;
    until_parked(&server, &id).await;
    answer(&client, &id, "bet", json!({ "bet": 3 })).await;
    client.until_status(&id, "input_required").await;
    until_parked(&server, &id).await;
    answer(&client, &id, "again", json!({ "again": true })).await;
    let task = client.until_ended(&id).await;
    assert_eq!(task["status"], "completed", "{task}");
    // What it printed on the way, in three instances, is all there and once.
    let output = &shown(&server, &id).await["output"];
    let stdout = output["stdout"].as_str().unwrap();
    assert_eq!(
        stdout.matches("the dice are on the table").count(),
        1,
        "{stdout}"
    );
    assert_eq!(stdout.matches("rolled").count(), 2, "{stdout}");
    assert_eq!(output["stderr"], "nobody has bet yet\n");
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    let seen: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!((&seen["bet"], &seen["again"]), (&json!(3), &json!(true)));
}

#[tokio::test]
async fn many_wait_for_answers_though_few_may_run() {
    let server = Server::start(cold(&["ask-form"]).set("running", 2)).await;
    let client = server.client();
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(client.start("ask-form", json!({})).await);
    }
    for id in &ids {
        client.until_status(id, "input_required").await;
    }
    until_live(&server, 0).await;
    assert_eq!(server.figures().await["runs"]["parked"], 20);
    for id in &ids {
        let person = json!({ "name": "Ada", "age": 36, "choice": "green" });
        answer(&client, id, "person", person).await;
    }
    for id in &ids {
        assert_eq!(client.until_ended(id).await["status"], "completed");
    }
    // Nothing is looked after any more.
    assert_eq!(server.figures().await["runs"]["parked"], 0);
}

#[tokio::test]
async fn a_long_sleep_is_parked_and_goes_on_by_itself() {
    let server = Server::start(cold(&["sleep"]).set("park_from_ms", 0)).await;
    let client = server.client();
    let id = client.start("sleep", json!({ "seconds": 4 })).await;
    until_parked(&server, &id).await;
    assert!(shown(&server, &id).await["wakeAt"].is_string());
    let task = client.until_ended(&id).await;
    assert_eq!(task["status"], "completed", "{task}");
}

/// What was made is taken back when its call is cancelled: said once, whatever became of the process.
#[tokio::test]
async fn a_cancelled_question_is_cleaned_up_after_once() {
    let both = ["made", "removed"];
    for (name, options) in [("warm", warm(&["cleanup"])), ("parked", cold(&["cleanup"]))] {
        let server = Server::start(options).await;
        let client = server.client();
        let id = client.start("cleanup", json!({})).await;
        client.until_status(&id, "input_required").await;
        if name == "parked" {
            until_parked(&server, &id).await;
        }
        cancel(&client, &id).await;
        let task = client.until_ended(&id).await;
        assert_eq!(task["status"], "cancelled", "{name}: {task}");
        assert_eq!(log(&server, &id).await, both, "{name}");
    }
    let mut server = Server::start(warm(&["cleanup"])).await;
    let id = server.client().start("cleanup", json!({})).await;
    server.client().until_status(&id, "input_required").await;
    server.kill().await;
    server.restart().await;
    cancel(&server.client(), &id).await;
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["status"], "cancelled", "killed: {task}");
    assert_eq!(log(&server, &id).await, both, "killed");
    // And still after another process has nothing to do with it but to show it.
    server.terminate().await;
    server.restart().await;
    assert_eq!(log(&server, &id).await, both, "shown by a later process");
}

#[tokio::test]
async fn a_parked_task_expires() {
    let server = Server::start(cold(&["ask-form"]).set("deadline_ms", 1_500)).await;
    let client = server.client();
    let id = client.start("ask-form", json!({})).await;
    until_parked(&server, &id).await;
    let task = client.until_ended(&id).await;
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(task["error"]["data"]["reason"], "expired", "{task}");
}

#[tokio::test]
async fn an_answer_that_races_with_parking_is_used() {
    let server = Server::start(Options::with_guests(&["dice"]).set("warm_ms", 20)).await;
    let client = server.client();
    // Around the moment of parking: before, within and after.
    for pause in (0..40).step_by(4) {
        let id = client.start("dice", json!({})).await;
        client.until_status(&id, "input_required").await;
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        answer(&client, &id, "bet", json!({ "bet": 1 })).await;
        wait::until("the second question", SOON, || async {
            let task = client.task(&id).await;
            task["inputRequests"].get("again").is_some().then_some(())
        })
        .await;
        answer(&client, &id, "again", json!({ "again": false })).await;
        let task = client.until_ended(&id).await;
        assert_eq!(task["status"], "completed", "{pause} ms: {task}");
    }
}
