//! Whom a tool may reach, and how long.

use longshore_tests::process::{command, run};

use super::*;

#[tokio::test]
async fn nobody_is_reached_who_is_not_granted_and_the_log_says_why() {
    let target = Target::start().await;
    let server = Server::start(Options::with_guests(&["fetch"])).await;
    let client = server.client();
    let arguments = || json!({ "url": url(&target) });
    let denied = says(&client, "fetch", arguments()).await;
    assert!(denied.contains("its operator can grant it"), "{denied}");
    // A grant names a host and not what it leads to.
    let mut bare = rule(&target);
    bare.as_object_mut().expect("it is one").remove("networks");
    grant(&server, "fetch", &json!({ "http": [bare] })).await;
    let denied = says(&client, "fetch", arguments()).await;
    assert!(denied.contains("tools are not let to"), "{denied}");
    grant(&server, "fetch", &json!({ "http": [rule(&target)] })).await;
    let shown = says(&client, "fetch", arguments()).await;
    assert!(shown.contains("\"status\":200"), "{shown}");
    assert_eq!(target.seen().len(), 1);
    assert_eq!(target.seen()[0].path, "/orders?from=here");
    grant(&server, "fetch", &json!({})).await;
    let denied = says(&client, "fetch", arguments()).await;
    assert!(denied.contains("its operator can grant it"), "{denied}");
    assert_eq!(target.seen().len(), 1);
}

#[tokio::test]
async fn a_task_goes_on_with_what_it_was_granted() {
    let target = Target::start().await;
    let mut server = serving("order", Options::default(), rule_with(&target, "tell")).await;
    target.hold();
    let arguments = json!({ "n": 3, "url": url(&target) });
    let id = server.client().start("order", arguments).await;
    target.until(1).await;
    grant(&server, "order", &json!({})).await;
    server.kill().await;
    target.release();
    server.restart().await;
    let task = server.client().until_ended(&id).await;
    let counted = &task["result"]["structuredContent"];
    assert_eq!(
        *counted,
        json!({ "accepted": 2, "refused": 0, "unknown": 1 })
    );
}

#[tokio::test]
async fn the_server_itself_is_nobody_to_be_reached() {
    let server = Server::start(Options::with_guests(&["fetch"])).await;
    let own = json!({
        "scheme": "http", "host": "127.0.0.1", "port": "*", "networks": ["127.0.0.0/8"],
    });
    grant(&server, "fetch", &json!({ "http": [own] })).await;
    let url = format!("http://{}/v1/node", server.address);
    let denied = says(&server.client(), "fetch", json!({ "url": url })).await;
    assert!(denied.contains("tools are not let to"), "{denied}");
}

#[tokio::test]
async fn a_journal_shows_what_was_asked_and_a_file_repeats_it() {
    let target = Target::start().await;
    let options = Options::default().set("inline_budget_ms", 0);
    let server = serving("fetch", options, rule(&target)).await;
    target.hold();
    let id = server
        .client()
        .start("fetch", json!({ "url": url(&target) }))
        .await;
    target.release();
    server.client().until_ended(&id).await;
    let path = format!("/v1/tasks/{id}/journal");
    let journal = server.admin("GET", &path, "").await.json().to_string();
    for word in ["\"method\":\"GET\"", "/orders?from=here", "\"status\":200"] {
        assert!(journal.contains(word), "{word} in {journal}");
    }
    let file = server.data().join("exported.json");
    let mut export = command(server.data());
    export
        .env("LONGSHORE_SERVER", format!("http://{}", server.address))
        .args(["tasks", "export", &id, "--output"])
        .arg(&file);
    let (code, _, error) = run(export).await;
    assert_eq!(code, 0, "{error}");
    let mut replay = command(server.data());
    replay.arg("replay").arg(&file);
    let (code, out, error) = run(replay).await;
    assert_eq!(code, 0, "{out}{error}");
    // Nobody was asked again.
    assert_eq!(target.seen().len(), 1);
}

