//! One call without a server: an instance is made, called, and gone.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use longshore_sandbox::ending::Ending;
use longshore_sandbox::sandbox::{FirstTurn, Prepared, Sandbox, WasiKind};
use longshore_tests::guests;
use longshore_tests::inside;
use longshore_tests::usage::cpu_of_this_thread;

use super::figures::{ROUNDS, figure, median, micros, part};

const CALLS: u32 = 5_000;

/// What one thread needed for its calls.
#[derive(Clone, Copy)]
struct Spent {
    wall: Duration,
    cpu: Duration,
}

pub(crate) async fn measure() -> Result<()> {
    for (slots, place) in [(16, "in slots"), (0, "in memory of its own")] {
        part(&format!(
            "instantiate + call + drop of `hello`, in process, every limit on, {place}"
        ));
        measure_with(slots).await?;
    }
    Ok(())
}

async fn measure_with(slots: usize) -> Result<()> {
    let sandbox = inside::sandbox(2, slots, WasiKind::Virtual)?;
    let bytes = std::fs::read(guests::component("hello"))?;
    let prepared = inside::prepare(&sandbox, &bytes).await?;
    on_threads(1, || calls(&sandbox, &prepared))?;
    let mut rows: [(Vec<f64>, Vec<f64>); 2] = Default::default();
    let (mut scaling, mut control) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut rates = [0.0; 2];
        for (threads, row) in [1_u32, 2].into_iter().zip(&mut rows) {
            let spent = on_threads(threads, || calls(&sandbox, &prepared))?;
            let wall = spent
                .iter()
                .map(|spent| spent.wall)
                .max()
                .unwrap_or_default();
            let cpu: Duration = spent.iter().map(|spent| spent.cpu).sum();
            row.0.push(micros(wall) / f64::from(CALLS * threads));
            row.1.push(micros(cpu) / f64::from(CALLS * threads));
            rates[usize::from(threads == 2)] = f64::from(threads) / wall.as_secs_f64();
        }
        scaling.push(rates[1] / rates[0]);
        control.push(control_scaling()?);
    }
    for (threads, (wall, cpu)) in [1, 2].into_iter().zip(&rows) {
        figure(
            &format!("on {threads} thread(s): time a call, CPU a call"),
            format!("{:.1} us, {:.1} us", median(wall), median(cpu)),
        );
    }
    figure(
        "two threads against one, and a loop without memory likewise",
        format!("{:.2} x, {:.2} x", median(&scaling), median(&control)),
    );
    Ok(())
}

/// The same on so many threads at once.
fn on_threads(threads: u32, work: impl Fn() -> Result<Spent> + Sync) -> Result<Vec<Spent>> {
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        running
            .into_iter()
            .map(|thread| thread.join().expect("it does not panic"))
            .collect()
    })
}

fn calls(sandbox: &Sandbox, prepared: &Prepared) -> Result<Spent> {
    let (began, cpu) = (Instant::now(), cpu_of_this_thread());
    for _ in 0..CALLS {
        let run = inside::call(prepared, "hello", "{\"name\":\"Ada\"}", FirstTurn::Here);
        let ended = sandbox
            .start(run)
            .ended
            .blocking_recv()
            .context("it reports")?;
        ensure!(
            matches!(ended.ending, Ending::Returned(_)),
            "{:?}",
            ended.ending
        );
    }
    Ok(Spent {
        wall: began.elapsed(),
        cpu: cpu_of_this_thread() - cpu,
    })
}

/// What a second thread brings where there is nothing to share.
fn control_scaling() -> Result<f64> {
    const TURNS: u64 = 100_000_000;
    let spin = || -> Result<Spent> {
        let (began, cpu) = (Instant::now(), cpu_of_this_thread());
        let mut state = 1_u64;
        for turn in 0..TURNS {
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005) ^ turn);
        }
        Ok(Spent {
            wall: began.elapsed(),
            cpu: cpu_of_this_thread() - cpu,
        })
    };
    let wall = |spent: &[Spent]| {
        let longest = spent.iter().map(|spent| spent.wall).max();
        longest.unwrap_or_default().as_secs_f64()
    };
    Ok(2.0 * wall(&on_threads(1, spin)?) / wall(&on_threads(2, spin)?))
}
