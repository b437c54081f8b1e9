//! The sandbox of this very process, for what cannot be seen from outside a server.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use async_trait::async_trait;
use cap_std::fs::Dir;
use longshore_catalog::component::Digest;
use longshore_journal::call::{Answer, AskError, AskKind, LogLevel, Question};
use longshore_journal::http::{Failure, Outcome};
use longshore_journal::world::Origin;
use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use longshore_sandbox::compile::{ChildCommand, CompileLimits};
use longshore_sandbox::control::Control;
use longshore_sandbox::journal::{Journal, MOST_RECORDED};
use longshore_sandbox::outside::{Outgoing, Outside, OwnedChange, Said};
use longshore_sandbox::precheck::Bounds;
use longshore_sandbox::sandbox::{FirstTurn, Prepared, Run, Sandbox, Settings, WasiKind};
use longshore_sandbox::target::Target;
use tokio::time::Instant;

use crate::guests;

/// Slots for instances, where it makes no difference how many there are.
const SLOTS: usize = 64;

/// A sandbox that compiles with the program under test and keeps nothing, with so many slots for instances.
pub fn sandbox(guest_threads: usize, slots: usize, wasi: WasiKind) -> Result<Sandbox> {
    sandbox_with(guest_threads, slots, wasi, None)
}

/// The same, which keeps native code in that folder.
pub fn sandbox_in(folder: &Path, guest_threads: usize) -> Result<Sandbox> {
    let folder = Dir::open_ambient_dir(folder, cap_std::ambient_authority())?;
    sandbox_with(guest_threads, SLOTS, WasiKind::Virtual, Some(folder))
}

fn sandbox_with(
    guest_threads: usize,
    slots: usize,
    wasi: WasiKind,
    artifacts: Option<Dir>,
) -> Result<Sandbox> {
    Sandbox::new(Settings {
        child: ChildCommand {
            program: guests::longshore(),
            args: vec![OsString::from("compile-child")],
        },
        artifacts,
        artifact_key: [0; 32],
        guest_threads,
        slots,
        bounds: Bounds::default(),
        compile_limits: CompileLimits::default(),
        wasi,
        own_dirs: Vec::new(),
    })
}

/// A component made ready there.
pub async fn prepare(sandbox: &Sandbox, bytes: &[u8]) -> Result<Prepared> {
    sandbox
        .prepare(&Digest::of(bytes).to_string(), Arc::from(bytes))
        .await
        .map_err(|refusal| anyhow!("{refusal:?}"))
}

/// A call of a tool, with the limits of a server that was told nothing, and nobody to talk to.
#[must_use]
pub fn call(prepared: &Prepared, tool: &str, arguments: &str, first_turn: FirstTurn) -> Run {
    Run {
        prepared: prepared.clone(),
        target: Target::Tool {
            name: tool.to_owned(),
            arguments: arguments.to_owned(),
        },
        policy: Policy::nothing(Limits::default()),
        outside: Arc::new(Nobody(Instant::now())),
        control: Control::default(),
        first_turn,
        journal: Journal::fresh(Origin {
            created_at_ms: 1_800_000_000_000,
            random_key: [0; 32],
            most: MOST_RECORDED,
        }),
    }
}

/// Hears everything and says nothing.
struct Nobody(Instant);

#[async_trait]
impl Outside for Nobody {
    fn call_id(&self) -> String {
        "call".to_owned()
    }

    fn deadline_ms(&self) -> Option<u64> {
        None
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn wait_until(&self, ms: u64) {
        tokio::time::sleep_until(self.0 + Duration::from_millis(ms)).await;
    }

    fn set_status(&self, _message: String) {}

    fn report_progress(&self, _done: f64, _total: Option<f64>, _message: Option<String>) {}

    fn detach(&self) {}

    fn can_ask(&self, _kind: AskKind) -> bool {
        false
    }

    async fn ask(
        &self,
        _questions: Vec<Question>,
        _until: Option<u64>,
        _before: bool,
    ) -> Result<Vec<Answer>, AskError> {
        Err(AskError::Unsupported("there is nobody".to_owned()))
    }

    fn log(&self, _said: Said, _level: LogLevel, _logger: Option<String>, _message: String) {}

    async fn settle(&self) {}

    async fn send(&self, _request: Outgoing) -> Outcome {
        Err(Failure::Refused)
    }

    fn changed(&self, _change: OwnedChange) {}
}
