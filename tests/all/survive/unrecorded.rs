//! Runs that were recorded, on a server that records none of its own.

use std::sync::Arc;

use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::json;

use super::{SOON, answer, until_parked};

fn guests() -> Options {
    Options::with_guests(&["dice"]).set("warm", 0)
}

/// The dice look at the clock and at random numbers on both sides of each question.
#[tokio::test]
async fn a_run_that_was_recorded_goes_on_so_whatever_is_said_of_new_ones() {
    let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let mut server = Server::start_in(Arc::clone(&data), guests()).await;
    let id = server.client().start("dice", json!({})).await;
    server.client().until_status(&id, "input_required").await;
    until_parked(&server, &id).await;
    server.kill().await;

    let unrecorded = guests().set("durable", false);
    let mut server = Server::start_in(Arc::clone(&data), unrecorded).await;
    let client = server.client();
    answer(&client, &id, "bet", json!({ "bet": 3 })).await;
    wait::until("the second question", SOON, || async {
        let task = client.task(&id).await;
        assert_ne!(task["status"], "failed", "{task}");
        task["inputRequests"].get("again").is_some().then_some(())
    })
    .await;
    // One that began here is lost, as was said.
    let own = client.start("dice", json!({})).await;
    client.until_status(&own, "input_required").await;
    server.kill().await;

    let server = Server::start_in(data, guests()).await;
    let client = server.client();
    answer(&client, &id, "again", json!({ "again": true })).await;
    let task = client.until_ended(&id).await;
    assert_eq!(task["status"], "completed", "{task}");
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    let seen: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!((&seen["bet"], &seen["again"]), (&json!(3), &json!(true)));
    let own = client.task(&own).await;
    assert_eq!(own["error"]["data"]["reason"], "interrupted", "{own}");
}
