//! How runs share threads and how they are stopped.

use std::time::{Duration, Instant};

use super::kit::{Guest, SLEEPY, SPIN, prepared, report, run_of, sandbox, text_of, until};
use crate::control::{Control, StopReason};
use crate::ending::Ending;

/// Pollable of a clock, waited for without any import of ours.
const WASI_WAIT: Guest<'static> = Guest {
    imports: r#"
        (import "wasi:io/poll@0.2.0" (instance $poll
            (export "pollable" (type $p (sub resource)))
            (export "[method]pollable.block" (func (param "self" (borrow $p))))))
        (alias export $poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
            (alias outer 1 $pollable (type $outer))
            (export "pollable" (type $p (eq $outer)))
            (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
        (core func $after (canon lower (func $clock "subscribe-duration")))
        (core func $block (canon lower (func $poll "[method]pollable.block")))"#,
    with: r#"(with "clock" (instance (export "after" (func $after)) (export "block" (func $block))))"#,
    core_imports: r#"
        (import "clock" "after" (func $after (param i64) (result i32)))
        (import "clock" "block" (func $block (param i32)))"#,
    call: "(call $block (call $after (i64.const 3600000000000))) (unreachable)",
    core: "",
    memory: "1",
    list: "(i32.const 1024)",
};

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_is_stopped_at_once_whether_it_computes_or_waits() {
    let sandbox = sandbox(1);
    for guest in [SPIN, SLEEPY, WASI_WAIT] {
        let run = run_of(prepared(&sandbox, &guest));
        let control = run.control.clone();
        let ended = sandbox.start(run).ended;
        until("the start", || sandbox.figures().live_stores == 1).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        let asked = Instant::now();
        sandbox.stop(&control, StopReason::WallLimit);
        let ended = report(ended).await;
        let took = asked.elapsed();
        assert!(took < Duration::from_millis(100), "{took:?}");
        assert_eq!(ended.ending, Ending::Stopped(StopReason::WallLimit));
        assert_eq!(sandbox.figures().live_stores, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_time_at_work_counts_against_the_wall_limit() {
    let limited = |guest: &Guest<'_>| {
        let sandbox = sandbox(1);
        let mut run = run_of(prepared(&sandbox, guest));
        run.policy.limits.active_wall_ms = 100;
        (run.control.clone(), sandbox.start(run).ended, sandbox)
    };
    let (_, computing, _sandbox) = limited(&SPIN);
    let ended = report(computing).await;
    assert_eq!(ended.ending, Ending::Stopped(StopReason::WallLimit));
    assert!(ended.active_us >= 100_000, "{}", ended.active_us);

    // Three times the limit, all of it asleep.
    let (control, asleep, sandbox) = limited(&SLEEPY);
    until("the sleep", || control.cooperates()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    sandbox.cancel(&control);
    let ended = report(asleep).await;
    assert_eq!(
        text_of(&ended),
        "0",
        "the sleep was cut by the cancel and by nothing else"
    );
    assert!(ended.active_us < 100_000, "{}", ended.active_us);
}

#[tokio::test]
async fn a_run_that_is_stopped_before_it_starts_never_starts() {
    let sandbox = sandbox(1);
    let run = run_of(prepared(&sandbox, &Guest::default()));
    sandbox.stop(&run.control, StopReason::Abandoned);
    sandbox.stop(&run.control, StopReason::WallLimit);
    let ended = report(sandbox.start(run).ended).await;
    assert_eq!(
        ended.ending,
        Ending::Stopped(StopReason::Abandoned),
        "the first reason stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_compute_leave_room_for_another_on_one_thread() {
    let sandbox = sandbox(1);
    let spinner = || {
        let run = run_of(prepared(&sandbox, &SPIN));
        (run.control.clone(), sandbox.start(run).ended)
    };
    let spinners = [spinner(), spinner()];
    until("the start", || sandbox.figures().live_stores == 2).await;
    // It needs many turns: each sleep is one.
    let call = "(local $n i32) (loop
        (drop (call $sleep (i64.const 1)))
        (br_if 0 (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 20))))
        (call $digit (i32.const 7))";
    let third = sandbox
        .start(run_of(prepared(&sandbox, &Guest { call, ..SLEEPY })))
        .ended;
    let third = report(third).await;
    assert_eq!(text_of(&third), "7");
    assert_eq!(third.calls, 20);
    let mut used = Vec::new();
    for (control, ended) in spinners {
        sandbox.stop(&control, StopReason::Cancelled);
        let ended = report(ended).await;
        assert_eq!(ended.ending, Ending::Stopped(StopReason::Cancelled));
        used.push(ended.cpu_us);
    }
    let (least, most) = (used[0].min(used[1]), used[0].max(used[1]));
    assert!(least * 2 > most, "both had their turns: {used:?}");
}

#[tokio::test]
async fn a_cancel_wakes_a_sleep_and_the_guest_goes_on() {
    let sandbox = sandbox(1);
    let run = run_of(prepared(&sandbox, &SLEEPY));
    let control = run.control.clone();
    assert!(!control.cooperates());
    let ended = sandbox.start(run).ended;
    until("the sleep", || control.cooperates()).await;
    sandbox.cancel(&control);
    let ended = report(ended).await;
    assert_eq!(text_of(&ended), "0", "the sleep did not last");
    assert!(ended.cpu_us < 500_000, "{}", ended.cpu_us);
}

#[tokio::test]
async fn a_sleep_lasts_and_a_cancelled_one_does_not_begin() {
    let slept = |call: &'static str, control: Control| async move {
        let sandbox = sandbox(1);
        let mut run = run_of(prepared(&sandbox, &Guest { call, ..SLEEPY }));
        run.control = control;
        let began = Instant::now();
        let ended = report(sandbox.start(run).ended).await;
        (text_of(&ended).to_owned(), began.elapsed(), ended.cpu_us)
    };
    let (text, took, cpu_us) = slept(
        "(call $digit (call $sleep (i64.const 200)))",
        Control::default(),
    )
    .await;
    assert_eq!(text, "1");
    assert!(
        took >= Duration::from_millis(200) && cpu_us < 150_000,
        "{took:?} {cpu_us}"
    );
    let cancelled = Control::default();
    cancelled.cancel();
    let (text, ..) = slept(
        "(call $digit (call $sleep (i64.const -1)))",
        cancelled.clone(),
    )
    .await;
    assert_eq!(text, "0");
    let (text, ..) = slept("(call $digit (call $is-cancelled))", cancelled).await;
    assert_eq!(text, "1");
}

#[tokio::test]
async fn whoever_looks_at_the_cancel_cooperates() {
    let sandbox = sandbox(1);
    let mut run = run_of(prepared(
        &sandbox,
        &Guest {
            call: "(call $digit (call $is-cancelled))",
            ..SLEEPY
        },
    ));
    let control = Control::default();
    run.control = control.clone();
    let ended = report(sandbox.start(run).ended).await;
    assert_eq!(text_of(&ended), "0");
    assert!(control.cooperates());
}

#[tokio::test]
async fn dropping_the_sandbox_ends_what_runs_and_tells_it() {
    let sandbox = sandbox(2);
    let runs = [SPIN, SPIN, SPIN, SLEEPY, WASI_WAIT].map(|guest| {
        let run = run_of(prepared(&sandbox, &guest));
        sandbox.start(run).ended
    });
    until("the start", || sandbox.figures().live_stores == 5).await;
    let began = Instant::now();
    drop(sandbox);
    for ended in runs {
        let ended = report(ended).await;
        assert_eq!(ended.ending, Ending::Stopped(StopReason::Shutdown));
    }
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_run_goes_on_when_nobody_waits_for_it() {
    let sandbox = sandbox(1);
    let run = run_of(prepared(&sandbox, &SLEEPY));
    let control = run.control.clone();
    drop(sandbox.start(run).ended);
    until("the sleep", || control.cooperates()).await;
    assert_eq!(sandbox.figures().live_stores, 1);
    sandbox.cancel(&control);
    until("the end", || sandbox.figures().live_stores == 0).await;
}
