//! Tasks whose component cannot be made ready by this server: they wait for one that can.

use std::sync::Arc;

use longshore_tests::component::{Behaviour, Made, Mode, Tool};
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{SOON, cancel, shown, until_parked};

const AN_HOUR_MS: u64 = 3_600_000;

/// What compiling takes more than a second of CPU.
fn large() -> Vec<u8> {
    let tool = Tool {
        mode: Mode::Always,
        ..Tool::named("large")
    };
    Made {
        call: Behaviour::Sleeps(AN_HOUR_MS),
        live_values: 20_000,
        ..Made::of([tool])
    }
    .bytes()
}

async fn until_held_up(server: &Server, id: &str) -> String {
    wait::until("a task to be held up", SOON, || async {
        let task = shown(server, id).await;
        assert_eq!(task["status"], "working", "{task}");
        task["heldUp"].as_str().map(str::to_owned)
    })
    .await
}

#[tokio::test]
async fn a_task_outlives_a_server_that_cannot_compile_its_component() {
    let rows = [
        ("compile.cpu_s", 1, "compile-limit"),
        ("upload.functions", 1, "too-many-functions"),
    ];
    for (key, value, reason) in rows {
        let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
        let usual = || Options::default().set("warm", 0).set("park_from_ms", 0);
        let mut server = Server::start_in(Arc::clone(&data), usual()).await;
        let installed = server.upload("large", large()).await;
        assert_eq!(installed.status, 201, "{}", installed.json());
        let mut ids = Vec::new();
        for _ in 0..3 {
            let id = server.client().start("large", json!({})).await;
            until_parked(&server, &id).await;
            ids.push(id);
        }
        server.kill().await;
        // As after an upgrade: the native code is to be made again, and the tasks are to go on.
        std::fs::remove_dir_all(data.path().join("artifacts")).expect("there is native code");
        let db = Connection::open(data.path().join("longshore.db")).expect("it can be opened");
        db.execute_batch(
            "update task set wake_at = 0; \
             update task set deadline_at = 1 where key = (select max(key) from task)",
        )
        .expect("it can be changed");
        drop(db);

        let poor = usual().set(key, value);
        let mut server = Server::start_in(Arc::clone(&data), poor).await;
        let client = server.client();
        for id in &ids[..2] {
            let why = until_held_up(&server, id).await;
            assert!(why.contains(reason), "{why}");
        }
        // Neither waits for the compiler.
        cancel(&client, &ids[1]).await;
        let cancelled = client.until_ended(&ids[1]).await;
        assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
        let expired = client.until_ended(&ids[2]).await;
        assert_eq!(expired["error"]["data"]["reason"], "expired", "{expired}");
        let said = server.errors();
        let lines = said.lines().filter(|line| line.contains(&ids[0]));
        assert!(lines.count() < 8, "{said}");

        server.terminate().await;
        let server = Server::start_in(data, usual()).await;
        let task: Value = wait::until("the task to go on", SOON, || async {
            let task = shown(&server, &ids[0]).await;
            // It has seen that it is to sleep on.
            let goes_on = task["parked"] == true && task["wakeAt"].as_str() > Some("1971");
            goes_on.then_some(task)
        })
        .await;
        assert_eq!(task["status"], "working", "{task}");
        assert_eq!(task["heldUp"], Value::Null, "{task}");
    }
}
