//! Tasks on the wire: what is given out, what is shown in each state, what answers and cancels do.

use std::time::Duration;

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::{Value, json};

use super::{Error, Fine, SERVER_INFO, Sent, check, is_marked, members};

/// What every task shows, beside a message.
const MEMBERS: [&str; 8] = [
    "_meta",
    "createdAt",
    "lastUpdatedAt",
    "pollIntervalMs",
    "resultType",
    "status",
    "taskId",
    "ttlMs",
];

/// Checks a task in full: its members, with those of its state and perhaps a message, and their types.
fn assert_task(task: &Value, result_type: &str, status: &str, of_state: &[&str]) {
    let mut expected: Vec<&str> = MEMBERS
        .into_iter()
        .chain(of_state.iter().copied())
        .collect();
    if task.get("statusMessage").is_some() {
        assert!(task["statusMessage"].is_string(), "{task}");
        expected.push("statusMessage");
    }
    expected.sort_unstable();
    assert_eq!(members(task), expected, "{task}");
    assert!(is_marked(task), "{task}");
    assert_eq!(
        (&task["resultType"], &task["status"]),
        (&json!(result_type), &json!(status)),
        "{task}"
    );
    assert!(task["ttlMs"].as_u64().is_some_and(|ttl| ttl > 0), "{task}");
    assert!(
        task["pollIntervalMs"]
            .as_u64()
            .is_some_and(|interval| interval > 0),
        "{task}"
    );
    let id = task["taskId"].as_str().expect("an id is a string");
    assert!(
        id.len() >= 32
            && id
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() || byte == b'-'),
        "{id}"
    );
    let (created, updated) = (time(task, "createdAt"), time(task, "lastUpdatedAt"));
    assert!(created <= updated, "{task}");
}

/// A time in ISO 8601, UTC, to the millisecond, so that times compare as their texts do.
fn time<'t>(task: &'t Value, member: &str) -> &'t str {
    let text = task[member].as_str().expect("a time is a string");
    let form: String = text
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(form, "0000-00-00T00:00:00.000Z", "{text}");
    text
}

/// Checks an acknowledgement: clients refuse one that says anything.
fn assert_ack(ack: &Value) {
    assert_eq!(members(ack), ["_meta", "resultType"], "{ack}");
    assert_eq!(ack["resultType"], "complete");
    assert_eq!(members(&ack["_meta"]), [SERVER_INFO], "{ack}");
}

async fn update(client: &Client, id: &str, answers: Value) {
    assert_ack(
        &client
            .result(
                "tasks/update",
                json!({ "taskId": id, "inputResponses": answers }),
            )
            .await,
    );
}

async fn cancel(client: &Client, id: &str) {
    assert_ack(&client.result("tasks/cancel", json!({ "taskId": id })).await);
}

#[tokio::test]
async fn a_task_shows_what_belongs_to_its_state() {
    let server = Server::start(Options::with_guests(&["long-job"])).await;
    let client = server.client();
    let job = |steps: u32, ms: u32| json!({ "name": "long-job", "arguments": { "steps": steps, "step-ms": ms } });

    let created = client.result("tools/call", job(3, 400)).await;
    assert_task(&created, "task", "working", &[]);
    let id = created["taskId"].as_str().expect("an id is a string");
    // At once, on another connection: it was kept before it was given out.
    let seen = client.task(id).await;
    assert_task(&seen, "complete", "working", &[]);
    assert_eq!(
        (&seen["taskId"], &seen["createdAt"]),
        (&created["taskId"], &created["createdAt"])
    );
    let later = wait::until("another step", Duration::from_secs(30), || async {
        let task = client.task(id).await;
        (task["status"] == "working" && task["statusMessage"] == "step 2 of 3").then_some(task)
    })
    .await;
    assert_task(&later, "complete", "working", &[]);
    assert!(
        time(&later, "lastUpdatedAt") > time(&created, "lastUpdatedAt"),
        "{later}"
    );
    let done = client.until_ended(id).await;
    assert_task(&done, "complete", "completed", &["result"]);
    // The result is the one that the call would have had.
    let held = Client::plain(server.address)
        .result("tools/call", job(3, 1))
        .await;
    assert_eq!(done["result"], held);

    let id = client
        .start("long-job", json!({ "steps": 100, "step-ms": 1_000 }))
        .await;
    cancel(&client, &id).await;
    let cancelled = client.until_ended(&id).await;
    assert_task(&cancelled, "complete", "cancelled", &[]);

    // A deadline of the caller's own.
    let sent = Sent::edited(&client, "tools/call", job(100, 1_000), |request| {
        request["params"]["_meta"]["longshore/deadlineMs"] = json!(300);
    });
    let created = sent.to(server.address).await.json();
    let id = created["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("no task: {created}"))
        .to_owned();
    let failed = client.until_ended(&id).await;
    assert_task(&failed, "complete", "failed", &["error"]);
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["data"]),
        (&json!(1013), &json!({ "reason": "expired" }))
    );
    assert!(failed["error"]["message"].is_string(), "{failed}");
}

