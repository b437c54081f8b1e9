//! How long a task lives, and how long it can be read.

use std::time::{Duration, Instant};

use longshore_tests::http::send;
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::{Value, json};

use super::{answer, text, until_live};

/// Starts a task whose call asks for a deadline.
async fn start_with_deadline(
    client: &Client,
    tool: &str,
    arguments: Value,
    deadline_ms: u64,
) -> Value {
    let mut request = client.request(
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    );
    request["params"]["_meta"]["longshore/deadlineMs"] = json!(deadline_ms);
    let headers = Client::headers(&request);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let reply = send(
        client.address,
        "POST",
        "/mcp",
        &headers,
        request.to_string(),
    )
    .await
    .expect("the server answers");
    let created = reply.json();
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    created["result"].clone()
}

fn ttl(task: &Value) -> u64 {
    task["ttlMs"]
        .as_u64()
        .unwrap_or_else(|| panic!("no ttlMs in {task}"))
}

#[tokio::test]
async fn the_smallest_deadline_ends_a_task() {
    const OWN_MS: u64 = 500;
    const NODE_MS: u64 = 3_600_000;
    const RETENTION_MS: u64 = 7_200_000;
    let options = Options::with_guests(&["sleep", "spin", "hurry", "ask-form"])
        .set("deadline_ms", NODE_MS)
        .set("retention_ms", RETENTION_MS);
    let server = Server::start(options).await;
    let client = server.client();
    // What the call asks for, and what is the smallest of its, the tool's and the node's.
    let calls = [
        ("sleep", json!({ "seconds": 600 }), 300, 300),
        ("spin", json!({ "seconds": 25 }), 300, 300),
        ("ask-form", json!({}), 300, 300),
        ("hurry", json!({ "ms": 600_000 }), 300, 300),
        ("hurry", json!({ "ms": 600_000 }), NODE_MS, OWN_MS),
    ];
    for (tool, arguments, asked_ms, deadline_ms) in calls {
        let created = start_with_deadline(&client, tool, arguments, asked_ms).await;
        assert_eq!(
            ttl(&created),
            deadline_ms + RETENTION_MS,
            "{tool}: {created}"
        );
        let task = client
            .until_ended(created["taskId"].as_str().expect("a task has an id"))
            .await;
        assert_eq!(task["status"], "failed", "{tool}: {task}");
        assert_eq!(task["error"]["code"], 1013, "{tool}: {task}");
        assert_eq!(
            task["error"]["data"],
            json!({ "reason": "expired" }),
            "{tool}: {task}"
        );
        assert!(task.get("inputRequests").is_none(), "{tool}: {task}");
        // What is left of the time to read it, less the retention, is how long it lived.
        let lived = ttl(&task) - RETENTION_MS;
        assert!(
            (deadline_ms..deadline_ms + 10_000).contains(&lived),
            "{tool} lived for {lived} ms"
        );
    }
    until_live(&server, 0).await;

    // Nobody gets more than the node gives, and a deadline that is kept does nothing.
    let created =
        start_with_deadline(&client, "sleep", json!({ "seconds": 0 }), 10 * NODE_MS).await;
    assert_eq!(ttl(&created), NODE_MS + RETENTION_MS);
    let id = client.start("hurry", json!({ "ms": 0 })).await;
    assert_eq!(
        text(&client.until_ended(&id).await["result"]),
        "made it in 0 ms"
    );
}

/// What the guest has logged, for the operator.
async fn logged(server: &Server, id: &str) -> Vec<String> {
    let shown = server
        .admin("GET", &format!("/v1/tasks/{id}"), "")
        .await
        .json();
    let log = shown["output"]["log"].as_array().cloned();
    log.unwrap_or_default()
        .iter()
        .map(|line| line["message"].to_string())
        .collect()
}

