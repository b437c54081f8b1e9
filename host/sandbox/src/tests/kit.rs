//! A sandbox, an outside that remembers, and guests in the text format.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use longshore_journal::call::{Answer, AskError, AskKind, LogLevel, Question};
use longshore_journal::http::{Failure, Outcome};
use longshore_journal::world::Origin;
use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::compile::{ChildCommand, CompileLimits};
use crate::control::Control;
use crate::ending::{Block, Ended, Ending, Fault, FaultKind};
use crate::journal::{Journal, MOST_RECORDED};
use crate::outside::{Outgoing, Outside, OwnedChange, Said};
use crate::precheck::Bounds;
use crate::refusal::Refusal;
use crate::sandbox::{FirstTurn, Prepared, Run, Sandbox, Settings, WasiKind};
use crate::target::Target;

/// Longer than anything here takes on a machine that is busy with other things.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn sandbox(threads: usize) -> Sandbox {
    sandbox_with(WasiKind::Virtual, threads)
}

pub(super) fn sandbox_with(wasi: WasiKind, threads: usize) -> Sandbox {
    sandbox_of(wasi, threads, 8)
}

/// One with that many slots.
pub(super) fn sandbox_of(wasi: WasiKind, threads: usize, slots: usize) -> Sandbox {
    let settings = Settings {
        child: ChildCommand {
            program: "/nowhere".into(),
            args: Vec::new(),
        },
        artifacts: None,
        artifact_key: [0; 32],
        guest_threads: threads,
        slots,
        bounds: Bounds::default(),
        compile_limits: CompileLimits::default(),
        wasi,
        own_dirs: Vec::new(),
    };
    Sandbox::new(settings).unwrap()
}

