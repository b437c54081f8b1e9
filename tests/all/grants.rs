//! What components are granted: by whom, until when, and what comes of it.

mod dirs;

use std::sync::Arc;

use longshore_tests::guests;
use longshore_tests::http::{Reply, send};
use longshore_tests::manifest::with_manifest;
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server, command, run};
use serde_json::{Value, json};

const NAME: &str = "explore";
const GRANT: &str = "/v1/components/explore/grant";

async fn uploaded(manifest: Option<&str>) -> Server {
    let server = Server::start(Options::default()).await;
    let bytes = match manifest {
        Some(manifest) => with_manifest(NAME, manifest),
        None => std::fs::read(guests::component(NAME)).expect("it is built"),
    };
    let reply = server.upload(NAME, bytes).await;
    assert_eq!(reply.status, 201, "{}", reply.json());
    server
}

async fn granted(server: &Server, grant: &Value) -> Value {
    let reply = server.admin("PUT", GRANT, grant.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.json());
    reply.json()
}

/// The environment that a guest sees.
async fn environment(client: &Client) -> Value {
    let result = client.call("environment", json!({})).await;
    let text = result["content"][0]["text"].as_str();
    serde_json::from_str(text.unwrap_or_default()).unwrap_or_else(|_| panic!("{result}"))
}

async fn says(server: &Server, arguments: &[&str]) -> (i32, String) {
    let mut command = command(server.data());
    command
        .env("LONGSHORE_SERVER", format!("http://{}", server.address))
        .args(arguments);
    let (code, out, err) = run(command).await;
    (code, if code == 0 { out } else { err })
}

#[track_caller]
fn refused(reply: &Reply, status: u16, reason: &str, word: &str) {
    let error = &reply.json()["error"];
    assert_eq!(
        (reply.status, &error["reason"]),
        (status, &json!(reason)),
        "{error}"
    );
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains(word), "{word:?} is missing: {message}");
}

#[tokio::test]
async fn a_grant_is_in_force_at_once_lasts_and_goes_with_its_name() {
    let mut server = uploaded(None).await;
    assert_eq!(environment(&server.client()).await, json!({}));
    let shown = granted(
        &server,
        &json!({ "env": { "TZ": "UTC" }, "limits": { "cpu_ms": 7000 } }),
    )
    .await;
    assert_eq!(shown["asked"], Value::Null, "{shown}");
    assert_eq!(shown["inForce"]["env"], json!({ "TZ": "UTC" }), "{shown}");
    assert_eq!(shown["inForce"]["limits"]["cpu_ms"], 7000, "{shown}");
    assert_eq!(environment(&server.client()).await, json!({ "TZ": "UTC" }));

    server.restart().await;
    server.prepared().await;
    assert_eq!(environment(&server.client()).await, json!({ "TZ": "UTC" }));
    let component = server
        .admin("GET", "/v1/components/explore", "")
        .await
        .json();
    assert_eq!(
        component["policy"]["granted"]["env"],
        json!({ "TZ": "UTC" })
    );

    // It replaces all of what was granted before.
    granted(&server, &json!({ "env": { "LANG": "C" } })).await;
    assert_eq!(environment(&server.client()).await, json!({ "LANG": "C" }));

    // Another component of that name is somebody else's.
    assert_eq!(
        server
            .admin("DELETE", "/v1/components/explore", "")
            .await
            .status,
        204
    );
    refused(
        &server.admin("GET", GRANT, "").await,
        404,
        "not-found",
        NAME,
    );
    let bytes = std::fs::read(guests::component(NAME)).expect("it is built");
    assert_eq!(server.upload(NAME, bytes).await.status, 201);
    assert_eq!(environment(&server.client()).await, json!({}));
}

#[tokio::test]
async fn a_component_of_a_file_is_granted_by_its_name() {
    let mut server = Server::start(Options::with_guests(&[NAME])).await;
    granted(&server, &json!({ "env": { "TZ": "UTC" } })).await;
    assert_eq!(environment(&server.client()).await, json!({ "TZ": "UTC" }));
    server.restart().await;
    server.prepared().await;
    assert_eq!(environment(&server.client()).await, json!({ "TZ": "UTC" }));
}

