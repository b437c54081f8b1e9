//! Progress and log messages of a call, on the answer to its request.

use std::time::Duration;

use longshore_tests::component::{Act, Behaviour, LOGGER, Made, Mode, Tool};
use longshore_tests::events::{self, Answer};
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::{Value, json};

use super::{LOG_LEVEL, call};

/// With pauses that a slow machine does not mistake for none.
const THREE: &[Act] = &[
    Act::Progress(0.0, Some(100.0)),
    Act::Sleep(200),
    Act::Progress(50.0, Some(100.0)),
    Act::Sleep(200),
    Act::Progress(100.0, Some(100.0)),
];

/// A server with one tool, `acts`, that does all this.
async fn server(mode: Mode, acts: &'static [Act], options: Options) -> Server {
    let server = Server::start(options).await;
    let tool = Tool {
        mode,
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

async fn open(server: &Server, meta: &Value) -> Answer {
    let request = call(&server.client(), "acts", &json!({}), meta);
    events::open(server.address, &request).await
}

/// The notifications of a stream, and the response that ends it.
async fn heard(server: &Server, meta: &Value) -> (Vec<Value>, Value) {
    let mut answer = open(server, meta).await;
    assert!(answer.status == 200 && answer.is_stream());
    let mut events = answer.rest().await;
    let response = events.pop().expect("a stream ends with the response");
    assert_eq!(response["id"], 1, "{response}");
    assert!(
        events.iter().all(|event| event.get("id").is_none()),
        "{events:?}"
    );
    (events, response)
}

#[tokio::test]
async fn progress_is_told_under_the_callers_token_and_then_the_result() {
    let server = server(Mode::Never, THREE, Options::default()).await;
    for token in [json!("progress-1"), json!(7), json!("7")] {
        let (told, response) = heard(&server, &json!({ "progressToken": token })).await;
        let expected = [0, 50, 100].map(|done| {
            json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": { "progressToken": token, "progress": done, "total": 100 },
            })
        });
        assert_eq!(told, expected);
        assert_eq!(response["result"]["content"][0]["text"], "something");
        assert_eq!(response["result"]["resultType"], "complete");
    }
}

#[tokio::test]
async fn who_did_not_ask_or_takes_no_stream_is_told_nothing() {
    let server = server(
        Mode::Never,
        &[
            Act::Progress(1.0, None),
            Act::Log(7, "an emergency"),
            Act::Sleep(50),
            Act::Progress(2.0, None),
        ],
        Options::default(),
    )
    .await;
    let answer = open(&server, &json!({})).await;
    assert!(!answer.is_stream());
    assert_eq!(
        answer.json().await["result"]["content"][0]["text"],
        "something"
    );

    // Each only what it asked for.
    let (told, _) = heard(&server, &json!({ "progressToken": 1 })).await;
    assert!(
        told.iter()
            .all(|event| event["method"] == "notifications/progress"),
        "{told:?}"
    );
    let (told, _) = heard(&server, &json!({ LOG_LEVEL: "debug" })).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["method"], "notifications/message");

    let client = server.client();
    let request = call(
        &client,
        "acts",
        &json!({}),
        &json!({ "progressToken": 1, LOG_LEVEL: "debug" }),
    );
    let headers = longshore_tests::mcp::Client::headers(&request);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| match name.as_str() {
            "accept" => ("accept", "application/json"),
            name => (name, value.as_str()),
        })
        .collect();
    let reply = longshore_tests::http::send(
        server.address,
        "POST",
        "/mcp",
        &headers,
        request.to_string(),
    )
    .await
    .expect("the server answers");
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.json()["result"]["content"][0]["text"], "something");
}

#[tokio::test]
async fn progress_never_goes_back_and_comes_no_faster_than_it_can_be_read() {
    let acts: &[Act] = &[
        Act::Progress(1.0, None),
        Act::Sleep(200),
        Act::Progress(5.0, None),
        Act::Progress(4.0, None),
        Act::Progress(5.0, Some(9.0)),
        Act::Sleep(200),
        Act::Progress(7.0, None),
        Act::Sleep(200),
        Act::Progress(8.0, None),
    ];
    let done = |told: &[Value]| -> Vec<u64> {
        told.iter()
            .map(|event| event["params"]["progress"].as_u64().expect("whole numbers"))
            .collect()
    };
    // As fast as it comes: each that says more, once.
    let eager = server(
        Mode::Never,
        acts,
        Options::default().set("progress_every_ms", 0),
    )
    .await;
    let (told, _) = heard(&eager, &json!({ "progressToken": 1 })).await;
    assert_eq!(done(&told), [1, 5, 7, 8]);

    // In a minute only one; the last is told before the result all the same.
    let slow = server(
        Mode::Never,
        acts,
        Options::default().set("progress_every_ms", 60_000),
    )
    .await;
    let (told, _) = heard(&slow, &json!({ "progressToken": 1 })).await;
    assert_eq!(done(&told), [1, 8]);
}

#[tokio::test]
async fn the_log_is_told_from_the_level_that_the_request_names() {
    let server = server(
        Mode::Never,
        &[
            Act::Log(0, "a detail"),
            Act::Log(2, "a notice"),
            Act::Log(1, "some information"),
            Act::Log(7, "an emergency"),
        ],
        Options::default(),
    )
    .await;
    let rows = [
        (
            "debug",
            vec!["a detail", "a notice", "some information", "an emergency"],
        ),
        ("notice", vec!["a notice", "an emergency"]),
        ("emergency", vec!["an emergency"]),
    ];
    for (level, expected) in rows {
        let (told, response) = heard(&server, &json!({ LOG_LEVEL: level })).await;
        let texts: Vec<&str> = told
            .iter()
            .filter_map(|event| event["params"]["data"].as_str())
            .collect();
        assert_eq!(texts, expected, "{level}");
        assert_eq!(
            told.last().expect("there is one")["params"],
            json!({ "level": "emergency", "logger": LOGGER, "data": "an emergency" })
        );
        assert!(response["result"].is_object(), "{response}");
    }
}

#[tokio::test]
async fn a_call_that_becomes_a_task_tells_its_caller_no_more() {
    let server = server(
        Mode::OnDetach,
        &[
            Act::Progress(1.0, None),
            Act::Sleep(50),
            Act::Detach,
            Act::Sleep(200),
            Act::Progress(2.0, None),
            Act::Log(7, "an emergency"),
        ],
        Options::default(),
    )
    .await;
    let meta = json!({ "progressToken": 1, LOG_LEVEL: "debug" });
    let (told, response) = heard(&server, &meta).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["params"]["progress"], 1);
    assert_eq!(response["result"]["resultType"], "task", "{response}");
    let id = response["result"]["taskId"]
        .as_str()
        .expect("a task has an id");
    assert_eq!(server.client().until_ended(id).await["status"], "completed");
}

#[tokio::test]
async fn closing_the_stream_cancels_the_call() {
    let server = server(
        Mode::Never,
        &[Act::Progress(1.0, None), Act::Sleep(600_000)],
        Options::default().set("grace_ms", 600_000),
    )
    .await;
    let live = async || server.figures().await["runs"]["liveStores"].clone();
    let mut answer = open(&server, &json!({ "progressToken": 1 })).await;
    let first = answer.next().await.expect("it is under way");
    assert_eq!(first["params"]["progress"], 1);
    assert_eq!(live().await, 1);
    drop(answer);
    wait::until("the call to be gone", Duration::from_secs(10), || async {
        (live().await == 0).then_some(())
    })
    .await;
}
