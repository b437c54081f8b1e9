//! Calls that are made again: with answers to what they asked, or under a key of their caller.

use std::time::Duration;

use futures_util::FutureExt as _;
use longshore_tests::component::Made;
use longshore_tests::events;
use longshore_tests::kept::{Kept, Prepared};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::{Value, json};

/// Somebody who can be shown a form and knows nothing of tasks.
fn without_tasks(server: &Server) -> Client {
    Client {
        capabilities: json!({ "elicitation": { "form": {} } }),
        ..server.client()
    }
}

fn again(tool: &str, arguments: &Value, state: &Value, responses: &Value) -> Value {
    json!({
        "name": tool,
        "arguments": arguments,
        "requestState": state,
        "inputResponses": responses,
    })
}

fn accept(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

async fn only_task(server: &Server) -> Value {
    let tasks = server.admin("GET", "/v1/tasks", "").await.json();
    let tasks = tasks["tasks"].as_array().expect("a list").clone();
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    let id = tasks[0]["id"].as_str().expect("an id").to_owned();
    server
        .admin("GET", &format!("/v1/tasks/{id}"), "")
        .await
        .json()
}

async fn until_ended(server: &Server, status: &str) {
    wait::until("the run to end", Duration::from_secs(30), || async {
        (only_task(server).await["status"] == status).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_state_leads_back_to_its_call_and_to_nothing_else() {
    let server = Server::start(Options::with_guests(&["conformance"])).await;
    let client = without_tasks(&server);
    let (tool, none) = ("test_input_required_result_multi_round", json!({}));
    let first = client.call(tool, none.clone()).await;
    assert_eq!(first["resultType"], "input_required", "{first}");
    assert_eq!(
        first["inputRequests"]["step1"]["method"],
        "elicitation/create"
    );
    assert!(first.get("taskId").is_none(), "{first}");
    let state = &first["requestState"];
    let ada = || json!({ "step1": accept(&json!({ "name": "Ada" })) });

    // What is not this call, or not this state, is refused and changes nothing.
    let tampered = json!(format!("{}-TAMPERED", state.as_str().unwrap()));
    let other = "test_input_required_result_elicitation";
    let ill = json!({ "step1": 12345 });
    for (what, params) in [
        ("tampered", again(tool, &none, &tampered, &ada())),
        ("empty", again(tool, &none, &json!(""), &ada())),
        ("no text", again(tool, &none, &json!(5), &ada())),
        ("another tool", again(other, &none, state, &ada())),
        (
            "other arguments",
            again(tool, &json!({ "a": 1 }), state, &ada()),
        ),
        ("malformed answer", again(tool, &none, state, &ill)),
    ] {
        let (status, error) = client.error("tools/call", params).await;
        assert_eq!(
            (status, &error["code"]),
            (400, &json!(-32602)),
            "{what}: {error}"
        );
    }

    // Without the answer that is needed it is asked again, and what nobody asked for is ignored.
    let stranger = json!({ "stranger": accept(&json!({})) });
    let same = client
        .result("tools/call", again(tool, &none, state, &stranger))
        .await;
    assert_eq!(same["inputRequests"], first["inputRequests"]);

    let second = client
        .result("tools/call", again(tool, &none, state, &ada()))
        .await;
    assert!(second["inputRequests"]["step2"].is_object(), "{second}");
    assert_ne!(second["requestState"], *state);
    // The same answers again join; others come too late.
    let joined = client
        .result("tools/call", again(tool, &none, state, &ada()))
        .await;
    assert_eq!(joined["inputRequests"], second["inputRequests"]);
    let eve = json!({ "step1": accept(&json!({ "name": "Eve" })) });
    let (_, error) = client
        .error("tools/call", again(tool, &none, state, &eve))
        .await;
    assert_eq!(error["code"], -32602, "{error}");

    let green = json!({ "step2": accept(&json!({ "color": "green" })) });
    let last = again(tool, &none, &second["requestState"], &green);
    let done = client.result("tools/call", last.clone()).await;
    assert_eq!(text(&done), "Ada likes green");
    // After the end the same holds.
    assert_eq!(client.result("tools/call", last).await, done);
    let (_, error) = client
        .error("tools/call", again(tool, &none, state, &eve))
        .await;
    assert_eq!(error["code"], -32602, "{error}");

    // Nobody was told the id, so nobody follows it as a task.
    let id = only_task(&server).await["id"].clone();
    let (_, error) = server
        .client()
        .error("tasks/get", json!({ "taskId": id }))
        .await;
    assert_eq!(error["code"], -32602, "{error}");
}

#[tokio::test]
async fn a_question_of_a_held_call_is_answered_after_a_restart() {
    let mut server = Server::start(Options::with_guests(&["conformance"])).await;
    let (tool, none) = ("test_input_required_result_multi_round", json!({}));
    let first = without_tasks(&server).call(tool, none.clone()).await;
    server.kill().await;
    server.restart().await;
    let ada = json!({ "step1": accept(&json!({ "name": "Ada" })) });
    let second = without_tasks(&server)
        .result(
            "tools/call",
            again(tool, &none, &first["requestState"], &ada),
        )
        .await;
    server.kill().await;
    server.restart().await;
    let green = json!({ "step2": accept(&json!({ "color": "green" })) });
    let params = again(tool, &none, &second["requestState"], &green);
    let done = without_tasks(&server)
        .result("tools/call", params.clone())
        .await;
    assert_eq!(text(&done), "Ada likes green");
    server.kill().await;
    server.restart().await;
    let kept = without_tasks(&server).result("tools/call", params).await;
    assert_eq!(kept, done);
}

#[tokio::test]
async fn a_call_that_nobody_comes_back_to_is_cancelled_and_cleans_up() {
    let options = Options::with_guests(&["cleanup"]).set("round_ms", 300);
    let server = Server::start(options).await;
    let client = without_tasks(&server);
    let asked = client.call("cleanup", json!({})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    until_ended(&server, "cancelled").await;
    let shown = only_task(&server).await;
    let lines: Vec<&str> = shown["output"]["log"]
        .as_array()
        .expect("a log")
        .iter()
        .filter_map(|line| line["message"].as_str())
        .collect();
    assert_eq!(lines, ["made", "removed"], "{shown}");
    let params = again("cleanup", &json!({}), &asked["requestState"], &json!({}));
    let (_, error) = client.error("tools/call", params).await;
    assert_eq!(error["code"], -32602, "{error}");
}

#[tokio::test]
async fn an_answer_that_is_sent_again_while_its_connection_is_lost_counts() {
    let server = Server::start(Options::with_guests(&["dice"])).await;
    let client = without_tasks(&server);
    // However the two fall together.
    for round in 0..20 {
        let asked = client.call("dice", json!({})).await;
        let questions = asked["inputRequests"].as_object().expect("it asks");
        let answers: serde_json::Map<String, Value> = questions
            .keys()
            .map(|key| (key.clone(), json!({ "action": "decline" })))
            .collect();
        let params = again("dice", &json!({}), &asked["requestState"], &json!(answers));
        let request = Prepared::of(&client, "tools/call", params);
        let open = async || Kept::open(server.address).await.expect("there is room");
        let (mut lost, mut kept) = (open().await, open().await);
        let mut first = Box::pin(lost.send(&request));
        let mut second = Box::pin(kept.send(&request));
        // Both are on their way.
        let _not_yet = ((&mut first).now_or_never(), (&mut second).now_or_never());
        for _ in 0..round {
            tokio::task::yield_now().await;
        }
        drop(first);
        drop(lost);
        let reply = second.await.expect("it is answered");
        let told: Value = serde_json::from_slice(&reply.body).expect("it is JSON");
        assert!(told.get("result").is_some(), "round {round}: {told}");
    }
}

/// With a key of the caller's own.
fn keyed(client: &Client, key: &str, tool: &str, arguments: &Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    params["_meta"]["longshore/idempotencyKey"] = json!(key);
    client.request("tools/call", params)
}

/// Runs that this process has begun.
async fn started(server: &Server) -> u64 {
    server.figures().await["runs"]["started"]
        .as_u64()
        .expect("runs are counted")
}

async fn answer(server: &Server, request: &Value) -> Value {
    events::open(server.address, request).await.json().await
}

#[tokio::test]
async fn the_same_call_under_a_key_is_made_once() {
    let mut server = Server::start(Options::with_guests(&["dice", "hello"])).await;
    let client = Client::plain(server.address);
    let hello = keyed(&client, "k", "hello", &json!({ "name": "Ada" }));
    let first = answer(&server, &hello).await;
    assert_eq!(text(&first["result"]), "Hello, Ada!");
    assert_eq!(answer(&server, &hello).await, first);
    // Also after a restart.
    server.kill().await;
    server.restart().await;
    let before = started(&server).await;
    assert_eq!(answer(&server, &hello).await, first);
    assert_eq!(started(&server).await, before);
    for (tool, arguments) in [("hello", json!({ "name": "Eve" })), ("dice", json!({}))] {
        let other = answer(&server, &keyed(&client, "k", tool, &arguments)).await;
        assert_eq!(other["error"]["code"], -32602, "{other}");
    }
    let fresh = keyed(&client, "another", "hello", &json!({ "name": "Eve" }));
    assert_eq!(
        text(&answer(&server, &fresh).await["result"]),
        "Hello, Eve!"
    );
}

#[tokio::test]
async fn a_key_changes_nothing_of_how_a_call_is_answered() {
    let server = Server::start(Options::with_guests(&["ask-any"])).await;
    let arguments = json!({ "way": "form" });
    for (client, expected) in [
        (server.client(), "task"),
        (without_tasks(&server), "input_required"),
    ] {
        let plain = client.call("ask-any", arguments.clone()).await;
        let request = keyed(&client, expected, "ask-any", &arguments);
        let under_key = answer(&server, &request).await;
        assert_eq!(
            (&plain["resultType"], &under_key["result"]["resultType"]),
            (&json!(expected), &json!(expected)),
            "{plain} {under_key}"
        );
        let id = &under_key["result"]["taskId"];
        let again = answer(&server, &request).await;
        assert_eq!(&again["result"]["taskId"], id, "{again}");
    }
}

#[tokio::test]
async fn a_call_under_a_key_is_found_though_its_tool_is_gone() {
    let server = Server::start(Options::default()).await;
    let client = Client::plain(server.address);
    let made = Made::with_tool("acts");
    assert_eq!(server.upload("acts", made.bytes()).await.status, 201);
    let request = keyed(&client, "k", "acts", &json!({}));
    let first = answer(&server, &request).await;
    assert!(first.get("result").is_some(), "{first}");
    let gone = server.admin("DELETE", "/v1/components/acts", "").await;
    assert_eq!(gone.status, 204);
    assert_eq!(answer(&server, &request).await, first);
    let other = answer(&server, &keyed(&client, "other", "acts", &json!({}))).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
}

#[tokio::test]
async fn a_run_under_a_key_goes_on_whoever_leaves() {
    let server = Server::start(Options::with_guests(&["sleep"])).await;
    let client = Client::plain(server.address);
    let before = started(&server).await;
    let call = keyed(&client, "k", "sleep", &json!({ "seconds": 1 }));
    let (first, second) = tokio::join!(answer(&server, &call), answer(&server, &call));
    assert_eq!(first["result"], second["result"]);
    assert_eq!(started(&server).await, before + 1);

    // One whose connection is lost calls again, before the other end has seen that or after.
    let joined = async |count: u64| {
        wait::until("them to wait", Duration::from_secs(20), || async {
            (server.figures().await["runs"]["joined"] == count).then_some(())
        })
        .await;
    };
    for (key, left) in [("seen", 0), ("not seen", 1)] {
        let call = keyed(&client, key, "sleep", &json!({ "seconds": 2 }));
        let (address, sent) = (server.address, call.clone());
        let leaver = tokio::spawn(async move { events::open(address, &sent).await.json().await });
        joined(1).await;
        let (again, ()) = if left == 0 {
            leaver.abort();
            joined(0).await;
            (answer(&server, &call).await, ())
        } else {
            tokio::join!(answer(&server, &call), async {
                joined(2).await;
                leaver.abort();
                joined(1).await;
            })
        };
        assert_eq!(text(&again["result"]), "slept", "{key}: {again}");
    }
    assert_eq!(started(&server).await, before + 3);
}

/// What a client does that knows nothing of tasks.
async fn follow(client: &Client, tool: &str, id: &str) -> Value {
    client.call(tool, json!({ "taskId": id })).await
}

fn task_of(result: &Value) -> &str {
    result["_meta"]["longshore/task"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("no task in {result}"))
}

#[tokio::test]
async fn a_call_that_takes_long_is_followed_by_tools() {
    let options = Options::with_guests(&["sleep", "ask-form", "count-words"])
        .set("handoff", true)
        .set("hold_ms", 100);
    let mut server = Server::start(options).await;
    let client = Client::plain(server.address);
    let listed = client.result("tools/list", json!({})).await;
    let names: Vec<&str> = listed["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    let own = [
        "longshore_task_cancel",
        "longshore_task_list",
        "longshore_task_wait",
    ];
    assert_eq!(names[names.len() - 3..], own, "{names:?}");

    // What it is given then is not what an output schema says.
    let has_output = |listed: &Value| {
        let tools = listed["tools"].as_array().expect("a list").clone();
        let mut counts = tools
            .into_iter()
            .filter(|tool| tool["name"] == "count-words");
        counts.next().expect("it is listed")["outputSchema"].is_object()
    };
    assert!(!has_output(&listed));
    let knows_tasks = server.client().result("tools/list", json!({})).await;
    assert!(has_output(&knows_tasks));

    let given = client.call("sleep", json!({ "seconds": 2 })).await;
    assert_eq!(given["resultType"], "complete");
    let id = task_of(&given).to_owned();
    assert!(text(&given).contains(&id) && text(&given).contains("longshore_task_wait"));
    // The work goes on whatever becomes of the server, and whoever asks under the same name finds it.
    server.kill().await;
    server.restart().await;
    let client = Client::plain(server.address);
    let list = client.call("longshore_task_list", json!({})).await;
    assert!(
        text(&list).contains(&id) && text(&list).contains("sleep"),
        "{list}"
    );
    let done = follow(&client, "longshore_task_wait", &id).await;
    assert_eq!(text(&done), "slept");
    assert!(done["_meta"].get("longshore/task").is_none(), "{done}");
    // A result that was fetched is the same for ever.
    assert_eq!(follow(&client, "longshore_task_wait", &id).await, done);

    let given = client.call("sleep", json!({ "seconds": 600 })).await;
    let id = task_of(&given).to_owned();
    follow(&client, "longshore_task_cancel", &id).await;
    let over = follow(&client, "longshore_task_wait", &id).await;
    assert_eq!(over["isError"], true);
    assert!(text(&over).contains("cancelled"), "{over}");

    for (tool, arguments) in [
        ("longshore_task_wait", json!({})),
        ("longshore_task_wait", json!({ "taskId": 5 })),
        (
            "longshore_task_cancel",
            json!({ "taskId": "00000000-0000-4000-8000-000000000000" }),
        ),
    ] {
        let wrong = client.call(tool, arguments).await;
        assert_eq!(wrong["isError"], true, "{wrong}");
        assert!(text(&wrong).contains("longshore_task_list"), "{wrong}");
    }
    // What is asked is told, and left to a person.
    let task = server.client().start("ask-form", json!({})).await;
    let waits = follow(&client, "longshore_task_wait", &task).await;
    assert!(text(&waits).contains("longshore tasks answer"), "{waits}");
}

#[tokio::test]
async fn a_held_call_is_not_silent_for_long() {
    let options = Options::with_guests(&["sleep"])
        .set("handoff", true)
        .set("hold_ms", 1)
        .set("beat_ms", 20);
    let server = Server::start(options).await;
    let client = Client::plain(server.address);
    let mut params = json!({ "name": "sleep", "arguments": { "seconds": 1 } });
    params["_meta"]["progressToken"] = json!(7);
    // Whoever hears of progress is patient: it is held for longer than others.
    let mut answer = events::open(server.address, &client.request("tools/call", params)).await;
    let said = answer.rest().await;
    let (result, beats) = said.split_last().expect("a result");
    assert_eq!(text(&result["result"]), "slept");
    assert!(beats.len() >= 3, "{beats:?}");
    let progress: Vec<f64> = beats
        .iter()
        .map(|beat| {
            assert_eq!(beat["params"]["progressToken"], 7, "{beat}");
            beat["params"]["progress"].as_f64().expect("a number")
        })
        .collect();
    assert!(progress.is_sorted_by(|a, b| a < b), "{progress:?}");
}
