//! Compiling in a real child process. This binary is its own child: started with the name of a
//! behaviour, it behaves so; else it runs the tests.

use std::io::{Read as _, Write as _};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use longshore_sandbox::artifact::Artifact;
use longshore_sandbox::compile::{ChildCommand, CompileLimits, Compiler};
use longshore_sandbox::refusal::{Reason, Refusal};
use rustix::process::{Signal, getpid, kill_process};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("child:compile") => return longshore_sandbox::child::main(),
        // Takes the component, and never answers.
        Some("child:hang") => {
            let mut component = Vec::new();
            std::io::stdin().read_to_end(&mut component).unwrap();
            loop {
                std::thread::park();
            }
        }
        Some("child:deaf") => loop {
            std::thread::park();
        },
        Some("child:killed") => kill_self(Signal::KILL),
        Some("child:segv") => kill_self(Signal::SEGV),
        Some("child:aborted") => std::process::abort(),
        Some("child:panicked") => panic!("as a compiler might"),
        Some("child:usage") => {
            eprintln!("error: unrecognized subcommand");
            return ExitCode::from(2);
        }
        Some("child:chatter") => {
            // More than a pipe holds, on both.
            for _ in 0..100_000 {
                let _reader_may_be_gone = writeln!(std::io::stdout(), "listening on 127.0.0.1");
                eprintln!("listening on 127.0.0.1");
            }
            return ExitCode::SUCCESS;
        }
        Some("child:huge") => {
            let mut reply = b"LSr1\0".to_vec();
            reply.extend(u64::MAX.to_le_bytes());
            std::io::stdout().write_all(&reply).unwrap();
            return ExitCode::SUCCESS;
        }
        Some("child:half") => {
            std::io::stdout()
                .write_all(b"LSr1\0\x09\0\0\0\0\0\0\0half")
                .unwrap();
            return ExitCode::SUCCESS;
        }
        Some("child:environment") => {
            let refusal = format!("malformed\n{:?}", std::env::vars_os().next());
            let mut reply = b"LSr1\x01".to_vec();
            reply.extend((refusal.len() as u64).to_le_bytes());
            reply.extend(refusal.as_bytes());
            std::io::stdout().write_all(&reply).unwrap();
            return ExitCode::SUCCESS;
        }
        _ => {}
    }

    let tests: [(&str, fn()); 13] = [
        ("a_component_is_compiled", a_component_is_compiled),
        (
            "garbage_is_refused_by_the_validator",
            garbage_is_refused_by_the_validator,
        ),
        (
            "a_function_with_many_live_values_ends_at_the_cpu_limit",
            many_live_values,
        ),
        (
            "a_function_that_overwhelms_the_validator_ends_at_the_memory_limit",
            overwhelmed_validator,
        ),
        ("native_code_above_its_limit_is_refused", artifact_limit),
        ("a_child_that_hangs_is_killed_at_the_wall_limit", wall_limit),
        ("a_child_that_dies_is_a_crash", crashes),
        ("a_child_that_is_no_compile_child_is_our_fault", not_a_child),
        ("the_child_sees_nothing_of_our_environment", environment),
        ("a_dropped_compilation_leaves_no_child", dropped),
        ("many_uploads_wait_for_their_turn", turns),
        ("others_do_not_wait_for_what_takes_long", fair),
        ("the_child_has_its_limits", confined),
    ];
    let filter = args.iter().find(|arg| !arg.starts_with('-'));
    for (name, test) in tests {
        if filter.is_none_or(|filter| name.contains(filter.as_str())) {
            let started = Instant::now();
            test();
            println!(
                "test {name} ... ok ({:.2} s)",
                started.elapsed().as_secs_f64()
            );
        }
    }
    ExitCode::SUCCESS
}

/// Again and again, since the standard library takes the first SIGSEGV for a stack overflow of its own.
fn kill_self(signal: Signal) -> ! {
    loop {
        kill_process(getpid(), signal).unwrap();
    }
}

fn command(behaviour: &str) -> ChildCommand {
    ChildCommand {
        program: std::env::current_exe().unwrap(),
        args: vec![format!("child:{behaviour}").into()],
    }
}

fn limits() -> CompileLimits {
    CompileLimits {
        cpu_s: 30,
        wall_s: 120,
        ..CompileLimits::default()
    }
}

fn compile_by(behaviour: &str, limits: CompileLimits, bytes: &[u8]) -> Result<Artifact, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(Compiler::new(command(behaviour), limits).compile(Arc::from(bytes)))
}

