//! Our own WASI, in which a run can be repeated, against the one of the engine, in which it cannot.

use anyhow::{Context as _, Result, ensure};
use longshore_sandbox::ending::Ending;
use longshore_sandbox::sandbox::{FirstTurn, Prepared, Sandbox, WasiKind};
use longshore_tests::component::{Behaviour, Made};
use longshore_tests::{guests, inside};

use super::figures::{ROUNDS, figure, median, part};

const READS: u32 = 100_000;
/// Bytes on each of two streams, and those of a line.
const PRINTED: u32 = 256 * 1024;
const LINE: u32 = 64;

/// A guest, how often it is called in a round, and what one call is divided by.
struct Load {
    name: &'static str,
    bytes: Vec<u8>,
    tool: &'static str,
    arguments: String,
    calls: u32,
    parts: u32,
}

pub(crate) async fn measure() -> Result<()> {
    part("our own WASI against the engine's, in process: CPU, and ratio");
    let clock = Made {
        call: Behaviour::ReadsClock(READS),
        ..Made::with_tool("clock")
    };
    let loads = [
        Load {
            name: "`hello`: a call",
            bytes: std::fs::read(guests::component("hello"))?,
            tool: "hello",
            arguments: r#"{"name":"Ada"}"#.to_owned(),
            calls: 2_000,
            parts: 1,
        },
        Load {
            name: "a loop over the clock: a look",
            bytes: clock.bytes(),
            tool: "clock",
            arguments: "{}".to_owned(),
            calls: 5,
            parts: READS,
        },
        Load {
            name: "a loop that prints: a line",
            bytes: std::fs::read(guests::component("flood"))?,
            tool: "flood",
            arguments: format!(r#"{{"bytes":{PRINTED}}}"#),
            calls: 20,
            parts: 2 * PRINTED / LINE,
        },
    ];
    let ours = inside::sandbox(1, 4, WasiKind::Virtual)?;
    let engines = inside::sandbox(1, 4, WasiKind::Host)?;
    for load in loads {
        let sides = [
            (&ours, inside::prepare(&ours, &load.bytes).await?),
            (&engines, inside::prepare(&engines, &load.bytes).await?),
        ];
        let mut costs = [Vec::new(), Vec::new()];
        let mut ratios = Vec::new();
        // One more than is counted, since the first finds everything cold.
        for round in 0..=ROUNDS {
            let [ours, engines] = [&sides[0], &sides[1]].map(|(sandbox, prepared)| {
                tokio::task::block_in_place(|| cost(sandbox, prepared, &load))
            });
            let (ours, engines) = (ours?, engines?);
            if round > 0 {
                costs[0].push(ours);
                costs[1].push(engines);
                ratios.push(ours / engines);
            }
        }
        figure(
            load.name,
            format!(
                "{:.2} us, {:.2} us: {:.2} x",
                median(&costs[0]),
                median(&costs[1]),
                median(&ratios)
            ),
        );
    }
    Ok(())
}

/// CPU time of one part, in microseconds, as the runs report it: one that takes more than a turn goes on on another
/// thread.
fn cost(sandbox: &Sandbox, prepared: &Prepared, load: &Load) -> Result<f64> {
    let mut spent_us = 0;
    for _ in 0..load.calls {
        let run = inside::call(prepared, load.tool, &load.arguments, FirstTurn::Here);
        let ended = sandbox.start(run).ended.blocking_recv();
        let ended = ended.context("it reports")?;
        ensure!(
            matches!(ended.ending, Ending::Returned(_)),
            "{:?}",
            ended.ending
        );
        spent_us += ended.cpu_us;
    }
    Ok(spent_us as f64 / f64::from(load.calls * load.parts))
}
