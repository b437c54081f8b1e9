//! A component's way in and out: uploaded, replaced, removed; who may, and under which names.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use longshore_tests::alive::Baseline;
use longshore_tests::component::{Behaviour, Made, Mode, Tool};
use longshore_tests::http::{Reply, send};
use longshore_tests::process::{Options, Server, TOKEN};
use serde_json::{Value, json};

use super::server;

/// A component whose one tool becomes a task that takes a second and then answers so.
fn slow(tool: &str, answer: &str) -> Vec<u8> {
    let tool = Tool {
        mode: Mode::Always,
        ..Tool::named(tool)
    };
    Made {
        call: Behaviour::Sleeps(1_000),
        answer: answer.to_owned(),
        ..Made::of([tool])
    }
    .bytes()
}

async fn tool_names(server: &Server) -> Vec<Value> {
    let listed = server.client().result("tools/list", json!({})).await;
    listed["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["name"].clone())
        .collect()
}

#[track_caller]
fn refused(reply: &Reply, status: u16, reason: &str) {
    assert_eq!(
        (reply.status, &reply.json()["error"]["reason"]),
        (status, &Value::from(reason)),
        "{}",
        reply.json()
    );
}

#[tokio::test]
async fn uploaded_shown_kept_and_removed_while_its_task_runs() {
    let mut server = server().await;
    let baseline = Baseline::of(&server).await;
    let bytes = slow("slow", "finished");

    let created = server.upload("one", bytes.clone()).await;
    assert_eq!(created.status, 201, "{}", created.json());
    let created = created.json();
    assert_eq!(
        (&created["name"], &created["tools"], &created["changed"]),
        (&json!("one"), &json!(["slow"]), &json!(true))
    );
    let digest = created["digest"]
        .as_str()
        .expect("a component has a digest")
        .to_owned();
    assert!(
        digest.len() == 71 && digest.starts_with("sha256:"),
        "{digest}"
    );

    let shown = server.admin("GET", "/v1/components/one", "").await.json();
    let again = server.upload("one", bytes.clone()).await;
    assert_eq!(
        (
            again.status,
            &again.json()["changed"],
            &again.json()["digest"]
        ),
        (200, &json!(false), &json!(digest))
    );

    let after = server.admin("GET", "/v1/components/one", "").await.json();
    assert_eq!(after, shown, "an upload that changed nothing changed it");
    assert_eq!(shown["digest"], digest);
    assert_eq!(shown["size"], bytes.len());
    assert_eq!(shown["static"], false);
    assert_eq!(shown["tools"][0]["name"], "slow");
    let listed = server.admin("GET", "/v1/components", "").await.json();
    let names: Vec<&Value> = listed["components"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["hello", "one"]);

    server.restart().await;
    assert_eq!(
        server.admin("GET", "/v1/components/one", "").await.json(),
        shown,
        "a restart changed it"
    );

    let client = server.client();
    let id = client.start("slow", json!({})).await;
    let removed = server.admin("DELETE", "/v1/components/one", "").await;
    assert_eq!((removed.status, removed.body.len()), (204, 0));
    assert_eq!(
        client.task(&id).await["status"],
        "working",
        "removing a component ended its task"
    );
    refused(
        &server.admin("GET", "/v1/components/one", "").await,
        404,
        "not-found",
    );
    refused(
        &server.admin("DELETE", "/v1/components/one", "").await,
        404,
        "not-found",
    );
    assert_eq!(tool_names(&server).await, ["hello"]);
    let (status, error) = client
        .error("tools/call", json!({ "name": "slow", "arguments": {} }))
        .await;
    assert_eq!((status, &error["code"]), (400, &json!(-32602)), "{error}");
    let ended = client.until_ended(&id).await;
    assert_eq!(ended["result"]["content"][0]["text"], "finished", "{ended}");

    server.restart().await;
    refused(
        &server.admin("GET", "/v1/components/one", "").await,
        404,
        "not-found",
    );
    assert_eq!(server.upload("one", bytes).await.status, 201);
    baseline.holds(&server).await;
}

#[tokio::test]
async fn a_task_ends_with_the_component_that_it_began_with() {
    let server = server().await;
    let client = server.client();
    let first = server.upload("one", slow("slow", "first")).await.json();
    let before = client.start("slow", json!({})).await;
    let second = server.upload("one", slow("slow", "second")).await;
    assert_eq!(
        (second.status, &second.json()["changed"]),
        (200, &json!(true))
    );
    assert_ne!(second.json()["digest"], first["digest"]);
    let after = client.start("slow", json!({})).await;
    assert_eq!(
        client.until_ended(&before).await["result"]["content"][0]["text"],
        "first"
    );
    assert_eq!(
        client.until_ended(&after).await["result"]["content"][0]["text"],
        "second"
    );
    let shown = server
        .admin("GET", &format!("/v1/tasks/{before}"), "")
        .await
        .json();
    assert_eq!(shown["digest"], first["digest"]);
}

#[tokio::test]
async fn a_tool_name_has_one_owner() {
    let server = server().await;
    let baseline = Baseline::of(&server).await;
    let answering = |answer: &str, tools: &[&str]| {
        let tools: Vec<Tool> = tools.iter().map(|name| Tool::named(name)).collect();
        Made {
            answer: answer.to_owned(),
            ..Made::of(tools)
        }
        .bytes()
    };
    assert_eq!(
        server
            .upload("first", answering("first", &["shared", "own"]))
            .await
            .status,
        201
    );
    let clash = server
        .upload("second", answering("second", &["shared"]))
        .await;
    refused(&clash, 409, "name-collision");
    let message = clash.json()["error"]["message"].to_string();
    for named in ["shared", "first", "second"] {
        assert!(message.contains(named), "{message} does not name {named}");
    }
    refused(
        &server
            .upload("second", answering("second", &["hello"]))
            .await,
        409,
        "name-collision",
    );
    refused(
        &server.admin("GET", "/v1/components/second", "").await,
        404,
        "not-found",
    );
    let client = server.client();
    assert_eq!(
        client.call("shared", json!({})).await["content"][0]["text"],
        "first"
    );

    // A component is no rival of itself, and what it gives up is free.
    assert_eq!(
        server
            .upload("first", answering("newer", &["own"]))
            .await
            .status,
        200
    );
    assert_eq!(
        server
            .upload("second", answering("second", &["shared"]))
            .await
            .status,
        201
    );
    assert_eq!(
        client.call("shared", json!({})).await["content"][0]["text"],
        "second"
    );
    assert_eq!(
        client.call("own", json!({})).await["content"][0]["text"],
        "newer"
    );
    baseline.holds(&server).await;
}

#[tokio::test]
async fn components_of_the_command_line_are_not_for_uploads() {
    let server = server().await;
    refused(
        &server
            .upload("hello", Made::with_tool("other").bytes())
            .await,
        409,
        "static-name",
    );
    refused(
        &server.admin("DELETE", "/v1/components/hello", "").await,
        409,
        "static-name",
    );
    assert_eq!(
        server.admin("GET", "/v1/components/hello", "").await.json()["static"],
        true
    );
    Baseline::of(&server).await.holds(&server).await;
}

#[tokio::test]
async fn nothing_under_v1_answers_without_the_token() {
    let server = server().await;
    let good = format!("Bearer {TOKEN}");
    let longer = format!("{good}x");
    let basic = format!("Basic {TOKEN}");
    let tokens: [&[(&str, &str)]; 8] = [
        &[],
        &[("authorization", "Bearer ")],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer wrong")],
        &[("authorization", &longer)],
        &[("authorization", &basic)],
        &[("authorization", TOKEN)],
        &[("authorization", "Bearer wrong"), ("authorization", &good)],
    ];
    let id = "00000000-0000-4000-8000-000000000000";
    let answer = format!("/v1/tasks/{id}/answer");
    let cancel = format!("/v1/tasks/{id}/cancel");
    let one = format!("/v1/tasks/{id}");
    let requests = [
        ("GET", "/v1/components"),
        ("GET", "/v1/components/hello"),
        ("PUT", "/v1/components/new"),
        ("DELETE", "/v1/components/hello"),
        ("GET", "/v1/tasks"),
        ("GET", &one),
        ("POST", &answer),
        ("POST", &cancel),
        ("GET", "/v1/node"),
        ("GET", "/v1/nothing"),
        ("PATCH", "/v1/node"),
        ("GET", "/v1"),
        ("GET", "/v1/"),
    ];
    let made = Made::with_tool("made").bytes();
    for (method, path) in requests {
        for token in tokens {
            let reply = send(server.address, method, path, token, made.clone())
                .await
                .expect("the server answers");
            // Above the admin API there is nothing, with a token or without.
            if matches!(path, "/v1" | "/v1/") && reply.status == 404 {
                continue;
            }
            assert_eq!(reply.status, 401, "{method} {path} with {token:?}");
            assert_eq!(reply.json()["error"]["reason"], "unauthorized");
            assert!(
                reply.headers.contains_key("www-authenticate"),
                "{method} {path}"
            );
        }
        let allowed = send(
            server.address,
            method,
            path,
            &[("authorization", &good)],
            made.clone(),
        )
        .await;
        assert_ne!(
            allowed.expect("the server answers").status,
            401,
            "{method} {path} with the token"
        );
    }
    // Only the one with the token came through.
    assert_eq!(tool_names(&server).await, ["hello", "made"]);
}

/// Every file below a folder.
fn files(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            files(&path, found);
        }
        found.insert(path.display().to_string());
    }
}

