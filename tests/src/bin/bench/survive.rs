//! What it costs that tasks outlive their process: what is written down of each example, how fast it is repeated, and
//! how long after a death everything runs again.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures_util::future::join_all;
use longshore_journal::tape::{Tape, Total};
use longshore_journal::world::After;
use longshore_sandbox::ending::{Ended, Ending};
use longshore_sandbox::sandbox::{FirstTurn, Prepared, Sandbox, WasiKind};
use longshore_tests::component::{Behaviour, Made};
use longshore_tests::kept::{Kept, Prepared as Request};
use longshore_tests::process::{Options, Server, command, run};
use longshore_tests::{guests, inside};
use serde_json::{Value, json};

use super::figures::{ROUNDS, aimed, figure, median, ms, part};

pub(crate) async fn measure() -> Result<()> {
    examples().await?;
    repetition().await?;
    everything_again().await
}

/// What is recorded of each example, as `longshore test` finds it over many schedules.
async fn examples() -> Result<()> {
    part("the journal of a run, the largest of 8 schedules: records, bytes");
    let examples: [(&str, &[&str]); 12] = [
        ("hello", &["name=Ada"]),
        ("long-job", &["steps=100", "step-ms=100"]),
        ("ask-form", &[]),
        ("ask-two", &[]),
        ("approve", &["what=it"]),
        ("cleanup", &[]),
        ("sleep", &["seconds=60"]),
        ("dice", &[]),
        ("dice-python", &[]),
        ("dice-typescript", &[]),
        ("steps", &["n=20"]),
        ("resumable", &["n=20"]),
    ];
    for (name, arguments) in examples {
        let data = tempfile::tempdir()?;
        let mut test = command(data.path());
        test.arg("test")
            .arg(guests::component(name))
            .args(["--schedules", "8", "--json"]);
        for argument in arguments {
            test.args(["--arg", argument]);
        }
        let (code, out, errors) = run(test).await;
        ensure!(code == 0, "{name}: {out} {errors}");
        let report: Value = serde_json::from_str(&out)?;
        let title = format!("`{name}` {}", arguments.join(" "));
        figure(
            title.trim_end(),
            format!("{}, {}", report["records"], report["bytes"]),
        );
    }
    Ok(())
}

/// CPU time of a run, once and again.
async fn repetition() -> Result<()> {
    part("a run and its repetition, in process: CPU, CPU, own CPU a CPU of repetition");
    const READS: u32 = 100_000;
    let clock = Made {
        call: Behaviour::ReadsClock(READS),
        ..Made::with_tool("clock")
    };
    let spin = std::fs::read(guests::component("spin"))?;
    let loads = [
        (
            "one that computes, and looks at the clock each millisecond",
            spin,
            "spin",
            r#"{"seconds":0.5}"#,
        ),
        (
            "one that only looks at the clock",
            clock.bytes(),
            "clock",
            "{}",
        ),
    ];
    let sandbox = inside::sandbox(1, 4, WasiKind::Virtual)?;
    for (name, bytes, tool, arguments) in loads {
        let prepared = inside::prepare(&sandbox, &bytes).await?;
        let (mut once, mut again, mut speed) = (Vec::new(), Vec::new(), Vec::new());
        let mut total = Total::default();
        for _ in 0..ROUNDS {
            let (first, tape) = played(&sandbox, &prepared, (tool, arguments), None).await?;
            total = tape.total();
            let records = tape.take().records;
            let (second, _) = played(&sandbox, &prepared, (tool, arguments), Some(records)).await?;
            let (first, second) = (first.cpu_us as f64 / 1e3, second.replay_cpu_us as f64 / 1e3);
            once.push(first);
            again.push(second);
            speed.push(first / second);
        }
        figure(
            name,
            format!(
                "{:.1} ms, {:.1} ms, {:.2} ({} records)",
                median(&once),
                median(&again),
                median(&speed),
                total.records
            ),
        );
    }
    Ok(())
}

/// Runs it, or repeats it on those records.
async fn played(
    sandbox: &Sandbox,
    prepared: &Prepared,
    (tool, arguments): (&str, &str),
    records: Option<Vec<longshore_journal::record::Record>>,
) -> Result<(Ended, Tape)> {
    let mut run = inside::call(prepared, tool, arguments, FirstTurn::Queued);
    if let Some(records) = records {
        run.journal.begin.records = records;
        run.journal.after = After::Stop;
    }
    let tape = run.journal.tape.clone();
    let ended = sandbox.start(run).ended.await.context("it reports")?;
    ensure!(
        matches!(ended.ending, Ending::Returned(_)),
        "{:?}",
        ended.ending
    );
    Ok((ended, tape))
}

/// From the death of a server to all of its runs running again.
async fn everything_again() -> Result<()> {
    const RUNS: u64 = 1_000;
    const CLIENTS: u64 = 20;
    const DEATHS: usize = 3;
    const AIM_S: f64 = 1.0;
    part(&format!(
        "{RUNS} runs in flight at a kill -9, each in a sleep between two steps"
    ));
    let options = Options::with_guests(&["long-job"])
        .set("running", RUNS + 100)
        .set("running_each", RUNS + 100)
        .set("limits.memory_mib", 4);
    let mut server = Server::start(options).await;
    let client = server.client();
    let call = json!({ "name": "long-job", "arguments": { "steps": 1_000, "step-ms": 1_000 } });
    let start = Request::of(&client, "tools/call", call);
    let starts = (0..CLIENTS).map(|_| async {
        let mut kept = Kept::open(server.address).await?;
        for _ in 0..RUNS / CLIENTS {
            let created = kept.result(&start).await?;
            ensure!(created["taskId"].is_string(), "{created}");
        }
        Ok(())
    });
    for started in join_all(starts).await {
        started?;
    }
    until_running(&server, RUNS).await?;

    let (mut ready, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..DEATHS {
        // Most have something to repeat by then.
        tokio::time::sleep(Duration::from_secs(2)).await;
        until_running(&server, RUNS).await?;
        let killed = Instant::now();
        server.restart().await;
        ready.push(ms(killed.elapsed()));
        until_running(&server, RUNS).await?;
        whole.push(killed.elapsed().as_secs_f64());
    }
    figure(
        "from the kill until the server is ready",
        format!("{:.0} ms", median(&ready)),
    );
    aimed(
        "from the kill until all runs run again",
        median(&whole),
        " s",
        AIM_S,
    );
    Ok(())
}

/// Waits until so many runs are here and past their past.
async fn until_running(server: &Server, count: u64) -> Result<()> {
    const MOST: Duration = Duration::from_secs(300);
    let began = Instant::now();
    loop {
        let runs = server.figures().await["runs"].take();
        if runs["liveStores"] == count && runs["replaying"] == 0 {
            return Ok(());
        }
        ensure!(began.elapsed() < MOST, "not all run: {runs}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
