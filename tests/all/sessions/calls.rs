//! Lists and calls in a session, what is told meanwhile, and what a lost connection loses.

use std::time::Duration;

use longshore_tests::component::{Act, Behaviour, LOGGER, Made, Mode, Tool};
use longshore_tests::events::Event;
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, OLDEST, Session, notification};
use longshore_tests::wait;
use serde_json::{Value, json};

/// A server with one tool, `acts`, that does all this.
async fn server(acts: &'static [Act], options: Options) -> Server {
    let server = Server::start(options).await;
    let tool = Tool {
        mode: Mode::Auto,
        ..Tool::named("acts")
    };
    let made = Made {
        call: Behaviour::Does(acts),
        ..Made::of([tool])
    };
    let reply = server.upload("acts", made.bytes()).await;
    assert_eq!(reply.status, 201, "{}", reply.json());
    server
}

fn call(session: &Session, meta: &Value) -> Value {
    session.request("tools/call", json!({ "name": "acts", "_meta": meta }))
}

#[tokio::test]
async fn lists_show_what_a_revision_knows() {
    let server = Server::start(Options::default()).await;
    let tools = [
        ("a", Mode::Auto),
        ("d", Mode::OnDetach),
        ("n", Mode::Never),
        ("t", Mode::Always),
    ];
    let made = Made::of(tools.map(|(name, mode)| Tool {
        mode,
        title: Some("Title".to_owned()),
        output_schema: Some(if name == "a" { r#"{"type":"object"}"# } else { r#"{"type":"string"}"# }.to_owned()),
        extra: Some(r#"{"icons":[{"src":"https://example.com/i.png"}],"annotations":{"readOnlyHint":true}}"#.to_owned()),
        ..Tool::named(name)
    }));
    assert_eq!(server.upload("tools", made.bytes()).await.status, 201);
    for revision in [NEWEST, OLDEST] {
        let session = Session::open(server.address, revision, json!({})).await;
        let listed = session.result("tools/list", json!({})).await;
        let members: Vec<&String> = listed.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["tools"]);
        for ((name, mode), tool) in tools
            .iter()
            .zip(listed["tools"].as_array().expect("a list"))
        {
            let mut expected = json!({
                "name": name,
                "title": "Title",
                "description": "Says something.",
                "inputSchema": { "type": "object" },
                "annotations": { "readOnlyHint": true },
            });
            if *name == "a" {
                expected["outputSchema"] = json!({ "type": "object" });
            }
            if revision == NEWEST {
                expected["icons"] = json!([{ "src": "https://example.com/i.png" }]);
                let support = if *mode == Mode::Never {
                    "forbidden"
                } else {
                    "optional"
                };
                expected["execution"] = json!({ "taskSupport": support });
            }
            assert_eq!(*tool, expected, "{revision}");
        }
    }
}

#[tokio::test]
async fn results_hold_nothing_newer() {
    let server = Server::start(Options::with_guests(&[
        "hello",
        "count-words",
        "tool-error",
        "panic",
    ]))
    .await;
    let session = Session::open(server.address, OLDEST, json!({})).await;
    let result = session
        .result(
            "tools/call",
            json!({ "name": "hello", "arguments": { "name": "Ada" } }),
        )
        .await;
    assert_eq!(
        result,
        json!({ "content": [{ "type": "text", "text": "Hello, Ada!" }] })
    );
    let result = session
        .result(
            "tools/call",
            json!({ "name": "count-words", "arguments": { "text": "one" } }),
        )
        .await;
    assert_eq!(
        result["structuredContent"],
        json!({ "words": 1, "lines": 1, "characters": 3 })
    );
    let result = session
        .result(
            "tools/call",
            json!({ "name": "tool-error", "arguments": { "message": "no luck" } }),
        )
        .await;
    assert_eq!(
        result,
        json!({ "content": [{ "type": "text", "text": "no luck" }], "isError": true })
    );
    let (status, error) = session
        .error("tools/call", json!({ "name": "panic" }))
        .await;
    assert_eq!(
        (status, &error["code"], &error["data"]["reason"]),
        (200, &json!(1000), &json!("trap"))
    );
}

#[tokio::test]
async fn what_a_client_lacks_is_told_to_its_model() {
    let server = Server::start(Options::default()).await;
    let tool = |name: &str, requires: &[&str]| Tool {
        requires: requires.iter().map(|word| (*word).to_owned()).collect(),
        ..Tool::named(name)
    };
    let made = Made::of([
        tool("sampling", &["sampling", "tasks"]),
        tool("tasks", &["tasks"]),
    ]);
    assert_eq!(server.upload("needs", made.bytes()).await.status, 201);
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let result = session
        .result("tools/call", json!({ "name": "sampling" }))
        .await;
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(
        result["content"][0]["text"],
        "this tool needs a client that offers: sampling"
    );
    // There are no such tasks here, and the caller can wait.
    let result = session
        .result("tools/call", json!({ "name": "tasks" }))
        .await;
    assert_eq!(result["content"][0]["text"], "something");
}

const THREE: &[Act] = &[
    Act::Progress(0.0, Some(100.0)),
    Act::Sleep(200),
    Act::Progress(50.0, Some(100.0)),
    Act::Log(1, "half"),
    Act::Log(0, "a detail"),
    Act::Sleep(200),
    Act::Progress(100.0, Some(100.0)),
];

async fn rest(answer: &mut longshore_tests::events::Answer) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = answer.event().await {
        events.push(event);
    }
    events
}

#[tokio::test]
async fn progress_and_logs_come_on_the_stream_of_the_call() {
    let server = server(THREE, Options::default()).await;
    for revision in [NEWEST, OLDEST] {
        let session = Session::open(server.address, revision, json!({})).await;
        assert_eq!(
            session
                .result("logging/setLevel", json!({ "level": "info" }))
                .await,
            json!({})
        );
        let mut heard = session.listen(None).await;
        let mut answer = session
            .begin(&call(&session, &json!({ "progressToken": "p" })))
            .await;
        assert!(answer.status == 200 && answer.is_stream());
        let mut events = rest(&mut answer).await;
        if revision == NEWEST {
            let first = events.remove(0);
            assert!(first.data.is_none() && first.id.is_some(), "{first:?}");
        }
        let response = events
            .pop()
            .and_then(|event| event.data)
            .expect("a response");
        assert_eq!(
            response["result"],
            json!({ "content": [{ "type": "text", "text": "something" }] })
        );
        let mut ids: Vec<&String> = events
            .iter()
            .filter_map(|event| event.id.as_ref())
            .collect();
        assert_eq!(ids.len(), events.len());
        ids.dedup();
        assert_eq!(ids.len(), events.len(), "{ids:?}");
        let told: Vec<&Value> = events
            .iter()
            .filter_map(|event| event.data.as_ref())
            .collect();
        let progress = |done: u64| {
            json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": { "progressToken": "p", "progress": done, "total": 100 },
            })
        };
        let log = json!({
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": { "level": "info", "logger": LOGGER, "data": "half" },
        });
        for expected in [progress(0), progress(50), progress(100), log] {
            assert!(told.contains(&&expected), "{expected} is not in {told:?}");
        }
        assert_eq!(told.len(), 4, "{told:?}");
        // Nothing of it came on the other stream.
        session.end().await;
        assert_eq!(heard.next().await, None);
    }
}

