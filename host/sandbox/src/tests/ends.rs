//! How runs end.

use std::sync::Arc;

use super::kit::{
    Guest, Remembers, SPIN, ended, fault, fault_of, prepared, report, run_of, sandbox, text_of,
};
use crate::ending::{Ending, FaultKind};
use crate::fault::HOST_FAULT;
use crate::sandbox::Run;

#[tokio::test]
async fn a_tool_returns() {
    let ended = ended(|run| run, &Guest::default()).await;
    assert_eq!(text_of(&ended), "hello");
    assert_eq!(ended.calls, 0);
    assert!(
        ended.cpu_us > 0 && ended.cpu_us < 1_000_000,
        "{}",
        ended.cpu_us
    );
}

#[tokio::test]
async fn cpu_time_is_limited() {
    let ended = ended(
        |mut run| {
            run.policy.limits.cpu_ms = 150;
            run
        },
        &SPIN,
    )
    .await;
    let cpu_us = ended.cpu_us;
    assert_eq!(
        fault_of(ended),
        (FaultKind::CpuLimit, "more than 150 ms of CPU time".into())
    );
    assert!((150_000..300_000).contains(&cpu_us), "{cpu_us}");
}

#[tokio::test]
async fn memory_that_is_refused_is_not_a_trap() {
    // Grows by a page until told no, then says how many pages it has.
    let guest = Guest {
        call: r#"
            (loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
            (i32.store8 (i32.const 32) (i32.add (i32.const 48) (memory.size)))
            (call $ok (i32.const 32) (i32.const 1))"#,
        ..Guest::default()
    };
    let ended = ended(
        |mut run| {
            run.policy.limits.memory_bytes = 3 * 65_536;
            run
        },
        &guest,
    )
    .await;
    assert_eq!(text_of(&ended), "3");
}

#[tokio::test]
async fn what_starts_beyond_a_limit_does_not_start() {
    let memory = Guest {
        memory: "1025",
        ..Guest::default()
    };
    let table = Guest {
        core: "(table 100001 funcref)",
        ..Guest::default()
    };
    let tables: String = "(table 1 funcref)".repeat(65);
    let tables = Guest {
        core: &tables,
        ..Guest::default()
    };
    for (guest, says) in [
        (
            memory,
            "memory minimum size of 1025 pages exceeds memory limits",
        ),
        (
            table,
            "table minimum size of 100001 elements exceeds table limits",
        ),
        (
            tables,
            "resource limit exceeded: table count too high at 65",
        ),
    ] {
        assert_eq!(fault(&guest).await, (FaultKind::MemoryLimit, says.into()));
    }
}

#[tokio::test]
async fn calls_nested_too_deeply_overflow_the_guests_stack_only() {
    let guest = Guest {
        core: "(func $deep (param i32) (result i32)
            (i32.add (i32.const 1) (call $deep (i32.add (local.get 0) (i32.const 1)))))",
        call: "(call $deep (i32.const 0))",
        ..Guest::default()
    };
    assert_eq!(
        fault(&guest).await,
        (FaultKind::StackOverflow, "call stack exhausted".into())
    );
}

#[tokio::test]
async fn traps_are_named() {
    for (call, says) in [
        ("(unreachable)", "wasm `unreachable` instruction executed"),
        (
            "(i32.div_u (i32.const 1) (i32.const 0))",
            "integer divide by zero",
        ),
        (
            "(i32.load (i32.const 65536))",
            "out of bounds memory access",
        ),
    ] {
        assert_eq!(
            fault(&Guest {
                call,
                ..Guest::default()
            })
            .await,
            (FaultKind::Trap, says.into())
        );
    }
}

