//! What a call asks while its caller waits: requests on the call's own stream, which are answered by messages.

use longshore_tests::events::Answer;
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, OLDEST, Session, notification};
use serde_json::{Value, json};

async fn server() -> Server {
    Server::start(Options::with_guests(&["ask-any", "ask-two"])).await
}

async fn ask(session: &Session, way: &str) -> Answer {
    session.call("ask-any", json!({ "way": way })).await
}

/// The next message of a stream.
async fn next(answer: &mut Answer) -> Value {
    loop {
        let event = answer.event().await.expect("the stream goes on");
        if let Some(data) = event.data {
            return data;
        }
    }
}

/// What the tool says in the end.
async fn end(answer: &mut Answer) -> String {
    let response = next(answer).await;
    let text = response["result"]["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{response}")).to_owned();
    assert_eq!(answer.event().await, None);
    text
}

fn form(revision: &str) -> Value {
    let mut properties = json!({
        "name": { "type": "string", "maxLength": 10 },
        "colour": {
            "type": "string",
            "oneOf": [{ "const": "r", "title": "Red" }, { "const": "g", "title": "Green" }],
        },
    });
    if revision == OLDEST {
        properties["colour"] =
            json!({ "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] });
    }
    let mut params = json!({
        "mode": "form",
        "message": "Who are you?",
        "requestedSchema": { "type": "object", "properties": properties, "required": ["name"] },
    });
    if revision == OLDEST {
        drop(
            params
                .as_object_mut()
                .and_then(|params| params.remove("mode")),
        );
    }
    params
}

#[tokio::test]
async fn each_way_to_ask_is_a_request_of_its_revision() {
    let server = server().await;
    let messages =
        json!([{ "role": "user", "content": { "type": "text", "text": "Say something" } }]);
    let sampled =
        json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "so" } });
    let roots = json!({ "roots": [{ "uri": "file:///home", "name": "home" }] });
    let accept = json!({ "action": "accept", "content": { "name": "Ada", "colour": "g" } });
    for revision in [NEWEST, OLDEST] {
        let session = Session::able(server.address, revision).await;
        let rows = [
            (
                "form",
                "elicitation/create",
                form(revision),
                accept.clone(),
                r#"accepted {"name":"Ada","colour":"g"}"#.to_owned(),
            ),
            (
                "form",
                "elicitation/create",
                form(revision),
                json!({ "action": "decline" }),
                "declined".to_owned(),
            ),
            (
                "form",
                "elicitation/create",
                form(revision),
                json!({ "action": "cancel" }),
                "dismissed".to_owned(),
            ),
            (
                "model",
                "sampling/createMessage",
                json!({ "messages": messages, "maxTokens": 100 }),
                sampled.clone(),
                format!("sampled {sampled}"),
            ),
            (
                "folders",
                "roots/list",
                json!({}),
                roots.clone(),
                format!("roots {roots}"),
            ),
        ];
        for (way, method, params, answer, expected) in rows {
            let mut stream = ask(&session, way).await;
            let question = next(&mut stream).await;
            assert_eq!(
                (&question["jsonrpc"], &question["method"]),
                (&json!("2.0"), &json!(method))
            );
            assert_eq!(question["params"], params, "{revision} {way}");
            let reply = session.answer(&question["id"], answer).await;
            assert_eq!((reply.status, reply.body.len()), (202, 0));
            assert_eq!(end(&mut stream).await, expected, "{revision} {way}");
        }
        let can = session
            .result(
                "tools/call",
                json!({ "name": "ask-any", "arguments": { "way": "nothing" } }),
            )
            .await;
        let expected = if revision == NEWEST {
            "form page model model-with-tools folders"
        } else {
            "form model folders"
        };
        assert_eq!(can["content"][0]["text"], expected);
    }
    // Only the newest has pages to visit, whose end could be told under their id.
    let session = Session::able(server.address, NEWEST).await;
    let mut stream = ask(&session, "page").await;
    let question = next(&mut stream).await;
    let params = &question["params"];
    assert_eq!(
        (&params["mode"], &params["url"]),
        (&json!("url"), &json!("https://example.com/sign-in"))
    );
    assert!(
        params["elicitationId"]
            .as_str()
            .is_some_and(|id| !id.is_empty()),
        "{params}"
    );
    session
        .answer(&question["id"], json!({ "action": "accept" }))
        .await;
    assert_eq!(end(&mut stream).await, "accepted ");
    let session = Session::able(server.address, OLDEST).await;
    let told = session
        .result(
            "tools/call",
            json!({ "name": "ask-any", "arguments": { "way": "page" } }),
        )
        .await;
    assert!(
        told["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("Unsupported")),
        "{told}"
    );
}

