//! Answers while every guest computes, what each of them gets, and how soon a cancelled one stops.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use longshore_sandbox::control::StopReason;
use longshore_sandbox::sandbox::{FirstTurn, WasiKind};
use longshore_tests::guests;
use longshore_tests::inside;
use longshore_tests::kept::{Kept, Prepared};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::figures::{ROUNDS, aimed, figure, median, ms, paced, part, percentile_ms};
use super::held;

const SPINNERS: usize = 16;
/// A round in which shares are measured; half of it with polls, half of it with calls.
const WINDOW: Duration = Duration::from_secs(5);
/// Cancels in a round, and stops without a server.
const CANCELS: usize = 40;
const STOPS: usize = 100;

/// The worst of each figure that is still good, in milliseconds and parts of the mean.
const POLL_MS: f64 = 5.0;
const CALL_MS: f64 = 10.0;
const UNFAIR: f64 = 0.10;
const BURNED_MS: f64 = 10.0;

/// What one round found.
#[derive(Default)]
struct Found {
    polls: [Vec<f64>; 2],
    calls: [Vec<f64>; 2],
    least: Vec<f64>,
    most: Vec<f64>,
    furthest: Vec<f64>,
    burned: [Vec<f64>; 2],
}

pub(crate) async fn measure() -> Result<()> {
    part(&format!("beside {SPINNERS} guests that compute"));
    // Only a cancel is to end them, and every poll is to be answered at once.
    let server = Server::start(
        Options::with_guests(&["hello", "spin"])
            .set("early_poll_ms", 0)
            .set("limits.cpu_ms", 3_600_000),
    )
    .await;
    let mut bench = Bench {
        client: server.client(),
        kept: Kept::open(server.address).await?,
        spinners: Vec::new(),
        server,
    };
    for _ in 0..SPINNERS {
        let spinner = bench.spinner().await?;
        bench.spinners.push(spinner);
    }
    let mut found = Found::default();
    for _ in 0..ROUNDS {
        bench.round(&mut found).await?;
    }
    figure(
        "tasks/get at 1,000/s: p50",
        format!("{:.2} ms", median(&found.polls[0])),
    );
    aimed(
        "tasks/get at 1,000/s: p99",
        median(&found.polls[1]),
        " ms",
        POLL_MS,
    );
    figure(
        "held call of `hello` at 500/s: p50",
        format!("{:.2} ms", median(&found.calls[0])),
    );
    aimed(
        "held call of `hello` at 500/s: p99",
        median(&found.calls[1]),
        " ms",
        CALL_MS,
    );
    figure(
        &format!("least and most CPU of one in {WINDOW:?}, against the mean"),
        format!("{:.3}, {:.3}", median(&found.least), median(&found.most)),
    );
    aimed(
        "furthest from its share",
        median(&found.furthest),
        "",
        UNFAIR,
    );
    figure(
        "guest CPU from a client's cancel on, at most: p50, p99",
        format!(
            "{:.2} ms, {:.2} ms (with the commit of the cancel)",
            median(&found.burned[0]),
            median(&found.burned[1])
        ),
    );
    stops().await
}

/// The same without a server: how much CPU a run uses once it is told to stop.
async fn stops() -> Result<()> {
    let sandbox = inside::sandbox(2, 32, WasiKind::Virtual)?;
    let bytes = std::fs::read(guests::component("spin"))?;
    let prepared = inside::prepare(&sandbox, &bytes).await?;
    let start = || {
        let mut run = inside::call(&prepared, "spin", "{\"seconds\":3600}", FirstTurn::Queued);
        run.policy.limits.cpu_ms = 3_600_000;
        let control = run.control.clone();
        (sandbox.start(run), control)
    };
    let mut running: VecDeque<_> = (0..SPINNERS).map(|_| start()).collect();
    let mut burned = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let mut times = Vec::with_capacity(STOPS);
        for number in 0..STOPS {
            // Not in step with the turns, and long enough for each to have had some.
            tokio::time::sleep(Duration::from_millis(5 + number as u64 % 13)).await;
            let (started, control) = running.pop_front().context("there are some")?;
            let before = started.watch.cpu();
            let began = Instant::now();
            sandbox.stop(&control, StopReason::Cancelled);
            let ended = started.ended.await?;
            // Its CPU time is known as of its last turn, and it is on one thread at a time.
            let used = Duration::from_micros(ended.cpu_us).saturating_sub(before);
            times.push(used.min(began.elapsed()));
            running.push_back(start());
        }
        for (place, percent) in [50, 99].into_iter().enumerate() {
            burned[place].push(percentile_ms(&times, percent));
        }
    }
    figure(
        "guest CPU after it is told to stop, at most: p50",
        format!("{:.2} ms", median(&burned[0])),
    );
    aimed(
        "guest CPU after it is told to stop, at most: p99",
        median(&burned[1]),
        " ms",
        BURNED_MS,
    );
    Ok(())
}