#[tokio::test]
async fn who_takes_no_stream_gets_the_result() {
    let server = server(THREE, Options::default()).await;
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let headers: Vec<(String, String)> = session
        .headers()
        .into_iter()
        .map(|(name, value)| {
            if name == "accept" {
                (name, "application/json".to_owned())
            } else {
                (name, value)
            }
        })
        .collect();
    let message = call(&session, &json!({ "progressToken": 1 }));
    let reply = longshore_tests::session::post(server.address, &headers, &message).await;
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.json()["result"]["content"][0]["text"], "something");
}

const LONG: &[Act] = &[Act::Progress(1.0, None), Act::Sleep(600_000)];

async fn live(server: &Server) -> Value {
    server.figures().await["runs"]["liveStores"].clone()
}

async fn until_none_lives(server: &Server) {
    wait::until("the call to be gone", Duration::from_secs(30), || async {
        (live(server).await == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_call_is_cancelled_by_its_id_and_by_the_end_of_its_session() {
    let server = server(LONG, Options::default().set("grace_ms", 600_000)).await;
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let request = call(&session, &json!({ "progressToken": 1 }));
    let mut answer = session.begin(&request).await;
    assert!(answer.event().await.is_some());
    assert_eq!(live(&server).await, 1);

    // An id that is in use cannot be used again; one that is not cannot be cancelled, which is no fault.
    let twice = session.post(&request).await.json();
    assert_eq!(twice["error"]["code"], -32600, "{twice}");
    for id in [json!(999), json!("1"), Value::Null] {
        let told = session
            .post(&notification(
                "notifications/cancelled",
                json!({ "requestId": id }),
            ))
            .await;
        assert_eq!(told.status, 202);
    }
    assert_eq!(live(&server).await, 1);
    let told = session
        .post(&notification(
            "notifications/cancelled",
            json!({ "requestId": request["id"] }),
        ))
        .await;
    assert_eq!(told.status, 202);
    until_none_lives(&server).await;
    // A cancelled request is not answered.
    let rest = rest(&mut answer).await;
    assert!(
        rest.iter().all(|event| event
            .data
            .as_ref()
            .is_none_or(|data| data.get("id").is_none())),
        "{rest:?}"
    );

    let mut answer = session
        .begin(&call(&session, &json!({ "progressToken": 1 })))
        .await;
    assert!(answer.event().await.is_some());
    assert_eq!(session.end().await.status, 204);
    until_none_lives(&server).await;
}

#[tokio::test]
async fn a_lost_connection_loses_nothing() {
    let acts: &[Act] = &[
        Act::Progress(1.0, None),
        Act::Sleep(400),
        Act::Progress(2.0, None),
        Act::Sleep(400),
        Act::Progress(3.0, None),
        Act::Sleep(400),
    ];
    let server = server(acts, Options::default()).await;
    for revision in [NEWEST, OLDEST] {
        let session = Session::open(server.address, revision, json!({})).await;
        let request = call(&session, &json!({ "progressToken": 1 }));
        let mut answer = session.begin(&request).await;
        let mut first = answer.event().await.expect("it begins");
        if revision == NEWEST {
            assert!(first.data.is_none());
            first = answer.event().await.expect("it goes on");
        }
        assert_eq!(
            first.data.as_ref().map(|data| &data["params"]["progress"]),
            Some(&json!(1))
        );
        drop(answer);
        // Whoever comes back hears all that it has not heard, once, wherever it stood.
        let place = first.id.expect("it says where it stands");
        let (stream, _) = place.split_once('-').expect("a stream, and a place in it");
        let never = format!("{stream}-1000000");
        assert_eq!(session.listen(Some(&never)).await.status, 400);
        let mut again = session.listen(Some(&place)).await;
        assert!(again.status == 200 && again.is_stream());
        let events = rest(&mut again).await;
        let told: Vec<&Value> = events
            .iter()
            .filter_map(|event| event.data.as_ref())
            .collect();
        let [two, three, response] = told.as_slice() else {
            panic!("{told:?}");
        };
        assert_eq!(
            (&two["params"]["progress"], &three["params"]["progress"]),
            (&json!(2), &json!(3))
        );
        assert_eq!(response["id"], request["id"]);
        assert_eq!(response["result"]["content"][0]["text"], "something");
        // What was written to a connection may have been lost with it: it can be heard again.
        let mut again = session.listen(Some(&place)).await;
        assert_eq!(rest(&mut again).await.len(), events.len());
        for nothing in ["1000-0", "x", "1-x", ""] {
            assert_eq!(
                session.listen(Some(nothing)).await.status,
                400,
                "{nothing:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_result_that_came_while_nobody_listened_is_kept() {
    let acts: &[Act] = &[Act::Progress(1.0, None), Act::Sleep(700)];
    let server = server(acts, Options::default()).await;
    let session = Session::open(server.address, OLDEST, json!({})).await;
    let mut answer = session
        .begin(&call(&session, &json!({ "progressToken": 1 })))
        .await;
    let first = answer.event().await.expect("it begins");
    drop(answer);
    until_none_lives(&server).await;
    let place = first.id.expect("it says where it stands");
    let mut again = session.listen(Some(&place)).await;
    let events = rest(&mut again).await;
    let response = events
        .last()
        .and_then(|event| event.data.as_ref())
        .expect("a response");
    assert_eq!(response["result"]["content"][0]["text"], "something");
}

#[tokio::test]
async fn changed_tools_are_told_to_whoever_listens_last() {
    let server = Server::start(Options::default()).await;
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let mut first = session.listen(None).await;
    let mut second = session.listen(None).await;
    assert_eq!(first.next().await, None);
    let made = Made::of([Tool::named("a")]);
    assert_eq!(server.upload("a", made.bytes()).await.status, 201);
    let told = second.next().await.expect("it is told");
    assert_eq!(
        told,
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {} })
    );
}

#[tokio::test]
async fn a_call_that_takes_long_is_handed_off_and_followed_in_any_session() {
    let options = Options::with_guests(&["long-job", "ask-any"])
        .set("handoff", true)
        .set("hold_ms", 1_000)
        .set("hold_progress_ms", 1_000);
    let server = Server::start(options).await;
    let session = Session::able(server.address, NEWEST).await;
    let arguments = json!({ "steps": 8, "step-ms": 300 });
    let mut answer = session.call("long-job", arguments).await;
    let mut events = rest(&mut answer).await;
    let response = events
        .pop()
        .and_then(|event| event.data)
        .expect("a response");
    let meta = &response["result"]["_meta"]["longshore/task"];
    let task = meta["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{response}"));
    session.end().await;
    let other = Session::able(server.address, OLDEST).await;
    let mut waits = other
        .call("longshore_task_wait", json!({ "taskId": task }))
        .await;
    let last = rest(&mut waits)
        .await
        .pop()
        .and_then(|event| event.data)
        .expect("a response");
    assert_eq!(
        last["result"]["content"][0]["text"], "done: 8 steps",
        "{last}"
    );

    // Whoever is asked is not left waiting.
    let mut answer = other.call("ask-any", json!({ "way": "form" })).await;
    let question = answer
        .event()
        .await
        .and_then(|event| event.data)
        .expect("it asks");
    // For longer than it would wait for a result.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(
        other
            .answer(&question["id"], json!({ "action": "decline" }))
            .await
            .status,
        202
    );
    let last = rest(&mut answer)
        .await
        .pop()
        .and_then(|event| event.data)
        .expect("a response");
    assert_eq!(last["result"]["content"][0]["text"], "declined", "{last}");
}

#[tokio::test]
async fn the_same_call_again_under_its_key_joins_the_first_in_any_session() {
    let server = Server::start(Options::with_guests(&["ask-any"])).await;
    let session = Session::able(server.address, NEWEST).await;
    let params = json!({
        "name": "ask-any",
        "arguments": { "way": "form" },
        "_meta": { "longshore/idempotencyKey": "one" },
    });
    let mut answer = session
        .begin(&session.request("tools/call", params.clone()))
        .await;
    let first = loop {
        if let Some(data) = answer.event().await.expect("it asks").data {
            break data;
        }
    };
    assert_eq!(first["method"], "elicitation/create");
    let other = Session::able(server.address, OLDEST).await;
    let mut again = other.begin(&other.request("tools/call", params)).await;
    let question = again
        .event()
        .await
        .and_then(|event| event.data)
        .expect("it asks");
    let content = json!({ "action": "accept", "content": { "name": "Ada" } });
    let taken = other.answer(&question["id"], content).await;
    assert_eq!(taken.status, 202, "{:?}", taken.body);
    for stream in [&mut answer, &mut again] {
        let last = rest(stream)
            .await
            .pop()
            .and_then(|event| event.data)
            .expect("a response");
        assert_eq!(
            last["result"]["content"][0]["text"], r#"accepted {"name":"Ada"}"#,
            "{last}"
        );
    }
    assert_eq!(server.figures().await["runs"]["started"], 1);
}
