//! How a call reaches its caller: on the request itself or as a task; and what becomes of a task that is
//! left alone, cancelled, asked, answered or late.

mod answers;
mod cancel;
mod deadline;
mod held;

use std::cell::RefCell;
use std::time::Duration;

use futures_util::future::join_all;
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::{Value, json};

/// Instances that exist now.
async fn live_stores(server: &Server) -> u64 {
    server.figures().await["runs"]["liveStores"]
        .as_u64()
        .expect("instances are counted")
}

async fn until_live(server: &Server, count: u64) {
    wait::until(
        &format!("{count} instances to live"),
        Duration::from_secs(20),
        || async { (live_stores(server).await == count).then_some(()) },
    )
    .await;
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// The acknowledgement of an update or a cancel holds nothing but what every result has.
async fn acknowledged(client: &Client, method: &str, params: Value) {
    let result = client.result(method, params).await;
    let members: Vec<&String> = result
        .as_object()
        .expect("a result is an object")
        .keys()
        .collect();
    assert!(
        members
            .iter()
            .all(|name| *name == "resultType" || *name == "_meta"),
        "{result}"
    );
    assert_eq!(result["resultType"], "complete");
}

async fn cancel(client: &Client, id: &str) {
    acknowledged(client, "tasks/cancel", json!({ "taskId": id })).await;
}

async fn answer(client: &Client, id: &str, responses: Value) {
    acknowledged(
        client,
        "tasks/update",
        json!({ "taskId": id, "inputResponses": responses }),
    )
    .await;
}

/// What a caller is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Result,
    Task,
}
use Carrier::{Result, Task};

/// How the call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// It ends long before the inline budget is over.
    Fast,
    /// It ends long after the inline budget is over.
    Slow,
    /// It ends before the budget is over, and says first that nobody need wait.
    Detached,
}
use Pace::{Detached, Fast, Slow};

/// A mode, a pace, and what a client that knows tasks is given. A client that does not is always held.
const CARRIERS: [(&str, Pace, Carrier); 10] = [
    ("never", Fast, Result),
    ("never", Slow, Result),
    ("on-detach", Fast, Result),
    ("on-detach", Slow, Result),
    ("on-detach", Detached, Task),
    ("auto", Fast, Result),
    ("auto", Slow, Task),
    ("auto", Detached, Task),
    ("always", Fast, Task),
    ("always", Slow, Task),
];

/// Long enough that a slow machine does not make a difference, short enough to wait for.
const WORK_MS: u64 = 1_000;

#[tokio::test]
async fn mode_client_and_clock_decide_who_waits() {
    // Two servers, so that fast and slow do not depend on how fast this machine is today.
    let patient =
        Server::start(Options::with_guests(&["modes"]).set("inline_budget_ms", 120_000)).await;
    let hasty = Server::start(Options::with_guests(&["modes"]).set("inline_budget_ms", 50)).await;
    let mut calls = Vec::new();
    for (mode, pace, carrier) in CARRIERS {
        let (server, arguments) = match pace {
            Fast => (&patient, json!({ "ms": 0 })),
            Slow => (&hasty, json!({ "ms": WORK_MS })),
            Detached => (&patient, json!({ "ms": WORK_MS, "detach": true })),
        };
        let without_tasks = Client {
            capabilities: json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} }),
            ..server.client()
        };
        let clients = [
            (server.client(), carrier),
            (without_tasks, Result),
            (Client::plain(server.address), Result),
        ];
        for (client, carrier) in clients {
            let arguments = arguments.clone();
            calls.push(async move {
                let what = format!("{mode}, {pace:?}, {}", client.capabilities);
                let ms = arguments["ms"].clone();
                let mut given = client.call(&format!("modes-{mode}"), arguments).await;
                let is_task = given["resultType"] == "task";
                assert_eq!(
                    if is_task { Task } else { Result },
                    carrier,
                    "{what}: {given}"
                );
                if is_task {
                    assert!(given.get("result").is_none(), "{what}: {given}");
                    let task = client
                        .until_ended(given["taskId"].as_str().expect("a task has an id"))
                        .await;
                    assert_eq!(task["status"], "completed", "{what}: {task}");
                    given = task["result"].clone();
                }
                assert_eq!(given["resultType"], "complete", "{what}: {given}");
                assert_eq!(text(&given), format!("{mode} after {ms} ms"), "{what}");
            });
        }
    }
    join_all(calls).await;
}

#[tokio::test]
async fn a_status_names_the_step_and_never_goes_back() {
    const STEPS: u32 = 20;
    let server = Server::start(Options::with_guests(&["long-job"]).set("status_every_ms", 0)).await;
    let client = server.client();
    let id = client
        .start("long-job", json!({ "steps": STEPS, "step-ms": 50 }))
        .await;
    let seen = RefCell::new(Vec::new());
    let task = wait::until("the task to end", Duration::from_secs(60), || async {
        let task = client.task(&id).await;
        if let Some(message) = task.get("statusMessage") {
            seen.borrow_mut().push(step_of(message, STEPS));
        }
        (task["status"] != "working").then_some(task)
    })
    .await;
    assert_eq!(text(&task["result"]), format!("done: {STEPS} steps"));
    let mut seen = seen.into_inner();
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(
        seen.last(),
        Some(&STEPS),
        "the last status is shown with the end"
    );
    seen.dedup();
    // Asked every few milliseconds for a second: with one status in all, nothing would be followed.
    assert!(seen.len() >= 5, "{seen:?}");
}

fn step_of(message: &Value, steps: u32) -> u32 {
    let message = message.as_str().expect("a status is a text");
    message
        .strip_prefix("step ")
        .and_then(|rest| rest.strip_suffix(&format!(" of {steps}")))
        .and_then(|step| step.parse().ok())
        .unwrap_or_else(|| panic!("{message:?} names no step"))
}

#[tokio::test]
async fn a_flood_of_statuses_shows_the_last() {
    let options = Options::with_guests(&["limits"])
        .set("inline_budget_ms", 0)
        .set("status_every_ms", 60_000);
    let server = Server::start(options).await;
    let client = server.client();
    let commits = async || {
        server.figures().await["store"]["changes"]
            .as_u64()
            .expect("changes are counted")
    };
    let before = commits().await;
    let id = client.start("limits", json!({ "what": "status" })).await;
    let task = client.until_ended(&id).await;
    assert_eq!(text(&task["result"]), "set 10000 statuses");
    assert_eq!(task["statusMessage"], "status 10000");
    let changes = commits().await - before;
    assert!(
        changes <= 5,
        "{changes} writes for statuses that nobody could have read"
    );
}
