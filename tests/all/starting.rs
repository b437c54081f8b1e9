//! What is served from the start on, and what comes and goes while a server runs.

mod folder;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use longshore_tests::component::{Made, Mode, Tool};
use longshore_tests::http::send;
use longshore_tests::process::{Options, Server, TOKEN};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Values that keep the compiler busy for some seconds.
const SLOW: usize = 9_000;

/// A component that takes long to be compiled and nothing to be called.
fn slow(tool: &str) -> Made {
    let tool = Tool {
        mode: Mode::Never,
        ..Tool::named(tool)
    };
    Made {
        live_values: SLOW,
        answer: "at last".to_owned(),
        ..Made::of([tool])
    }
}

fn file(folder: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("it can be written");
    path
}

fn early(components: Vec<PathBuf>) -> Options {
    Options {
        components,
        early: true,
        ..Options::default()
    }
}

async fn tools(server: &Server) -> Vec<String> {
    let list = server.client().result("tools/list", json!({})).await;
    let tools = list["tools"].as_array().expect("a list");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect()
}

async fn preparing(server: &Server) -> Value {
    server.figures().await["preparing"].clone()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_server_answers_while_it_compiles_and_a_call_waits_for_its_code() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let data = Arc::new(tempfile::tempdir().expect("and another"));
    let path = file(&folder, "slow.wasm", &slow("slow").bytes());
    let mut server = Server::start_in(Arc::clone(&data), early(vec![path.clone()])).await;
    server.client().result("server/discover", json!({})).await;
    assert_eq!(preparing(&server).await, 1);
    // Nobody knows yet what it offers, and whoever knows gets it.
    assert!(tools(&server).await.is_empty());
    let taken = server
        .upload("slow", Made::with_tool("other").bytes())
        .await;
    assert_eq!(taken.json()["error"]["reason"], "static-name");
    assert_eq!(
        text(&server.client().call("slow", json!({})).await),
        "at last"
    );
    assert_eq!(preparing(&server).await, 0);
    assert_eq!(tools(&server).await, ["slow"]);
    let (_, unknown) = server
        .client()
        .error("tools/call", json!({ "name": "nothing", "arguments": {} }))
        .await;
    assert_eq!(unknown["code"], -32602);

    // With its code kept it is there from the first moment on.
    server.terminate().await;
    let server = Server::start_in(Arc::clone(&data), early(vec![path.clone()])).await;
    assert_eq!(preparing(&server).await, 0);
    assert_eq!(tools(&server).await, ["slow"]);
    drop(server);

    // Who will not wait is told to come again.
    let other = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let hasty = early(vec![path]).set("compile_wait_ms", 20);
    let server = Server::start_in(other, hasty).await;
    let reply = server
        .client()
        .send("tools/call", json!({ "name": "slow", "arguments": {} }))
        .await
        .expect("the server answers");
    assert_eq!(reply.status, 503, "{}", reply.json());
    assert!(reply.headers.contains_key("retry-after"));
    assert_eq!(reply.json()["error"]["data"]["reason"], "busy");
}

#[tokio::test]
async fn what_the_store_holds_is_listed_before_its_code_is_there() {
    let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let mut server = Server::start_in(Arc::clone(&data), Options::default()).await;
    assert_eq!(
        server.upload("slow", slow("slow").bytes()).await.status,
        201
    );
    server.terminate().await;
    for entry in std::fs::read_dir(data.path().join("artifacts")).expect("there is code") {
        std::fs::remove_file(entry.expect("it can be listed").path()).expect("and removed");
    }
    let server = Server::start_in(Arc::clone(&data), early(Vec::new())).await;
    assert_eq!(tools(&server).await, ["slow"]);
    assert_eq!(preparing(&server).await, 1);
    assert_eq!(
        text(&server.client().call("slow", json!({})).await),
        "at last"
    );
    assert_eq!(preparing(&server).await, 0);
}

#[tokio::test]
async fn the_same_bytes_at_once_are_compiled_once() {
    const UPLOADS: usize = 50;
    let server = Server::start(Options::default().set("uploads", UPLOADS)).await;
    let bytes = Made::with_tool("one").bytes();
    let replies = join_all((0..UPLOADS).map(|_| server.upload("one", bytes.clone()))).await;
    let with = |status| {
        replies
            .iter()
            .filter(|reply| reply.status == status)
            .count()
    };
    assert_eq!((with(201), with(200)), (1, UPLOADS - 1));
    let changed = replies
        .iter()
        .filter(|reply| reply.json()["changed"] == true);
    assert_eq!(changed.count(), 1);
    assert_eq!(server.figures().await["sandbox"]["compiles"], 1);
    assert_eq!(tools(&server).await, ["one"]);
}

#[tokio::test]
async fn what_the_compiler_gave_up_is_not_tried_again_at_once() {
    let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let options = || Options::default().set("compile.cpu_s", 1);
    let bomb = Made {
        live_values: 20_000,
        ..Made::with_tool("bomb")
    }
    .bytes();
    let compiles = async |server: &Server| server.figures().await["sandbox"]["compiles"].clone();
    let mut server = Server::start_in(Arc::clone(&data), options()).await;
    let refused = async |server: &Server| {
        let reply = server.upload("bomb", bomb.clone()).await;
        let error = reply.json()["error"].take();
        assert_eq!(error["reason"], "compile-limit", "{error}");
        error["message"].as_str().expect("a message").to_owned()
    };
    let first = refused(&server).await;
    assert_eq!(compiles(&server).await, 1);
    let began = Instant::now();
    let second = refused(&server).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(compiles(&server).await, 1);
    assert!(
        second.starts_with(&first) && second.contains("--again"),
        "{second}"
    );
    // A restart does not burn it either; who insists is obeyed.
    server.terminate().await;
    let mut server = Server::start_in(Arc::clone(&data), options()).await;
    refused(&server).await;
    assert_eq!(compiles(&server).await, 0);
    let token = format!("Bearer {TOKEN}");
    let path = "/v1/components/bomb?again=true";
    let headers = [("authorization", token.as_str())];
    let again = send(server.address, "PUT", path, &headers, bomb.clone()).await;
    let again = again.expect("the server answers").json();
    assert_eq!(again["error"]["message"], first);
    assert_eq!(compiles(&server).await, 1);
    server.terminate().await;
    // Under other limits it may end otherwise.
    let server = Server::start_in(data, Options::default().set("compile.cpu_s", 2)).await;
    refused(&server).await;
    assert_eq!(compiles(&server).await, 1);
}

#[tokio::test]
async fn of_two_files_with_one_tool_the_first_has_it_however_long_it_compiles() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let first = file(&folder, "first.wasm", &slow("one").bytes());
    let second = file(&folder, "second.wasm", &Made::with_tool("one").bytes());
    let options = Options {
        early: false,
        ..early(vec![first, second])
    };
    let server = Server::start(options).await;
    assert_eq!(
        text(&server.client().call("one", json!({})).await),
        "at last"
    );
    let list = server.admin("GET", "/v1/components", "").await.json();
    let broken = &list["broken"];
    assert_eq!(broken.as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(
        (&broken[0]["name"], &broken[0]["reason"]),
        (&json!("second"), &json!("name-collision"))
    );
    // One that is broken can be seen, and has its name.
    assert!(server.errors().contains("second"), "{}", server.errors());
}
