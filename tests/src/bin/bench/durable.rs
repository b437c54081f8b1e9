//! Durable tasks, from their creation to their end, against what the store alone can commit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures_util::future::join_all;
use longshore_store::sqlite::Sqlite;
use longshore_tasks::event::{Event, Outcome};
use longshore_tasks::id::{Json, Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::store::{Commit, TaskStore as _};
use longshore_tasks::task::{JournalTail, Lease, Pinned, State, Status, Task, Usage};
use longshore_tests::kept::{Kept, Prepared};
use longshore_tests::process::{Options, Server};
use longshore_tests::usage::cpu_of;
use serde_json::{Value, json};

use super::figures::{ROUNDS, figure, median, micros, part};

/// How long each side works in each round.
const FOR: Duration = Duration::from_millis(1_000);

pub(crate) async fn measure() -> Result<()> {
    part("durable tasks, created and completed, against the store alone with the same rows");
    for clients in [1, 8, 64] {
        let folder = tempfile::tempdir()?;
        let store = Arc::new(Sqlite::open(&folder.path().join("bench.db"))?);
        let server = Server::start(Options::with_guests(&["long-job"])).await;
        let (mut alone, mut whole, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let (mut batch, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let raw = rows(&store, clients).await?;
            let before = (server.figures().await, cpu_of(server.pid())?);
            let done = tasks(&server, clients).await?;
            let after = (server.figures().await, cpu_of(server.pid())?);
            let grown = |name: &str| {
                let of = |figures: &Value| figures["store"][name].as_f64().unwrap_or(f64::NAN);
                of(&after.0) - of(&before.0)
            };
            alone.push(raw);
            whole.push(done.rate);
            ratios.push(done.rate / raw);
            batch.push(grown("changes") / grown("commits"));
            cpu.push(micros(after.1 - before.1) / done.count);
        }
        figure(
            &format!("{clients} client(s): tasks a second; store alone; ratio"),
            format!(
                "{:.0}; {:.0}; {:.2}",
                median(&whole),
                median(&alone),
                median(&ratios)
            ),
        );
        figure(
            "      changes a commit; server CPU a task",
            format!("{:.1}; {:.0} us", median(&batch), median(&cpu)),
        );
    }
    Ok(())
}

/// Rows created and ended a second, by so many writers that each wait for their own.
async fn rows(store: &Arc<Sqlite>, writers: usize) -> Result<f64> {
    let began = Instant::now();
    let writers = (0..writers).map(|_| {
        let store = Arc::clone(store);
        // Each on a task of its own, as the callers of a server are.
        tokio::spawn(async move {
            let mut written = 0_u32;
            while began.elapsed() < FOR {
                let row = row();
                store.create(row.clone(), None, None).await?;
                let ended = Event::Ended {
                    outcome: Outcome::Completed(Json::from(RESULT)),
                    usage: Usage::default(),
                };
                let step = row
                    .apply(ended, Millis(1))
                    .ok()
                    .context("a working task can end")?;
                let commit = Commit {
                    from_version: row.version,
                    from_epoch: row.lease.epoch,
                    task: step.task,
                    segment: None,
                    output: None,
                };
                store.commit(commit).await?;
                written += 1;
            }
            Ok::<_, anyhow::Error>(written)
        })
    });
    let mut sum = 0;
    for written in join_all(writers).await {
        sum += written??;
    }
    Ok(f64::from(sum) / began.elapsed().as_secs_f64())
}

/// Tasks that were done.
struct Done {
    count: f64,
    rate: f64,
}

/// Tasks created and seen completed by so many clients, each with a connection of its own.
async fn tasks(server: &Server, clients: usize) -> Result<Done> {
    let client = server.client();
    let call = json!({ "name": "long-job", "arguments": { "steps": 1, "step-ms": 0 } });
    let start = Prepared::of(&client, "tools/call", call);
    let began = Instant::now();
    let clients = (0..clients).map(|_| {
        let (client, start) = (client.clone(), start.clone());
        tokio::spawn(async move {
            let mut kept = Kept::open(client.address).await?;
            let mut done = 0_u32;
            while began.elapsed() < FOR {
                let created = kept.result(&start).await?;
                let get =
                    Prepared::of(&client, "tasks/get", json!({ "taskId": created["taskId"] }));
                // A poll that comes before there is news waits for it.
                while kept.result(&get).await?["status"] == "working" {}
                done += 1;
            }
            Ok::<_, anyhow::Error>(done)
        })
    });
    let mut sum = 0;
    for done in join_all(clients).await {
        sum += done??;
    }
    let count = f64::from(sum);
    Ok(Done {
        count,
        rate: count / began.elapsed().as_secs_f64(),
    })
}

const RESULT: &str =
    r#"{"resultType":"complete","content":[{"type":"text","text":"done: 1 steps"}]}"#;

fn row() -> Task {
    Task {
        journal_key: None,
        id: TaskId(uuid::Uuid::new_v4()),
        pinned: Pinned {
            tenant: Tenant("local".into()),
            principal: Principal("local".into()),
            component: "long-job".into(),
            digest: format!("sha256:{:064}", 0),
            tool: "long-job".into(),
            arguments: Json::from("{\"steps\":1,\"step-ms\":0}"),
            client: Json::from("{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"),
            revision: "2026-07-28".into(),
            policy: Json::from(
                serde_json::to_string(&longshore_policy::limits::Limits::default())
                    .expect("limits are numbers with names"),
            ),
            host_abi: 1,
            idempotency_key: None,
        },
        created_at: Millis(0),
        updated_at: Millis(0),
        deadline_at: Millis(i64::MAX / 2),
        retention_ms: 24 * 3_600_000,
        version: 1,
        lease: Lease {
            epoch: 1,
            owner: Some(NodeId("bench".into())),
        },
        journal: JournalTail::default(),
        usage: Usage::default(),
        status: Status::default(),
        reach: longshore_tasks::task::Reach::Id,
        cancel_requested_at: None,
        wake_at: None,
        stalls: 0,
        questions: Vec::new(),
        state: State::Working,
    }
}
