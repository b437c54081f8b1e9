//! Figures of one machine in one run, with the ratios that can be compared across machines. Run it by
//! `just bench`: it wants an optimised build and a quiet machine.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures_util::future::join_all;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use longshore_store::sqlite::Sqlite;
use longshore_tasks::id::{Json, Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::store::TaskStore as _;
use longshore_tasks::task::{JournalTail, Lease, Pinned, State, Status, Task, Usage};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

const ROUNDS: usize = 5;

#[tokio::main]
async fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("bare") {
        return bare().await;
    }
    println!(
        "machine: {} cores, {}",
        std::thread::available_parallelism()?,
        processor()
    );
    held_calls().await?;
    durable_tasks().await?;
    polls_beside_spinners().await?;
    waiting_tasks().await?;
    Ok(())
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = info.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split(": ").nth(1))
        .unwrap_or("unknown processor")
        .to_owned()
}

// A held call against a handler that does nothing

/// What a client sends to call `hello`, and what comes back.
fn hello_request() -> (Vec<(String, String)>, String) {
    let client = Client::plain(SocketAddr::from(([127, 0, 0, 1], 1)));
    let request = client.request(
        "tools/call",
        json!({ "name": "hello", "arguments": { "name": "Ada" } }),
    );
    (Client::headers(&request), request.to_string())
}

/// The least that a server in Rust can do: axum reads the body and gives back fixed bytes.
async fn bare() -> Result<()> {
    let answer = std::env::args().nth(2).context("the answer")?;
    let router = axum::Router::new().route(
        "/mcp",
        axum::routing::post(move |body: Bytes| {
            let answer = answer.clone();
            async move {
                let read: Result<Value, _> = serde_json::from_slice(&body);
                assert!(read.is_ok());
                ([("content-type", "application/json")], answer)
            }
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let router = router.clone();
        let service =
            hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let mut router = router.clone();
                async move {
                    let response: Result<_, Infallible> =
                        tower::Service::call(&mut router, request.map(axum::body::Body::new)).await;
                    response
                }
            });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            let _the_client_ends_it = connection.await;
        });
    }
}

/// Sends the same request over and over on a few connections; gives back each one's time.
async fn load(
    address: SocketAddr,
    headers: &[(String, String)],
    body: &str,
    clients: usize,
    each: usize,
) -> Result<Vec<Duration>> {
    let one = async || -> Result<Vec<Duration>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut times = Vec::with_capacity(each);
        let body = Bytes::from(body.to_owned());
        for _ in 0..each {
            let mut request = http::Request::builder()
                .method("POST")
                .uri("/mcp")
                .header("host", address.to_string());
            for (name, value) in headers {
                request = request.header(name, value);
            }
            sender.ready().await?;
            let began = Instant::now();
            let response = sender
                .send_request(request.body(Full::new(body.clone()))?)
                .await?;
            ensure!(response.status() == 200, "status {}", response.status());
            response.into_body().collect().await?;
            times.push(began.elapsed());
        }
        Ok(times)
    };
    let mut all = Vec::new();
    for times in join_all((0..clients).map(|_| one())).await {
        all.extend(times?);
    }
    Ok(all)
}

/// CPU time of a process so far.
fn cpu_of(pid: u32) -> Result<Duration> {
    const TICKS_A_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS_A_SECOND))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn percentile(mut times: Vec<Duration>, percent: usize) -> Duration {
    times.sort();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

async fn held_calls() -> Result<()> {
    const CLIENTS: usize = 8;
    const EACH: usize = 1_500;
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let (headers, body) = hello_request();
    let answer = Client::plain(server.address)
        .send(
            "tools/call",
            json!({ "name": "hello", "arguments": { "name": "Ada" } }),
        )
        .await?;
    let mut bare = Command::new(std::env::current_exe()?)
        .args(["bare", std::str::from_utf8(&answer.body)?])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(bare.stdout.take().context("stdout is a pipe")?).lines();
    let bare_address: SocketAddr = lines.next_line().await?.context("the address")?.parse()?;
    let (ours, theirs) = (server.pid(), bare.id().context("it lives")?);

    let mut micros = [Vec::new(), Vec::new()];
    let mut ratios = Vec::new();
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let mut per_call = [0.0, 0.0];
        for (side, (pid, address)) in [(ours, server.address), (theirs, bare_address)]
            .into_iter()
            .enumerate()
        {
            let before = cpu_of(pid)?;
            let round = load(address, &headers, &body, CLIENTS, EACH).await?;
            per_call[side] = (cpu_of(pid)? - before).as_secs_f64() * 1e6 / (CLIENTS * EACH) as f64;
            micros[side].push(per_call[side]);
            if side == 0 {
                times.extend(round);
            }
        }
        ratios.push(per_call[0] / per_call[1]);
    }
    let [ours, theirs] = micros;
    println!(
        "held tools/call of hello, {CLIENTS} clients: server CPU {:.1} us a call, bare axum with the same bytes {:.1} us, ratio {:.2}; p50 {:?}, p99 {:?}",
        median(ours),
        median(theirs),
        median(ratios),
        percentile(times.clone(), 50),
        percentile(times, 99),
    );
    Ok(())
}

// Durable tasks against what the store can commit

fn row() -> Task {
    Task {
        id: TaskId(uuid::Uuid::new_v4()),
        pinned: Pinned {
            tenant: Tenant("local".into()),
            principal: Principal("local".into()),
            component: "long-job".into(),
            digest: "sha256:0".into(),
            tool: "long-job".into(),
            arguments: Json::from("{\"steps\":1,\"step-ms\":0}"),
            client: Json::from("{}"),
            revision: "2026-07-28".into(),
            policy: Json::from("{}"),
            host_abi: 1,
            idempotency_key: None,
        },
        created_at: Millis(0),
        updated_at: Millis(0),
        deadline_at: Millis(i64::MAX / 2),
        retention_ms: 1,
        version: 1,
        lease: Lease {
            epoch: 1,
            owner: Some(NodeId("bench".into())),
        },
        journal: JournalTail::default(),
        usage: Usage::default(),
        status: Status::default(),
        cancel_requested_at: None,
        wake_at: None,
        stalls: 0,
        questions: Vec::new(),
        state: State::Working,
    }
}

