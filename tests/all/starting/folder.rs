//! The components directory: what lies in it is served, for as long as it lies there.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use longshore_tests::component::{Behaviour, Made, Mode, Tool};
use longshore_tests::events;
use longshore_tests::process::{Options, Server, command, run};
use longshore_tests::wait;
use rustix::fs::{CWD, Mode as FileMode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{file, text, tools};

fn answering(tool: &str, answer: &str) -> Vec<u8> {
    Made {
        answer: answer.to_owned(),
        ..Made::with_tool(tool)
    }
    .bytes()
}

async fn serving(folder: &Path, poll_ms: u64) -> Server {
    let mut options = Options::default().set("components.poll_ms", poll_ms);
    let dir = folder.to_str().expect("it is text").to_owned();
    options
        .arguments
        .extend(["--components-dir".to_owned(), dir]);
    Server::start(options).await
}

fn pipe(path: &Path) {
    let mode = FileMode::from_raw_mode(0o600);
    mkfifoat(CWD, path, mode).expect("a pipe can be made");
}

async fn until_tools(server: &Server, expected: &[&str]) {
    wait::until(
        &format!("the tools {expected:?}"),
        Duration::from_secs(30),
        || async { (tools(server).await == expected).then_some(()) },
    )
    .await;
}

async fn broken(server: &Server) -> Vec<(String, String)> {
    let list = server.admin("GET", "/v1/components", "").await.json();
    let word = |value: &Value| value.as_str().expect("text").to_owned();
    let broken = list["broken"].as_array().expect("a list");
    broken
        .iter()
        .map(|one| (word(&one["name"]), word(&one["reason"])))
        .collect()
}

async fn until_broken(server: &Server, expected: &[(&str, &str)]) {
    wait::until(
        &format!("{expected:?} to be broken"),
        Duration::from_secs(30),
        || async {
            let broken = broken(server).await;
            let broken: Vec<(&str, &str)> = broken
                .iter()
                .map(|(name, reason)| (name.as_str(), reason.as_str()))
                .collect();
            (broken == expected).then_some(())
        },
    )
    .await;
}

/// Puts a file in place in one step, as whoever replaces one that is in use should.
fn replace(folder: &TempDir, name: &str, bytes: &[u8]) {
    let draft = file(folder, &format!("{name}.draft"), bytes);
    std::fs::rename(draft, folder.path().join(name)).expect("it can be renamed");
}

#[tokio::test]
async fn files_are_served_under_their_stems_and_bad_ones_stop_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    file(&folder, "one.wasm", &answering("one", "1"));
    file(&folder, "bad.wasm", b"no component");
    file(&folder, "Bad Name.wasm", &answering("unnamed", "?"));
    file(&folder, "other.txt", b"nothing to do with it");
    // It has the tool of another that comes before it.
    file(&folder, "rival.wasm", &answering("one", "2"));
    std::fs::create_dir(folder.path().join("dir.wasm")).expect("a folder can be made");
    // Nobody writes into it, and the other has no end.
    pipe(&folder.path().join("pipe.wasm"));
    symlink("/dev/zero", folder.path().join("zero.wasm")).expect("a link can be made");
    let server = serving(folder.path(), 600_000).await;
    assert_eq!(tools(&server).await, ["one"]);
    assert_eq!(text(&server.client().call("one", json!({})).await), "1");
    let mut seen = broken(&server).await;
    seen.sort();
    let expected = [
        ("bad", "not-wasm"),
        ("pipe", "not-wasm"),
        ("rival", "name-collision"),
        ("zero", "not-wasm"),
    ];
    assert_eq!(
        seen,
        expected.map(|(name, reason)| (name.to_owned(), reason.to_owned()))
    );
    assert!(
        server.errors().contains("Bad Name.wasm"),
        "{}",
        server.errors()
    );
    let shown = server.admin("GET", "/v1/components/one", "").await.json();
    assert_eq!(
        (&shown["static"], &shown["source"]),
        (&json!(true), &json!("directory"))
    );
    // It belongs to its file.
    for (method, name) in [("PUT", "one"), ("PUT", "bad"), ("DELETE", "one")] {
        let path = format!("/v1/components/{name}");
        let reply = server.admin(method, &path, answering("x", "x")).await;
        assert_eq!(
            reply.json()["error"]["reason"],
            "static-name",
            "{method} {name}"
        );
    }

    // A directory that is not there is a mistake.
    let missing = folder.path().join("missing");
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut serve = command(data.path());
    serve.args(["serve", "--listen", "127.0.0.1:0", "--components-dir"]);
    serve.arg(&missing);
    let (code, _, err) = run(serve).await;
    assert!(code == 4 && err.contains("missing"), "{code}: {err}");
}

