//! What calls leave for whoever called: read while it is kept, in every era, and the same after every restart.

use std::time::Duration;

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server, command, run};
use longshore_tests::session::{NEWEST, OLDEST, Session};
use longshore_tests::wait;
use serde_json::{Value, json};

/// Longer than any of this takes on a slow machine.
const SOON: Duration = Duration::from_secs(60);

const UNKNOWN: &str = "longshore://artifacts/00000000-0000-4000-8000-000000000000";

/// Calls that a client waits for stay held, those of one that knows tasks become tasks at once.
fn notes(inline_budget_ms: u64) -> Options {
    Options::with_guests(&["notes"])
        .set("inline_budget_ms", inline_budget_ms)
        .set("early_poll_ms", 0)
}

/// Where a result leads.
fn uri(result: &Value) -> String {
    let uri = result["content"][0]["uri"].as_str();
    uri.unwrap_or_else(|| panic!("{result} leads somewhere"))
        .to_owned()
}

async fn read(client: &Client, uri: &str) -> Value {
    client.result("resources/read", json!({ "uri": uri })).await["contents"].clone()
}

fn left(uri: &str) -> Value {
    json!([{ "uri": uri, "mimeType": "text/markdown", "text": "- a\n- größer\n" }])
}

/// What is said of a URI that leads nowhere, without the URI.
async fn refusal(client: &Client, uri: &str) -> String {
    let (status, error) = client.error("resources/read", json!({ "uri": uri })).await;
    format!("{status} {error}").replace(uri, "URI")
}

#[tokio::test]
async fn what_a_call_left_is_read_after_a_restart_and_in_every_era() {
    for inline_budget_ms in [120_000, 0] {
        let mut server = Server::start(notes(inline_budget_ms)).await;
        let client = server.client();
        let arguments = json!({ "notes": ["a", "größer"] });
        let result = if inline_budget_ms == 0 {
            let id = client.start("notes", arguments.clone()).await;
            client.until_ended(&id).await["result"].clone()
        } else {
            client.call("notes", arguments.clone()).await
        };
        let uri = uri(&result);
        assert_eq!(read(&client, &uri).await, left(&uri));
        server.restart().await;
        let client = server.client();
        assert_eq!(read(&client, &uri).await, left(&uri));
        for revision in [OLDEST, NEWEST] {
            let session = Session::able(server.client().address, revision).await;
            let params = json!({ "uri": uri });
            let result = session.result("resources/read", params).await;
            assert_eq!(result["contents"], left(&uri), "{revision}");
            let (_, error) = session
                .error("resources/read", json!({ "uri": UNKNOWN }))
                .await;
            assert_eq!(error["code"], -32002, "{revision}: {error}");
        }
        // It stands in no list.
        let listed = client.result("resources/list", json!({})).await;
        assert_eq!(listed["resources"], json!([]));
    }
}

#[tokio::test]
async fn what_is_forgotten_is_like_what_never_was() {
    // Long enough for a task to be fetched.
    for (inline_budget_ms, retention_ms) in [(120_000, 1), (0, 5_000)] {
        let options = notes(inline_budget_ms).set("retention_ms", retention_ms);
        let server = Server::start(options).await;
        let client = server.client();
        let arguments = json!({ "notes": [] });
        let uri = if inline_budget_ms == 0 {
            let id = client.start("notes", arguments).await;
            uri(&client.until_ended(&id).await["result"])
        } else {
            uri(&client.call("notes", arguments).await)
        };
        let never_was = refusal(&client, UNKNOWN).await;
        wait::until("it to be forgotten", SOON, || async {
            let reply = client.send("resources/read", json!({ "uri": uri })).await;
            reply.ok()?.json()["error"].is_object().then_some(())
        })
        .await;
        assert_eq!(refusal(&client, &uri).await, never_was);
        // No way of writing it leads anywhere else.
        for other in [uri.to_uppercase(), format!("{uri}/"), format!("{uri}?")] {
            client
                .error("resources/read", json!({ "uri": other }))
                .await;
        }
    }
}

#[tokio::test]
async fn a_call_leaves_so_much_and_is_told_when_that_is_all() {
    let options = notes(120_000)
        .set("limits.artifact_kib", 1)
        .set("limits.hostcall_kib", 64);
    let server = Server::start(options).await;
    let client = server.client();
    // Two signs before each note, and one behind it.
    for (bytes, fits) in [(1_024 - 3, true), (1_024 - 2, false)] {
        let arguments = json!({ "notes": ["x".repeat(bytes)] });
        let result = client.call("notes", arguments).await;
        assert_eq!(result["isError"] != true, fits, "{result}");
        if !fits {
            let said = result["content"][0]["text"].as_str().unwrap();
            assert_eq!(said, "what is left is 1025 bytes; at most 1024 are allowed");
        }
    }
}

#[tokio::test]
async fn a_call_alone_says_where_it_would_be() {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut alone = command(data.path());
    alone
        .arg("run")
        .arg(longshore_tests::guests::component("notes"))
        .args(["--arg", "notes=[\"a\"]", "--json"]);
    let (code, out, errors) = run(alone).await;
    assert_eq!(code, 0, "{errors}");
    assert!(out.contains("longshore://artifacts/"), "{out}");
}