#[tokio::test]
async fn an_exit_is_no_result_whatever_its_status() {
    for (status, says) in [("0", "status 0"), ("1", "status 1")] {
        let call = format!("(call $exit (i32.const {status})) (unreachable)");
        let guest = Guest {
            imports: r#"
                (import "wasi:cli/exit@0.2.0" (instance $exit (export "exit" (func (param "status" (result))))))
                (core func $exit (canon lower (func $exit "exit")))"#,
            with: r#"(with "exit" (instance (export "exit" (func $exit))))"#,
            core_imports: r#"(import "exit" "exit" (func $exit (param i32)))"#,
            call: &call,
            ..Guest::default()
        };
        let (kind, message) = fault(&guest).await;
        assert_eq!(kind, FaultKind::Exit);
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test]
async fn a_trap_comes_with_the_last_words_on_stderr() {
    let guest = Guest {
        imports: r#"
            (import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
            (alias export $error "error" (type $error-type))
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
            (import "wasi:cli/stderr@0.2.0" (instance $stderr
                (alias outer 1 $output-stream (type $outer))
                (export "output-stream" (type $out (eq $outer)))
                (export "get-stderr" (func (result (own $out))))))
            (core module $words
                (memory (export "memory") 1)
                (data (i32.const 0) "boom: \1b[1mno\1b[0m\0anote: run with `BACKTRACE=1`\0a\0a"))
            (core instance $words (instantiate $words))
            (core func $get (canon lower (func $stderr "get-stderr")))
            (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
                (memory (core memory $words "memory"))))"#,
        with: r#"(with "stderr" (instance (export "get" (func $get)) (export "write" (func $write))))"#,
        core_imports: r#"
            (import "stderr" "get" (func $get (result i32)))
            (import "stderr" "write" (func $write (param i32 i32 i32 i32)))"#,
        call: "(call $write (call $get) (i32.const 0) (i32.const 46) (i32.const 64)) (unreachable)",
        ..Guest::default()
    };
    let ended = ended(|run| run, &guest).await;
    assert!(
        ended.stderr.text.starts_with("boom: \u{1b}[1mno"),
        "{:?}",
        ended.stderr
    );
    assert_eq!(ended.stdout.text, "");
    let expected = "wasm `unreachable` instruction executed; last on stderr: boom:  [1mno [0m";
    assert_eq!(fault_of(ended), (FaultKind::Trap, expected.into()));
}

#[tokio::test]
async fn handles_are_limited() {
    let guest = |call| Guest {
        imports: r#"
            (type $thing (resource (rep i32)))
            (core func $new (canon resource.new $thing))"#,
        with: r#"(with "thing" (instance (export "new" (func $new))))"#,
        core_imports: r#"(import "thing" "new" (func $new (param i32) (result i32)))"#,
        call,
        ..Guest::default()
    };
    let few = |mut run: Run| {
        run.policy.limits.handles = 3;
        run
    };
    let thrice = "(drop (call $new (i32.const 0))) (drop (call $new (i32.const 0)))
        (drop (call $new (i32.const 0)))";
    let allowed = format!("{thrice} (call $ok (i32.const 16) (i32.const 5))");
    assert_eq!(text_of(&ended(few, &guest(&allowed)).await), "hello");
    let once_more = format!("{thrice} (call $new (i32.const 0))");
    let (kind, message) = fault_of(ended(few, &guest(&once_more)).await);
    assert_eq!(
        (kind, message.as_str()),
        (FaultKind::HandleLimit, "more handles than allowed")
    );
}

#[tokio::test]
async fn randomness_per_call_is_limited() {
    let guest = Guest {
        imports: r#"
            (import "wasi:random/random@0.2.0" (instance $random
                (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
            (core module $room
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0)))
            (core instance $room (instantiate $room))
            (core func $bytes (canon lower (func $random "get-random-bytes")
                (memory (core memory $room "memory")) (realloc (core func $room "realloc"))))"#,
        with: r#"(with "random" (instance (export "bytes" (func $bytes))))"#,
        core_imports: r#"(import "random" "bytes" (func $bytes (param i64 i32)))"#,
        call: "(call $bytes (i64.const -1) (i32.const 8)) (unreachable)",
        ..Guest::default()
    };
    let (kind, message) = fault(&guest).await;
    assert_eq!(kind, FaultKind::HostcallLimit, "{message}");
}

#[tokio::test]
async fn what_a_guest_hands_back_is_read_with_care() {
    let cases = [
        // Five MiB of text: more than may cross at once.
        (
            "(call $ok (i32.const 0) (i32.const 5242880))",
            FaultKind::OutputLimit,
        ),
        // Two MiB: more than a result may have.
        (
            "(call $ok (i32.const 0) (i32.const 2097152))",
            FaultKind::OutputLimit,
        ),
        // Beyond the end of memory, and beyond the end of any memory.
        (
            "(call $ok (i32.const 0) (i32.const 6553601))",
            FaultKind::BadOutput,
        ),
        (
            "(call $ok (i32.const -1) (i32.const -1))",
            FaultKind::BadOutput,
        ),
        // Not text.
        (
            "(i32.store8 (i32.const 16) (i32.const 255)) (call $ok (i32.const 16) (i32.const 1))",
            FaultKind::BadOutput,
        ),
        // No such case: of the result, of the block.
        (
            "(i32.store8 (i32.const 1024) (i32.const 2)) (call $ok (i32.const 16) (i32.const 1))",
            FaultKind::BadOutput,
        ),
        (
            "(i32.store8 (i32.const 1088) (i32.const 9)) (call $ok (i32.const 16) (i32.const 1))",
            FaultKind::BadOutput,
        ),
        // A result at no address.
        ("(i32.const 1025)", FaultKind::BadOutput),
        ("(i32.const 6553600)", FaultKind::BadOutput),
    ];
    for (call, expected) in cases {
        let (kind, message) = fault(&Guest {
            call,
            memory: "100",
            ..Guest::default()
        })
        .await;
        assert_eq!(kind, expected, "{call}: {message}");
        assert!(!message.is_empty() && !message.contains("0x"), "{message}");
    }
}

#[tokio::test]
async fn what_one_import_call_carries_is_limited() {
    let (kind, message) = fault(&status_guest(5 << 20)).await;
    assert_eq!(kind, FaultKind::HostcallLimit, "{message}");
}

#[tokio::test]
async fn a_panic_of_the_host_ends_that_run_alone() {
    let sandbox = sandbox(1);
    let mut run = run_of(prepared(&sandbox, &status_guest(5)));
    run.outside = Arc::new(Remembers {
        panics_at_status: true,
        ..Remembers::default()
    });
    let ended = report(sandbox.start(run).ended).await;
    assert_eq!(sandbox.figures().live_stores, 0);
    assert_eq!(ended.calls, 1);
    assert_eq!(fault_of(ended), (FaultKind::Host, HOST_FAULT.into()));
    let after = sandbox
        .start(run_of(prepared(&sandbox, &Guest::default())))
        .ended
        .await
        .unwrap();
    assert!(matches!(after.ending, Ending::Returned(_)));
}

/// Sets a status of so many bytes.
fn status_guest(bytes: u32) -> Guest<'static> {
    let call: &'static str = match bytes {
        5 => "(call $status (i32.const 0) (i32.const 5)) (call $ok (i32.const 16) (i32.const 5))",
        _ => {
            "(call $status (i32.const 0) (i32.const 5242880)) (call $ok (i32.const 16) (i32.const 5))"
        }
    };
    Guest {
        imports: r#"
            (import "longshore:tool/task@0.1.0" (instance $task
                (export "set-status" (func (param "message" string)))))
            (core module $words (memory (export "memory") 100))
            (core instance $words (instantiate $words))
            (core func $status (canon lower (func $task "set-status") (memory (core memory $words "memory"))))"#,
        with: r#"(with "task" (instance (export "status" (func $status))))"#,
        core_imports: r#"(import "task" "status" (func $status (param i32 i32)))"#,
        call,
        ..Guest::default()
    }
}
