//! An outside whose clock and answers are arranged, so that what a run sees does not depend on the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use longshore_journal::call::{Answer, AskError, AskKind, LogLevel, Question};
use longshore_journal::http::Outcome;
use longshore_journal::world::World;
use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use parking_lot::Mutex;

use super::kit::origin;
use crate::control::Control;
use crate::grants::Grants;
use crate::host::State;
use crate::journal::Journal;
use crate::outside::{Outgoing, Outside, OwnedChange, Said};
use crate::run::Trail;
use crate::sandbox::WasiKind;

/// What a question was asked with.
pub(super) type Asked = (Vec<Question>, Option<u64>, bool);

/// The arranged outside. Its clock moves by `step` whenever it is looked at, and to the end of each wait.
#[derive(Default)]
pub(super) struct Script {
    pub(super) now: AtomicU64,
    pub(super) step: u64,
    /// To every question.
    pub(super) answer: Option<Answer>,
    pub(super) looks: AtomicU64,
    pub(super) waits: Mutex<Vec<u64>>,
    pub(super) asked: Mutex<Vec<Asked>>,
    pub(super) statuses: Mutex<Vec<String>>,
    pub(super) progress: Mutex<Vec<f64>>,
    pub(super) logs: Mutex<Vec<(u64, String)>>,
    pub(super) changes: Mutex<Vec<OwnedChange>>,
    pub(super) detached: AtomicU64,
    pub(super) settled: AtomicU64,
    /// What comes of requests, in their order. Nothing comes of those for which there is none.
    pub(super) outcomes: Mutex<Vec<Outcome>>,
    pub(super) sent: Mutex<Vec<Outgoing>>,
}

impl Script {
    pub(super) fn at(ms: u64) -> Self {
        Self {
            now: ms.into(),
            ..Self::default()
        }
    }

    pub(super) fn set(&self, ms: u64) {
        self.now.store(ms, Ordering::Relaxed);
    }

    /// Whether anybody asked for something that only the outside knows.
    pub(super) fn was_needed(&self) -> bool {
        self.looks.load(Ordering::Relaxed) > 0
            || !self.waits.lock().is_empty()
            || !self.asked.lock().is_empty()
    }
}

#[async_trait]
impl Outside for Script {
    fn call_id(&self) -> String {
        "the-call".into()
    }

    fn deadline_ms(&self) -> Option<u64> {
        Some(3_600_000)
    }

    fn now_ms(&self) -> u64 {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.now.fetch_add(self.step, Ordering::Relaxed)
    }

    async fn wait_until(&self, ms: u64) {
        self.waits.lock().push(ms);
        self.now.fetch_max(ms, Ordering::Relaxed);
    }

    fn set_status(&self, message: String) {
        self.statuses.lock().push(message);
    }

    fn report_progress(&self, done: f64, _total: Option<f64>, _message: Option<String>) {
        self.progress.lock().push(done);
    }

    fn detach(&self) {
        self.detached.fetch_add(1, Ordering::Relaxed);
    }

    fn can_ask(&self, _kind: AskKind) -> bool {
        true
    }

    async fn ask(
        &self,
        questions: Vec<Question>,
        until: Option<u64>,
        before: bool,
    ) -> Result<Vec<Answer>, AskError> {
        let answers = questions.iter().map(|_| self.answer.clone()).collect();
        self.asked.lock().push((questions, until, before));
        match answers {
            Some(answers) => Ok(answers),
            None => std::future::pending().await,
        }
    }

    fn log(&self, said: Said, _level: LogLevel, _logger: Option<String>, message: String) {
        self.logs.lock().push((said.call, message));
    }

    async fn settle(&self) {
        self.settled.fetch_add(1, Ordering::Relaxed);
    }

    async fn send(&self, request: Outgoing) -> Outcome {
        let nth = {
            let mut sent = self.sent.lock();
            sent.push(request);
            sent.len() - 1
        };
        let outcome = self.outcomes.lock().get(nth).cloned();
        match outcome {
            Some(outcome) => outcome,
            None => std::future::pending().await,
        }
    }

    fn changed(&self, change: OwnedChange) {
        self.changes.lock().push(change);
    }
}

/// The host's side of one run, without its guest.
pub(super) struct Scene {
    pub(super) state: State,
    pub(super) script: Arc<Script>,
    pub(super) trail: Trail,
}

/// A run with these limits and nothing else.
pub(super) fn nothing(limits: Limits) -> Grants {
    Grants::of(Policy::nothing(limits), &Arc::default())
}

pub(super) fn scene(limits: &Limits, script: Script, journal: Journal) -> Scene {
    granted(&nothing(limits.clone()), script, journal)
}

pub(super) fn granted(grants: &Grants, script: Script, journal: Journal) -> Scene {
    let script = Arc::new(script);
    let trail = Trail::new(&grants.limits, &journal);
    let world = World::new(&journal.origin, journal.begin, journal.after, journal.tape);
    let state = State::new(
        WasiKind::Virtual,
        grants,
        &trail,
        world,
        journal.printed_through,
        Arc::clone(&script) as _,
        Control::default(),
    )
    .unwrap();
    Scene {
        state,
        script,
        trail,
    }
}

/// That of a call which was made just now.
pub(super) fn new_scene() -> Scene {
    scene(
        &Limits::default(),
        Script::default(),
        Journal::fresh(origin()),
    )
}