#[tokio::test]
async fn what_comes_changes_and_goes_is_followed() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let server = serving(folder.path(), 20).await;
    let client = server.client();
    assert!(tools(&server).await.is_empty());

    // A task that began with a file ends with it, whatever becomes of the file.
    let slow = |answer: &str| {
        let tool = Tool {
            mode: Mode::Always,
            ..Tool::named("slow")
        };
        Made {
            call: Behaviour::Sleeps(3_000),
            answer: answer.to_owned(),
            ..Made::of([tool])
        }
        .bytes()
    };
    replace(&folder, "slow.wasm", &slow("old"));
    until_tools(&server, &["slow"]).await;
    let task = client.start("slow", json!({})).await;

    replace(&folder, "slow.wasm", &answering("renamed", "new"));
    until_tools(&server, &["renamed"]).await;
    assert_eq!(text(&client.call("renamed", json!({})).await), "new");

    // What is bad is told, and what was served is served on.
    replace(&folder, "slow.wasm", b"no component");
    until_broken(&server, &[("slow", "not-wasm")]).await;
    assert_eq!(text(&client.call("renamed", json!({})).await), "new");
    replace(&folder, "slow.wasm", &answering("mended", "newer"));
    until_tools(&server, &["mended"]).await;
    until_broken(&server, &[]).await;

    // An upload's name is not taken from it.
    let uploaded = server.upload("theirs", answering("theirs", "t")).await;
    assert_eq!(uploaded.status, 201);
    replace(&folder, "theirs.wasm", &answering("ours", "o"));
    until_broken(&server, &[("theirs", "name-collision")]).await;
    std::fs::remove_file(folder.path().join("theirs.wasm")).expect("it can be removed");
    until_broken(&server, &[]).await;

    std::fs::remove_file(folder.path().join("slow.wasm")).expect("it can be removed");
    until_tools(&server, &["theirs"]).await;
    // The name is free again.
    assert_eq!(
        server.upload("slow", answering("free", "f")).await.status,
        201
    );
    let ended = client.until_ended(&task).await;
    assert_eq!(text(&ended["result"]), "old", "{ended}");
}

#[tokio::test]
async fn what_had_to_wait_for_a_name_gets_it_once_it_is_free() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let one = file(&folder, "one.wasm", &answering("shared", "1"));
    file(&folder, "rival.wasm", &answering("shared", "2"));
    let server = serving(folder.path(), 20).await;
    let client = server.client();
    until_broken(&server, &[("rival", "name-collision")]).await;
    assert_eq!(text(&client.call("shared", json!({})).await), "1");
    std::fs::remove_file(one).expect("it can be removed");
    until_broken(&server, &[]).await;
    assert_eq!(text(&client.call("shared", json!({})).await), "2");

    // The other one is no file.
    let uploaded = server.upload("theirs", answering("theirs", "t")).await;
    assert_eq!(uploaded.status, 201);
    file(&folder, "theirs.wasm", &answering("ours", "o"));
    until_broken(&server, &[("theirs", "name-collision")]).await;
    let removed = server.admin("DELETE", "/v1/components/theirs", "").await;
    assert_eq!(removed.status, 204);
    until_tools(&server, &["ours", "shared"]).await;
    until_broken(&server, &[]).await;
}

#[tokio::test]
async fn each_change_is_told_once_and_a_signal_brings_it_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let one = file(&folder, "one.wasm", &answering("one", "1"));
    let server = serving(folder.path(), 600_000).await;
    let request = server.client().request(
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    let mut heard = events::open(server.address, &request).await;
    assert!(heard.next().await.is_some(), "it is acknowledged");
    let hang_up = || {
        let pid = i32::try_from(server.pid()).expect("it is a number of the system's");
        let pid = Pid::from_raw(pid).expect("it is not 0");
        kill_process(pid, Signal::HUP).expect("it runs");
    };

    // Written anew and the same: nothing to tell.
    replace(
        &folder,
        "one.wasm",
        &std::fs::read(&one).expect("it can be read"),
    );
    hang_up();
    replace(&folder, "two.wasm", &answering("two", "2"));
    hang_up();
    let told = heard.next().await.expect("it is told");
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    until_tools(&server, &["one", "two"]).await;
    // The next that is told is of the next change.
    std::fs::remove_file(&one).expect("it can be removed");
    hang_up();
    heard.next().await.expect("it is told");
    assert_eq!(tools(&server).await, ["two"]);
}