#[track_caller]
fn refused(outcome: Result<Artifact, Refusal>, reason: Reason, message: &str) {
    let refusal = outcome.expect_err("it is to be refused");
    assert_eq!(refusal.reason, reason, "{refusal}");
    assert!(
        refusal.message.contains(message),
        "{refusal} does not say: {message}"
    );
    assert!(!refusal.message.contains('\n'), "{refusal}");
}

fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text of a test is right")
}

fn good() -> Vec<u8> {
    binary("(component (core module (func (export \"f\") (result i32) (i32.const 1))))")
}

fn a_component_is_compiled() {
    let artifact = compile_by("compile", CompileLimits::default(), &good()).unwrap();
    assert!(artifact.size() > 1000, "{artifact:?}");
}

fn garbage_is_refused_by_the_validator() {
    let mut bytes = good();
    let end = bytes.len() - 3;
    bytes.truncate(end);
    refused(
        compile_by("compile", limits(), &bytes),
        Reason::Malformed,
        "",
    );
    let feature = binary("(component (core module (memory i64 1)))");
    refused(
        compile_by("compile", limits(), &feature),
        Reason::FeatureOff,
        "memory64",
    );
}

/// A function that loads many values before it uses the first: registers for them are found in a
/// time that grows with the cube of their number.
fn live_values(count: usize) -> Vec<u8> {
    // Each from a place of its own, else they are all one value.
    let loads: String = (0..count)
        .map(|n| format!("(i32.load offset={} (local.get 0))", 4 * n))
        .collect();
    let xors = "i32.xor ".repeat(count - 1);
    binary(&format!(
        "(component (core module (memory 1) (func (param i32) (result i32) {loads} {xors})))"
    ))
}

fn many_live_values() {
    let started = Instant::now();
    let outcome = compile_by(
        "compile",
        CompileLimits {
            cpu_s: 1,
            ..limits()
        },
        &live_values(20_000),
    );
    refused(outcome, Reason::CompileLimit, "1 s of CPU time");
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "{:?}",
        started.elapsed()
    );
}

fn overwhelmed_validator() {
    let results = "i64 ".repeat(1000);
    let calls = "call $f ".repeat(200_000);
    let bytes = binary(&format!(
        "(component (core module (func $f (result {results}) unreachable) (func {calls} unreachable)))"
    ));
    let outcome = compile_by(
        "compile",
        CompileLimits {
            memory_bytes: 512 << 20,
            ..limits()
        },
        &bytes,
    );
    refused(outcome, Reason::CompileLimit, "512 MiB of memory");
}

fn artifact_limit() {
    let outcome = compile_by(
        "compile",
        CompileLimits {
            artifact_bytes: 1000,
            ..limits()
        },
        &good(),
    );
    refused(outcome, Reason::CompileLimit, "at most 1000");
    refused(
        compile_by("huge", limits(), &good()),
        Reason::Host,
        "no result",
    );
}

fn wall_limit() {
    // More than a pipe holds, so that a child that does not read makes us wait.
    let large = vec![0; 1 << 20];
    for behaviour in ["hang", "deaf"] {
        let started = Instant::now();
        let outcome = compile_by(
            behaviour,
            CompileLimits {
                wall_s: 1,
                ..limits()
            },
            &large,
        );
        refused(outcome, Reason::CompileLimit, "longer than 1 s");
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "{:?}",
            started.elapsed()
        );
    }
}

fn crashes() {
    refused(
        compile_by("killed", limits(), &good()),
        Reason::CompileCrashed,
        "killed from outside",
    );
    refused(
        compile_by("segv", limits(), &good()),
        Reason::CompileCrashed,
        "crashed",
    );
    refused(
        compile_by("aborted", limits(), &good()),
        Reason::CompileCrashed,
        "crashed",
    );
    refused(
        compile_by("panicked", limits(), &good()),
        Reason::CompileCrashed,
        "a panic",
    );
}