struct Bench {
    server: Server,
    client: Client,
    kept: Kept,
    spinners: Vec<String>,
}

impl Bench {
    async fn spinner(&mut self) -> Result<String> {
        let arguments = json!({ "name": "spin", "arguments": { "seconds": 3_600 } });
        let start = Prepared::of(&self.client, "tools/call", arguments);
        let created = self.kept.result(&start).await?;
        Ok(created["taskId"].as_str().context("a task")?.to_owned())
    }

    async fn cpu_ms(&self, id: &str) -> Result<f64> {
        let path = format!("/v1/tasks/{id}");
        let shown: Value = self.server.admin("GET", &path, "").await.json();
        shown["cpuMs"].as_f64().context("a task tells its CPU time")
    }

    async fn all_cpu_ms(&self) -> Result<Vec<f64>> {
        let mut all = Vec::with_capacity(SPINNERS);
        for id in &self.spinners {
            all.push(self.cpu_ms(id).await?);
        }
        Ok(all)
    }

    async fn round(&mut self, found: &mut Found) -> Result<()> {
        let get = Prepared::of(
            &self.client,
            "tasks/get",
            json!({ "taskId": self.spinners[0] }),
        );
        let hello = held::hello(&self.server);
        let address = self.server.address;

        let before = self.all_cpu_ms().await?;
        let began = Instant::now();
        let polls = paced(address, &get, 1_000, WINDOW / 2).await?;
        let calls = paced(address, &hello, 500, WINDOW.saturating_sub(began.elapsed())).await?;
        let after = self.all_cpu_ms().await?;

        for (place, percent) in [50, 99].into_iter().enumerate() {
            found.polls[place].push(percentile_ms(&polls, percent));
            found.calls[place].push(percentile_ms(&calls, percent));
        }
        let used: Vec<f64> = after
            .iter()
            .zip(&before)
            .map(|(after, before)| after - before)
            .collect();
        let mean = used.iter().sum::<f64>() / used.len() as f64;
        let least = used.iter().copied().fold(f64::MAX, f64::min) / mean;
        let most = used.iter().copied().fold(0.0, f64::max) / mean;
        found.least.push(least);
        found.most.push(most);
        found.furthest.push((1.0 - least).max(most - 1.0));

        let mut burned = Vec::with_capacity(CANCELS);
        for number in 0..CANCELS {
            burned.push(self.cancel(number % SPINNERS).await?);
        }
        for (place, percent) in [50, 99].into_iter().enumerate() {
            found.burned[place].push(percentile_ms(&burned, percent));
        }
        Ok(())
    }

    /// Cancels one, puts another in its place, and gives back how much CPU the first used from when the cancel
    /// was sent, at most. It is not more than all since its CPU time was last read, nor than the time until it had
    /// ended, since it is on one thread at a time.
    async fn cancel(&mut self, place: usize) -> Result<Duration> {
        let id = self.spinners[place].clone();
        let cancel = Prepared::of(&self.client, "tasks/cancel", json!({ "taskId": id }));
        let get = Prepared::of(&self.client, "tasks/get", json!({ "taskId": id }));
        let before = self.cpu_ms(&id).await?;
        let began = Instant::now();
        self.kept.result(&cancel).await?;
        loop {
            let task = self.kept.result(&get).await?;
            if task["status"] == "cancelled" {
                break;
            }
            ensure!(task["status"] == "working", "{task}");
        }
        let time = began.elapsed();
        // Read in whole milliseconds, each time rounded down.
        let used = self.cpu_ms(&id).await? - before + 1.0;
        self.spinners[place] = self.spinner().await?;
        Ok(Duration::from_secs_f64(used.min(ms(time)) / 1e3))
    }
}
