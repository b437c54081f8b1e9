//! Runs that are repeated: from every point at which a process may have died, and to the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_journal::call::Answer;
use longshore_journal::record::{Record, What};
use longshore_journal::tape::Total;
use longshore_journal::world::{After, Begin};
use longshore_policy::limits::Limits;

use super::kit::{
    Guest, SLEEPY, SPIN, fault_of, fit, origin, prepared, report, restartable, run_of, sandbox,
    text_of, until,
};
use super::script::{Scene, Script, new_scene, scene};
use crate::bindings::longshore::tool::restart_points::Host as _;
use crate::bindings::longshore::tool::task::Host as _;
use crate::control::StopReason;
use crate::ending::{Ended, Ending, FaultKind};
use crate::journal::{Entry, Journal, Spent};
use crate::sandbox::{Prepared, Run, Sandbox};
use crate::target::Target;

/// Everything that a guest can see of the outside, stirred into sixteen digits.
pub(super) fn curious() -> Guest<'static> {
    Guest {
        imports: r#"
            (import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
            (alias export $error "error" (type $error-type))
            (import "wasi:io/poll@0.2.0" (instance $poll
                (export "pollable" (type $p (sub resource)))
                (export "[method]pollable.block" (func (param "self" (borrow $p))))))
            (alias export $poll "pollable" (type $pollable))
            (import "wasi:io/streams@0.2.0" (instance $streams
                (alias outer 1 $error-type (type $outer))
                (export "error" (type $e (eq $outer)))
                (export "output-stream" (type $out (sub resource)))
                (type $failed (variant (case "last-operation-failed" (own $e)) (case "closed")))
                (export "stream-error" (type $stream-error (eq $failed)))
                (export "[method]output-stream.blocking-write-and-flush"
                    (func (param "self" (borrow $out)) (param "contents" (list u8))
                        (result (result (error $stream-error)))))))
            (alias export $streams "output-stream" (type $output-stream))
            (import "wasi:cli/stdout@0.2.0" (instance $stdout
                (alias outer 1 $output-stream (type $outer))
                (export "output-stream" (type $out (eq $outer)))
                (export "get-stdout" (func (result (own $out))))))
            (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
                (alias outer 1 $pollable (type $outer))
                (export "pollable" (type $p (eq $outer)))
                (export "now" (func (result u64)))
                (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
            (import "wasi:random/random@0.2.0" (instance $random
                (export "get-random-u64" (func (result u64)))))
            (import "wasi:random/insecure@0.2.0" (instance $insecure
                (export "get-insecure-random-u64" (func (result u64)))))
            (import "longshore:tool/task@0.1.0" (instance $task
                (export "set-status" (func (param "message" string)))
                (export "sleep" (func (param "ms" u64) (result bool)))
                (export "is-cancelled" (func (result bool)))))
            (core module $words
                (memory (export "memory") 1)
                (data (i32.const 0) "tick\0a"))
            (core instance $words (instantiate $words))
            (core func $now (canon lower (func $clock "now")))
            (core func $after (canon lower (func $clock "subscribe-duration")))
            (core func $block (canon lower (func $poll "[method]pollable.block")))
            (core func $random (canon lower (func $random "get-random-u64")))
            (core func $insecure (canon lower (func $insecure "get-insecure-random-u64")))
            (core func $stdout (canon lower (func $stdout "get-stdout")))
            (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
                (memory (core memory $words "memory"))))
            (core func $status (canon lower (func $task "set-status") (memory (core memory $words "memory"))))
            (core func $sleep (canon lower (func $task "sleep")))
            (core func $is-cancelled (canon lower (func $task "is-cancelled")))"#,
        with: r#"(with "host" (instance
            (export "now" (func $now)) (export "after" (func $after)) (export "block" (func $block))
            (export "random" (func $random)) (export "insecure" (func $insecure))
            (export "stdout" (func $stdout)) (export "write" (func $write))
            (export "status" (func $status)) (export "sleep" (func $sleep))
            (export "is-cancelled" (func $is-cancelled))))"#,
        core_imports: r#"
            (import "host" "now" (func $now (result i64)))
            (import "host" "after" (func $after (param i64) (result i32)))
            (import "host" "block" (func $block (param i32)))
            (import "host" "random" (func $random (result i64)))
            (import "host" "insecure" (func $insecure (result i64)))
            (import "host" "stdout" (func $stdout (result i32)))
            (import "host" "write" (func $write (param i32 i32 i32 i32)))
            (import "host" "status" (func $status (param i32 i32)))
            (import "host" "sleep" (func $sleep (param i64) (result i32)))
            (import "host" "is-cancelled" (func $is-cancelled (result i32)))"#,
        core: r#"
            (global $seen (mut i64) (i64.const 1))
            (func $take (param i64)
                (global.set $seen (i64.xor (i64.rotl (i64.mul (global.get $seen) (i64.const 31)) (i64.const 7))
                    (local.get 0))))
            (func $print (call $write (call $stdout) (i32.const 0) (i32.const 5) (i32.const 64)))
            (func $digits (result i32) (local $n i32) (local $digit i32)
                (loop
                    (local.set $digit (i32.and (i32.wrap_i64 (i64.shr_u (global.get $seen)
                        (i64.extend_i32_u (i32.mul (local.get $n) (i32.const 4))))) (i32.const 15)))
                    (i32.store8 (i32.add (i32.const 32) (local.get $n))
                        (i32.add (local.get $digit) (select (i32.const 87) (i32.const 48)
                            (i32.gt_u (local.get $digit) (i32.const 9)))))
                    (br_if 0 (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 16))))
                (call $ok (i32.const 32) (i32.const 16)))"#,
        call: r#"
            (call $take (call $now)) (call $take (call $random)) (call $take (call $insecure))
            (call $print)
            (call $block (call $after (i64.const 50000000)))
            (call $take (call $now))
            (call $status (i32.const 0) (i32.const 4))
            (call $take (i64.extend_i32_u (call $sleep (i64.const 20))))
            (call $take (i64.extend_i32_u (call $is-cancelled)))
            (call $print)
            (call $take (call $now)) (call $take (call $random))
            (call $digits)"#,
        ..Guest::default()
    }
}