fn not_a_child() {
    refused(
        compile_by("usage", limits(), &good()),
        Reason::Host,
        "unrecognized subcommand",
    );
    refused(
        compile_by("chatter", limits(), &good()),
        Reason::Host,
        "no result",
    );
    refused(
        compile_by("half", limits(), &good()),
        Reason::Host,
        "no result",
    );
    let nowhere = ChildCommand {
        program: "/no/such/program".into(),
        args: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let outcome = runtime.block_on(Compiler::new(nowhere, limits()).compile(Arc::from(good())));
    refused(outcome, Reason::Host, "/no/such/program");
}

fn environment() {
    refused(
        compile_by("environment", limits(), &good()),
        Reason::Malformed,
        "None",
    );
}

/// Children of this process that still run.
fn children() -> String {
    let pid = std::process::id();
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default()
}

fn dropped() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let compiler = Compiler::new(command("hang"), limits());
        let never = tokio::time::timeout(
            Duration::from_millis(200),
            compiler.compile(Arc::from(good())),
        )
        .await;
        assert!(never.is_err(), "a hanging child does not answer");
        for _ in 0..100 {
            if children().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("a child is left: {}", children());
    });
}

fn turns() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let compiler = Arc::new(Compiler::new(command("compile"), limits()));
        let bytes: Arc<[u8]> = Arc::from(good());
        let all: Vec<_> = (0..20)
            .map(|_| {
                let (compiler, bytes) = (Arc::clone(&compiler), Arc::clone(&bytes));
                tokio::spawn(async move {
                    compiler
                        .compile(bytes)
                        .await
                        .map(|artifact| artifact.size())
                })
            })
            .collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let alive = children().split_whitespace().count();
        assert!(
            alive <= cores.saturating_sub(1).max(1),
            "{alive} children at once"
        );
        for one in all {
            one.await.unwrap().unwrap();
        }
    });
}

/// However many take long, an ordinary one is compiled while they are.
fn fair() {
    const SLOW: usize = 3;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let limits = CompileLimits {
        cpu_s: 3,
        at_once: 1,
        quick_s: 1,
        ..limits()
    };
    let compiler = Compiler::new(command("compile"), limits);
    let (slow, quick) = (Arc::<[u8]>::from(live_values(20_000)), Arc::from(good()));
    let ended = std::cell::Cell::new(0);
    let most = std::cell::Cell::new(0);
    runtime.block_on(async {
        let all = async {
            let one = || async {
                let outcome = compiler.compile(Arc::clone(&slow)).await;
                ended.set(ended.get() + 1);
                refused(outcome, Reason::CompileLimit, "3 s of CPU time");
            };
            // One after the other, so that each has begun, or waits, before the ordinary one comes.
            tokio::join!(one(), one(), one());
        };
        let ordinary = async {
            while children().split_whitespace().next().is_none() {
                tokio::task::yield_now().await;
            }
            compiler.compile(quick).await.unwrap();
            assert!(ended.get() < SLOW, "it came last");
        };
        let looks = async {
            while ended.get() < SLOW {
                let alive = children().split_whitespace().count();
                most.set(most.get().max(alive));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::join!(all, ordinary, looks);
    });
    // Those that were given up may not be gone yet when the next one begins.
    assert!((2..=3).contains(&most.get()), "{} children", most.get());
}

fn confined() {
    use std::process::Stdio;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("child:compile")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Where stderr is a file, its last words would exceed the size that it may write, which is 0.
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut request = b"LSq1".to_vec();
    for number in [60_u64, 3 << 29, 1 << 20, 8] {
        request.extend(number.to_le_bytes());
    }
    stdin.write_all(&request).unwrap();
    // The request is read and the limits are taken on before the component is read.
    let path = format!("/proc/{}/limits", child.id());
    let deadline = Instant::now() + Duration::from_secs(10);
    let found = loop {
        let found = std::fs::read_to_string(&path).unwrap();
        if found
            .lines()
            .any(|line| line.starts_with("Max open files") && line.contains(" 16 "))
        {
            break found;
        }
        assert!(Instant::now() < deadline, "{found}");
        std::thread::sleep(Duration::from_millis(5));
    };
    for (name, soft, hard) in [
        ("Max cpu time", "60", "65"),
        ("Max address space", "1610612736", "1610612736"),
        ("Max core file size", "0", "0"),
        ("Max file size", "0", "0"),
    ] {
        let line = found.lines().find(|line| line.starts_with(name)).unwrap();
        let mut values = line[name.len()..].split_whitespace();
        assert_eq!(
            (values.next(), values.next()),
            (Some(soft), Some(hard)),
            "{line}"
        );
    }
    // Eight bytes were announced; the end of stdin before them is an end without a reply.
    drop(stdin);
    let mut reply = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut reply)
        .unwrap();
    assert!(reply.is_empty());
    assert_eq!(child.wait().unwrap().code(), Some(70));
}
