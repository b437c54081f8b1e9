//! A run that computes for longer than any process lives, beside others that wait.

use std::time::Duration;

use longshore_tests::effort::rounds;
use longshore_tests::process::{Options, Server};
use longshore_tests::usage::cpu_time_of;
use longshore_tests::wait;
use serde_json::{Value, json};

use super::{SOON, answer, shown, until_live};

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
    let ids = parked(&server, waiting).await;
    let spin = server
        .client()
        .start("spin", json!({ "seconds": seconds }))
        .await;
    let pause = Duration::from_secs(seconds) / (RESTARTS + 2);
    for restart in 0..RESTARTS {
        // It comes further by its own clock, whatever it has to repeat before.
        tokio::time::sleep(pause).await;
        end_process(&mut server, restart, &spin, &ids).await;
    }
    answer_all(&server, &ids).await;
    let task = until_over(&server, &spin, Duration::from_secs(60 + 10 * seconds)).await;
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

/// So many tasks that wait, and hold no instance.
async fn parked(server: &Server, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(server.client().start("ask-form", json!({})).await);
    }
    for id in &ids {
        server.client().until_status(id, "input_required").await;
    }
    until_live(server, 0).await;
    ids
}

/// Ends the process in order or kills it, by turns, and starts the next one.
async fn end_process(server: &mut Server, restart: u32, run: &str, parked: &[String]) {
    if restart.is_multiple_of(2) {
        assert_eq!(server.terminate().await, Some(0), "{}", server.errors());
    } else {
        server.kill().await;
    }
    server.restart().await;
    for id in parked {
        let task = server.client().task(id).await;
        assert_eq!(task["status"], "input_required", "{task}");
    }
    // Each process brings the run back before the next one has to. On a slow machine it may be over by its own clock.
    wait::until("the run to be here", SOON, || async {
        let is_here = server.figures().await["runs"]["liveStores"] == 1;
        (is_here || server.client().task(run).await["status"] == "completed").then_some(())
    })
    .await;
}

async fn answer_all(server: &Server, parked: &[String]) {
    for id in parked {
        let person = json!({ "name": "Ada", "age": 36, "choice": "green" });
        answer(&server.client(), id, "person", person).await;
    }
    for id in parked {
        let task = server.client().until_ended(id).await;
        assert_eq!(task["status"], "completed", "{task}");
    }
}

async fn until_over(server: &Server, id: &str, patience: Duration) -> Value {
    let task = wait::until("the run to end", patience, || async {
        let task = server.client().task(id).await;
        (task["status"] != "working").then_some(task)
    })
    .await;
    assert_eq!(task["status"], "completed", "{task}");
    task
}

/// Of work that looks at nothing there is nothing to record, so that each process begins it again: it ends once one
/// lives for long enough, and neither the time that was lost nor the deaths between which it came no further are held
/// against it.
#[tokio::test]
async fn work_that_leaves_no_record_is_begun_again_until_it_ends() {
    // A minute of it beside a hundred, if somebody takes the time.
    let (work, waiting) = if rounds(1) > 1 {
        (Duration::from_secs(60), 100)
    } else {
        (Duration::from_millis(1_500), 10)
    };
    // Enough for the work, and not for what is lost of it at three ends in good order as well.
    let most = 2 * work;
    let options = Options::with_guests(&["grind", "ask-form"])
        .set("limits.cpu_ms", most.as_millis())
        .set("limits.active_wall_ms", 3_600_000)
        .set("warm", 0);
    let mut server = Server::start(options).await;
    // What a unit takes on this machine.
    const FEW: u64 = 400;
    let few = server
        .client()
        .start("grind", json!({ "units": FEW }))
        .await;
    until_over(&server, &few, SOON).await;
    let few_ms = cpu_ms(&server, &few).await;
    let units = FEW * u64::try_from(work.as_millis()).unwrap() / few_ms.max(1);
    let ids = parked(&server, waiting).await;
    let grind = server
        .client()
        .start("grind", json!({ "units": units }))
        .await;
    let mut seen = 0;
    let mut burnt = Duration::ZERO;
    for restart in 0..RESTARTS {
        let began = cpu_time_of(server.pid()).unwrap();
        let used = || cpu_time_of(server.pid()).unwrap() - began;
        wait::until("half of the work to be done", 20 * work + SOON, || async {
            (used() >= work / 2).then_some(())
        })
        .await;
        burnt += used();
        let task = server.client().task(&grind).await;
        assert_eq!(task["status"], "working", "restart {restart}: {task}");
        seen = cpu_ms(&server, &grind).await.max(seen);
        end_process(&mut server, restart, &grind, &ids).await;
        let now = cpu_ms(&server, &grind).await;
        assert!(now >= seen, "{seen} ms were shown, and then {now}");
    }
    // What was seen of it, in whichever process, is kept.
    assert!(seen > 0);
    answer_all(&server, &ids).await;
    let task = until_over(&server, &grind, 20 * work + SOON).await;
    let text = format!("{units} units: {:016x}", came_of(units));
    assert_eq!(task["result"]["content"][0]["text"], text, "{task}");
    let used = cpu_ms(&server, &grind).await;
    println!(
        "{units} units beside {waiting} parked tasks and {RESTARTS} restarts: {used} ms of its own, after {burnt:?} that were lost"
    );
    let used = Duration::from_millis(used);
    assert!(used < most && burnt + used > most, "{used:?} and {burnt:?}");
}

async fn cpu_ms(server: &Server, id: &str) -> u64 {
    let task = shown(server, id).await;
    task["cpuMs"].as_u64().expect("a task tells its CPU time")
}

/// What comes of so many units, without the work: each is one multiplication and one addition, whose numbers are found
/// by doing it once, and those of many are put together by halves.
fn came_of(units: u64) -> u64 {
    const FACTOR: u64 = 6_364_136_223_846_793_005;
    let then = |(a, b): (u64, u64), (c, d): (u64, u64)| {
        (a.wrapping_mul(c), b.wrapping_mul(c).wrapping_add(d))
    };
    let mut step = (0..1 << 20).fold((1, 0), |before, round| then(before, (FACTOR, round)));
    let (mut all, mut left) = ((1_u64, 0_u64), units);
    while left > 0 {
        if left % 2 == 1 {
            all = then(all, step);
        }
        step = then(step, step);
        left /= 2;
    }
    all.0.wrapping_add(all.1)
}