/// A call that can be made again and again.
struct Play {
    sandbox: Sandbox,
    prepared: Prepared,
    tool: &'static str,
    arguments: &'static str,
}

/// What can be compared of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    ending: Ending,
    stdout: String,
    stderr: String,
    calls: u64,
}

impl Seen {
    fn of(ended: &Ended) -> Self {
        Self {
            ending: ended.ending.clone(),
            stdout: ended.stdout.text.clone(),
            stderr: ended.stderr.text.clone(),
            calls: ended.calls,
        }
    }
}

impl Play {
    fn of(guest: &Guest<'_>) -> Self {
        let sandbox = sandbox(1);
        let prepared = prepared(&sandbox, guest);
        Self {
            sandbox,
            prepared,
            tool: "tool",
            arguments: "{}",
        }
    }

    /// A component that was built from the examples.
    fn built(name: &str, tool: &'static str, arguments: &'static str) -> Self {
        let sandbox = sandbox(1);
        let path = format!(
            "{}/../../guest-examples/target/components/{name}.wasm",
            env!("CARGO_MANIFEST_DIR")
        );
        let bytes = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("{path}: {error}; `just guests` builds it"));
        let prepared = sandbox.fit_here(&bytes).unwrap().unwrap();
        Self {
            sandbox,
            prepared,
            tool,
            arguments,
        }
    }

    fn run(&self, journal: Journal, script: &Arc<Script>) -> Run {
        Run {
            target: Target::Tool {
                name: self.tool.into(),
                arguments: self.arguments.into(),
            },
            outside: Arc::clone(script) as _,
            journal,
            ..run_of(self.prepared.clone())
        }
    }

    /// Runs it on these records; what it was, and what is new.
    async fn play(
        &self,
        records: &[Record],
        after: After,
        script: &Arc<Script>,
    ) -> (Ended, Vec<Record>) {
        let mut journal = Journal::fresh(origin());
        journal.begin.records = records.to_vec();
        journal.after = after;
        let tape = journal.tape.clone();
        let ended = report(self.sandbox.start(self.run(journal, script)).ended).await;
        assert_eq!(tape.calls(), ended.calls);
        (ended, tape.take().records)
    }

    /// Records it once; then takes every beginning of the records for what a dead process left, goes on
    /// from there in a world that is the same or another one, and repeats the whole of that.
    async fn goes_on_from_every_point(&self, script: impl Fn(u64) -> Script) -> usize {
        let (first, records) = self.play(&[], After::Live, &Arc::new(script(0))).await;
        let seen = Seen::of(&first);
        assert!(matches!(seen.ending, Ending::Returned(_)), "{seen:?}");
        assert!(matches!(records.last().unwrap().what, What::Ended { .. }));
        for kept in 0..=records.len() {
            let (kept, lost) = records.split_at(kept);
            // The same world again.
            let same = Arc::new(script(0));
            let (ended, new) = self.play(kept, After::Live, &same).await;
            assert_eq!(Seen::of(&ended), seen, "after {} records", kept.len());
            assert_eq!(new.len(), lost.len(), "after {} records", kept.len());
            assert!(!lost.is_empty() || !same.was_needed(), "{new:?}");

            // A later one with other answers.
            let (other, new) = self.play(kept, After::Live, &Arc::new(script(1))).await;
            let whole = [kept, &new].concat();
            let nobody = Arc::new(script(2));
            let (again, new) = self.play(&whole, After::Stop, &nobody).await;
            assert_eq!(
                Seen::of(&again),
                Seen::of(&other),
                "after {} records",
                kept.len()
            );
            assert_eq!(new, []);
            assert!(!nobody.was_needed());
            if !lost.is_empty() {
                let (short, _) = self.play(kept, After::Stop, &nobody).await;
                let past = kept.last().map_or(0, |record| record.call);
                assert!(
                    matches!(short.ending, Ending::RecordsEnd { call } if call >= past),
                    "{short:?}"
                );
            }
        }
        records.len()
    }
}

