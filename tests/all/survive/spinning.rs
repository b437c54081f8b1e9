//! A run that computes for longer than any process lives, beside others that wait.

use std::time::Duration;

use longshore_tests::effort::rounds;
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::json;

use super::{SOON, answer, shown};

/// Restarts, of which every other one is a kill.
const RESTARTS: u32 = 6;

#[tokio::test]
async fn a_run_that_only_computes_ends_though_no_process_lives_so_long() {
    // A minute beside a hundred, if somebody takes the time.
    let (seconds, waiting) = if rounds(1) > 1 { (60, 100) } else { (6, 10) };
    let options = Options::with_guests(&["spin", "ask-form"])
        .set("limits.cpu_ms", 3_600_000)
        .set("limits.active_wall_ms", 3_600_000)
        .set("warm", 0);
    let mut server = Server::start(options).await;
    let mut ids = Vec::new();
    for _ in 0..waiting {
        ids.push(server.client().start("ask-form", json!({})).await);
    }
    for id in &ids {
        server.client().until_status(id, "input_required").await;
    }
    let spin = server
        .client()
        .start("spin", json!({ "seconds": seconds }))
        .await;
    let pause = Duration::from_secs(seconds) / (RESTARTS + 2);
    for restart in 0..RESTARTS {
        // It comes further by its own clock, whatever it has to repeat before.
        tokio::time::sleep(pause).await;
        if restart % 2 == 0 {
            assert_eq!(server.terminate().await, Some(0), "{}", server.errors());
        } else {
            server.kill().await;
        }
        server.restart().await;
        for id in &ids {
            let task = server.client().task(id).await;
            assert_eq!(task["status"], "input_required", "{task}");
        }
        // Each process brings it back before the next one has to.
        wait::until("the run to be here", SOON, || async {
            (server.figures().await["runs"]["liveStores"] == 1).then_some(())
        })
        .await;
    }
    for id in &ids {
        let person = json!({ "name": "Ada", "age": 36, "choice": "green" });
        answer(&server.client(), id, "person", person).await;
    }
    for id in &ids {
        let task = server.client().until_ended(id).await;
        assert_eq!(task["status"], "completed", "{task}");
    }
    let patience = Duration::from_secs(60 + 10 * seconds);
    let task = wait::until("the run to end", patience, || async {
        let task = server.client().task(&spin).await;
        (task["status"] != "working").then_some(task)
    })
    .await;
    assert_eq!(task["status"], "completed", "{task}");
    let text = format!("spun for {seconds} s");
    assert_eq!(task["result"]["content"][0]["text"], text, "{task}");
    let journal = server
        .admin("GET", &format!("/v1/tasks/{spin}/journal"), "")
        .await
        .json();
    println!(
        "{seconds} s beside {waiting} parked tasks and {RESTARTS} restarts: {} segments, replay debt {} ms; quarantined: {}",
        journal["segments"].as_array().map_or(0, Vec::len),
        journal["replayDebtMs"],
        shown(&server, &spin).await["quarantined"]
    );
}
