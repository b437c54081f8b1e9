//! Answers: in parts, wrong, to nothing, and twice.

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::{answer, text};

fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// The keys that a task asks for now.
fn asked(task: &Value) -> Vec<&str> {
    let requests = task["inputRequests"].as_object();
    requests
        .into_iter()
        .flat_map(|requests| requests.keys())
        .map(String::as_str)
        .collect()
}

/// Answers that are refused: -32602 that names the key, and nothing of it is kept.
async fn refused(client: &Client, id: &str, responses: Value, key: &str) {
    let before = client.task(id).await;
    let params = json!({ "taskId": id, "inputResponses": responses });
    let (_, error) = client.error("tasks/update", params).await;
    assert_eq!(error["code"], -32602, "{error}");
    assert!(
        error["message"]
            .as_str()
            .expect("a message")
            .contains(&format!("`{key}`")),
        "{error}"
    );
    assert_eq!(client.task(id).await, before, "after {responses}");
}

#[tokio::test]
async fn answers_may_come_one_by_one_and_the_first_counts() {
    let server = Server::start(Options::with_guests(&["ask-two"])).await;
    let client = server.client();
    let id = client.start("ask-two", json!({})).await;
    let task = client.until_status(&id, "input_required").await;
    assert_eq!(asked(&task).len(), 2, "{task}");
    for (key, kind) in [("name", "string"), ("confirm", "boolean")] {
        let request = &task["inputRequests"][key];
        assert_eq!(request["method"], "elicitation/create", "{request}");
        assert_eq!(
            request["params"]["requestedSchema"]["properties"][key]["type"], kind,
            "{request}"
        );
    }

    answer(
        &client,
        &id,
        json!({ "name": accept(&json!({ "name": "Ada" })) }),
    )
    .await;
    let task = client.task(&id).await;
    assert_eq!(task["status"], "input_required");
    assert_eq!(asked(&task), ["confirm"], "gone at the very next look");

    // A second answer to the same key, whatever it looks like.
    for late in [
        accept(&json!({ "name": "Grace" })),
        json!({ "action": "decline" }),
        json!(17),
    ] {
        answer(&client, &id, json!({ "name": late })).await;
        assert_eq!(client.task(&id).await, task);
    }
    answer(
        &client,
        &id,
        json!({ "name": json!(17), "confirm": accept(&json!({ "confirm": false })) }),
    )
    .await;
    let task = client.until_ended(&id).await;
    assert_eq!(
        text(&task["result"]),
        r#"name: "Ada", confirm: false"#,
        "{task}"
    );
    assert!(task.get("inputRequests").is_none(), "{task}");
}

#[tokio::test]
async fn a_wrong_answer_is_refused_and_leaves_the_question_open() {
    let server = Server::start(Options::with_guests(&["ask-form", "ask-two"])).await;
    let client = server.client();
    let id = client.start("ask-form", json!({})).await;
    client.until_status(&id, "input_required").await;
    let person = |age: Value| json!({ "name": "Ada", "age": age, "choice": "green" });
    let wrong = [
        accept(&person(json!("x"))),
        accept(&person(json!(200))),
        accept(&person(json!(36.5))),
        accept(&json!({ "name": "Ada", "age": 36 })),
        accept(&json!({ "name": "Ada", "age": 36, "choice": "pink" })),
        json!({ "action": "accept" }),
        json!({ "action": "maybe" }),
        json!({ "content": person(json!(36)) }),
        json!("Ada"),
        Value::Null,
    ];
    for answer in wrong {
        refused(&client, &id, json!({ "person": answer }), "person").await;
    }
    answer(
        &client,
        &id,
        json!({ "person": accept(&person(json!(36))) }),
    )
    .await;
    assert_eq!(
        text(&client.until_ended(&id).await["result"]),
        "Ada is 36 and chose green"
    );

    // One good and one bad: nothing is kept of either.
    let id = client.start("ask-two", json!({})).await;
    client.until_status(&id, "input_required").await;
    let good = accept(&json!({ "name": "Grace" }));
    refused(
        &client,
        &id,
        json!({ "name": good, "confirm": accept(&json!({ "confirm": "yes" })) }),
        "confirm",
    )
    .await;
    refused(
        &client,
        &id,
        json!({ "confirm": 1, "name": good }),
        "confirm",
    )
    .await;
    let answers = json!({ "name": accept(&json!({ "name": "Ada" })), "confirm": accept(&json!({ "confirm": true })) });
    answer(&client, &id, answers).await;
    assert_eq!(
        text(&client.until_ended(&id).await["result"]),
        r#"name: "Ada", confirm: true"#
    );
}

#[tokio::test]
async fn a_key_that_nobody_asked_for_is_ignored() {
    let server = Server::start(Options::with_guests(&["ask-two"])).await;
    let client = server.client();
    let id = client.start("ask-two", json!({})).await;
    let task = client.until_status(&id, "input_required").await;
    answer(
        &client,
        &id,
        json!({ "nobody": { "action": "accept", "content": {} }, "": 1 }),
    )
    .await;
    answer(&client, &id, json!({})).await;
    assert_eq!(client.task(&id).await, task);
    // Not even what is wrong with it matters, nor does it keep what is right from being taken.
    answer(
        &client,
        &id,
        json!({ "nobody": null, "name": { "action": "decline" } }),
    )
    .await;
    assert_eq!(asked(&client.task(&id).await), ["confirm"]);
    answer(&client, &id, json!({ "confirm": { "action": "cancel" } })).await;
    assert_eq!(
        text(&client.until_ended(&id).await["result"]),
        "name was declined, confirm was closed"
    );
}
