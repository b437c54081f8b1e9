//! A request whose outcome nobody knows: what was chosen is done, and nothing is guessed.

use longshore_tests::wait;
use std::time::Duration;

use super::*;

const SOON: Duration = Duration::from_secs(60);

/// A task whose first order is in doubt, after a kill.
async fn in_doubt(rule: fn(&Target) -> Value, arguments: &Value) -> (Target, Server, String) {
    let target = Target::start().await;
    let mut server = serving("order", Options::default(), rule(&target)).await;
    target.hold();
    let mut all = json!({ "n": 1, "url": url(&target) });
    for (name, value) in arguments.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    let id = server.client().start("order", all).await;
    target.until(1).await;
    server.kill().await;
    target.release();
    server.restart().await;
    (target, server, id)
}

async fn until_asked(client: &Client, id: &str) -> (String, String) {
    wait::until("what is in doubt to be asked", SOON, || async {
        let task = client.task(id).await;
        let (key, asked) = task["inputRequests"].as_object()?.iter().next()?;
        let message = asked["params"]["message"].as_str()?;
        Some((key.clone(), message.to_owned()))
    })
    .await
}

async fn choose(client: &Client, id: &str, key: &str, answer: Value) {
    let responses = json!({ key: answer });
    let params = json!({ "taskId": id, "inputResponses": responses });
    client.result("tasks/update", params).await;
}

fn chosen(choice: &str) -> Value {
    json!({ "action": "accept", "content": { "choice": choice } })
}

#[tokio::test]
async fn whoever_called_is_asked_and_each_choice_does_what_it_says() {
    let counted = |accepted: u32, unknown: u32| json!({ "accepted": accepted, "refused": 0, "unknown": unknown });
    let cases = [
        (chosen("send-again"), Ok(counted(1, 0)), 2),
        (chosen("tell-the-tool"), Ok(counted(0, 1)), 1),
        (chosen("end-the-task"), Err("in-doubt"), 1),
        (json!({ "action": "decline" }), Err("in-doubt"), 1),
    ];
    for (answer, expected, sent) in cases {
        let (target, mut server, id) = in_doubt(rule, &json!({})).await;
        let (key, message) = until_asked(&server.client(), &id).await;
        let names = format!("POST http://{}/orders", target.address);
        assert!(message.contains(&names), "{message}");
        // What stands behind the path may be private.
        assert!(!message.contains("from=here"), "{message}");
        // The question outlives the server as any other does.
        server.kill().await;
        server.restart().await;
        let client = server.client();
        assert_eq!(until_asked(&client, &id).await.0, key);
        choose(&client, &id, &key, answer.clone()).await;
        let task = client.until_ended(&id).await;
        match expected {
            Ok(counted) => assert_eq!(
                task["result"]["structuredContent"], counted,
                "{answer}: {task}"
            ),
            Err(reason) => {
                assert_eq!(task["error"]["data"]["reason"], reason, "{answer}: {task}");
            }
        }
        assert_eq!(target.seen().len(), sent, "{answer}");
    }
}

#[tokio::test]
async fn a_tool_that_tries_three_times_still_orders_once() {
    // Whoever does not choose is asked, or ends; the tool is told of no failure that it could try again after.
    let fails = |target: &Target| rule_with(target, "fail");
    let (target, server, id) = in_doubt(fails, &json!({ "tries": 3 })).await;
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["error"]["data"]["reason"], "in-doubt", "{task}");
    let message = task["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("/orders"), "{message}");
    assert_eq!(target.seen().len(), 1);
    let tells = |target: &Target| rule_with(target, "tell");
    let (target, server, id) = in_doubt(tells, &json!({ "tries": 3 })).await;
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["result"]["structuredContent"]["unknown"], 1, "{task}");
    assert_eq!(target.seen().len(), 1);
}

#[tokio::test]
async fn it_is_sent_again_only_where_that_is_said_and_under_one_key() {
    let resends = |target: &Target| rule_with(target, "resend");
    let (target, server, id) = in_doubt(resends, &json!({ "n": 2 })).await;
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["result"]["structuredContent"]["accepted"], 2, "{task}");
    let seen = target.seen();
    assert_eq!(seen.len(), 3);
    let keys: Vec<Vec<&str>> = seen
        .iter()
        .map(|seen| seen.field("idempotency-key"))
        .collect();
    assert_eq!(keys[0].len(), 1);
    assert!(keys[0][0].starts_with(&*id), "{keys:?}");
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2]);
}

#[tokio::test]
async fn a_read_can_be_taken_for_a_write() {
    let writes = |target: &Target| {
        let mut rule = rule_with(target, "fail");
        rule["treat_as_write"] = true.into();
        rule
    };
    let target = Target::start().await;
    let options = Options::default().set("inline_budget_ms", 0);
    let mut server = serving("fetch", options, writes(&target)).await;
    target.hold();
    let id = server
        .client()
        .start("fetch", json!({ "url": url(&target) }))
        .await;
    target.until(1).await;
    server.kill().await;
    target.release();
    server.restart().await;
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["error"]["data"]["reason"], "in-doubt", "{task}");
    assert_eq!(target.seen().len(), 1);
}
