//! A server at its admission limit for a long time: what it holds at the end must be what it held when it was warm.
//! Run it by `just soak`, or `just soak SECONDS`.

mod load;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use longshore_tests::process::{Options, Server};
use longshore_tests::usage::{Usage, cpu_of};
use longshore_tests::wait;
use serde_json::Value;

use self::load::Load;

/// Unless it is told otherwise.
const SECONDS: u64 = 600;
/// The share of the time that it is warmed up for, and the most of it.
const WARM_SHARE: u32 = 5;
const WARM_MOST: Duration = Duration::from_secs(60);
/// Runs at once. Fewer than clients that want one.
const RUNNING: usize = 64;
/// How far it may be from what it was.
const RSS_KIB: u64 = 32 * 1024;
const FEW: u64 = 2;
/// Threads for files end after ten seconds without work.
const THREADS_END: Duration = Duration::from_secs(12);

#[tokio::main]
async fn main() -> Result<()> {
    let seconds = std::env::args().nth(1).map(|text| text.parse());
    let time = Duration::from_secs(
        seconds
            .transpose()
            .context("the number of seconds")?
            .unwrap_or(SECONDS),
    );
    let server = Server::start(
        Options::with_guests(&load::GUESTS)
            .set("running", RUNNING)
            .set("queued", RUNNING)
            .set("queue_wait_ms", 2_000)
            // So that the file of the tasks does not grow for as long as this lasts.
            .set("retention_ms", 20_000),
    )
    .await;
    let warm_up = (time / WARM_SHARE).min(WARM_MOST);
    println!("warming up for {warm_up:?}");
    run(&server, warm_up).await?;
    let warm = at_rest(&server).await?;
    println!("warm: {warm:?}");

    println!("{RUNNING} places, mixed load for {time:?}");
    let began = (cpu_of(server.pid())?, started(&server.figures().await));
    let most = run(&server, time).await?;
    let runs = started(&server.figures().await) - began.1;
    let end = at_rest(&server).await?;
    println!("end:  {end:?}");
    println!(
        "{runs} runs, {:.1} s of CPU; at most {} live and {} waiting at once, {} KiB",
        (cpu_of(server.pid())?.saturating_sub(began.0)).as_secs_f64(),
        most.live,
        most.waiting,
        most.rss_kib,
    );
    let live_stores = of_runs(&server.figures().await, "liveStores");
    println!("live Stores: {live_stores}");
    ensure!(
        most.waiting > 0,
        "nobody ever waited: that was not the admission limit"
    );
    let missed: Vec<String> = [
        ("KiB of memory", warm.rss_kib, end.rss_kib, RSS_KIB),
        ("threads", warm.threads, end.threads, FEW),
        ("open files", warm.fds, end.fds, FEW),
        ("live Stores", 0, live_stores, 0),
    ]
    .into_iter()
    .filter(|(_, warm, end, most)| warm.abs_diff(*end) > *most)
    .map(|(what, warm, end, most)| {
        format!("{warm} {what} became {end}, which may differ by {most}")
    })
    .collect();
    ensure!(missed.is_empty(), "{}", missed.join("; "));
    println!("it holds what it held");
    Ok(())
}

/// The most of it that was seen at once.
#[derive(Default)]
struct Most {
    live: u64,
    waiting: u64,
    rss_kib: u64,
}

/// Puts the load on the server for that time, and then waits until the last of it is over.
async fn run(server: &Server, time: Duration) -> Result<Most> {
    let load = Load::start(server);
    let mut most = Most::default();
    let until = tokio::time::Instant::now() + time;
    while tokio::time::Instant::now() < until && !load.is_broken() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let figures = server.figures().await;
        most.live = most.live.max(of_runs(&figures, "live"));
        most.waiting = most.waiting.max(of_runs(&figures, "queued"));
        most.rss_kib = most.rss_kib.max(Usage::of(server.pid())?.rss_kib);
    }
    println!("{}", load.stop().await?);
    Ok(most)
}

fn started(figures: &Value) -> u64 {
    of_runs(figures, "started")
}

fn of_runs(figures: &Value, name: &str) -> u64 {
    let figure = figures["runs"][name].as_u64();
    figure.unwrap_or_else(|| panic!("there is no figure runs.{name}: {figures}"))
}

/// What it holds when nobody wants anything of it.
async fn at_rest(server: &Server) -> Result<Usage> {
    wait::until(
        "the server to be at rest",
        Duration::from_secs(60),
        || async {
            let figures = server.figures().await;
            let runs = ["live", "liveStores", "queued"].map(|name| of_runs(&figures, name));
            let is_idle = runs == [0; 3] && figures["listeners"] == 0 && figures["uploads"] == 0;
            is_idle.then_some(())
        },
    )
    .await;
    tokio::time::sleep(THREADS_END).await;
    Usage::of(server.pid())
}
