//! Tasks that outlive the process that runs them: killed, stopped, or parked, they go on where they stood.

mod crashes;
mod damaged;
mod differs;
mod history;
mod kills;
mod many;
mod otherwise;
mod parked;
mod points;
mod spinning;
mod suspects;
mod unrecorded;
mod used;
mod waiting;

use std::time::Duration;

use longshore_tests::mcp::Client;
use longshore_tests::process::Server;
use longshore_tests::wait;
use serde_json::{Value, json};

/// Longer than any of this takes on a slow machine.
const SOON: Duration = Duration::from_secs(60);

async fn answer(client: &Client, id: &str, key: &str, content: Value) {
    let responses = json!({ key: { "action": "accept", "content": content } });
    let params = json!({ "taskId": id, "inputResponses": responses });
    client.result("tasks/update", params).await;
}

async fn cancel(client: &Client, id: &str) {
    client.result("tasks/cancel", json!({ "taskId": id })).await;
}

/// What the admin API knows of a task.
async fn shown(server: &Server, id: &str) -> Value {
    server
        .admin("GET", &format!("/v1/tasks/{id}"), "")
        .await
        .json()
}

/// What a task has logged, in order.
async fn log(server: &Server, id: &str) -> Vec<String> {
    shown(server, id).await["output"]["log"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|line| line["message"].as_str().map(str::to_owned))
        .collect()
}

async fn until_parked(server: &Server, id: &str) {
    wait::until("a task to be parked", SOON, || async {
        let task = shown(server, id).await;
        (task["parked"] == true).then_some(())
    })
    .await;
    until_live(server, 0).await;
}

async fn until_live(server: &Server, count: u64) {
    server.until_live(count, SOON).await;
}