async fn durable_tasks() -> Result<()> {
    const FOR: Duration = Duration::from_secs(3);
    for clients in [1, 8, 64] {
        let folder = tempfile::tempdir()?;
        let store = Arc::new(Sqlite::open(&folder.path().join("bench.db"))?);
        let writes = join_all((0..clients).map(|_| {
            let store = Arc::clone(&store);
            async move {
                let began = Instant::now();
                let mut written = 0_u64;
                while began.elapsed() < FOR {
                    store.create(row(), None).await?;
                    written += 1;
                }
                Ok::<_, anyhow::Error>(written)
            }
        }));
        let mut rows = 0;
        for written in writes.await {
            rows += written?;
        }
        let raw = rows as f64 / FOR.as_secs_f64();

        let server = Server::start(Options::with_guests(&["long-job"])).await;
        let before = (server.figures().await, cpu_of(server.pid())?);
        let began = Instant::now();
        let runs = join_all((0..clients).map(|_| {
            let client = server.client();
            async move {
                let mut done = 0_u64;
                while began.elapsed() < FOR {
                    let id = client
                        .start("long-job", json!({ "steps": 1, "step-ms": 0 }))
                        .await;
                    while client.task(&id).await["status"] == "working" {}
                    done += 1;
                }
                done
            }
        }));
        let done: u64 = runs.await.into_iter().sum();
        let rate = done as f64 / began.elapsed().as_secs_f64();
        let after = (server.figures().await, cpu_of(server.pid())?);
        let figure =
            |figures: &Value, name: &str| figures["store"][name].as_f64().unwrap_or_default();
        let commits = figure(&after.0, "commits") - figure(&before.0, "commits");
        let changes = figure(&after.0, "changes") - figure(&before.0, "changes");
        println!(
            "durable create to completed, {clients} clients: {rate:.0} tasks/s; the store alone creates {raw:.0} rows/s; \
             {:.1} changes a commit, {:.0} us server CPU a task",
            changes / commits.max(1.0),
            (after.1 - before.1).as_secs_f64() * 1e6 / done as f64,
        );
    }
    Ok(())
}

// Answers while every guest computes

async fn polls_beside_spinners() -> Result<()> {
    const POLLS: usize = 5_000;
    const A_SECOND: u32 = 1_000;
    let server = Server::start(Options::with_guests(&["hello", "spin"])).await;
    let client = server.client();
    let mut ids = Vec::new();
    for _ in 0..16 {
        ids.push(client.start("spin", json!({ "seconds": 25 })).await);
    }
    let request = client.request("tasks/get", json!({ "taskId": ids[0] }));
    let headers = Client::headers(&request);
    let paced = async |headers: Vec<(String, String)>,
                       body: String,
                       count: usize,
                       a_second: u32|
           -> Result<Vec<Duration>> {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / a_second);
        let mut sent = Vec::with_capacity(count);
        for _ in 0..count {
            ticks.tick().await;
            let (headers, body, address) = (headers.clone(), body.clone(), server.address);
            sent.push(tokio::spawn(async move {
                load(address, &headers, &body, 1, 1).await
            }));
        }
        let mut times = Vec::with_capacity(count);
        for one in sent {
            times.extend(one.await??);
        }
        Ok(times)
    };
    let times = paced(headers, request.to_string(), POLLS, A_SECOND).await?;
    println!(
        "tasks/get beside 16 guests that compute, {A_SECOND}/s: p50 {:?}, p99 {:?}",
        percentile(times.clone(), 50),
        percentile(times, 99)
    );
    let (headers, body) = hello_request();
    let times = paced(headers, body, 1_500, 500).await?;
    println!(
        "held call of hello beside them, 500/s: p50 {:?}, p99 {:?}",
        percentile(times.clone(), 50),
        percentile(times, 99)
    );
    let mut used = Vec::new();
    for id in &ids {
        let shown = server
            .admin("GET", &format!("/v1/tasks/{id}"), "")
            .await
            .json();
        used.push(shown["cpuMs"].as_f64().unwrap_or_default());
    }
    let mean = used.iter().sum::<f64>() / used.len() as f64;
    let least = used.iter().copied().fold(f64::MAX, f64::min);
    let most = used.iter().copied().fold(0.0, f64::max);
    println!(
        "their shares of CPU: {:.2} to {:.2} of the mean of {mean:.0} ms",
        least / mean,
        most / mean
    );
    for id in &ids {
        client.result("tasks/cancel", json!({ "taskId": id })).await;
    }
    Ok(())
}

// Memory of what waits

async fn waiting_tasks() -> Result<()> {
    const TASKS: u64 = 200;
    let server = Server::start(Options::with_guests(&["ask-form"])).await;
    let client = server.client();
    let rss = async || {
        server.figures().await["process"]["rssKib"]
            .as_f64()
            .unwrap_or_default()
    };
    let ask = async |count: u64| {
        for _ in 0..count {
            let id = client.start("ask-form", json!({})).await;
            client.until_status(&id, "input_required").await;
        }
    };
    ask(20).await;
    let before = rss().await;
    ask(TASKS).await;
    println!(
        "a task that waits for an answer: {:.0} KiB of memory",
        (rss().await - before) / TASKS as f64
    );
    Ok(())
}
