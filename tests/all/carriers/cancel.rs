//! Cancelled tasks: those that look, those that do not, those that wait for an answer, those that have ended.

use std::time::{Duration, Instant};

use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::{answer, cancel, until_live};

/// A grace that no test waits for: what ends sooner ended by itself, or was stopped without one.
const LONG_GRACE_MS: u64 = 600_000;
/// Far less than that grace, and far more than a slow machine needs.
const SOON: Duration = Duration::from_secs(10);

async fn cancelled_within(server: &Server, tool: &str, arguments: Value) -> Duration {
    let client = server.client();
    let id = client.start(tool, arguments).await;
    until_live(server, 1).await;
    let asked = Instant::now();
    cancel(&client, &id).await;
    let task = client.until_ended(&id).await;
    let took = asked.elapsed();
    assert_eq!(task["status"], "cancelled", "{task}");
    assert!(
        task.get("result").is_none() && task.get("error").is_none(),
        "{task}"
    );
    until_live(server, 0).await;
    took
}

#[tokio::test]
async fn what_looks_ends_by_itself_and_what_does_not_is_stopped() {
    let options =
        Options::with_guests(&["long-job", "sleep", "spin"]).set("grace_ms", LONG_GRACE_MS);
    let server = Server::start(options).await;
    let took = cancelled_within(
        &server,
        "long-job",
        json!({ "steps": 1_000_000, "step-ms": 1 }),
    )
    .await;
    assert!(took < SOON, "long-job took {took:?}");
    let took = cancelled_within(&server, "sleep", json!({ "seconds": 600 })).await;
    assert!(took < SOON, "a cancel did not wake the sleep: {took:?}");
    let took = cancelled_within(&server, "spin", json!({ "seconds": 25 })).await;
    assert!(
        took < SOON,
        "a guest that looks at nothing had a grace: {took:?}"
    );
}

#[tokio::test]
async fn what_looks_and_goes_on_is_stopped_after_its_grace() {
    let options = Options::with_guests(&["limits"])
        .set("grace_ms", 1_000)
        .set("inline_budget_ms", 50);
    let server = Server::start(options).await;
    let took = cancelled_within(&server, "limits", json!({ "what": "stubborn" })).await;
    assert!(took >= Duration::from_secs(1), "no grace: {took:?}");
    assert!(took < SOON, "{took:?}");
}

#[tokio::test]
async fn a_finished_task_stays_as_it_is() {
    let server = Server::start(Options::with_guests(&["modes", "sleep"])).await;
    let client = server.client();
    let completed = client.start("modes-always", json!({ "ms": 0 })).await;
    let cancelled = client.start("sleep", json!({ "seconds": 600 })).await;
    cancel(&client, &cancelled).await;
    for (id, status) in [(completed, "completed"), (cancelled, "cancelled")] {
        let before = client.until_ended(&id).await;
        assert_eq!(before["status"], status);
        cancel(&client, &id).await;
        answer(&client, &id, json!({ "person": { "action": "decline" } })).await;
        assert_eq!(client.task(&id).await, before);
    }
}

#[tokio::test]
async fn a_question_goes_with_its_task() {
    let server =
        Server::start(Options::with_guests(&["ask-form"]).set("grace_ms", LONG_GRACE_MS)).await;
    let client = server.client();
    let id = client.start("ask-form", json!({})).await;
    let asking = client.until_status(&id, "input_required").await;
    assert!(asking["inputRequests"].get("person").is_some(), "{asking}");

    cancel(&client, &id).await;
    let task = client.task(&id).await;
    assert!(
        task.get("inputRequests").is_none(),
        "still asked at the very next look: {task}"
    );
    // Too late, and harmless: whoever is filling in the form cannot know.
    let person =
        json!({ "action": "accept", "content": { "name": "Ada", "age": 36, "choice": "green" } });
    answer(&client, &id, json!({ "person": person })).await;
    let task = client.until_ended(&id).await;
    assert_eq!(task["status"], "cancelled", "{task}");
    answer(&client, &id, json!({ "person": person })).await;
    assert_eq!(client.task(&id).await, task);
    until_live(&server, 0).await;
}
