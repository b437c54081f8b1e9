//! A server that dies, is stopped, or finds what it cannot use: what was said stays said. How runs go on that were
//! recorded is tried in `survive`.

mod data;
mod load;
mod secret;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use longshore_tests::chance::Chance;
use longshore_tests::effort::rounds;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use self::load::{Load, WINDOWS, Window};

/// Kills that must have met each kind of request.
const KILLS: usize = 8;
/// For all kills and restarts of one round.
const TIME: Duration = Duration::from_secs(150);
/// From the start of the process to its first answer.
const START: Duration = Duration::from_secs(5);

/// A server that records nothing of a run: what it did is kept, and what it was doing is said to be interrupted.
fn guests() -> Options {
    Options::with_guests(&["long-job", "ask-form"]).set("durable", false)
}

/// Every task as the admin API lists it, by id.
async fn listing(server: &Server) -> BTreeMap<String, Value> {
    let mut tasks = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let page = server
            .admin("GET", &format!("/v1/tasks?limit=500{cursor}"), "")
            .await
            .json();
        for task in page["tasks"].as_array().expect("a list") {
            let id = task["id"].as_str().expect("a task has an id").to_owned();
            assert!(
                tasks.insert(id, task.clone()).is_none(),
                "{task} is listed twice"
            );
        }
        match page["cursor"].as_u64() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return tasks,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_it_forgets_nothing_that_it_said() {
    let mut server = Server::start(guests()).await;
    let load = Load::default();
    let mut chance = Chance::new(3);
    let mut met = [0_usize; WINDOWS.len()];
    let mut kills = 0;
    let rounds = rounds(1);
    let time = TIME * u32::try_from(rounds).expect("few rounds");
    let mut slowest_start = Duration::ZERO;
    let began = Instant::now();
    for target in WINDOWS.into_iter().cycle() {
        if met.iter().all(|kills| *kills >= KILLS * rounds) {
            break;
        }
        assert!(
            began.elapsed() < time,
            "only {met:?} kills within {WINDOWS:?} in {time:?}"
        );
        let broken = kill_under_load(&mut server, &load, target, &mut chance).await;
        kills += 1;
        for (met, broken) in met.iter_mut().zip(broken) {
            *met += usize::from(broken > 0);
        }

        let started = Instant::now();
        server.restart().await;
        load.first_answer(&server.client()).await;
        slowest_start = slowest_start.max(started.elapsed());
        load.verify(&server.client()).await;
        load.verify_listing(&listing(&server).await);
    }
    let sums = load.sums();
    println!(
        "{kills} kills, {met:?} of them within {WINDOWS:?}, in {:?}; slowest start {slowest_start:?}; {sums:?}",
        began.elapsed()
    );
    assert!(
        slowest_start < START,
        "{slowest_start:?} to the first answer"
    );
    // Else the kills met nothing that could have been lost.
    assert!(
        sums.completed > KILLS && sums.interrupted > KILLS,
        "{sums:?}"
    );

    let before = listing(&server).await;
    for _ in 0..2 {
        assert_eq!(server.terminate().await, Some(0), "{}", server.errors());
        server.restart().await;
        assert_eq!(listing(&server).await, before);
    }
    load.verify(&server.client()).await;
}

/// Lets clients work until a request of that kind is under way, then pulls the plug. Gives back how
/// many requests of each kind it broke.
async fn kill_under_load(
    server: &mut Server,
    load: &Load,
    target: Window,
    chance: &mut Chance,
) -> [usize; WINDOWS.len()] {
    /// Clients that work at once.
    const CLIENTS: usize = 6;
    let client = server.client();
    load.start_long_ones(&client).await;
    let workers: Vec<_> = (0..CLIENTS)
        .map(|n| tokio::spawn(load.clone().work(client.clone(), n % 2 == 0)))
        .collect();
    tokio::time::sleep(Duration::from_millis(50 + chance.below(150) as u64)).await;
    load.until_under_way(target).await;
    // Somewhere within the request, not always at its beginning.
    tokio::time::sleep(Duration::from_micros(chance.below(4_000) as u64)).await;
    server.kill().await;
    let mut broken = [0; WINDOWS.len()];
    for worker in workers {
        if let Some(window) = worker.await.expect("a client does not fail") {
            broken[window as usize] += 1;
        }
    }
    broken
}

#[tokio::test]
async fn stopped_kindly_it_records_what_it_interrupts() {
    let mut server = Server::start(guests()).await;
    let client = server.client();
    let done = client
        .start("long-job", json!({ "steps": 1, "step-ms": 0 }))
        .await;
    let done_as = client.until_ended(&done).await;
    let runs = client
        .start("long-job", json!({ "steps": 1_000_000, "step-ms": 1_000 }))
        .await;
    let asks = client.start("ask-form", json!({})).await;
    client.until_status(&asks, "input_required").await;
    assert_eq!(client.task(&runs).await["status"], "working");
    let held = tokio::spawn({
        let plain = longshore_tests::mcp::Client::plain(server.address);
        async move {
            plain.send("tools/call", json!({ "name": "long-job", "arguments": { "steps": 1_000_000, "step-ms": 1_000 } })).await
        }
    });

    let asked = Instant::now();
    assert_eq!(server.terminate().await, Some(0), "{}", server.errors());
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "{:?} to stop",
        asked.elapsed()
    );
    let _answered_or_cut = held.await.expect("the client does not fail");
    server.restart().await;

    let client = server.client();
    assert_eq!(client.task(&done).await, done_as);
    for id in [&runs, &asks] {
        let task = client.task(id).await;
        assert_eq!(
            (&task["status"], &task["error"]["data"]["reason"]),
            (&json!("failed"), &json!("interrupted")),
            "{task}"
        );
        assert!(task.get("inputRequests").is_none(), "{task}");
    }
    assert_eq!(listing(&server).await.len(), 3);
}
