//! A disk that has no room: what is said, and that what was kept stays.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use longshore_tests::component::Made;
use longshore_tests::guests;
use longshore_tests::process::{Options, Server, command};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use super::{CANNOT_START, Ended, FAILED, text};

/// A server none of whose files may be larger than so many KiB.
fn confined(data: &TempDir, kib: u32) -> Command {
    let mut shell = command(data.path());
    let limited = r#"trap '' XFSZ; ulimit -f "$1"; exec "$2" serve --json --listen 127.0.0.1:0"#;
    let environment: Vec<_> = shell
        .as_std()
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    // What this shell counts in is one KiB; another one's is half of that, which is as good.
    shell = Command::new("bash");
    shell.args(["-c", limited, "bash", &kib.to_string()]);
    shell.arg(guests::longshore()).envs(environment);
    shell
}

#[tokio::test]
async fn a_disk_without_room_for_a_database_is_named() {
    for kib in [1, 20] {
        let data = tempfile::tempdir().expect("a temporary folder can be made");
        let ended = Ended::of(confined(&data, kib)).await;
        assert_eq!(ended.code, CANNOT_START, "{ended:?}");
        for words in [text(data.path()), "the disk with the database", "full"] {
            assert!(ended.err.contains(words), "{words:?} is missing: {ended:?}");
        }
        // With room, all is well.
        Server::start_in(Arc::new(data), Options::default()).await;
    }
}

#[tokio::test]
async fn a_disk_that_fills_up_ends_the_server_and_loses_nothing() {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut child = confined(&data, 4 * 1024)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it can be started");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
    let ready = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await;
    let ready = ready
        .expect("in time")
        .expect("it is text")
        .expect("a line");
    let ready: serde_json::Value = serde_json::from_str(&ready).expect("it is JSON");
    let url = ready["admin"].as_str().expect("it is text");
    let url = url.trim_end_matches("/v1");

    let files = tempfile::tempdir().expect("a temporary folder can be made");
    let mut kept = Vec::new();
    let refused = loop {
        let name = format!("made-{}", kept.len());
        let mut made = Made::with_tool(&name);
        made.answer = "x".repeat(700 * 1024);
        let file = files.path().join(format!("{name}.wasm"));
        std::fs::write(&file, made.bytes()).expect("it can be written");
        let mut push = command(data.path());
        push.args(["push", text(&file), "--server", url]);
        let ended = Ended::of(push).await;
        if ended.code != 0 {
            break ended;
        }
        kept.push(name);
        assert!(kept.len() < 32, "the disk never fills up");
    };
    assert_eq!(refused.code, FAILED, "{refused:?}");
    assert!(refused.err.contains("disk"), "{refused:?}");
    assert!(!kept.is_empty(), "{refused:?}");

    // Nobody knows what such a disk holds, so nothing more is promised.
    let status = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
    let status = status.expect("it ends").expect("it can be waited for");
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("stderr is a pipe");
    stderr.read_to_string(&mut said).await.expect("it is text");
    assert_eq!(status.code(), Some(FAILED), "{said}");
    assert!(
        said.contains("see to the disk and start it again"),
        "{said}"
    );

    let server = Server::start_in(Arc::new(data), Options::default()).await;
    let listed = server.client().result("tools/list", json!({})).await;
    let tools = listed["tools"].as_array().expect("a list");
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, kept);
}
