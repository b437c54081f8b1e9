//! Guests that do nothing but compute: they take the cores, not the server, and leave nothing behind.

use std::time::{Duration, Instant};

use longshore_tests::effort::rounds;
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::usage::cpu_time_of;
use longshore_tests::wait;
use serde_json::{Value, json};
use tokio::sync::watch;

/// Tasks that compute at once.
const SPINNERS: usize = 16;
/// What each must have used before it is cancelled.
const LEAST_CPU_MS: u64 = 200;
/// What all must have used by then: shares differ, and the smallest is what counts.
const TOTAL_CPU: Duration = Duration::from_millis(SPINNERS as u64 * LEAST_CPU_MS * 5 / 2);
/// What the process may grow by from round to round.
const GROWTH_KIB: u64 = 16 * 1024;
/// Rounds after the first.
const ROUNDS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_that_compute_leave_the_server_answering_and_nothing_behind() {
    // Only a cancel is to end them.
    let server = Server::start(
        Options::with_guests(&["spin"])
            .set("early_poll_ms", 0)
            .set("limits.cpu_ms", 3_600_000),
    )
    .await;
    let warm = round(&server, 0).await;
    for number in 1..=rounds(ROUNDS) {
        let rss = round(&server, number).await;
        assert!(
            rss <= warm + GROWTH_KIB,
            "round {number}: {rss} KiB, and {warm} KiB after the first"
        );
    }
}

/// Runs sixteen, cancels them, and gives back what the process then holds in memory.
async fn round(server: &Server, number: usize) -> u64 {
    let client = server.client();
    let mut ids = Vec::new();
    for _ in 0..SPINNERS {
        ids.push(client.start("spin", json!({ "seconds": 3_600 })).await);
    }
    let (stop, stopped) = watch::channel(false);
    let polling = tokio::spawn(poll(client.clone(), ids.clone(), stopped));

    let started_at = cpu_time(server);
    wait::until(
        "all of them to compute",
        Duration::from_secs(120),
        || async { (cpu_time(server) >= started_at + TOTAL_CPU).then_some(()) },
    )
    .await;
    let figures = server.figures().await;
    assert_eq!(figures["runs"]["liveStores"], SPINNERS, "{figures}");

    let mut slowest_end = Duration::ZERO;
    for id in &ids {
        let asked = Instant::now();
        client.result("tasks/cancel", json!({ "taskId": id })).await;
        let ended = client.until_ended(id).await;
        assert_eq!(ended["status"], "cancelled", "{ended}");
        slowest_end = slowest_end.max(asked.elapsed());
    }
    let cancelled = Instant::now();
    stop.send_replace(true);
    let latencies = polling.await.expect("polling does not fail");

    tokio::time::sleep_until((cancelled + Duration::from_secs(1)).into()).await;
    let (before, began) = (cpu_time(server), Instant::now());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let share = (cpu_time(server) - before).as_secs_f64() / began.elapsed().as_secs_f64();

    let figures = server.figures().await;
    let rss = figures["process"]["rssKib"]
        .as_u64()
        .expect("the system tells");
    let used = used(server, &ids).await;
    let (p50, p99) = (at(&latencies, 0.5), at(&latencies, 0.99));
    println!(
        "round {number}: {} polls, p50 {p50:?}, p99 {p99:?}; CPU {} to {} ms each; slowest cancel {slowest_end:?}; \
         {:.1} % of a core afterwards; {rss} KiB",
        latencies.len(),
        used[0],
        used[SPINNERS - 1],
        share * 100.0,
    );
    assert!(
        used[0] >= LEAST_CPU_MS,
        "one of them used only {} ms: {used:?}",
        used[0]
    );
    assert!(
        latencies.len() > 100,
        "{} polls say nothing",
        latencies.len()
    );
    assert!(p99 <= Duration::from_secs(1), "p99 {p99:?}");
    assert!(
        share < 0.05,
        "{:.1} % of a core is used by nobody",
        share * 100.0
    );
    assert_eq!(figures["runs"]["liveStores"], 0, "{figures}");
    assert_eq!(figures["runs"]["live"], 0, "{figures}");
    rss
}

/// Looks after one task after the other until told to stop, and gives back how long each look took,
/// in order.
async fn poll(client: Client, ids: Vec<String>, stopped: watch::Receiver<bool>) -> Vec<Duration> {
    let mut latencies = Vec::new();
    for id in ids.iter().cycle() {
        if *stopped.borrow() {
            break;
        }
        let asked = Instant::now();
        client.task(id).await;
        latencies.push(asked.elapsed());
        // A client that asks without a pause measures itself.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    latencies.sort();
    latencies
}

fn at(sorted: &[Duration], share: f64) -> Duration {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list"
    )]
    let place = (sorted.len() as f64 * share) as usize;
    sorted
        .get(place.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

/// CPU milliseconds of each, in order.
async fn used(server: &Server, ids: &[String]) -> Vec<u64> {
    let mut used = Vec::new();
    for id in ids {
        let shown: Value = server
            .admin("GET", &format!("/v1/tasks/{id}"), "")
            .await
            .json();
        used.push(shown["cpuMs"].as_u64().expect("a task tells its CPU time"));
    }
    used.sort_unstable();
    used
}

/// What all threads of the process have used so far.
fn cpu_time(server: &Server) -> Duration {
    cpu_time_of(server.pid()).expect("the server lives")
}