#[tokio::test]
async fn a_name_that_is_a_path_touches_no_file() {
    let outer = tempfile::tempdir().expect("a temporary folder can be made");
    let data = tempfile::tempdir_in(outer.path()).expect("and one in it");
    let server = Server::start_in(Arc::new(data), Options::with_guests(&["hello"])).await;
    let baseline = Baseline::of(&server).await;
    let all = || {
        let mut found = BTreeSet::new();
        files(outer.path(), &mut found);
        found
    };
    let before = all();
    let long = "n".repeat(64);
    let longer = "n".repeat(300);
    let names = [
        "..%2f..%2fx",
        "%2e%2e%2fx",
        "%2e%2e",
        "%2e",
        "a%2fb",
        "a%5cb",
        "%2fetc%2fx",
        "x.policy",
        "x.wasm",
        "CON",
        "A",
        "-a",
        "a_b",
        "a%20b",
        "a%00b",
        "%ff",
        "%c3%a4",
        "a%0d%0ab",
        &long,
        &longer,
    ];
    let made = Made::with_tool("made").bytes();
    for name in names {
        for method in ["PUT", "GET", "DELETE"] {
            let reply = server
                .admin(method, &format!("/v1/components/{name}"), made.clone())
                .await;
            refused(&reply, 422, "id");
        }
    }
    // These are other addresses, or none; whatever is there, it is no component.
    for path in ["../../x", "a/b", "../x", "..", ".", "", "//x", "./x"] {
        for method in ["PUT", "DELETE"] {
            let reply = server
                .admin(method, &format!("/v1/components/{path}"), made.clone())
                .await;
            assert!(
                (400..500).contains(&reply.status),
                "{method} {path}: {}",
                reply.status
            );
        }
    }
    assert_eq!(all(), before, "an upload under a bad name wrote a file");
    assert_eq!(tool_names(&server).await, ["hello"]);
    assert_eq!(server.upload(&"n".repeat(63), made).await.status, 201);
    baseline.holds(&server).await;
}
