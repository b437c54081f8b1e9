//! How figures are taken together and shown.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::join_all;
use longshore_tests::kept::{Kept, Prepared};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Rounds of each figure.
pub(crate) const ROUNDS: usize = 5;

/// What the figures are of.
pub(crate) fn machine() -> Result<()> {
    let info = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = info.lines().find(|line| line.starts_with("model name"));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!(
        "machine: {} cores, {}, Linux {}, load {}",
        std::thread::available_parallelism()?,
        model
            .and_then(|line| line.split(": ").nth(1))
            .unwrap_or("unknown processor"),
        kernel.trim(),
        load.split(' ').next().unwrap_or_default(),
    );
    if cfg!(debug_assertions) {
        println!("this is no optimised build: its figures say nothing");
    }
    Ok(())
}

/// Begins a part.
pub(crate) fn part(title: &str) {
    println!("\n{title}");
}

/// A figure without an aim.
pub(crate) fn figure(name: &str, value: impl Display) {
    println!("  {name:<58} {value}");
}

/// A figure that is to be at most so much.
pub(crate) fn aimed(name: &str, value: f64, unit: &str, most: f64) {
    let verdict = if value <= most { "met" } else { "MISSED" };
    println!("  {name:<58} {value:.2}{unit}   (aim <= {most}{unit}: {verdict})");
}

/// The value in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value that so many percent do not exceed, in milliseconds.
pub(crate) fn percentile_ms(times: &[Duration], percent: usize) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort();
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(f64::NAN, |time| ms(*time))
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Sends a request over and over on some connections, each as fast as it is answered.
pub(crate) async fn closed(
    address: SocketAddr,
    request: &Prepared,
    clients: usize,
    each: usize,
) -> Result<Vec<Duration>> {
    let one = async || -> Result<Vec<Duration>> {
        let mut kept = Kept::open(address).await?;
        let mut times = Vec::with_capacity(each);
        for _ in 0..each {
            times.push(kept.time(request).await?);
        }
        Ok(times)
    };
    gathered(join_all((0..clients).map(|_| one())).await)
}

/// Sends a request so often a second for that time, whether or not the one before was answered. A request that
/// could not be sent in time because an answer was late counts from when it was due.
pub(crate) async fn paced(
    address: SocketAddr,
    request: &Prepared,
    a_second: u32,
    time: Duration,
) -> Result<Vec<Duration>> {
    /// Enough that one late answer delays few others.
    const CONNECTIONS: u32 = 16;
    let every = Duration::from_secs(1) * CONNECTIONS / a_second;
    let begin = Instant::now() + Duration::from_millis(50);
    let one = async |number: u32| -> Result<Vec<Duration>> {
        let mut kept = Kept::open(address).await?;
        let first = begin + every * number / CONNECTIONS;
        let mut ticks = interval_at(first, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut times = Vec::new();
        let mut free_at = first;
        loop {
            let due = ticks.tick().await;
            if due >= begin + time {
                return Ok(times);
            }
            let late = free_at.saturating_duration_since(due);
            times.push(late + kept.time(request).await?);
            free_at = Instant::now();
        }
    };
    gathered(join_all((0..CONNECTIONS).map(one)).await)
}

fn gathered(all: Vec<Result<Vec<Duration>>>) -> Result<Vec<Duration>> {
    let all: Result<Vec<Vec<Duration>>> = all.into_iter().collect();
    Ok(all?.into_iter().flatten().collect())
}