#[tokio::test]
async fn questions_are_shown_answered_and_gone() {
    let server = Server::start(Options::with_guests(&["ask-form"])).await;
    let client = server.client();
    let id = client.start("ask-form", json!({})).await;
    let asking = client.until_status(&id, "input_required").await;
    assert_task(&asking, "complete", "input_required", &["inputRequests"]);
    assert_eq!(members(&asking["inputRequests"]), ["person"]);
    let question = &asking["inputRequests"]["person"];
    assert_eq!(members(question), ["method", "params"], "{question}");
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(
        members(&question["params"]),
        ["message", "mode", "requestedSchema"]
    );
    assert_eq!(
        (&question["params"]["mode"], &question["params"]["message"]),
        (&json!("form"), &json!("Who are you?"))
    );
    let schema = &question["params"]["requestedSchema"];
    assert_eq!(
        (&schema["type"], members(&schema["properties"])),
        (&json!("object"), vec!["age", "choice", "name"])
    );

    // A malformed answer to an open question is told, and changes nothing.
    let fit = json!({ "name": "Ada", "age": 36, "choice": "green" });
    let wrong = [
        json!(null),
        json!("accept"),
        json!({}),
        json!({ "action": "accept" }),
        json!({ "action": "Accept", "content": fit }),
        json!({ "action": "accept", "content": [] }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept", "content": { "name": "Ada", "age": "36", "choice": "green" } }),
        json!({ "action": "accept", "content": { "name": "Ada", "age": 36.5, "choice": "green" } }),
        json!({ "action": "accept", "content": { "name": "Ada", "age": 151, "choice": "green" } }),
        json!({ "action": "accept", "content": { "name": "Ada", "age": 36, "choice": "mauve" } }),
    ];
    for answer in wrong {
        let params = json!({ "taskId": id, "inputResponses": { "person": answer } });
        let (status, error) = client.error("tasks/update", params).await;
        assert_eq!(
            (status, &error["code"]),
            (400, &json!(-32602)),
            "{answer}: {error}"
        );
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains("person")),
            "{error}"
        );
    }
    // What answers no open question is acknowledged in silence, whatever it looks like.
    update(&client, &id, json!({})).await;
    update(
        &client,
        &id,
        json!({ "nobody": { "action": "accept", "content": {} }, "none": 7 }),
    )
    .await;
    assert_eq!(
        client.task(&id).await["inputRequests"],
        asking["inputRequests"]
    );
    let rows = vec![
        (
            "no answers",
            Sent::new(&client, "tasks/update", json!({ "taskId": id })),
            Error(400, -32602),
        ),
        (
            "answers in a list",
            Sent::new(
                &client,
                "tasks/update",
                json!({ "taskId": id, "inputResponses": [] }),
            ),
            Error(400, -32602),
        ),
    ];
    check(server.address, rows).await;

    update(
        &client,
        &id,
        json!({ "person": { "action": "accept", "content": fit } }),
    )
    .await;
    // The very next look shows it: nobody is asked twice.
    let next = client.task(&id).await;
    assert!(
        next.get("inputRequests").is_none() && next["status"] != "input_required",
        "{next}"
    );
    // The first answer counts.
    update(&client, &id, json!({ "person": { "action": "decline" } })).await;
    let done = client.until_ended(&id).await;
    assert_task(&done, "complete", "completed", &["result"]);
    assert_eq!(
        done["result"]["content"][0]["text"],
        "Ada is 36 and chose green"
    );

    for (action, text) in [
        ("decline", "the person declined to answer"),
        ("cancel", "the person closed the question"),
    ] {
        let id = client.start("ask-form", json!({})).await;
        client.until_status(&id, "input_required").await;
        update(&client, &id, json!({ "person": { "action": action } })).await;
        let done = client.until_ended(&id).await;
        assert_eq!(done["result"]["content"][0]["text"], text);
    }

    // A cancel takes the question away; an answer then is acknowledged and lost.
    let id = client.start("ask-form", json!({})).await;
    client.until_status(&id, "input_required").await;
    cancel(&client, &id).await;
    assert!(client.task(&id).await.get("inputRequests").is_none());
    let cancelled = client.until_ended(&id).await;
    assert_task(&cancelled, "complete", "cancelled", &[]);
    update(&client, &id, json!({ "person": { "action": "decline" } })).await;
    assert_eq!(client.task(&id).await, cancelled);
}

