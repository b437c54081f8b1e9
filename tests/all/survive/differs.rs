//! A task whose component does something else when it is brought back.

use longshore_tests::process::{Options, Server};
use rusqlite::Connection;
use serde_json::json;

use super::{answer, until_parked};

#[tokio::test]
async fn a_task_that_does_something_else_ends_and_names_the_first_call() {
    let options = Options::with_guests(&["ask-form", "approve"]).set("warm", 0);
    let mut server = Server::start(options).await;
    let id = server.client().start("ask-form", json!({})).await;
    let other = server
        .client()
        .start("approve", json!({ "what": "it" }))
        .await;
    for id in [&id, &other] {
        server.client().until_status(id, "input_required").await;
        until_parked(&server, id).await;
    }
    server.kill().await;
    // As if the component were not the same any more, though it has the same name for whoever looks.
    let database = Connection::open(server.data().join("longshore.db")).unwrap();
    let changed = database
        .execute(
            "update task set (tool, digest, arguments) = (
                 select tool, digest, arguments from task where tool = 'approve')
             where tool = 'ask-form'",
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    drop(database);
    server.restart().await;
    let client = server.client();
    let person = json!({ "name": "Ada", "age": 36, "choice": "green" });
    answer(&client, &id, "person", person).await;
    let task = client.until_ended(&id).await;
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(task["error"]["data"]["reason"], "nondeterminism", "{task}");
    let message = task["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("call 2 (longshore:tool/task.ask)")
            && message.contains("it asks something else"),
        "{message}"
    );
    // Nobody else is touched by it.
    answer(&client, &other, "approve", json!({ "approve": true })).await;
    let task = client.until_ended(&other).await;
    assert_eq!(task["status"], "completed", "{task}");
}
