//! Polls that come before their time: they are answered late, and at once when there is news.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::json;

/// Longer than any test waits.
const LONG_MS: u64 = 600_000;
/// Answers that one caller may have waiting.
const MOST: usize = 64;

async fn server(early_poll_ms: u64) -> Server {
    let options = Options::with_guests(&["modes"])
        .set("poll_interval_ms", LONG_MS)
        .set("early_poll_ms", early_poll_ms);
    Server::start(options).await
}

async fn until_waiting(server: &Server, count: usize) {
    wait::until(
        &format!("{count} polls to wait"),
        Duration::from_secs(20),
        || async { (server.figures().await["polls"]["waiting"] == count).then_some(()) },
    )
    .await;
}

#[tokio::test]
async fn an_early_poll_of_an_unchanged_task_is_answered_late() {
    const LATE: Duration = Duration::from_millis(700);
    let server = server(700).await;
    let client = server.client();
    let id = client.start("modes-always", json!({ "ms": LONG_MS })).await;
    let began = Instant::now();
    let first = client.task(&id).await;
    let second = client.task(&id).await;
    assert!(began.elapsed() >= LATE, "{:?}", began.elapsed());
    assert_eq!(first["status"], "working");
    assert_eq!(first, second);
}

#[tokio::test]
async fn news_wakes_whoever_waits_for_it() {
    let server = server(LONG_MS).await;
    let client = server.client();
    let id = client.start("modes-always", json!({ "ms": LONG_MS })).await;
    client.task(&id).await;
    let (task, ()) = tokio::join!(client.task(&id), async {
        until_waiting(&server, 1).await;
        client.result("tasks/cancel", json!({ "taskId": id })).await;
    });
    assert!(["working", "cancelled"].contains(&task["status"].as_str().expect("a status")));
    // From its end on every poll is answered at once.
    client.until_ended(&id).await;
    client.task(&id).await;
    client.task(&id).await;
    until_waiting(&server, 0).await;
}

#[tokio::test]
async fn who_leaves_waits_no_more_and_a_server_that_goes_down_lets_nobody_wait() {
    let mut server = server(LONG_MS).await;
    let client = server.client();
    let id = client.start("modes-always", json!({ "ms": LONG_MS })).await;
    client.task(&id).await;
    // One whose client goes away waits no more.
    let gone = tokio::spawn({
        let (client, id) = (client.clone(), id.clone());
        async move { client.task(&id).await }
    });
    until_waiting(&server, 1).await;
    gone.abort();
    until_waiting(&server, 0).await;

    let waiting = tokio::spawn({
        let (client, id) = (client.clone(), id.clone());
        async move { client.task(&id).await }
    });
    until_waiting(&server, 1).await;
    assert_eq!(server.terminate().await, Some(0));
    assert_eq!(waiting.await.expect("it is answered")["taskId"], id);
}

#[tokio::test]
async fn nobody_waits_where_that_is_switched_off() {
    let server = server(0).await;
    let client = server.client();
    let id = client.start("modes-always", json!({ "ms": LONG_MS })).await;
    for _ in 0..5 {
        assert_eq!(client.task(&id).await["status"], "working");
    }
}

#[tokio::test]
async fn too_many_early_polls_are_refused_and_the_others_still_answered() {
    let server = server(LONG_MS).await;
    let client = server.client();
    let id = client.start("modes-always", json!({ "ms": LONG_MS })).await;
    client.task(&id).await;
    let waiting = join_all((0..MOST).map(|_| client.task(&id)));
    let (tasks, ()) = tokio::join!(waiting, async {
        until_waiting(&server, MOST).await;
        let reply = client
            .send("tasks/get", json!({ "taskId": id }))
            .await
            .expect("the server answers");
        assert_eq!(reply.status, 429);
        assert!(reply.headers.contains_key("retry-after"));
        assert_eq!(reply.json()["error"]["data"]["reason"], "queue-full");
        client.result("tasks/cancel", json!({ "taskId": id })).await;
    });
    assert_eq!(tasks.len(), MOST);
}