#[tokio::test]
async fn at_its_deadline_a_wait_does_not_return_to_the_guest() {
    for warm in [64, 0] {
        let options = Options::with_guests(&["cleanup", "long-job"])
            .set("warm", warm)
            .set("park_from_ms", 0);
        let server = Server::start(options).await;
        let client = server.client();
        // This one would clean up, and say so, if it were told that it is cancelled.
        let asking = start_with_deadline(&client, "cleanup", json!({}), 1_500).await;
        let job = json!({ "steps": 1, "step-ms": 600_000 });
        let sleeping = start_with_deadline(&client, "long-job", job, 1_500).await;
        for created in [&asking, &sleeping] {
            let id = created["taskId"].as_str().expect("a task has an id");
            let task = client.until_ended(id).await;
            assert_eq!(task["status"], "failed", "{task}");
            assert_eq!(task["error"]["code"], 1013, "{task}");
        }
        until_live(&server, 0).await;
        let id = asking["taskId"].as_str().expect("a task has an id");
        assert_eq!(logged(&server, id).await, ["\"made\""]);
    }
}

#[tokio::test]
async fn a_task_whose_deadline_passed_while_no_server_ran_is_not_run_again() {
    let mut server = Server::start(Options::with_guests(&["cleanup"])).await;
    let client = server.client();
    let created = start_with_deadline(&client, "cleanup", json!({}), 2_000).await;
    let is_over = Instant::now() + Duration::from_millis(2_000);
    let id = created["taskId"].as_str().expect("a task has an id");
    client.until_status(id, "input_required").await;
    server.kill().await;
    wait::until("the deadline", Duration::from_secs(20), || async {
        (Instant::now() >= is_over).then_some(())
    })
    .await;
    server.restart().await;
    let task = server.client().until_ended(id).await;
    assert_eq!(task["error"]["code"], 1013, "{task}");
    assert_eq!(server.figures().await["runs"]["started"], 0);
}

#[tokio::test]
async fn time_to_live_never_shrinks_while_a_task_lives() {
    let options = Options::with_guests(&["ask-form", "long-job"])
        .set("deadline_ms", 100_000)
        .set("retention_ms", 50_000)
        .set("status_every_ms", 0);
    let server = Server::start(options).await;
    let client = server.client();
    for (tool, arguments) in [
        ("long-job", json!({ "steps": 30, "step-ms": 20 })),
        ("ask-form", json!({})),
    ] {
        let created = client.call(tool, arguments).await;
        assert_eq!(ttl(&created), 150_000, "{created}");
        let id = created["taskId"].as_str().expect("a task has an id");
        let ended = wait::until("the task to end", Duration::from_secs(60), || async {
            let task = client.task(id).await;
            if task["status"] == "input_required" {
                assert_eq!(ttl(&task), 150_000, "{task}");
                answer(&client, id, json!({ "person": { "action": "decline" } })).await;
            } else if task["status"] == "working" {
                assert_eq!(ttl(&task), 150_000, "{task}");
            } else {
                return Some(task);
            }
            None
        })
        .await;
        assert_eq!(ended["status"], "completed");
        assert!(
            (50_000..150_000).contains(&ttl(&ended)),
            "from its end on only the retention is left: {ended}"
        );
    }
}

#[tokio::test]
async fn an_ended_task_is_forgotten_after_its_retention() {
    let server = Server::start(Options::with_guests(&["modes"]).set("retention_ms", 2_000)).await;
    let client = server.client();
    // Longer than the retention, which does not begin before the end.
    let id = client.start("modes-always", json!({ "ms": 2_500 })).await;
    let task = client.until_ended(&id).await;
    assert_eq!(text(&task["result"]), "always after 2500 ms");
    assert_eq!(client.task(&id).await, task, "it can be read for a while");
    let error = wait::until(
        "the task to be forgotten",
        Duration::from_secs(20),
        || async {
            let body = client
                .send("tasks/get", json!({ "taskId": id }))
                .await
                .expect("the server answers")
                .json();
            body.get("error").cloned()
        },
    )
    .await;
    assert_eq!(error["code"], -32602, "{error}");
    // It looks like one that never was, to every method.
    let (_, never) = client
        .error(
            "tasks/get",
            json!({ "taskId": "00000000-0000-4000-8000-000000000000" }),
        )
        .await;
    assert_eq!(error, never);
    assert_eq!(
        client
            .error("tasks/cancel", json!({ "taskId": id }))
            .await
            .1["code"],
        -32602
    );
    let late = json!({ "taskId": id, "inputResponses": {} });
    assert_eq!(client.error("tasks/update", late).await.1["code"], -32602);
}
