//! What only grows is told, and counted, over all the processes that ran a task.

use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use serde_json::json;

use super::{SOON, cancel, shown};

async fn cpu_ms(server: &Server, id: &str) -> u64 {
    let task = shown(server, id).await;
    task["cpuMs"].as_u64().expect("a task tells its CPU time")
}

async fn until_used(server: &Server, id: &str, least: u64) -> u64 {
    wait::until(&format!("{least} ms of CPU to be used"), SOON, || async {
        let used = cpu_ms(server, id).await;
        (used >= least).then_some(used)
    })
    .await
}

#[tokio::test]
async fn what_a_task_has_used_never_shrinks() {
    let options = Options::with_guests(&["spin"]).set("limits.cpu_ms", 3_600_000);
    let mut server = Server::start(options).await;
    let seconds = json!({ "seconds": 3_000 });
    let id = server.client().start("spin", seconds).await;
    let mut seen = 0;
    for restart in 0..4 {
        // In this process too: it repeats its past first, which is not counted, and then comes further.
        seen = until_used(&server, &id, seen + 200).await;
        if restart % 2 == 0 {
            server.kill().await;
        } else {
            assert_eq!(server.terminate().await, Some(0), "{}", server.errors());
        }
        server.restart().await;
        let now = cpu_ms(&server, &id).await;
        assert!(now >= seen, "{seen} ms were shown, and then {now}");
    }
    cancel(&server.client(), &id).await;
    server.client().until_ended(&id).await;
    let ended = cpu_ms(&server, &id).await;
    assert!(
        ended >= seen,
        "{seen} ms were shown, and {ended} at the end"
    );
}

/// With restart points, behind each of which another instance begins, and without any.
#[tokio::test]
async fn how_far_a_task_is_never_goes_back() {
    for (tool, arguments) in [
        ("resumable", json!({ "n": 1_000 })),
        ("long-job", json!({ "steps": 1_000, "step-ms": 1 })),
    ] {
        let options = Options::with_guests(&[tool])
            .set("limits.cpu_ms", 3_600_000)
            .set("status_every_ms", 0)
            .set("journal_every_ms", 20);
        let mut server = Server::start(options).await;
        let id = server.client().start(tool, arguments).await;
        let mut seen = 0.0;
        for _ in 0..4 {
            let further = seen + 5.0;
            seen = wait::until(&format!("{tool} to be at {further}"), SOON, || async {
                let done = done(&server, &id).await;
                (done >= further).then_some(done)
            })
            .await;
            server.kill().await;
            server.restart().await;
            let now = done(&server, &id).await;
            assert!(now >= seen, "{tool} was at {seen}, and then at {now}");
        }
        cancel(&server.client(), &id).await;
        server.client().until_ended(&id).await;
        assert!(done(&server, &id).await >= seen);
    }
}

async fn done(server: &Server, id: &str) -> f64 {
    let progress = &shown(server, id).await["progress"]["done"];
    progress.as_f64().unwrap_or_default()
}

#[tokio::test]
async fn a_limit_counts_what_was_used_in_every_process_and_no_repetition() {
    const MOST_MS: u64 = 2_000;
    let options = Options::with_guests(&["spin"]).set("limits.cpu_ms", MOST_MS);
    let mut server = Server::start(options).await;
    let seconds = json!({ "seconds": 3_000 });
    let id = server.client().start("spin", seconds).await;
    for least in [MOST_MS / 4, MOST_MS / 2] {
        until_used(&server, &id, least).await;
        server.kill().await;
        server.restart().await;
    }
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["error"]["data"]["reason"], "cpu-limit", "{task}");
    let used = cpu_ms(&server, &id).await;
    assert!((MOST_MS..MOST_MS * 3 / 2).contains(&used), "{used} ms");
}
