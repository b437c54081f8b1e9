//! A secret is sent, and is nowhere else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use longshore_tests::manifest::with_manifest;
use longshore_tests::process::{command, run, run_fed};

use super::*;

const CANARY: &str = "canary-5d1f0c9a7e";

/// What a tool asks for that wants to be let in.
const MANIFEST: &str = r#"
[[http]]
scheme = "http"
host = "127.0.0.1"
port = "*"

[[secrets]]
name = "token"
hosts = ["127.0.0.1"]
"#;

/// A task that has sent its request, and what came of it.
async fn fetched(client: &Client, target: &Target) -> (String, Value) {
    target.hold();
    let id = client.start("fetch", json!({ "url": url(target) })).await;
    target.release();
    let task = client.until_ended(&id).await;
    (id, task)
}

/// Every file below it that has these bytes.
fn holders(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            holders(&path, found);
        } else if let Ok(bytes) = fs::read(&path)
            && bytes
                .windows(CANARY.len())
                .any(|window| window == CANARY.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
}

async fn set_secret(server: &Server, name: &str, value: &str) {
    let mut set = command(server.data());
    set.args(["secret", "set", name]);
    let (code, out, error) = run_fed(set, value).await;
    assert_eq!(code, 0, "{error}");
    assert!(!out.contains(CANARY) && !error.contains(CANARY));
}

#[tokio::test]
async fn a_secret_is_in_the_request_and_nowhere_else() {
    let target = Target::start().await;
    let options = Options {
        variables: vec![("LONGSHORE_LOG".to_owned(), "trace".to_owned())],
        ..Options::default()
    };
    let server = Server::start(options.set("inline_budget_ms", 0)).await;
    let reply = server
        .upload("fetch", with_manifest("fetch", MANIFEST))
        .await;
    assert_eq!(reply.status, 201, "{}", reply.json());
    set_secret(&server, "token", &format!("{CANARY}\n")).await;
    let secret = json!({ "name": "token", "hosts": ["127.0.0.1"] });
    let granted = json!({ "http": [rule(&target)], "secrets": [secret] });
    grant(&server, "fetch", &granted).await;
    let client = server.client();
    let (id, task) = fetched(&client, &target).await;
    assert_eq!(
        target.seen()[0].field("authorization"),
        [format!("Bearer {CANARY}")]
    );
    let mut shown = vec![task.to_string(), server.errors()];
    for path in [
        format!("/v1/tasks/{id}"),
        format!("/v1/tasks/{id}/journal"),
        format!("/v1/tasks/{id}/export"),
        "/v1/components/fetch".to_owned(),
        "/v1/node".to_owned(),
    ] {
        let reply = server.admin("GET", &path, "").await;
        shown.push(String::from_utf8_lossy(&reply.body).into_owned());
    }
    for text in shown {
        assert!(!text.contains(CANARY), "{text}");
    }
    let mut found = Vec::new();
    holders(server.data(), &mut found);
    let own = server.data().join("secrets").join("token");
    assert_eq!(found, [own.display().to_string()]);
    let mode = fs::metadata(&own)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    // The newest is sent, and none once it is gone.
    set_secret(&server, "token", "another").await;
    fetched(&client, &target).await;
    let last = target.seen().pop().expect("it came");
    assert_eq!(last.field("authorization"), ["Bearer another"]);
    let sent = target.seen().len();
    let mut remove = command(server.data());
    remove.args(["secret", "remove", "token"]);
    assert_eq!(run(remove).await.0, 0);
    let result = client.call("fetch", json!({ "url": url(&target) })).await;
    let task = match result["taskId"].as_str() {
        Some(id) => client.until_ended(id).await,
        None => result,
    };
    assert!(
        task.to_string().contains("it carries secret token"),
        "{task}"
    );
    assert_eq!(target.seen().len(), sent);
}

#[tokio::test]
async fn secrets_are_listed_by_name_and_refused_by_reason() {
    let server = Server::start(Options::default()).await;
    set_secret(&server, "b", "1").await;
    set_secret(&server, "a", CANARY).await;
    let mut list = command(server.data());
    list.args(["secret", "list", "--json"]);
    let (code, out, _) = run(list).await;
    assert_eq!(code, 0);
    let listed: Value = serde_json::from_str(&out).expect("it is JSON");
    assert_eq!(listed["secrets"], json!(["a", "b"]));
    for (arguments, value, word) in [
        (["secret", "set", "../a"], "x", "names no secret"),
        (["secret", "set", "empty"], "\n", "empty"),
        (["secret", "set", "two"], "a\nb", "one line"),
        (["secret", "remove", "c"], "", "no secret"),
    ] {
        let mut command = command(server.data());
        command.args(arguments);
        let (code, _, error) = run_fed(command, value).await;
        assert_ne!(code, 0, "{arguments:?}");
        assert!(error.contains(word), "{word}: {error}");
    }
}
