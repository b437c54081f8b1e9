//! A held call over HTTP against a handler that does nothing.

use anyhow::Result;
use longshore_tests::kept::{Kept, Prepared};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::usage::cpu_of;
use serde_json::json;

use super::bare::Bare;
use super::figures::{ROUNDS, aimed, closed, figure, median, micros, part, percentile_ms};

const CLIENTS: usize = 8;
const EACH: usize = 2_500;
/// How much more CPU a call may cost than an answer that is always the same.
const AIM: f64 = 2.5;

/// What a client sends to call `hello`.
pub(crate) fn hello(server: &Server) -> Prepared {
    Prepared::of(
        &Client::plain(server.address),
        "tools/call",
        json!({ "name": "hello", "arguments": { "name": "Ada" } }),
    )
}

pub(crate) async fn measure() -> Result<()> {
    part(&format!(
        "held `tools/call` of `hello` over HTTP, {CLIENTS} clients that wait for each answer"
    ));
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let request = hello(&server);
    let answer = Kept::open(server.address).await?.send(&request).await?;
    let bare = Bare::start(&answer.body).await?;
    let sides = [(server.pid(), server.address), (bare.pid()?, bare.address)];
    for (_, address) in sides {
        closed(address, &request, CLIENTS, EACH / 5).await?;
    }
    let mut cpu = [Vec::new(), Vec::new()];
    let mut times = [Vec::new(), Vec::new()];
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        for (side, (pid, address)) in sides.into_iter().enumerate() {
            let before = cpu_of(pid)?;
            let round = closed(address, &request, CLIENTS, EACH).await?;
            cpu[side].push(micros(cpu_of(pid)? - before) / (CLIENTS * EACH) as f64);
            times[side].extend(round);
        }
        ratios.push(cpu[0][cpu[0].len() - 1] / cpu[1][cpu[1].len() - 1]);
    }
    for (side, name) in ["longshore", "bare axum with the same bytes"]
        .into_iter()
        .enumerate()
    {
        figure(
            &format!("{name}: server CPU a call; p50, p99"),
            format!(
                "{:.1} us; {:.2} ms, {:.2} ms",
                median(&cpu[side]),
                percentile_ms(&times[side], 50),
                percentile_ms(&times[side], 99)
            ),
        );
    }
    aimed("server CPU against bare axum", median(&ratios), " x", AIM);
    Ok(())
}
