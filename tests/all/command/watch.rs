//! `tasks watch`: a task followed to its end.

use std::process::Stdio;

use longshore_tests::component::{Behaviour, Made, Mode};
use longshore_tests::process::{Options, Server, command};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{CANCELLED, FAILED, against};

#[tokio::test]
async fn a_task_is_followed_to_its_result() {
    let server = Server::start(Options::with_guests(&["long-job"])).await;
    let client = server.client();
    let arguments = json!({ "steps": 4, "step-ms": 600 });
    let id = client.start("long-job", arguments.clone()).await;
    let watched = against(&server, &["tasks", "watch", &id]).await;
    assert_eq!(
        (watched.code, watched.out.as_str()),
        (0, "done: 4 steps\n"),
        "{watched:?}"
    );
    let told: Vec<&str> = watched.err.lines().collect();
    let expected = "longshore: working 75 %: step 3 of 4";
    assert_eq!(
        told.iter().filter(|line| **line == expected).count(),
        1,
        "each change is told once: {watched:?}"
    );
    // It is there for whoever comes late.
    let late = against(&server, &["tasks", "watch", &id]).await;
    assert_eq!(
        (late.code, late.out.as_str(), late.err.as_str()),
        (0, "done: 4 steps\n", "")
    );

    let id = client.start("long-job", arguments).await;
    let watched = against(&server, &["tasks", "watch", &id, "--json"]).await;
    assert_eq!((watched.code, watched.err.as_str()), (0, ""), "{watched:?}");
    let changes: Vec<Value> = watched
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    assert!(changes.len() >= 3, "{watched:?}");
    assert!(changes.iter().all(|change| change["id"] == id.as_str()));
    let (last, before) = changes.split_last().expect("there are some");
    assert!(before.iter().all(|change| change["status"] == "working"));
    assert_eq!(last["status"], "completed");
    assert_eq!(last["result"]["content"][0]["text"], "done: 4 steps");
}

#[tokio::test]
async fn every_end_has_its_code() {
    let server = Server::start(Options::with_guests(&["sleep", "ask-form"])).await;
    let client = server.client();
    let mut trapping = Made::with_tool("trapping");
    trapping.tools[0].mode = Mode::Always;
    trapping.call = Behaviour::Traps;
    assert_eq!(
        server.upload("trapping", trapping.bytes()).await.status,
        201
    );

    let id = client.start("trapping", json!({})).await;
    let failed = against(&server, &["tasks", "watch", &id]).await;
    failed.assert_failed(FAILED, &["the task failed (trap)"]);
    let failed = against(&server, &["tasks", "watch", &id, "--json"]).await;
    assert_eq!(failed.code, FAILED, "{failed:?}");
    assert_eq!(failed.json()["error"]["data"]["reason"], "trap");

    let id = client.start("sleep", json!({ "seconds": 3600 })).await;
    let (watch, cancel) = (["tasks", "watch", &id], ["tasks", "cancel", &id]);
    let (watched, cancelled) = tokio::join!(against(&server, &watch), against(&server, &cancel));
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    watched.assert_failed(CANCELLED, &["the task was cancelled"]);

    // A question is shown and left to whoever answers it.
    let id = client.start("ask-form", json!({})).await;
    client.until_status(&id, "input_required").await;
    let answer = async {
        // Long enough for the other to have looked once.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        against(&server, &["tasks", "answer", &id, "--decline"]).await
    };
    let watch = ["tasks", "watch", &id];
    let (watched, answered) = tokio::join!(against(&server, &watch), answer);
    assert_eq!(
        (watched.code, answered.code),
        (0, 0),
        "{watched:?} {answered:?}"
    );
    let how = format!("longshore tasks answer {id}");
    assert!(
        watched.err.contains(&how) && watched.err.contains("Who are you?"),
        "{watched:?}"
    );

    against(&server, &["tasks", "watch", "none"])
        .await
        .assert_failed(FAILED, &["no such task"]);
}

#[tokio::test]
async fn who_stops_watching_leaves_the_task_alone() {
    let server = Server::start(Options::with_guests(&["sleep"])).await;
    let client = server.client();
    let id = client.start("sleep", json!({ "seconds": 3600 })).await;
    let mut watching = command(server.data())
        .env("LONGSHORE_SERVER", format!("http://{}", server.address))
        .args(["tasks", "watch", &id])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the command can be started");
    let mut said = BufReader::new(watching.stderr.take().expect("stderr is a pipe")).lines();
    let first = said.next_line().await.expect("it is text");
    assert_eq!(first.as_deref(), Some("longshore: working"));
    let pid = watching.id().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.and_then(Pid::from_raw).expect("it lives");
    kill_process(pid, Signal::INT).expect("it can be told");
    let told = said.next_line().await.expect("it is text");
    let told = told.expect("it says what becomes of the task");
    assert!(
        told.contains("the task goes on") && told.contains(&id),
        "{told}"
    );
    let status = watching.wait().await.expect("it ends");
    assert_eq!(status.code(), Some(CANCELLED));
    assert_eq!(client.task(&id).await["status"], "working");
}