#[tokio::test]
async fn a_call_without_a_server_reaches_what_its_caller_grants() {
    let target = Target::start().await;
    let data = tempfile::tempdir().expect("a folder can be made");
    let grant = data.path().join("grant.toml");
    let port = target.address.port();
    let text = format!(
        "[[http]]\nscheme = \"http\"\nhost = \"127.0.0.1\"\nport = {port}\nnetworks = [\"127.0.0.0/8\"]\n"
    );
    std::fs::write(&grant, text).expect("it can be written");
    let mut command = command(data.path());
    command
        .arg("run")
        .arg(longshore_tests::guests::component("fetch"))
        .arg("--grant")
        .arg(&grant)
        .args(["--arg", &format!("url={}", url(&target))]);
    let (code, out, error) = run(command).await;
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("\"status\":200"), "{out}");
    assert_eq!(target.seen().len(), 1);
}

#[tokio::test]
async fn a_tool_in_python_takes_arguments_and_sends_requests() {
    let target = Target::start().await;
    let options = Options::default().set("inline_budget_ms", 60_000);
    let server = serving("fetch-python", options, rule(&target)).await;
    let client = Client::plain(server.address);
    let arguments = json!({ "url": url(&target), "shown": 9.0 });
    let result = client.call("fetch-python", arguments).await;
    let seen = &result["structuredContent"];
    assert_eq!(seen["status"], 200, "{result}");
    assert_eq!(seen["text"], "{\"request", "{result}");
    for (arguments, word) in [
        (json!({}), "\"url\""),
        (json!({ "url": 1 }), "string"),
        (json!({ "url": "", "shown": "x" }), "integer"),
        (json!({ "url": "nonsense" }), "is no URL"),
    ] {
        let said = says(&client, "fetch-python", arguments).await;
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_eq!(target.seen().len(), 1);
    let listed = client.result("tools/list", json!({})).await;
    let schema = &listed["tools"][0]["inputSchema"];
    assert_eq!(schema["required"], json!(["url"]), "{schema}");
    let described = schema["properties"]["shown"]["description"].as_str();
    assert_eq!(described, Some("How many bytes of it."));
}

#[tokio::test]
async fn a_tool_in_typescript_takes_arguments_and_sends_requests() {
    let target = Target::start().await;
    let options = Options::default().set("inline_budget_ms", 60_000);
    let server = serving("fetch-typescript", options, rule(&target)).await;
    let client = Client::plain(server.address);
    let result = client
        .call("fetch-typescript", json!({ "url": url(&target) }))
        .await;
    let seen = &result["structuredContent"];
    assert_eq!(seen["status"], 200, "{result}");
    assert_eq!(seen["text"], "{\"request\":1}", "{result}");
    for (arguments, word) in [
        (json!({}), "\"url\""),
        (json!({ "url": 1 }), "string"),
        (json!({ "url": "nonsense" }), "nonsense"),
    ] {
        let said = says(&client, "fetch-typescript", arguments).await;
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_eq!(target.seen().len(), 1);
}

/// A run that has directories of the host uses another WASI, and reaches the same.
#[tokio::test]
async fn a_tool_with_directories_sends_requests_as_well() {
    let target = Target::start().await;
    let dir = tempfile::tempdir().expect("a folder can be made");
    let server = Server::start(Options::with_guests(&["fetch"])).await;
    let mount = json!({ "guest": "/data", "host": dir.path() });
    let granted = json!({ "dirs": [mount], "http": [rule(&target)] });
    let path = "/v1/components/fetch/grant";
    let reply = server.admin("PUT", path, granted.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.json());
    let client = server.client();
    let shown = says(&client, "fetch", json!({ "url": url(&target) })).await;
    assert!(shown.contains("\"status\":200"), "{shown}");
    let elsewhere = json!({ "url": "http://example.test/" });
    let denied = says(&client, "fetch", elsewhere).await;
    assert!(denied.contains("its operator can grant it"), "{denied}");
    assert_eq!(target.seen().len(), 1);
}
