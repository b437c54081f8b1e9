//! Very many tasks that wait for people: they take no memory, and each goes on when it is answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use longshore_tests::effort::rounds;
use longshore_tests::kept::{Kept, Prepared};
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{SOON, until_live};

/// As many as may wait at once, if somebody takes the time.
const MANY: usize = 10_000;
/// Enough to see that their instances are gone: a few of them would take more than is allowed for.
const SOME: usize = 400;
const CLIENTS: usize = 8;
/// What the server may hold besides: no two measurements are the same.
const ROOM_KIB: u64 = 24 * 1024;
/// What it may hold for each that waits. An instance takes a hundred times as much.
const EACH_KIB: usize = 2;

/// Does something with each of these, by several clients at once.
async fn each(
    server: &Server,
    items: &[String],
    request: impl Fn(&longshore_tests::mcp::Client, &str) -> Prepared,
) -> Vec<Value> {
    let client = server.client();
    let requests: Arc<Vec<Prepared>> =
        Arc::new(items.iter().map(|item| request(&client, item)).collect());
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (requests, address) = (Arc::clone(&requests), server.address);
        clients.spawn(async move {
            let mut kept = Kept::open(address).await.expect("it listens");
            let mut results = Vec::new();
            for at in (number..requests.len()).step_by(CLIENTS) {
                let result = kept.result(&requests[at]).await;
                results.push((at, result.expect("it answers with a result")));
            }
            results
        });
    }
    let mut results: Vec<(usize, Value)> = clients.join_all().await.into_iter().flatten().collect();
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

async fn park(server: &Server, count: usize) -> Vec<String> {
    let waiting = parked(server).await;
    let calls = vec![String::new(); count];
    let created = each(server, &calls, |client, _| {
        let call = json!({ "name": "ask-form", "arguments": {} });
        Prepared::of(client, "tools/call", call)
    })
    .await;
    let ids = created
        .iter()
        .map(|task| task["taskId"].as_str().expect("a task").to_owned());
    let ids: Vec<String> = ids.collect();
    wait::until("all of them to wait", 20 * SOON, || async {
        (parked(server).await == waiting + count).then_some(())
    })
    .await;
    until_live(server, 0).await;
    ids
}

async fn answer(server: &Server, ids: &[String]) {
    each(server, ids, |client, id| {
        let person = json!({ "name": "Ada", "age": 36, "choice": "green" });
        let response = json!({ "person": { "action": "accept", "content": person } });
        let params = json!({ "taskId": id, "inputResponses": response });
        Prepared::of(client, "tasks/update", params)
    })
    .await;
}

async fn ended(server: &Server, ids: &[String]) {
    wait::until("all of them to end", 20 * SOON, || async {
        let figures = server.figures().await;
        let left = &figures["store"]["unfinishedTasks"];
        (figures["runs"]["live"] == 0 && left.as_u64() == Some(parked(server).await as u64))
            .then_some(())
    })
    .await;
    let tasks = each(server, ids, |client, id| {
        Prepared::of(client, "tasks/get", json!({ "taskId": id }))
    })
    .await;
    for task in tasks {
        assert_eq!(task["status"], "completed", "{task}");
        let text = &task["result"]["content"][0]["text"];
        assert_eq!(text, "Ada is 36 and chose green", "{task}");
    }
}

async fn parked(server: &Server) -> usize {
    let figures = server.figures().await;
    let count = figures["runs"]["parked"].as_u64();
    usize::try_from(count.expect("they are counted")).expect("not so many")
}

async fn rss_kib(server: &Server) -> u64 {
    let figures = server.figures().await;
    figures["process"]["rssKib"]
        .as_u64()
        .expect("the system tells")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_that_wait_take_no_memory_and_half_are_answered_after_a_restart() {
    let count = if rounds(1) > 1 { MANY } else { SOME };
    let options = Options::with_guests(&["ask-form"])
        .set("warm", 0)
        .set("early_poll_ms", 0);
    let mut server = Server::start(options).await;
    // As many came and went before it is measured: the caches of the database are as full as they get.
    let first = park(&server, count).await;
    let cold = rss_kib(&server).await;
    answer(&server, &first).await;
    ended(&server, &first).await;
    let baseline = rss_kib(&server).await;
    let began = Instant::now();
    let ids = park(&server, count).await;
    let waiting = rss_kib(&server).await;
    println!("{count} wait after {:?}", began.elapsed());
    let (now, later) = ids.split_at(count / 2);
    answer(&server, now).await;
    ended(&server, now).await;
    let answered = rss_kib(&server).await;
    let allowed = ROOM_KIB + u64::try_from(count * EACH_KIB).expect("not so many");
    println!("{cold} KiB while the first wait");
    println!("{baseline} KiB before, {waiting} while all wait, {answered} when half have ended");
    assert!(waiting <= baseline + allowed && answered <= baseline + allowed);

    server.kill().await;
    let began = Instant::now();
    server.restart().await;
    let started: Duration = began.elapsed();
    assert_eq!(parked(&server).await, later.len());
    let waiting = rss_kib(&server).await;
    answer(&server, later).await;
    ended(&server, later).await;
    let answered = rss_kib(&server).await;
    println!(
        "restarted in {started:?}: {waiting} KiB while {} wait, {answered} when all have ended",
        later.len()
    );
    assert!(waiting <= baseline + allowed && answered <= baseline + allowed);
    assert_eq!(server.figures().await["runs"]["parked"], 0);
    // And those that ended before are as they were.
    ended(&server, now).await;
}