#[tokio::test]
async fn nothing_beyond_its_manifest_is_in_force() {
    let manifest = "env = [\"A\"]\n[limits]\ncpu_ms = 5000\n[[http]]\nhost = \"*.a.test\"\n";
    let server = uploaded(Some(manifest)).await;
    let component = server
        .admin("GET", "/v1/components/explore", "")
        .await
        .json();
    let policy = &component["policy"];
    assert_eq!(policy["asked"]["env"], json!(["A"]), "{policy}");
    assert_eq!(policy["inForce"]["env"], json!({}), "{policy}");
    assert_eq!(policy["inForce"]["limits"]["cpu_ms"], 5000, "{policy}");

    let grant = json!({
        "env": { "A": "1", "B": "2" },
        "limits": { "cpu_ms": 20_000 },
        "http": [{ "host": "x.a.test", "methods": ["GET", "POST"] }, { "host": "b.test" }],
    });
    let shown = granted(&server, &grant).await;
    let in_force = &shown["inForce"];
    assert_eq!(in_force["env"], json!({ "A": "1" }), "{shown}");
    assert_eq!(in_force["limits"]["cpu_ms"], 5000, "{shown}");
    let rules = json!([{
        "scheme": "https", "host": "x.a.test", "port": 443, "methods": ["GET"], "treat_as_write": false,
    }]);
    assert_eq!(in_force["http"], rules, "{shown}");
    assert_eq!(environment(&server.client()).await, json!({ "A": "1" }));
}

#[tokio::test]
async fn a_manifest_that_cannot_be_understood_is_a_refused_upload() {
    let server = Server::start(Options::default()).await;
    let reply = server.upload(NAME, with_manifest(NAME, "envs = []")).await;
    refused(&reply, 422, "manifest", "is `env` meant?");
    assert_eq!(server.figures().await["sandbox"]["compiles"], 0);
}