/// A guest in this very process: the texts here are ours.
pub(super) fn fit(sandbox: &Sandbox, text: &str) -> Result<Prepared, Refusal> {
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let compiled = sandbox.fit_here(&bytes);
    compiled.unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

pub(super) fn prepared(sandbox: &Sandbox, guest: &Guest<'_>) -> Prepared {
    fit(sandbox, &guest.text()).unwrap()
}

pub(super) fn run_of(prepared: Prepared) -> Run {
    Run {
        prepared,
        target: Target::Tool {
            name: "tool".into(),
            arguments: "{}".into(),
        },
        policy: Policy::nothing(Limits::default()),
        outside: Arc::new(Remembers::default()),
        control: Control::default(),
        journal: Journal::fresh(origin()),
        first_turn: FirstTurn::Queued,
    }
}

/// A call that was made in 2001.
pub(super) fn origin() -> Origin {
    Origin {
        created_at_ms: 1_000_000_000_000,
        random_key: [7; 32],
        most: MOST_RECORDED,
    }
}

/// Runs a guest to its end.
pub(super) async fn ended(run: impl FnOnce(Run) -> Run, guest: &Guest<'_>) -> Ended {
    let sandbox = sandbox(1);
    let run = run(run_of(prepared(&sandbox, guest)));
    let ended = report(sandbox.start(run).ended).await;
    assert_eq!(
        sandbox.figures().live_stores,
        0,
        "the instance is gone before anybody hears of it"
    );
    ended
}

/// What a run reports, if it does in good time.
pub(super) async fn report(ended: oneshot::Receiver<Ended>) -> Ended {
    tokio::time::timeout(PATIENCE, ended)
        .await
        .expect("it ends")
        .expect("it reports")
}

pub(super) async fn fault(guest: &Guest<'_>) -> (FaultKind, String) {
    fault_of(ended(|run| run, guest).await)
}

pub(super) fn fault_of(ended: Ended) -> (FaultKind, String) {
    match ended.ending {
        Ending::Fault(Fault { kind, message }) => (kind, message),
        other => panic!("{other:?}"),
    }
}

pub(super) fn text_of(ended: &Ended) -> &str {
    match &ended.ending {
        Ending::Returned(result) => match result.content.as_slice() {
            [Block::Text(text)] => text,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Waits for something that happens on another thread.
pub(super) async fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The time since the call was made.
pub(super) struct Since(tokio::time::Instant);

impl Default for Since {
    fn default() -> Self {
        Self(tokio::time::Instant::now())
    }
}

/// An outside that remembers what it was told, and answers what it was given to answer.
#[derive(Default)]
pub(super) struct Remembers {
    pub(super) since: Since,
    pub(super) statuses: Mutex<Vec<String>>,
    pub(super) progress: Mutex<Vec<(f64, Option<f64>)>>,
    pub(super) logs: Mutex<Vec<String>>,
    pub(super) changes: Mutex<Vec<OwnedChange>>,
    pub(super) asked: Mutex<Vec<Vec<Question>>>,
    /// Without one, a question waits for ever.
    pub(super) answers: Option<Vec<Answer>>,
    /// A mistake of ours.
    pub(super) panics_at_status: bool,
}

#[async_trait]
impl Outside for Remembers {
    fn call_id(&self) -> String {
        "the-call".into()
    }

    fn deadline_ms(&self) -> Option<u64> {
        Some(3_600_000)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.since.0.elapsed().as_millis()).unwrap()
    }

    async fn wait_until(&self, ms: u64) {
        match self.since.0.checked_add(Duration::from_millis(ms)) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn set_status(&self, message: String) {
        assert!(!self.panics_at_status, "as arranged");
        self.statuses.lock().push(message);
    }

    fn report_progress(&self, done: f64, total: Option<f64>, _message: Option<String>) {
        self.progress.lock().push((done, total));
    }

    fn detach(&self) {}

    fn can_ask(&self, kind: AskKind) -> bool {
        kind == AskKind::Form
    }

    async fn ask(
        &self,
        questions: Vec<Question>,
        _until: Option<u64>,
        _before: bool,
    ) -> Result<Vec<Answer>, AskError> {
        self.asked.lock().push(questions);
        match &self.answers {
            Some(answers) => Ok(answers.clone()),
            None => std::future::pending().await,
        }
    }

    async fn settle(&self) {}

    async fn send(&self, _request: Outgoing) -> Outcome {
        Err(Failure::Refused)
    }

    fn log(&self, _said: Said, _level: LogLevel, _logger: Option<String>, message: String) {
        self.logs.lock().push(message);
    }

    fn changed(&self, change: OwnedChange) {
        self.changes.lock().push(change);
    }
}

/// A tool component. Its core module has a page of memory with `hello` at 16 and room for a result
/// from 1,024 on; `$ok` returns one text.
#[derive(Clone, Copy)]
pub(super) struct Guest<'a> {
    /// Of the component: imports, and functions lowered from them.
    pub(super) imports: &'a str,
    /// `(with ..)` of the core instance, for what was lowered.
    pub(super) with: &'a str,
    /// Of the core module, its imports.
    pub(super) core_imports: &'a str,
    /// Of the core module, whatever else.
    pub(super) core: &'a str,
    /// The memory's limits.
    pub(super) memory: &'a str,
    /// The instructions of `list-tools`, which leave the address of a list.
    pub(super) list: &'a str,
    /// The instructions of `call-tool`, which leave the address of a result.
    pub(super) call: &'a str,
}

impl Default for Guest<'_> {
    fn default() -> Self {
        Self {
            imports: "",
            with: "",
            core_imports: "",
            core: "",
            memory: "1",
            list: "(i32.const 1024)",
            call: "(call $ok (i32.const 16) (i32.const 5))",
        }
    }
}

const TYPES: [(&str, &str); 10] = [
    (
        "media",
        r#"(record (field "data" (list u8)) (field "mime-type" string))"#,
    ),
    (
        "link",
        r#"(record (field "uri" string) (field "name" string) (field "mime-type" (option string))
            (field "description" (option string)))"#,
    ),
    (
        "body",
        r#"(variant (case "text" string) (case "bytes" (list u8)))"#,
    ),
    (
        "embedded",
        r#"(record (field "uri" string) (field "mime-type" (option string)) (field "body" $body))"#,
    ),
    (
        "block",
        r#"(variant (case "text" string) (case "image" $media) (case "audio" $media)
            (case "resource-link" $link) (case "embedded" $embedded) (case "raw" string))"#,
    ),
    (
        "rpc-error",
        r#"(record (field "code" s32) (field "message" string) (field "data" (option string)))"#,
    ),
    (
        "tool-result",
        r#"(record (field "content" (list $block)) (field "structured" (option string))
            (field "meta" (option string)))"#,
    ),
    (
        "call-error",
        r#"(variant (case "failed" $tool-result) (case "protocol" $rpc-error) (case "cancelled"))"#,
    ),
    ("task-mode", r#"(enum "never" "on-detach" "auto" "always")"#),
    (
        "tool",
        r#"(record (field "name" string) (field "title" (option string)) (field "description" string)
            (field "input-schema" string) (field "output-schema" (option string)) (field "task-mode" $task-mode)
            (field "requires" (list string)) (field "extra" (option string)))"#,
    ),
];

const RESUME: &str = r#"(param "name" string) (param "arguments" string) (param "state" (list u8))
    (result (result $tool-result (error $call-error)))"#;
const LIST: &str = "(result (list $tool))";
const CALL: &str = r#"(param "name" string) (param "arguments" string)
    (result (result $tool-result (error $call-error)))"#;