/// The world of a call: 0 for the first, whose clock stands still but for waits; others are later.
fn world(which: u64) -> Script {
    let name = ["Ada", "Grace", "Nobody"][usize::try_from(which).unwrap()];
    let content = format!(
        r#"{{"name":"{name}","age":{},"choice":"red","confirm":true,"approve":{}}}"#,
        36 + which,
        which == 0
    );
    Script {
        answer: Some(Answer::Accepted(Some(content))),
        ..Script::at(5 + 100_000 * which)
    }
}

#[tokio::test]
async fn a_guest_that_looks_at_everything_goes_on_from_every_point() {
    let play = Play::of(&curious());
    let records = play.goes_on_from_every_point(world).await;
    // clock, wait, wake, status, wait, wake, end
    assert_eq!(records, 7);
    let (ended, _) = play.play(&[], After::Live, &Arc::new(world(0))).await;
    assert_eq!(ended.stdout.text, "tick\ntick\n");
    let (other, _) = play.play(&[], After::Live, &Arc::new(world(1))).await;
    assert_ne!(text_of(&ended), text_of(&other), "the clock differs");
}

#[tokio::test]
async fn the_example_tools_go_on_from_every_point() {
    let tools = [
        ("hello", "hello", r#"{"name":"Ada"}"#),
        ("count-words", "count-words", r#"{"text":"one two\nthree"}"#),
        ("long-job", "long-job", r#"{"steps":3,"step-ms":40}"#),
        ("ask-form", "ask-form", "{}"),
        ("ask-two", "ask-two", "{}"),
        ("approve", "approve", r#"{"what":"a thing"}"#),
        ("sleep", "sleep", r#"{"seconds":2.5}"#),
        ("flood", "flood", r#"{"bytes":1000}"#),
    ];
    for (component, tool, arguments) in tools {
        let play = Play::built(component, tool, arguments);
        let records = play.goes_on_from_every_point(world).await;
        assert!(records >= 1, "{component}");
    }
}

#[tokio::test]
async fn a_tool_that_looks_at_the_clock_sees_the_same_again() {
    let play = Play::built("spin", "spin", r#"{"seconds":0.02}"#);
    let ticking = |which: u64| Script {
        now: (1_000 * which).into(),
        step: 5,
        ..Script::default()
    };
    let (first, records) = play.play(&[], After::Live, &Arc::new(ticking(0))).await;
    assert_eq!(text_of(&first), "spun for 0.02 s");
    assert!(records.len() >= 5, "{records:?}");
    for kept in 0..=records.len() {
        let kept = &records[..kept];
        let (ended, new) = play.play(kept, After::Live, &Arc::new(ticking(1))).await;
        assert_eq!(text_of(&ended), "spun for 0.02 s");
        let whole = [kept, &new].concat();
        let nobody = Arc::new(ticking(2));
        let (again, _) = play.play(&whole, After::Stop, &nobody).await;
        assert_eq!(Seen::of(&again), Seen::of(&ended));
        assert!(!nobody.was_needed());
    }
}

#[tokio::test]
async fn another_guest_is_found_out_and_the_call_is_named() {
    let sleeps = |call: &'static str| Play::of(&Guest { call, ..SLEEPY });
    let first = sleeps("(call $digit (call $sleep (i64.const 5)))");
    let (_, records) = first.play(&[], After::Live, &Arc::new(world(0))).await;
    let cases = [
        (
            "(call $digit (call $sleep (i64.const 6)))",
            "call 1 (longshore:tool/task.sleep) differs from what was recorded",
        ),
        (
            "(drop (call $is-cancelled)) (call $digit (call $sleep (i64.const 5)))",
            "call 2 (longshore:tool/task.sleep) differs from what was recorded",
        ),
        (
            "(drop (call $sleep (i64.const 5))) (call $digit (i32.const 7))",
            "call 1 (longshore:tool/task.sleep) differs from what was recorded: it returns something else",
        ),
        (
            "(call $ok (i32.const 16) (i32.const 5))",
            "it returns before call 1",
        ),
        (
            "(unreachable)",
            "it fails where it went on before: wasm `unreachable` instruction executed",
        ),
    ];
    for (call, says) in cases {
        let (ended, new) = sleeps(call)
            .play(&records, After::Live, &Arc::new(world(0)))
            .await;
        let (kind, message) = fault_of(ended);
        assert_eq!(kind, FaultKind::Nondeterminism, "{message}");
        assert!(message.contains(says), "{message}");
        assert_eq!(new, [], "it never goes live");
    }
}

#[tokio::test]
async fn a_journal_is_limited() {
    // Each sleep is three records: the clock, the wait, the end of it.
    let guest = Guest {
        call: "(drop (call $sleep (i64.const 5))) (drop (call $sleep (i64.const 5)))
            (call $digit (i32.const 1))",
        ..SLEEPY
    };
    for (records, fits) in [(6, true), (5, false)] {
        let play = Play::of(&guest);
        let mut journal = Journal::fresh(origin());
        journal.origin.most = Total {
            records,
            ..journal.origin.most
        };
        let script = Arc::new(world(0));
        let ended = report(play.sandbox.start(play.run(journal, &script)).ended).await;
        if fits {
            assert_eq!(text_of(&ended), "1");
        } else {
            let (kind, message) = fault_of(ended);
            assert_eq!(kind, FaultKind::JournalLimit, "{message}");
            assert!(message.contains("more than 5 records"), "{message}");
        }
    }
}

#[tokio::test]
async fn a_run_goes_on_from_its_restart_point() {
    let guest = Guest {
        imports: r#"
            (import "longshore:tool/restart-points@0.1.0" (instance $points
                (export "checkpoint" (func (param "state" (list u8))))))
            (import "longshore:tool/task@0.1.0" (instance $task
                (export "sleep" (func (param "ms" u64) (result bool)))))
            (core module $words (memory (export "memory") 1) (data (i32.const 0) "half"))
            (core instance $words (instantiate $words))
            (core func $save (canon lower (func $points "checkpoint") (memory (core memory $words "memory"))))
            (core func $sleep (canon lower (func $task "sleep")))"#,
        with: r#"(with "task" (instance (export "save" (func $save)) (export "sleep" (func $sleep))))"#,
        core_imports: r#"
            (import "task" "save" (func $save (param i32 i32)))
            (import "task" "sleep" (func $sleep (param i64) (result i32)))"#,
        core: r#"(func (export "resume-tool") (param i32 i32 i32 i32 i32 i32) (result i32)
            (drop (call $sleep (i64.const 10)))
            (call $ok (local.get 4) (local.get 5)))"#,
        call: "(drop (call $sleep (i64.const 10))) (call $save (i32.const 0) (i32.const 4))
            (drop (call $sleep (i64.const 10))) (call $ok (i32.const 16) (i32.const 5))",
        ..Guest::default()
    };
    let sandbox = sandbox(1);
    let prepared = fit(&sandbox, &restartable(&guest)).unwrap();
    let play = Play {
        sandbox,
        prepared,
        tool: "tool",
        arguments: "{}",
    };
    let script = Arc::new(world(0));
    let (ended, records) = play.play(&[], After::Live, &script).await;
    // Where it goes on does not know what came before, now as after a death.
    assert_eq!(text_of(&ended), "half");
    assert_eq!(script.settled.load(Ordering::Relaxed), 1);
    let (
        Some(Record {
            call,
            what: What::Checkpoint { state, at },
        }),
        later,
    ) = (records.first(), &records[1..])
    else {
        panic!("all before it is forgotten: {records:?}");
    };
    assert_eq!((*call, state.0.as_slice(), at.clock), (2, &b"half"[..], 15));
    assert_eq!(later.len(), 3, "{later:?}");

    // With nothing after it, and in the middle of the sleep that the resumed one begins with.
    let resumed = async |records: Vec<Record>| {
        let mut journal = Journal::fresh(origin());
        let tape = journal.tape.clone();
        journal.entry = Entry::Resume(state.0.clone());
        journal.begin = Begin {
            from: Some((*call, *at)),
            records,
        };
        let script = Arc::new(world(0));
        let ended = report(play.sandbox.start(play.run(journal, &script)).ended).await;
        (ended, tape.take().records, script)
    };
    let (ended, new, script) = resumed(Vec::new()).await;
    assert_eq!(text_of(&ended), "half");
    assert_eq!(ended.calls, 3);
    assert_eq!(*script.waits.lock(), [25], "its clock goes on");
    let (again, rest, _) = resumed(new[..1].to_vec()).await;
    assert_eq!(Seen::of(&again), Seen::of(&ended));
    assert_eq!(rest.len() + 1, new.len());
}

/// Whoever goes on at a restart point knows nothing of what was said before it, and those who heard it do.
#[tokio::test]
async fn progress_does_not_go_back_behind_a_restart_point() {
    let Scene {
        mut state, trail, ..
    } = new_scene();
    state.report_progress(5.0, None, None).await.unwrap();
    assert!(state.checkpoint(b"half".to_vec()).await.is_err());
    let records = trail.tape.take().records;
    let [
        Record {
            call,
            what: What::Checkpoint { at, .. },
        },
    ] = records.as_slice()
    else {
        panic!("{records:?}");
    };
    let mut journal = Journal::fresh(origin());
    journal.begin.from = Some((*call, *at));
    let Scene {
        mut state, script, ..
    } = scene(&Limits::default(), Script::default(), journal);
    for done in [0.0, 3.0, 5.0, 6.0] {
        state.report_progress(done, None, None).await.unwrap();
    }
    assert_eq!(*script.progress.lock(), [6.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_costs_nothing_of_a_runs_limits() {
    let play = Play::of(&SPIN);
    let script = Arc::new(world(0));
    // A record that it never comes to: it repeats its past for ever.
    let mut journal = Journal::fresh(origin());
    journal.begin.records = vec![Record {
        call: 1,
        what: What::Clock(1),
    }];
    let mut run = play.run(journal, &script);
    run.policy.limits.cpu_ms = 50;
    run.policy.limits.active_wall_ms = 50;
    let control = run.control.clone();
    let started = play.sandbox.start(run);
    let spent = Duration::from_millis(100);
    until("its work", || started.watch.replay_cpu() > spent).await;
    play.sandbox.stop(&control, StopReason::Shutdown);
    let ended = report(started.ended).await;
    assert_eq!(ended.ending, Ending::Stopped(StopReason::Shutdown));
    assert_eq!((ended.cpu_us, ended.active_us), (0, 0));
    assert!(ended.replay_cpu_us > 100_000, "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_past_that_takes_too_long_to_repeat_ends_the_run_and_says_so() {
    let play = Play::of(&SPIN);
    let mut journal = Journal::fresh(origin());
    journal.begin.records = vec![Record {
        call: 1,
        what: What::Clock(1),
    }];
    let most = journal.replay_cpu_ms();
    // It takes seconds of CPU, of which a busy machine gives few.
    let started = play.sandbox.start(play.run(journal, &Arc::new(world(0))));
    let ended = started.ended.await.expect("it reports");
    assert!(ended.replay_cpu_us >= most * 1_000, "{ended:?}");
    assert_eq!(ended.cpu_us, 0, "none of it counts as the run's own");
    let (kind, message) = fault_of(ended);
    assert_eq!(kind, FaultKind::ReplayLimit);
    let text = format!("more than {most} ms of CPU time to repeat what it did before");
    assert_eq!(message, text);
}

#[tokio::test]
async fn what_a_run_used_before_counts() {
    let play = Play::of(&SPIN);
    let limited = async |spent: Spent| {
        let mut journal = Journal::fresh(origin());
        journal.spent = spent;
        let mut run = play.run(journal, &Arc::new(world(0)));
        run.policy.limits.cpu_ms = 2_000;
        run.policy.limits.active_wall_ms = 60_000;
        report(play.sandbox.start(run).ended).await
    };
    let ended = limited(Spent {
        cpu_ms: 1_950,
        active_ms: 0,
    })
    .await;
    assert!(
        (50_000..1_000_000).contains(&ended.cpu_us),
        "{}",
        ended.cpu_us
    );
    let (kind, message) = fault_of(ended);
    assert_eq!(kind, FaultKind::CpuLimit);
    assert_eq!(message, "more than 2000 ms of CPU time");
    let ended = limited(Spent {
        cpu_ms: 0,
        active_ms: 59_950,
    })
    .await;
    assert_eq!(ended.ending, Ending::Stopped(StopReason::WallLimit));
    assert!(ended.active_us < 1_000_000, "{}", ended.active_us);
}

#[tokio::test]
async fn a_repetition_shows_its_status_and_tells_nothing_else() {
    use crate::bindings::longshore::tool::changes::Host as _;
    use crate::bindings::longshore::tool::task::{AskKind, Host as _};
    let mut journal = Journal::fresh(origin());
    journal.begin.records = vec![Record {
        call: 5,
        what: What::Clock(77),
    }];
    let Scene {
        mut state,
        script,
        trail,
    } = scene(&Limits::default(), world(1), journal);
    let detached = || script.detached.load(Ordering::Relaxed);
    state.tools_changed().await.unwrap();
    state.detach().await.unwrap();
    state.set_status("again".into()).await.unwrap();
    assert!(state.can_ask(AskKind::Form).await.unwrap());
    assert_eq!((script.changes.lock().len(), detached()), (0, 0));
    assert_eq!(*script.statuses.lock(), ["again"]);
    assert_eq!(state.time_left().await.unwrap(), Some(3_600_000 - 77));
    assert!(!script.was_needed() && trail.tape.is_empty());
    // From here on it is the first time.
    state.tools_changed().await.unwrap();
    state.detach().await.unwrap();
    assert_eq!((script.changes.lock().len(), detached()), (1, 1));
}

#[test]
fn what_is_returned_has_one_hash() {
    use crate::bindings::exports::longshore::tool::completions::Completion;
    use crate::bindings::exports::longshore::tool::prompts::{
        Message, PromptError, PromptResult, Role,
    };
    use crate::bindings::exports::longshore::tool::resources::{Contents, ReadError};
    use crate::bindings::longshore::tool::types::Body;
    use crate::bindings::longshore::tool::types::ToolResult as Wit;
    use crate::bindings::longshore::tool::types::{Block, CallError, RpcError};
    use crate::hash::of;
    use crate::link::Returned;
    let hash = |returned: &Result<Wit, CallError>| of(&Returned::Tool(returned.clone()));
    let read = |returned| of(&Returned::Read(returned));
    let contents = |uri: &str, mime_type: Option<&str>, body| Contents {
        uri: uri.into(),
        mime_type: mime_type.map(str::to_owned),
        body,
        meta: None,
    };
    let as_text = |text: &str| Body::Text(text.into());
    let prompted = |returned| of(&Returned::Prompted(returned));
    let message = |role| PromptResult {
        description: None,
        messages: vec![Message {
            role,
            content: Block::Text("ab".into()),
        }],
    };
    let completed = |values: &[&str], total, has_more| {
        of(&Returned::Completed(Completion {
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            total,
            has_more,
        }))
    };
    let text = |texts: &[&str]| Wit {
        content: texts
            .iter()
            .map(|text| Block::Text((*text).into()))
            .collect(),
        structured: None,
        meta: None,
    };
    let error = |code| {
        Err(CallError::Protocol(RpcError {
            code,
            message: "m".into(),
            data: None,
        }))
    };
    let all = [
        hash(&Ok(text(&[]))),
        hash(&Ok(text(&["ab"]))),
        hash(&Ok(text(&["a", "b"]))),
        hash(&Ok(text(&["", "ab"]))),
        hash(&Ok(Wit {
            structured: Some("ab".into()),
            ..text(&[])
        })),
        hash(&Ok(Wit {
            meta: Some("ab".into()),
            ..text(&[])
        })),
        hash(&Err(CallError::Failed(text(&["ab"])))),
        hash(&error(1)),
        hash(&error(2)),
        hash(&Err(CallError::Cancelled)),
        read(Ok(Vec::new())),
        read(Ok(vec![contents("a", None, as_text("b"))])),
        read(Ok(vec![contents("ab", None, as_text(""))])),
        read(Ok(vec![contents("a", Some(""), as_text("b"))])),
        read(Ok(vec![contents("a", None, Body::Bytes(b"b".to_vec()))])),
        read(Err(ReadError::NotFound)),
        prompted(Ok(message(Role::User))),
        prompted(Ok(message(Role::Assistant))),
        prompted(Err(PromptError::Invalid("ab".into()))),
        completed(&["ab"], None, false),
        completed(&["a", "b"], None, false),
        completed(&["ab"], Some(0), false),
        completed(&["ab"], None, true),
    ];
    for (n, one) in all.iter().enumerate() {
        assert!(!all[n + 1..].contains(one), "{n}");
    }
    assert_eq!(hash(&Ok(text(&["ab"]))), all[1]);
}

#[test]
fn every_version_of_wasi_02_is_linked() {
    let text = curious().text();
    let sandbox = sandbox(1);
    for minor in 0..=12 {
        let text = text.replace("@0.2.0\"", &format!("@0.2.{minor}\""));
        fit(&sandbox, &text).unwrap_or_else(|refusal| panic!("0.2.{minor}: {refusal}"));
    }
}