#[tokio::test]
async fn what_is_not_understood_grants_nothing_and_takes_nothing_away() {
    let server = uploaded(None).await;
    granted(&server, &json!({ "env": { "TZ": "UTC" } })).await;
    let rows = [
        ("", 400, "body", "must be a grant"),
        ("{", 400, "body", "must be a grant"),
        ("[]", 422, "grant", "must be a table"),
        (r#"{"envs":{}}"#, 422, "grant", "is `env` meant?"),
        (
            r#"{"http":[{"host":"*.com"}]}"#,
            422,
            "grant",
            "names of strangers",
        ),
        (r#"{"http":[{"host":"*"}]}"#, 422, "grant", "any_host"),
        (
            r#"{"http":[{"host":"a.test","metod":"GET"}]}"#,
            422,
            "grant",
            "is `methods` meant?",
        ),
        (
            r#"{"dirs":[{"guest":"/a","host":"relative"}]}"#,
            422,
            "grant",
            "no absolute path",
        ),
        (
            r#"{"limits":{"memory_mib":100000}}"#,
            422,
            "grant",
            "1 to 256",
        ),
    ];
    for (body, status, reason, word) in rows {
        refused(
            &server.admin("PUT", GRANT, body).await,
            status,
            reason,
            word,
        );
    }
    assert_eq!(environment(&server.client()).await, json!({ "TZ": "UTC" }));
    let nobody = server
        .admin("PUT", "/v1/components/nobody/grant", "{}")
        .await;
    refused(&nobody, 404, "not-found", "nobody");
}

#[tokio::test]
async fn every_host_is_granted_only_where_the_server_was_told_so() {
    let server = Server::start(Options::with_guests(&[NAME]).set("any_host", true)).await;
    let shown = granted(&server, &json!({ "http": [{ "host": "*" }] })).await;
    assert_eq!(shown["inForce"]["http"][0]["host"], "*", "{shown}");
}

#[tokio::test]
async fn nobody_without_the_admin_token_grants_anything() {
    let server = uploaded(None).await;
    let body = json!({ "env": { "TZ": "UTC" } }).to_string();
    for headers in [&[][..], &[("Authorization", "Bearer somebody")]] {
        for (method, body) in [("PUT", body.as_str()), ("GET", "")] {
            let reply = send(server.address, method, GRANT, headers, body.to_owned()).await;
            refused(&reply.expect("the server answers"), 401, "unauthorized", "");
        }
    }
    assert_eq!(environment(&server.client()).await, json!({}));
}

#[tokio::test]
async fn a_task_keeps_what_it_began_with_in_whatever_process() {
    let mut server = uploaded(None).await;
    granted(&server, &json!({ "env": { "WHEN": "before" } })).await;
    let client = server.client();
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(client.start("environment", json!({ "ask": true })).await);
    }
    for id in &ids {
        client.until_status(id, "input_required").await;
    }
    granted(&server, &json!({ "env": { "WHEN": "after" } })).await;
    let answered = async |server: &Server, id: &str| {
        let client = server.client();
        let answers = json!({ "go": { "action": "accept", "content": { "go_on": true } } });
        client
            .result(
                "tasks/update",
                json!({ "taskId": id, "inputResponses": answers }),
            )
            .await;
        let task = client.until_ended(id).await;
        task["result"]["content"][0]["text"].clone()
    };
    let before = json!({ "WHEN": "before" }).to_string();
    assert_eq!(answered(&server, &ids[0]).await, json!(before));
    server.kill().await;
    server.restart().await;
    server.prepared().await;
    assert_eq!(answered(&server, &ids[1]).await, json!(before));
    assert_eq!(
        environment(&server.client()).await,
        json!({ "WHEN": "after" })
    );
}

#[tokio::test]
async fn the_command_grants_adds_shows_and_takes_away() {
    let server = uploaded(Some("env = [\"A\", \"B\"]")).await;
    let (code, shown) = says(&server, &["grant", NAME]).await;
    assert_eq!(code, 0, "{shown}");
    for words in [
        "asks for\n  env  A\n  env  B\n",
        "is granted\n  nothing\n",
        "has\n  nothing\n",
    ] {
        assert!(shown.contains(words), "{words:?} is missing: {shown}");
    }
    let (code, shown) = says(
        &server,
        &["grant", NAME, "--env", "A=1", "--http", "POST a.test"],
    )
    .await;
    assert_eq!(code, 0, "{shown}");
    let (code, shown) = says(
        &server,
        &["grant", NAME, "--env", "B=2", "--limit", "cpu_ms=3000"],
    )
    .await;
    assert_eq!(code, 0, "{shown}");
    let all =
        "is granted\n  http  POST https://a.test\n  env  A=1\n  env  B=2\n  limit  cpu_ms 3000\n";
    assert!(shown.contains(all), "{shown}");
    assert!(shown.contains("has\n  env  A=1\n  env  B=2\n"), "{shown}");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("grant.toml");
    std::fs::write(&file, "[env]\nB = \"3\"\n").expect("it can be written");
    let file = file.to_str().expect("it is text");
    let (code, shown) = says(&server, &["grant", NAME, "--file", file, "--json"]).await;
    assert_eq!(code, 0, "{shown}");
    let shown: Value = serde_json::from_str(&shown).expect("it is JSON");
    assert_eq!(
        shown["granted"],
        json!({ "env": { "B": "3" }, "cleanup": true })
    );
    std::fs::write(file, "[envs]\n").expect("it can be written");
    let (code, shown) = says(&server, &["grant", NAME, "--file", file]).await;
    assert!(
        code == 1 && shown.contains("is `env` meant?"),
        "{code} {shown}"
    );
    for bad in [
        &["--http", "*.com"][..],
        &["--dir", "/a=b"],
        &["--env", "A"],
        &["--limit", "cpu=1"],
    ] {
        let (code, shown) = says(&server, &[&["grant", NAME], bad].concat()).await;
        assert_eq!(code, 2, "{bad:?}: {shown}");
    }
    let (code, shown) = says(&server, &["grant", NAME, "--revoke"]).await;
    assert!(
        code == 0 && shown.contains("has\n  nothing\n"),
        "{code} {shown}"
    );
    let (code, shown) = says(&server, &["components", "show", NAME]).await;
    assert!(
        code == 0 && shown.contains("asks for\n  env  A\n"),
        "{code} {shown}"
    );
}

#[tokio::test]
async fn a_grant_that_another_version_kept_keeps_its_component_from_being_served() {
    let mut server = uploaded(None).await;
    granted(&server, &json!({ "env": { "TZ": "UTC" } })).await;
    server.terminate().await;
    let data = Arc::new(server.data().to_owned());
    rewrite(
        &data.join("longshore.db"),
        r#"'{"env":{"TZ":"UTC"},"sockets":["*"]}'"#,
    );
    server.restart().await;
    server.prepared().await;
    let listed = server.admin("GET", "/v1/components", "").await.json();
    assert_eq!(listed["components"], json!([]), "{listed}");
    assert_eq!(listed["broken"][0]["reason"], "grant", "{listed}");
    let message = listed["broken"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("\"sockets\" is not known"), "{message}");
}

#[tokio::test]
async fn a_damaged_grant_keeps_its_own_component_from_being_served_until_there_is_another() {
    let mut server = uploaded(None).await;
    let other = std::fs::read(guests::component("hello")).expect("it is built");
    assert_eq!(server.upload("hello", other).await.status, 201);
    let data = Arc::new(server.data().to_owned());
    for damage in ["'{'", "''", "'7'", "cast(x'fffe' as text)"] {
        granted(&server, &json!({ "env": { "TZ": "UTC" } })).await;
        server.terminate().await;
        rewrite(&data.join("longshore.db"), damage);
        server.restart().await;
        server.prepared().await;
        let listed = server.admin("GET", "/v1/components", "").await.json();
        assert_eq!(listed["components"][0]["name"], "hello", "{listed}");
        assert_eq!(listed["broken"][0]["reason"], "grant", "{listed}");
        let shown = server.admin("GET", GRANT, "").await.json();
        assert_eq!(shown["inForce"], Value::Null, "{shown}");
        let shown = granted(&server, &json!({ "env": { "LANG": "C" } })).await;
        assert_eq!(shown["inForce"]["env"], json!({ "LANG": "C" }), "{shown}");
        assert_eq!(environment(&server.client()).await, json!({ "LANG": "C" }));
        let listed = server.admin("GET", "/v1/components", "").await.json();
        assert_eq!(listed["broken"], json!([]), "{listed}");
    }
}

#[tokio::test]
async fn what_a_component_that_is_gone_was_granted_is_listed_and_can_be_taken_back() {
    let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let mut server = Server::start_in(Arc::clone(&data), Options::with_guests(&[NAME])).await;
    granted(&server, &json!({ "env": { "TZ": "UTC" } })).await;
    server.terminate().await;
    let server = Server::start_in(data, Options::default()).await;
    let listed = server.admin("GET", "/v1/components", "").await.json();
    assert_eq!(listed["grantedToNobody"], json!([NAME]), "{listed}");
    let (code, told) = says(&server, &["components", "list"]).await;
    assert!(
        code == 0 && told.contains("grant explore --revoke"),
        "{code} {told}"
    );
    let shown = server.admin("GET", GRANT, "").await.json();
    assert_eq!(shown["granted"]["env"], json!({ "TZ": "UTC" }), "{shown}");
    let (code, told) = says(&server, &["grant", NAME, "--revoke"]).await;
    assert!(code == 0, "{told}");
    let listed = server.admin("GET", "/v1/components", "").await.json();
    assert_eq!(listed["grantedToNobody"], json!([]), "{listed}");
    assert_eq!(server.admin("GET", GRANT, "").await.status, 404);
}

/// Another program at the file of a server that is not running: a grant is that now, and something else has no name.
fn rewrite(path: &std::path::Path, grant: &str) {
    let db = rusqlite::Connection::open(path).expect("the database is there");
    let changed = db
        .execute(
            &format!("update component_grant set grant_json = {grant} where name = ?1"),
            [NAME],
        )
        .expect("it can be written");
    assert_eq!(changed, 1);
    let nameless =
        "insert or replace into component_grant (name, grant_json) values ('NO name', '{}')";
    db.execute(nameless, []).expect("it can be written");
}

#[tokio::test]
async fn what_has_nothing_to_clean_up_gets_no_time_for_it() {
    for (manifest, lines) in [("cleanup = false", 1), ("", 2)] {
        let server = Server::start(Options::default()).await;
        let reply = server
            .upload("cleanup", with_manifest("cleanup", manifest))
            .await;
        assert_eq!(reply.status, 201, "{}", reply.json());
        let client = server.client();
        let id = client.start("cleanup", json!({})).await;
        client.until_status(&id, "input_required").await;
        client.result("tasks/cancel", json!({ "taskId": id })).await;
        let task = client.until_ended(&id).await;
        assert_eq!(task["status"], "cancelled", "{task}");
        let shown = server
            .admin("GET", &format!("/v1/tasks/{id}"), "")
            .await
            .json();
        let log = shown["output"]["log"].as_array().map(Vec::len);
        assert_eq!(log, Some(lines), "{manifest}: {shown}");
    }
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_and_changes_nothing() {
    let server = uploaded(None).await;
    granted(&server, &json!({ "env": { "A": "1", "B": "2" } })).await;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("explore.wasm");
    std::fs::write(&file, with_manifest(NAME, "env = [\"A\"]")).expect("it can be written");
    let file = file.to_str().expect("it is text");
    let (code, shown) = says(&server, &["push", file, "--dry-run"]).await;
    assert_eq!(code, 0, "{shown}");
    for words in [
        "explore could be installed; nothing was\n",
        "asks for\n  env  A\n",
        "is granted\n  env  A=1\n  env  B=2\n",
        "has\n  env  A=1\n",
    ] {
        assert!(shown.contains(words), "{words:?} is missing: {shown}");
    }
    let both = json!({ "A": "1", "B": "2" });
    assert_eq!(environment(&server.client()).await, both);
    // Refused as an upload would be.
    let (code, shown) = says(&server, &["push", file, "--dry-run", "--name", "other"]).await;
    assert!(
        code == 1 && shown.contains("name-collision"),
        "{code} {shown}"
    );
    // And what was looked at is compiled again if it comes.
    let (code, shown) = says(&server, &["push", file]).await;
    assert_eq!(code, 0, "{shown}");
    assert_eq!(environment(&server.client()).await, json!({ "A": "1" }));
}