impl Guest<'_> {
    pub(super) fn text(&self) -> String {
        let Self {
            imports,
            with,
            core_imports,
            core,
            memory,
            list,
            call,
        } = self;
        let types: String = TYPES
            .iter()
            .map(|(name, shape)| format!("(type ${name} {shape})\n"))
            .collect();
        let args: String = TYPES
            .iter()
            .map(|(name, _)| format!("(with \"{name}\" (type ${name}))\n"))
            .collect();
        let shim = shim();
        format!(
            r#"(component
{imports}
(core module $m
    {core_imports}
    (memory (export "memory") {memory})
    (data (i32.const 16) "hello")
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
    (func $ok (param $text i32) (param $length i32) (result i32)
        (i32.store (i32.const 1028) (i32.const 1088))
        (i32.store (i32.const 1032) (i32.const 1))
        (i32.store (i32.const 1092) (local.get $text))
        (i32.store (i32.const 1096) (local.get $length))
        (i32.const 1024))
    {core}
    (func (export "list-tools") (result i32) {list})
    (func (export "call-tool") (param i32 i32 i32 i32) (result i32) {call})
)
(core instance $i (instantiate $m {with}))
{types}
(func $list {LIST}
    (canon lift (core func $i "list-tools") (memory (core memory $i "memory"))))
(func $call {CALL}
    (canon lift (core func $i "call-tool") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
{shim}
(instance $tools (instantiate $shim {args} (with "list" (func $list)) (with "call" (func $call))))
(export "longshore:tool/tools@0.1.0" (instance $tools))
)"#
        )
    }
}

/// The same guest, which also exports `resume-tool` of its core module.
pub(super) fn restartable(guest: &Guest<'_>) -> String {
    let args: String = TYPES
        .iter()
        .map(|(name, _)| format!("(with \"{name}\" (type ${name}))\n"))
        .collect();
    let shim = shim_of("restart-shim", &[("resume-tool", "resume", RESUME)]);
    let text = guest.text();
    let inner = text.strip_suffix(')').expect("it ends with its component");
    format!(
        r#"{inner}
(func $resume {RESUME}
    (canon lift (core func $i "resume-tool") (memory (core memory $i "memory")) (realloc (core func $i "realloc"))))
{shim}
(instance $restart (instantiate $restart-shim {args} (with "resume" (func $resume))))
(export "longshore:tool/restart@0.1.0" (instance $restart))
)"#
    )
}

/// Gives the types their names, without which a function that uses them cannot be exported.
fn shim() -> String {
    shim_of(
        "shim",
        &[("list-tools", "list", LIST), ("call-tool", "call", CALL)],
    )
}

/// Such a component, with these functions: their names outside, their names here, their types.
fn shim_of(name: &str, functions: &[(&str, &str, &str)]) -> String {
    let imports: String = TYPES
        .iter()
        .map(|(name, shape)| {
            format!(
                "(type $in-{name} {shape})\n(import \"{name}\" (type ${name} (eq $in-{name})))\n"
            )
        })
        .collect();
    // In terms of one another's new names, so that the instance stands by itself.
    let exports: String = TYPES
        .iter()
        .map(|(name, shape)| {
            let shape = shape.replace('$', "$out-");
            format!(
                "(type $def-{name} {shape})\n(export $out-{name} \"{name}\" (type $def-{name}))\n"
            )
        })
        .collect();
    let functions: String = functions
        .iter()
        .map(|(outer, inner, shape)| {
            let out = shape.replace('$', "$out-");
            format!(
                "(import \"{inner}\" (func ${inner} {shape}))\n(export \"{outer}\" (func ${inner}) (func {out}))\n"
            )
        })
        .collect();
    format!("(component ${name}\n{imports}\n{exports}\n{functions})")
}

/// Of `task`: what can be imported without types. `set-status` needs a memory that exists before the
/// guest's own, so that such guests keep their text in one that they share.
pub(super) const SLEEPY: Guest<'static> = Guest {
    imports: r#"
        (import "longshore:tool/task@0.1.0" (instance $task
            (export "sleep" (func (param "ms" u64) (result bool)))
            (export "is-cancelled" (func (result bool)))))
        (core func $sleep (canon lower (func $task "sleep")))
        (core func $is-cancelled (canon lower (func $task "is-cancelled")))"#,
    with: r#"(with "task" (instance
        (export "sleep" (func $sleep))
        (export "is-cancelled" (func $is-cancelled))))"#,
    core_imports: r#"
        (import "task" "sleep" (func $sleep (param i64) (result i32)))
        (import "task" "is-cancelled" (func $is-cancelled (result i32)))"#,
    core: r#"(func $digit (param i32) (result i32)
        (i32.store8 (i32.const 32) (i32.add (i32.const 48) (local.get 0)))
        (call $ok (i32.const 32) (i32.const 1)))"#,
    memory: "1",
    list: "(i32.const 1024)",
    call: "(call $digit (call $sleep (i64.const -1)))",
};

/// Computes for ever.
pub(super) const SPIN: Guest<'static> = Guest {
    imports: "",
    with: "",
    core_imports: "",
    core: "",
    memory: "1",
    list: "(i32.const 1024)",
    call: "(loop (br 0)) (unreachable)",
};
