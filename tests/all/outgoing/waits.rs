//! Waiting for a state elsewhere: by the host, whatever becomes of the run and of its server.

use std::time::Duration;

use super::*;

/// A tool that watches, which may look often.
async fn watching(target: &Target, options: Options) -> Server {
    let options = options.set("poll_least_ms", 20).set("warm", 0);
    serving("watch", options, rule(target)).await
}

/// The target counts its requests and says so in each answer.
fn until(target: &Target, request: usize) -> Value {
    json!({ "url": url(target), "pointer": "/request", "equals": request.to_string(), "every_ms": 1 })
}

async fn result_of(server: &Server, id: &str) -> Value {
    let task = server.client().until_ended(id).await;
    assert_eq!(task["status"], "completed", "{task}");
    task["result"]["structuredContent"].clone()
}

async fn records(server: &Server, id: &str) -> Vec<String> {
    let path = format!("/v1/tasks/{id}/journal");
    let journal = server.admin("GET", &path, "").await.json();
    let segments = journal["segments"].as_array().expect("a list").iter();
    let records = segments.flat_map(|segment| segment["records"].as_array().expect("a list"));
    let words = records.map(|record| record["what"].as_str().expect("a word").to_owned());
    // How often it looks at the clock is the guest's own business.
    words.filter(|what| what != "clock").collect()
}

#[tokio::test]
async fn it_is_looked_for_again_and_again_and_kept_once() {
    let target = Target::start().await;
    let server = watching(&target, Options::default()).await;
    let mut kept = Vec::new();
    for met in [1, 9] {
        let wanted = until(&target, target.seen().len() + met);
        let id = server.client().start("watch", wanted).await;
        let seen = result_of(&server, &id).await;
        assert_eq!(seen["status"], 200);
        kept.push(records(&server, &id).await);
    }
    assert_eq!(target.seen().len(), 10);
    // However often it was looked for.
    assert_eq!(kept[0], kept[1]);
    assert_eq!(
        kept[0]
            .iter()
            .filter(|what| *what == "wait for others")
            .count(),
        1
    );
    let seen = target.seen();
    assert!(seen.iter().all(|seen| seen.method == "GET"), "{seen:?}");
}

#[tokio::test]
async fn nobody_is_there_meanwhile_and_a_dead_server_changes_nothing() {
    let target = Target::start().await;
    let mut server = watching(&target, Options::default()).await;
    target.hold();
    let id = server.client().start("watch", until(&target, 3)).await;
    target.until(1).await;
    // It works, and nobody is asked; its instance is gone.
    server.until_live(0, Duration::from_secs(30)).await;
    let task = server.client().task(&id).await;
    assert_eq!(task["status"], "working", "{task}");
    let path = format!("/v1/tasks/{id}");
    let shown = server.admin("GET", &path, "").await.json();
    let waits = shown["waitsFor"][0].as_str().expect("it waits");
    assert!(waits.starts_with("GET http://127.0.0.1:"), "{shown}");
    server.kill().await;
    server.restart().await;
    // The answer to the first went to a dead process.
    target.until(2).await;
    target.release();
    let seen = result_of(&server, &id).await;
    assert_eq!(seen["text"], "{\"request\":3}");
}

#[tokio::test]
async fn a_change_while_nobody_was_there_is_a_change() {
    let target = Target::start().await;
    target.is_now("as it was");
    let mut server = watching(&target, Options::default()).await;
    let state = format!("http://{}/state", target.address);
    let wanted = json!({ "url": state, "every_ms": 1 });
    let id = server.client().start("watch", wanted).await;
    // What it was at first is kept before it is looked for a change.
    target.until(3).await;
    server.kill().await;
    target.is_now("another");
    server.restart().await;
    assert_eq!(result_of(&server, &id).await["text"], "another");
}

#[tokio::test]
async fn it_ends_when_it_is_given_up_cancelled_or_over() {
    let target = Target::start().await;
    let server = watching(&target, Options::default()).await;
    let client = server.client();
    let never = |more: Value| {
        let mut wanted = until(&target, 1_000_000);
        wanted
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("one").clone());
        wanted
    };
    let id = client
        .start("watch", never(json!({ "give_up_ms": 200 })))
        .await;
    let task = client.until_ended(&id).await;
    let text = &task["result"]["content"][0]["text"];
    assert_eq!(
        (&task["result"]["isError"], text.as_str()),
        (&json!(true), Some("it did not come in time")),
        "{task}"
    );

    let id = client.start("watch", never(json!({}))).await;
    let begun = target.seen().len();
    target.until(begun + 2).await;
    client.result("tasks/cancel", json!({ "taskId": id })).await;
    let task = client.until_ended(&id).await;
    assert_eq!(task["status"], "cancelled", "{task}");

    // Nobody whose client cannot be given a task waits any less.
    let held = Client::plain(server.address)
        .call("watch", until(&target, target.seen().len() + 3))
        .await;
    assert_eq!(held["structuredContent"]["status"], 200, "{held}");
}

#[tokio::test]
async fn nothing_is_looked_for_that_the_operator_does_not_let_be_sent() {
    let target = Target::start().await;
    let mut other = rule(&target);
    other["port"] = json!(1);
    let options = Options::default().set("poll_least_ms", 20);
    let server = serving("watch", options, other).await;
    let denied = says(&server.client(), "watch", until(&target, 1)).await;
    assert!(denied.contains("not sent"), "{denied}");
    assert_eq!(target.seen().len(), 0);
}
