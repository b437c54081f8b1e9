//! The experimental tasks of 2025-11-25: the same tasks under other names.

use longshore_tests::component::{Made, Mode, Tool};
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, OLDEST, Session};
use serde_json::{Value, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";

async fn server() -> Server {
    Server::start(Options::with_guests(&[
        "ask-any",
        "hello",
        "long-job",
        "panic",
        "tool-error",
    ]))
    .await
}

/// Calls a tool as a task, and gives back what is said of it.
async fn start(session: &Session, tool: &str, arguments: Value, task: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments, "task": task });
    let mut created = session.result("tools/call", params).await;
    let members: Vec<&String> = created.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["task"], "{created}");
    created["task"].take()
}

fn id(task: &Value) -> &str {
    task["taskId"].as_str().expect("a task has an id")
}

async fn get(session: &Session, task: &Value) -> Value {
    session
        .result("tasks/get", json!({ "taskId": id(task) }))
        .await
}

#[tokio::test]
async fn a_call_is_a_task_if_its_client_asks_for_one() {
    let server = server().await;
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let task = start(&session, "hello", json!({ "name": "Ada" }), json!({})).await;
    let mut members: Vec<&String> = task.as_object().expect("an object").keys().collect();
    members.sort();
    assert_eq!(
        members,
        [
            "createdAt",
            "lastUpdatedAt",
            "pollInterval",
            "status",
            "taskId",
            "ttl"
        ]
    );
    assert!(task["ttl"].as_u64().is_some_and(|ttl| ttl > 0), "{task}");
    // Its result waits for its end.
    let result = session
        .result("tasks/result", json!({ "taskId": id(&task) }))
        .await;
    assert_eq!(
        result,
        json!({ "content": [{ "type": "text", "text": "Hello, Ada!" }], "_meta": { RELATED: { "taskId": id(&task) } } })
    );
    assert_eq!(get(&session, &task).await["status"], "completed");
    // And it is the same again.
    assert_eq!(
        session
            .result("tasks/result", json!({ "taskId": id(&task) }))
            .await,
        result
    );

    // However little it is to be kept, whoever waits hears its end.
    let hello = json!({ "name": "Ada" });
    let task = start(&session, "hello", hello, json!({ "ttl": 0 })).await;
    let again = session
        .result("tasks/result", json!({ "taskId": id(&task) }))
        .await;
    assert_eq!(again["content"], result["content"]);

    // Whoever does not ask waits.
    let result = session
        .result(
            "tools/call",
            json!({ "name": "hello", "arguments": { "name": "Ada" } }),
        )
        .await;
    assert_eq!(result["content"][0]["text"], "Hello, Ada!");
    // The revision before knows nothing of it.
    let older = Session::open(server.address, OLDEST, json!({})).await;
    let params = json!({ "name": "hello", "arguments": { "name": "Ada" }, "task": { "ttl": 1 } });
    assert_eq!(
        older.result("tools/call", params).await["content"][0]["text"],
        "Hello, Ada!"
    );
}

#[tokio::test]
async fn how_tasks_end() {
    let server = server().await;
    let session = Session::open(server.address, NEWEST, json!({})).await;
    // A tool that did not manage has a result, and its task failed.
    let task = start(
        &session,
        "tool-error",
        json!({ "message": "no luck" }),
        json!({}),
    )
    .await;
    let result = session
        .result("tasks/result", json!({ "taskId": id(&task) }))
        .await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(get(&session, &task).await["status"], "failed");
    // One that broke has an error.
    let task = start(&session, "panic", json!({}), json!({})).await;
    let (status, error) = session
        .error("tasks/result", json!({ "taskId": id(&task) }))
        .await;
    assert_eq!((status, &error["data"]["reason"]), (200, &json!("trap")));
    assert_eq!(get(&session, &task).await["status"], "failed");
    // A cancel is answered with its end, and there is none after that.
    let task = start(
        &session,
        "long-job",
        json!({ "steps": 1000, "step-ms": 100 }),
        json!({ "ttl": 60_000 }),
    )
    .await;
    assert_eq!(get(&session, &task).await["status"], "working");
    let waits = session.request("tasks/result", json!({ "taskId": id(&task) }));
    let mut waits = session.begin(&waits).await;
    let cancelled = session
        .result("tasks/cancel", json!({ "taskId": id(&task) }))
        .await;
    assert_eq!(
        (&cancelled["status"], &cancelled["taskId"]),
        (&json!("cancelled"), &task["taskId"])
    );
    let mut last = None;
    while let Some(event) = waits.event().await {
        last = event.data.or(last);
    }
    assert!(last.is_some_and(|response| response["error"]["code"].is_i64()));
    let (_, error) = session
        .error("tasks/cancel", json!({ "taskId": id(&task) }))
        .await;
    assert_eq!(error["code"], -32602);
}