#[tokio::test]
async fn an_ended_task_stays_as_it_is() {
    let server = Server::start(Options::with_guests(&["long-job"])).await;
    let client = server.client();
    let done_id = client
        .start("long-job", json!({ "steps": 1, "step-ms": 1 }))
        .await;
    let gone_id = client
        .start("long-job", json!({ "steps": 100, "step-ms": 1_000 }))
        .await;
    cancel(&client, &gone_id).await;
    for id in [done_id, gone_id] {
        let ended = client.until_ended(&id).await;
        cancel(&client, &id).await;
        cancel(&client, &id).await;
        update(&client, &id, json!({ "person": { "action": "decline" } })).await;
        assert_eq!(client.task(&id).await, ended);
    }
}

#[tokio::test]
async fn the_header_names_the_task_if_it_is_there() {
    let server = Server::start(Options::with_guests(&["long-job"])).await;
    let client = server.client();
    let a = client
        .start("long-job", json!({ "steps": 1, "step-ms": 1 }))
        .await;
    let b = client
        .start("long-job", json!({ "steps": 100, "step-ms": 1_000 }))
        .await;
    client.until_ended(&a).await;
    const NAME: &str = "mcp-name";
    let mut rows = Vec::new();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let about = |id: &str| {
            Sent::new(
                &client,
                method,
                json!({ "taskId": id, "inputResponses": {} }),
            )
        };
        let other = Error(400, -32020);
        rows.extend([
            (
                "missing, as with clients that do not know it",
                about(&a).without(NAME),
                Fine,
            ),
            ("the same", about(&a), Fine),
            (
                "white space around it",
                about(&a).with(NAME, &format!(" {a}\t")),
                Fine,
            ),
            ("of another task", about(&b).with(NAME, &a), other.clone()),
            ("of no task", about(&b).with(NAME, "x"), other.clone()),
            (
                "other case",
                about(&b).with(NAME, &b.to_uppercase()),
                other.clone(),
            ),
            ("empty", about(&b).with(NAME, ""), other.clone()),
            ("doubled", about(&b).and(NAME, &b), other.clone()),
            ("broken base64", about(&b).with(NAME, "=?base64?*?="), other),
        ]);
    }
    check(server.address, rows).await;
    // Nothing was done to the task in the body of those that were refused.
    assert_eq!(client.task(&b).await["status"], "working");
    cancel(&client, &b).await;
    client.until_ended(&b).await;
}

#[tokio::test]
async fn ids_of_nothing_are_all_refused_alike() {
    let server = Server::start(Options::with_guests(&["long-job"]).set("retention_ms", 200)).await;
    let client = server.client();
    let over = client
        .start("long-job", json!({ "steps": 1, "step-ms": 1 }))
        .await;
    // Its retention passes, and then it is as if it had never been.
    let refusal = wait::until(
        "the task to be forgotten",
        Duration::from_secs(30),
        || async {
            let reply = client
                .send("tasks/get", json!({ "taskId": over }))
                .await
                .expect("the server answers");
            (reply.status != 200).then_some(reply)
        },
    )
    .await;
    assert_eq!(
        (refusal.status, &refusal.json()["error"]["code"]),
        (400, &json!(-32602)),
        "{}",
        refusal.json()
    );
    let dashless = over.replace('-', "");
    let ids = [
        over.as_str(),
        "00000000-0000-4000-8000-000000000000",
        &over.to_uppercase(),
        &dashless,
        "none",
        "",
        "1",
        "../tasks",
        "' or 1=1 --",
        &"x".repeat(10_000),
    ];
    for id in ids {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let reply = Sent::new(&client, method, params).to(server.address).await;
            assert_eq!(
                (reply.status, &reply.body),
                (refusal.status, &refusal.body),
                "{method} {id}"
            );
        }
    }
    let no_id = [
        json!({}),
        json!({ "taskId": null }),
        json!({ "taskId": 5 }),
        json!({ "taskId": ["x"] }),
    ];
    for params in no_id {
        for method in ["tasks/get", "tasks/cancel"] {
            let (status, error) = client.error(method, params.clone()).await;
            assert_eq!(
                (status, &error["code"]),
                (400, &json!(-32602)),
                "{method} {params}"
            );
        }
    }
}
