//! A server that is killed while a request that changes something is under way.

use super::*;

/// Kills between the time at which a request was sent and the one at which its outcome was known.
const KILLS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_often_the_server_dies_nothing_is_ordered_twice() {
    let target = Target::start().await;
    let mut server = serving("order", Options::default(), rule_with(&target, "tell")).await;
    target.hold();
    let orders = KILLS + 2;
    let arguments = json!({ "n": orders, "url": url(&target) });
    let id = server.client().start("order", arguments).await;
    for kill in 1..=KILLS {
        target.until(kill).await;
        server.kill().await;
        assert_eq!(target.seen().len(), kill);
        server.restart().await;
    }
    target.release();
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["status"], "completed", "{task}");
    let counted = &task["result"]["structuredContent"];
    let expected = json!({ "accepted": 2, "refused": 0, "unknown": KILLS });
    assert_eq!(*counted, expected);
    let bodies: Vec<String> = target.seen().into_iter().map(|seen| seen.body).collect();
    let each: Vec<String> = (1..=orders)
        .map(|thing| format!("{{\"thing\":{thing}}}"))
        .collect();
    assert_eq!(bodies, each);
    println!("{KILLS} kills between a request and its outcome: every order was sent once");
}

#[tokio::test]
async fn what_only_reads_is_sent_again_and_seen_once() {
    let target = Target::start().await;
    let mut server = serving(
        "fetch",
        Options::default().set("inline_budget_ms", 0),
        rule(&target),
    )
    .await;
    target.hold();
    let arguments = json!({ "url": url(&target) });
    let id = server.client().start("fetch", arguments).await;
    target.until(1).await;
    server.kill().await;
    server.restart().await;
    target.until(2).await;
    target.release();
    let task = server.client().until_ended(&id).await;
    let text = task["result"]["structuredContent"]["text"].as_str();
    assert_eq!(text, Some("{\"request\":2}"), "{task}");
    let seen = target.seen();
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_waits_for_what_was_sent() {
    let target = Target::start().await;
    let mut server = serving("order", Options::default(), rule_with(&target, "fail")).await;
    target.hold();
    let arguments = json!({ "n": 2, "url": url(&target) });
    let id = server.client().start("order", arguments).await;
    target.until(1).await;
    let leaving = async { server.terminate().await };
    let answering = async {
        // It is on its way out, and waits for nothing but this.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        target.release();
    };
    let (code, ()) = tokio::join!(leaving, answering);
    assert_eq!(code, Some(0));
    server.restart().await;
    let task = server.client().until_ended(&id).await;
    let counted = &task["result"]["structuredContent"];
    let expected = json!({ "accepted": 2, "refused": 0, "unknown": 0 });
    assert_eq!(*counted, expected, "{task}");
    assert_eq!(target.seen().len(), 2);
}