#[tokio::test]
async fn what_cannot_be_a_task_says_so() {
    let server = server().await;
    let made = Made::of([Tool {
        mode: Mode::Never,
        ..Tool::named("never")
    }]);
    assert_eq!(server.upload("never", made.bytes()).await.status, 201);
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let rows = [
        (json!({ "name": "never", "task": {} }), -32601),
        (json!({ "name": "nothing", "task": {} }), -32602),
        (
            json!({ "name": "hello", "arguments": { "name": 7 }, "task": {} }),
            -32602,
        ),
        (
            json!({ "name": "hello", "arguments": { "name": "x" }, "task": true }),
            -32602,
        ),
        (
            json!({ "name": "hello", "arguments": { "name": "x" }, "task": { "ttl": "long" } }),
            -32602,
        ),
        (
            json!({ "name": "hello", "arguments": { "name": "x" }, "task": { "ttl": -1 } }),
            -32602,
        ),
    ];
    for (params, code) in rows {
        let (status, error) = session.error("tools/call", params.clone()).await;
        assert_eq!(
            (status, &error["code"]),
            (200, &json!(code)),
            "{params}: {error}"
        );
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for params in [
            json!({}),
            json!({ "taskId": 1 }),
            json!({ "taskId": "3f2c1a44-0000-4000-8000-000000000000" }),
            json!({ "taskId": "x" }),
        ] {
            let (_, error) = session.error(method, params.clone()).await;
            assert_eq!(error["code"], -32602, "{method} {params}");
        }
    }
}

#[tokio::test]
async fn what_a_task_asks_is_put_to_whoever_waits_for_its_result() {
    let mut server = server().await;
    let session = Session::able(server.address, NEWEST).await;
    let task = start(&session, "ask-any", json!({ "way": "form" }), json!({})).await;
    longshore_tests::wait::until(
        "the task to ask",
        std::time::Duration::from_secs(60),
        || async { (get(&session, &task).await["status"] == "input_required").then_some(()) },
    )
    .await;
    // It survives the server, and a new session of the same person finds it.
    let made = task["taskId"].clone();
    server.restart().await;
    let session = Session::able(server.address, NEWEST).await;
    let listed = session.result("tasks/list", json!({})).await;
    assert_eq!(listed["tasks"][0]["taskId"], made, "{listed}");
    assert_eq!(listed["tasks"][0]["status"], "input_required");
    let waits = session.request("tasks/result", json!({ "taskId": made }));
    let mut stream = session.begin(&waits).await;
    let question = loop {
        if let Some(data) = stream.event().await.expect("it goes on").data {
            break data;
        }
    };
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(
        question["params"]["_meta"],
        json!({ RELATED: { "taskId": made } })
    );
    // What does not fit is refused, and the question stays.
    for _ in 0..2 {
        let reply = session
            .answer(
                &question["id"],
                json!({ "action": "accept", "content": {} }),
            )
            .await;
        assert_eq!(reply.status, 400);
    }
    drop(stream);
    let mut stream = session
        .begin(&session.request("tasks/result", json!({ "taskId": made })))
        .await;
    let question = loop {
        if let Some(data) = stream.event().await.expect("it goes on").data {
            break data;
        }
    };
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    assert_eq!(session.answer(&question["id"], answer).await.status, 202);
    let mut last = None;
    while let Some(event) = stream.event().await {
        last = event.data.or(last);
    }
    let response = last.expect("it is answered");
    assert_eq!(
        response["result"]["content"][0]["text"], r#"accepted {"name":"Ada"}"#,
        "{response}"
    );
}

#[tokio::test]
async fn both_eras_see_the_same_tasks() {
    let server = server().await;
    let session = Session::able(server.address, NEWEST).await;
    let client = server.client();
    let theirs = client
        .start("long-job", json!({ "steps": 2, "step-ms": 200 }))
        .await;
    let ours = start(&session, "ask-any", json!({ "way": "form" }), json!({})).await;
    // A page has fifty at most.
    for _ in 0..50 {
        start(&session, "hello", json!({ "name": "x" }), json!({})).await;
    }
    let mut seen = Vec::new();
    let mut params = json!({});
    loop {
        let page = session.result("tasks/list", params).await;
        seen.extend(
            page["tasks"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|task| task["taskId"].clone()),
        );
        match page.get("nextCursor") {
            None => break,
            Some(cursor) => params = json!({ "cursor": cursor }),
        }
    }
    assert_eq!(seen.len(), 52);
    assert!(seen.contains(&json!(theirs)) && seen.contains(&ours["taskId"]));
    let (_, error) = session
        .error("tasks/list", json!({ "cursor": "nowhere" }))
        .await;
    assert_eq!(error["code"], -32602);
    // Each can go on with what the other began.
    let result = session
        .result("tasks/result", json!({ "taskId": theirs }))
        .await;
    assert_eq!(result["content"][0]["text"], "done: 2 steps");
    client.until_status(id(&ours), "input_required").await;
    client
        .result("tasks/update", json!({ "taskId": id(&ours), "inputResponses": { "question": { "action": "decline" } } }))
        .await;
    let ended = client.until_ended(id(&ours)).await;
    assert_eq!(ended["result"]["content"][0]["text"], "declined");
    assert_eq!(ended["result"]["resultType"], "complete");
}
