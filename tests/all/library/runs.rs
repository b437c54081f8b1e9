//! The run behind a read or a prompt: held to the same limits as a tool's call, heard while it goes on, asked what it asks,
//! and never a task.

use std::time::Duration;

use longshore_tests::component::{Act, Behaviour, Library};
use longshore_tests::events;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::{prompts, read, resources, serving};

const LONG_MS: u64 = 600_000;

fn behaving(behaviour: Behaviour) -> Library {
    Library {
        resources: resources(&["test://a"]),
        prompts: prompts(&["p"]),
        read: behaviour,
        get: behaviour,
        ..Library::default()
    }
}

/// What a read and a prompt of it are answered with.
async fn both(server: &Server) -> [Value; 2] {
    let client = server.client();
    let mut answers = [Value::Null, Value::Null];
    for (answer, (method, params)) in answers.iter_mut().zip([
        ("resources/read", json!({ "uri": "test://a" })),
        ("prompts/get", json!({ "name": "p" })),
    ]) {
        let reply = client.send(method, params).await;
        *answer = reply.expect("the server answers").json();
    }
    answers
}

#[tokio::test]
async fn a_run_that_goes_wrong_ends_by_its_reason() {
    let large = Library {
        answer: "x".repeat(8 * 1024),
        ..behaving(Behaviour::Returns)
    };
    let rows = [
        (behaving(Behaviour::Loops), "cpu-limit", 1002),
        (behaving(Behaviour::Traps), "trap", 1000),
        (large, "output-limit", 1007),
    ];
    for (library, reason, code) in rows {
        let options = Options::default()
            .set("limits.cpu_ms", 100)
            .set("limits.result_kib", 4);
        let server = serving(library, options).await;
        for answer in both(&server).await {
            let error = &answer["error"];
            assert_eq!(
                (&error["code"], &error["data"]["reason"]),
                (&json!(code), &json!(reason)),
                "{answer}"
            );
        }
        server.until_live(0, Duration::from_secs(10)).await;
    }
}

#[tokio::test]
async fn what_was_read_goes_by_no_name_of_somebody_else() {
    for (uri, is_fine) in [
        ("test://a", true),
        ("test://a/b", true),
        ("test://b", false),
        ("test://ab", false),
    ] {
        let library = Library {
            uri: Some(uri.to_owned()),
            ..behaving(Behaviour::Returns)
        };
        let server = serving(library, Options::default()).await;
        let [answer, _] = both(&server).await;
        if is_fine {
            assert_eq!(answer["result"]["contents"][0]["uri"], uri);
        } else {
            assert_eq!(answer["error"]["data"]["reason"], "bad-output", "{answer}");
        }
    }
}

