//! Memory of what waits: clients that listen, and runs that wait for an answer.

use anyhow::{Result, ensure};
use longshore_tests::events::{self, Answer};
use longshore_tests::kept::{Kept, Prepared};
use longshore_tests::process::{Options, Server};
use longshore_tests::usage::Usage;
use serde_json::json;

use super::figures::{figure, part};

/// Those that are there before it is measured: the first few cost what all others share.
const FIRST: u64 = 32;
const LISTENERS: u64 = 900;
const WAITING: u64 = 200;

pub(crate) async fn measure() -> Result<()> {
    part("memory of the server, in what it holds of the machine's");
    let server = Server::start(Options::with_guests(&["ask-form"])).await;
    let rss = || Ok::<_, anyhow::Error>(Usage::of(server.pid())?.rss_kib);

    let mut streams = Vec::new();
    listen(&server, FIRST, &mut streams).await?;
    let before = rss()?;
    listen(&server, LISTENERS, &mut streams).await?;
    let each = rss()?.saturating_sub(before) as f64 / LISTENERS as f64;
    figure(
        "a client that listens, with its connection",
        format!("{each:.1} KiB"),
    );
    drop(streams);

    ask(&server, FIRST).await?;
    let before = rss()?;
    ask(&server, WAITING).await?;
    let each = rss()?.saturating_sub(before) as f64 / WAITING as f64;
    figure(
        "a task that waits for an answer, with its instance",
        format!("{each:.1} KiB"),
    );
    Ok(())
}

async fn listen(server: &Server, count: u64, streams: &mut Vec<Answer>) -> Result<()> {
    let client = server.client();
    for _ in 0..count {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let request = client.request("subscriptions/listen", filter);
        let mut stream = events::open(server.address, &request).await;
        ensure!(stream.next().await.is_some(), "it is acknowledged");
        streams.push(stream);
    }
    Ok(())
}

async fn ask(server: &Server, count: u64) -> Result<()> {
    let client = server.client();
    let mut kept = Kept::open(server.address).await?;
    let call = json!({ "name": "ask-form", "arguments": {} });
    let start = Prepared::of(&client, "tools/call", call);
    for _ in 0..count {
        let created = kept.result(&start).await?;
        let get = Prepared::of(&client, "tasks/get", json!({ "taskId": created["taskId"] }));
        while kept.result(&get).await?["status"] != "input_required" {}
    }
    Ok(())
}