#[tokio::test]
async fn who_cannot_be_asked_is_not() {
    let server = server().await;
    let session = Session::open(
        server.address,
        NEWEST,
        json!({ "elicitation": {}, "tasks": {} }),
    )
    .await;
    let can = session
        .result(
            "tools/call",
            json!({ "name": "ask-any", "arguments": { "way": "nothing" } }),
        )
        .await;
    assert_eq!(can["content"][0]["text"], "form");
    let told = session
        .result(
            "tools/call",
            json!({ "name": "ask-any", "arguments": { "way": "folders" } }),
        )
        .await;
    assert!(
        told["content"][0]["text"]
            .as_str()
            .is_some_and(|text| text.contains("does not offer roots")),
        "{told}"
    );
    // A client that takes one message only cannot be sent a question.
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
    let call = session.request(
        "tools/call",
        json!({ "name": "ask-any", "arguments": { "way": "form" } }),
    );
    let told = longshore_tests::session::post(server.address, &headers, &call)
        .await
        .json();
    let text = told["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    assert!(text.contains("Unsupported"), "{told}");
}

#[tokio::test]
async fn several_questions_are_out_at_once_and_answered_in_any_order() {
    let server = server().await;
    let session = Session::able(server.address, NEWEST).await;
    let mut stream = session.call("ask-two", json!({})).await;
    let (first, second) = (next(&mut stream).await, next(&mut stream).await);
    assert_ne!(first["id"], second["id"]);
    let confirm = json!({ "action": "accept", "content": { "confirm": true } });
    assert_eq!(session.answer(&second["id"], confirm).await.status, 202);
    let name = json!({ "action": "accept", "content": { "name": "Ada" } });
    assert_eq!(session.answer(&first["id"], name.clone()).await.status, 202);
    assert_eq!(end(&mut stream).await, r#"name: "Ada", confirm: true"#);
    // What is not asked any more, or never was, is no fault of a client that is slow.
    assert_eq!(session.answer(&first["id"], name.clone()).await.status, 202);
    for id in [json!(999), json!("1"), json!(-1)] {
        assert_eq!(session.answer(&id, name.clone()).await.status, 202, "{id}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_told_to_both_sides() {
    let server = server().await;
    let session = Session::able(server.address, NEWEST).await;
    let rows = [
        json!({ "action": "accept", "content": { "name": 7 } }),
        json!({ "action": "accept", "content": { "name": "much too long a name" } }),
        json!({ "action": "accept" }),
        json!({ "action": "perhaps" }),
        json!("yes"),
        Value::Null,
    ];
    for answer in rows {
        let mut stream = ask(&session, "form").await;
        let question = next(&mut stream).await;
        let reply = session.answer(&question["id"], answer.clone()).await;
        let told = reply.json();
        assert_eq!(
            (reply.status, &told["error"]["code"]),
            (400, &json!(-32602)),
            "{answer}: {told}"
        );
        assert_eq!(told["id"], question["id"]);
        let text = end(&mut stream).await;
        assert!(text.contains("Invalid"), "{answer}: {text}");
    }
    // A client may say that it cannot, or that its person will not have it.
    let mut stream = ask(&session, "model").await;
    let question = next(&mut stream).await;
    let refusal = json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -1, "message": "not now" } });
    assert_eq!(session.post(&refusal).await.status, 202);
    let text = end(&mut stream).await;
    assert!(text.contains("the client refused: not now"), "{text}");
}

#[tokio::test]
async fn a_wait_that_is_over_takes_the_question_back() {
    let server = server().await;
    let session = Session::able(server.address, NEWEST).await;
    let mut stream = session
        .call("ask-any", json!({ "way": "form", "wait_ms": 50 }))
        .await;
    let question = next(&mut stream).await;
    let told = next(&mut stream).await;
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"]["requestId"], question["id"]);
    let text = end(&mut stream).await;
    assert!(text.contains("TimedOut"), "{text}");
}

#[tokio::test]
async fn a_question_waits_for_a_client_that_lost_its_connection() {
    let server = server().await;
    let session = Session::able(server.address, NEWEST).await;
    let mut stream = ask(&session, "form").await;
    let priming = stream.event().await.expect("it begins");
    assert!(priming.data.is_none(), "{priming:?}");
    drop(stream);
    let mut again = session.listen(priming.id.as_deref()).await;
    let question = next(&mut again).await;
    session
        .answer(&question["id"], json!({ "action": "decline" }))
        .await;
    assert_eq!(end(&mut again).await, "declined");
}

#[tokio::test]
async fn a_cancelled_call_asks_no_more() {
    let server = server().await;
    let session = Session::able(server.address, NEWEST).await;
    let request = session.request(
        "tools/call",
        json!({ "name": "ask-any", "arguments": { "way": "form" } }),
    );
    let mut stream = session.begin(&request).await;
    let question = next(&mut stream).await;
    let cancel = notification(
        "notifications/cancelled",
        json!({ "requestId": request["id"] }),
    );
    assert_eq!(session.post(&cancel).await.status, 202);
    while let Some(event) = stream.event().await {
        assert!(event.data.is_none_or(|data| data.get("result").is_none()));
    }
    assert_eq!(
        session
            .answer(&question["id"], json!({ "action": "decline" }))
            .await
            .status,
        202
    );
    assert_eq!(session.result("ping", json!({})).await, json!({}));
}

#[tokio::test]
async fn those_who_wait_for_a_person_take_no_place() {
    let server = Server::start(
        Options::with_guests(&["ask-any"])
            .set("running", 1)
            .set("queue_wait_ms", 60_000),
    )
    .await;
    let session = Session::able(server.address, NEWEST).await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut stream = ask(&session, "form").await;
        let question = next(&mut stream).await;
        waiting.push((stream, question));
    }
    for (stream, question) in &mut waiting {
        session
            .answer(&question["id"], json!({ "action": "decline" }))
            .await;
        assert_eq!(end(stream).await, "declined");
    }
}
