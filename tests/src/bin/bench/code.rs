//! From a piece of code to its value, which is a whole interpreter each time.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use longshore_sandbox::ending::Ending;
use longshore_sandbox::sandbox::{FirstTurn, WasiKind};
use longshore_tests::kept::{Kept, Prepared};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::{guests, inside};
use serde_json::json;

use super::figures::{ROUNDS, closed, figure, median, ms, part, percentile_ms};

const CALLS: usize = 20;
const TOOLS: [(&str, &str); 2] = [
    ("run-python", "sum(n * n for n in range(100))"),
    (
        "run-js",
        "let sum = 0; for (let n = 0; n < 100; n++) sum += n * n; sum",
    ),
];

pub(crate) async fn measure() -> Result<()> {
    part("code to its value, one call after another");
    let server = Server::start(Options::with_guests(&TOOLS.map(|(tool, _)| tool))).await;
    for (tool, code) in TOOLS {
        let arguments = json!({ "code": code });
        figure(
            &format!("`{tool}` in process: p50"),
            format!("{:.2} ms", in_process(tool, &arguments.to_string()).await?),
        );
        let call = json!({ "name": tool, "arguments": arguments });
        let request = Prepared::of(&Client::plain(server.address), "tools/call", call);
        let answer = Kept::open(server.address).await?.send(&request).await?;
        let answer = answer.json();
        let value = &answer["result"]["structuredContent"]["value"];
        ensure!(*value == 328_350, "{tool}: {answer}");
        let times = closed(server.address, &request, 1, CALLS * ROUNDS).await?;
        figure(
            &format!("`{tool}` over HTTP: p50, p99"),
            format!(
                "{:.2} ms, {:.2} ms",
                percentile_ms(&times, 50),
                percentile_ms(&times, 99)
            ),
        );
    }
    Ok(())
}

async fn in_process(tool: &str, arguments: &str) -> Result<f64> {
    let sandbox = inside::sandbox(2, 16, WasiKind::Virtual)?;
    let prepared = inside::prepare(&sandbox, &std::fs::read(guests::component(tool))?).await?;
    let mut times = Vec::new();
    for _ in 0..CALLS * ROUNDS {
        let began = Instant::now();
        let run = inside::call(&prepared, tool, arguments, FirstTurn::Here);
        let ended = sandbox.start(run).ended.await.context("it reports")?;
        times.push(ms(began.elapsed()));
        let ending = ended.ending;
        ensure!(matches!(ending, Ending::Returned(_)), "{tool}: {ending:?}");
    }
    Ok(median(&times))
}