#[tokio::test]
async fn it_is_held_however_long_it_takes_and_heard_meanwhile() {
    const ACTS: &[Act] = &[
        Act::Progress(1.0, Some(2.0)),
        Act::Log(4, "a warning"),
        Act::Detach,
        Act::Sleep(100),
    ];
    let options = Options::default().set("inline_budget_ms", 0);
    let server = serving(behaving(Behaviour::Does(ACTS)), options).await;
    for answer in both(&server).await {
        assert_eq!(
            answer["result"]["resultType"], "complete",
            "no task came of it: {answer}"
        );
    }
    let mut request = server
        .client()
        .request("resources/read", json!({ "uri": "test://a" }));
    request["params"]["_meta"]["progressToken"] = json!("token");
    request["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("info");
    let mut answer = events::open(server.address, &request).await;
    assert!(answer.is_stream());
    let told = answer.rest().await;
    let methods: Vec<&str> = told
        .iter()
        .filter_map(|event| event["method"].as_str())
        .collect();
    assert!(methods.contains(&"notifications/progress"), "{told:?}");
    assert!(methods.contains(&"notifications/message"), "{told:?}");
    assert_eq!(
        told.last().expect("an end")["result"]["contents"][0]["text"],
        "something"
    );
}

#[tokio::test]
async fn who_leaves_ends_it() {
    let server = serving(behaving(Behaviour::Sleeps(LONG_MS)), Options::default()).await;
    for (method, params) in [
        ("resources/read", json!({ "uri": "test://a" })),
        ("prompts/get", json!({ "name": "p" })),
    ] {
        let request = server.client().request(method, params);
        let address = server.address;
        let waiting = tokio::spawn(async move { events::open(address, &request).await });
        server.until_live(1, Duration::from_secs(20)).await;
        waiting.abort();
        server.until_live(0, Duration::from_secs(20)).await;
    }
}

#[tokio::test]
async fn a_deadline_of_the_request_ends_it() {
    let server = serving(
        behaving(Behaviour::SleepsAndLoops(LONG_MS)),
        Options::default(),
    )
    .await;
    let mut request = server
        .client()
        .request("prompts/get", json!({ "name": "p" }));
    request["params"]["_meta"]["longshore/deadlineMs"] = json!(100);
    let answer = events::open(server.address, &request).await.json().await;
    assert_eq!(answer["error"]["data"]["reason"], "expired", "{answer}");
}

#[tokio::test]
async fn a_prompt_asks_in_rounds_also_across_a_restart() {
    const NAME: &str = "test_input_required_result_prompt";
    let mut server = Server::start(Options::with_guests(&["conformance"])).await;
    let client = server.client();
    let asked = client.result("prompts/get", json!({ "name": NAME })).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let state = asked["requestState"].clone();
    let answer = |context: &str| json!({ "user_context": { "action": "accept", "content": { "context": context } } });
    let params = |name: &str, arguments: Value, context: &str| {
        json!({
            "name": name, "arguments": arguments,
            "requestState": state, "inputResponses": answer(context),
        })
    };
    server.kill().await;
    server.restart().await;
    let client = server.client();
    // The state belongs to this prompt with these arguments.
    for other in [
        params("test_simple_prompt", json!({}), "tea"),
        params(NAME, json!({ "more": "x" }), "tea"),
    ] {
        let (status, error) = client.error("prompts/get", other).await;
        assert_eq!((status, &error["code"]), (400, &json!(-32602)), "{error}");
    }
    let call = json!({ "name": NAME, "requestState": state, "inputResponses": answer("tea") });
    let (_, error) = client.error("tools/call", call).await;
    assert_eq!(error["code"], -32602, "{error}");
    for _ in 0..2 {
        let filled_in = client
            .result("prompts/get", params(NAME, json!({}), "tea"))
            .await;
        assert_eq!(
            filled_in["messages"][0]["content"]["text"], "A prompt for: tea",
            "{filled_in}"
        );
    }
    let (_, error) = client
        .error("prompts/get", params(NAME, json!({}), "coffee"))
        .await;
    assert_eq!(error["code"], -32602, "the first answer counts: {error}");
}

#[tokio::test]
async fn who_cannot_be_asked_gets_an_error_and_no_half_prompt() {
    let server = Server::start(Options::with_guests(&["conformance"])).await;
    let client = longshore_tests::mcp::Client::plain(server.address);
    let reply = client
        .send(
            "prompts/get",
            json!({ "name": "test_input_required_result_prompt" }),
        )
        .await
        .expect("the server answers");
    let error = &reply.json()["error"];
    assert_eq!(error["code"], -32603, "{error}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("cannot be asked"), "{message}");
}

#[tokio::test]
async fn a_read_asks_for_nothing_where_there_is_nothing_to_ask() {
    let server = Server::start(Options::with_guests(&["cookbook"])).await;
    let result = read(&server.client(), "recipe:porridge").await;
    assert_eq!(result["contents"][0]["mimeType"], "text/plain", "{result}");
    let (_, error) = server
        .client()
        .error("resources/read", json!({ "uri": "recipe:gruel" }))
        .await;
    assert_eq!(
        (&error["code"], &error["data"]),
        (&json!(-32602), &json!({ "uri": "recipe:gruel" }))
    );
}
