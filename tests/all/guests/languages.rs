//! The same tool in every language: clients cannot tell one from another, and each outlives its server.

use std::time::Duration;

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::{events, wait};
use serde_json::{Value, json};

use super::rows::{SURVEYS, accept};
use super::{listed, with_read_text};

#[tokio::test]
async fn each_language_is_listed_refused_and_heard_alike() {
    let server = Server::start(Options::with_guests(&SURVEYS).set("status_every_ms", 0)).await;
    let client = server.client();
    let listed = listed(&client).await;
    for name in SURVEYS {
        let schema = &listed[name]["inputSchema"];
        assert_eq!(schema["required"], json!(["topic"]), "{name}: {schema}");
        for (argument, kind) in [
            ("topic", "string"),
            ("rounds", "integer"),
            ("pause", "integer"),
        ] {
            assert_eq!(
                schema["properties"][argument]["type"], kind,
                "{name}: {schema}"
            );
        }
        for wrong in [
            json!({}),
            json!({ "topic": 1 }),
            json!({ "topic": "tea", "rounds": "many" }),
        ] {
            let said = client.call(name, wrong.clone()).await;
            assert_eq!(said["isError"], true, "{name} {wrong}: {said}");
        }
        let (progress, result) = held(&server, name).await;
        assert_eq!(progress, ["1 of 4", "2 of 4", "3 of 4", "4 of 4"], "{name}");
        assert_eq!(
            with_read_text(result)["content"][0]["text"],
            json!({ "topic": "tea", "rounds": 4, "seen": "teat", "answer": "unsupported", "mark": null }),
            "{name}"
        );
    }
}

/// What a client hears that can neither be asked nor knows tasks, and the result in the end.
async fn held(server: &Server, name: &str) -> (Vec<String>, Value) {
    let plain = Client::plain(server.address);
    let call = json!({
        "name": name,
        "arguments": { "topic": "tea", "rounds": 4, "pause": 300 },
        "_meta": { "progressToken": "p" },
    });
    let told = events::open(server.address, &plain.request("tools/call", call))
        .await
        .rest()
        .await;
    let progress = told
        .iter()
        .filter(|message| message["method"] == "notifications/progress")
        .map(|message| {
            format!(
                "{} of {}",
                message["params"]["progress"], message["params"]["total"]
            )
        })
        .collect();
    let result = told
        .last()
        .map(|last| last["result"].clone())
        .unwrap_or_default();
    (progress, result)
}

#[tokio::test]
async fn each_language_goes_on_after_the_death_of_the_server() {
    let options = Options::with_guests(&SURVEYS).set("status_every_ms", 0);
    let mut server = Server::start(options).await;
    let client = server.client();
    let mut ids = Vec::new();
    for name in SURVEYS {
        let arguments = json!({ "topic": "tä", "rounds": 20, "pause": 200 });
        let id = client.start(name, arguments).await;
        wait::until(
            &format!("{name} to get somewhere"),
            Duration::from_secs(60),
            || async {
                let task = client.task(&id).await;
                task["statusMessage"]
                    .as_str()
                    .is_some_and(|said| said.starts_with("round"))
                    .then_some(())
            },
        )
        .await;
        ids.push((name, id));
    }
    server.kill().await;
    server.restart().await;
    let client = server.client();
    for (name, id) in ids {
        client.until_status(&id, "input_required").await;
        let answers = json!({ "mark": accept(&json!({ "mark": 5 })) });
        client
            .result(
                "tasks/update",
                json!({ "taskId": id, "inputResponses": answers }),
            )
            .await;
        let ended = client.until_ended(&id).await;
        let found = json!({ "topic": "tä", "rounds": 20, "seen": "tä".repeat(10), "answer": "answered", "mark": 5 });
        assert_eq!(
            ended["result"]["structuredContent"], found,
            "{name}: {ended}"
        );
    }
}
