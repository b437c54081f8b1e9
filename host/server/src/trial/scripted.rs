//! An outside that is a script: its clock moves as it is looked at, its waits are over at once, its
//! answers come from the question.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use longshore_journal::call::{Answer, AskError, AskKind, LogLevel, Question};
use longshore_journal::http::{Blob, Failure, Outcome, Response};
use longshore_journal::record::{Bytes, Record};
use longshore_journal::tape::Tape;
use longshore_journal::values::{self as kept, Found, Operation};
use longshore_protocol::capability::ClientCapabilities;
use longshore_sandbox::control::Control;
use longshore_sandbox::outside::{Outgoing, Outside, OwnedChange, Said};
use longshore_sandbox::sandbox::Sandbox;
use longshore_tasks::artifacts::{ArtifactId, Put};
use longshore_tasks::values::{Change, Changed, KeyPage, Values};
use parking_lot::Mutex;
use uuid::Uuid;

use super::{Facts, answers};
use crate::run::artifacts;
use crate::run::values::{self, Asked, Leaving};
use crate::wire;

/// What happens to a run.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// Where its clock begins, in milliseconds since the call was made.
    pub(super) starts_at: u64,
    /// What its chances are drawn from.
    pub(super) seed: u64,
    /// It is cancelled in the wait of that number: a question or a sleep.
    pub(super) cancel_at_wait: Option<u64>,
    /// Whether everything is kept at once, as by a server that is often looked at.
    pub(super) eager: bool,
    /// Answers that are given, by key.
    pub(super) answers: std::collections::HashMap<String, serde_json::Value>,
}

impl Schedule {
    /// Of a run that asks nothing of the outside.
    pub(super) fn quiet() -> Self {
        Self {
            starts_at: 0,
            seed: 1,
            cancel_at_wait: None,
            eager: false,
            answers: std::collections::HashMap::new(),
        }
    }
}

/// Something that was changed or left, and the call that did it.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(super) call: u64,
    what: Thing,
}

#[derive(Clone, Debug)]
enum Thing {
    Change(Change, Changed),
    /// Of so many bytes.
    Artifact(u64, Put),
}

/// What a component keeps and its call has left, and how that came about.
#[derive(Default)]
struct Shelf {
    values: Values,
    made: Vec<Made>,
}

impl Shelf {
    /// How many artifacts are left, and of how many bytes.
    fn left(&self) -> (u64, u64) {
        let sizes = self.made.iter().filter_map(|made| match made.what {
            Thing::Artifact(size, Put::Kept) => Some(size),
            Thing::Artifact(..) | Thing::Change(..) => None,
        });
        sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size))
    }
}

/// The outside of one run.
pub(super) struct Scripted {
    facts: Facts,
    capabilities: ClientCapabilities,
    schedule: Schedule,
    tape: Tape,
    sandbox: Sandbox,
    control: Control,
    now: AtomicU64,
    chance: AtomicU64,
    waits: AtomicU64,
    kept: Mutex<Vec<Record>>,
    log: Mutex<Vec<(u64, String)>>,
    shelf: Mutex<Shelf>,
}

impl Scripted {
    pub(super) fn new(
        facts: Facts,
        schedule: Schedule,
        made: Vec<Made>,
        tape: Tape,
        sandbox: Sandbox,
        control: Control,
    ) -> Self {
        let room = values::room(&facts.policy.limits);
        let mut kept = Values::default();
        for made in &made {
            if let Thing::Change(change, _) = &made.what {
                kept.change(change.clone(), room);
            }
        }
        Self {
            capabilities: ClientCapabilities::parse(&facts.capabilities).unwrap_or_default(),
            facts,
            now: AtomicU64::new(schedule.starts_at),
            chance: AtomicU64::new(schedule.seed | 1),
            waits: AtomicU64::new(0),
            kept: Mutex::default(),
            log: Mutex::default(),
            shelf: Mutex::new(Shelf { values: kept, made }),
            schedule,
            tape,
            sandbox,
            control,
        }
    }

    /// All that was recorded, logged and changed.
    pub(super) fn finish(&self) -> (Vec<Record>, Vec<(u64, String)>, Vec<Made>) {
        self.keep();
        (
            std::mem::take(&mut self.kept.lock()),
            std::mem::take(&mut self.log.lock()),
            std::mem::take(&mut self.shelf.lock().made),
        )
    }

    fn keep(&self) {
        self.kept.lock().extend(self.tape.take().records);
    }

    fn keep_eagerly(&self) {
        if self.schedule.eager {
            self.keep();
        }
    }

    /// A number below `below`, the same for the same seed.
    fn draw(&self, below: u64) -> u64 {
        // xorshift: the guest's own clock must not be what decides.
        let mut x = self.chance.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.chance.store(x, Ordering::Relaxed);
        x % below.max(1)
    }

    /// Whether this wait is the one in which the run is cancelled.
    fn cancels_here(&self) -> bool {
        let wait = self.waits.fetch_add(1, Ordering::Relaxed);
        let cancels = self.schedule.cancel_at_wait == Some(wait);
        if cancels {
            self.sandbox.cancel(&self.control);
        }
        cancels
    }

    fn answer(&self, question: &Question) -> Result<Answer, AskError> {
        let asked = wire::asked(&question.ask, &self.capabilities)?;
        if let Some(given) = self.schedule.answers.get(&question.key) {
            return Ok(Answer::Accepted(Some(given.to_string())));
        }
        Ok(answers::to(&question.ask, &asked, self.draw(6)))
    }
}

#[async_trait]
impl Outside for Scripted {
    fn call_id(&self) -> String {
        self.facts.call_id.clone()
    }

    fn deadline_ms(&self) -> Option<u64> {
        Some(self.facts.deadline_ms)
    }

    fn now_ms(&self) -> u64 {
        self.keep_eagerly();
        // Several looks may see the same millisecond, and some wait long for their thread.
        let pace = match self.draw(8) {
            0..=3 => 0,
            4..=6 => 1,
            _ => self.draw(40),
        };
        self.now.fetch_add(pace, Ordering::Relaxed) + pace
    }

    async fn wait_until(&self, ms: u64) {
        self.keep_eagerly();
        if self.cancels_here() {
            // A sleep sees it first; other waits do not look.
            tokio::task::yield_now().await;
        }
        let late = self.draw(3);
        self.now.fetch_max(ms + late, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }

    fn set_status(&self, _message: String) {
        self.keep_eagerly();
    }

    fn report_progress(&self, _done: f64, _total: Option<f64>, _message: Option<String>) {
        self.keep_eagerly();
    }

    fn detach(&self) {}

    fn can_ask(&self, kind: AskKind) -> bool {
        self.capabilities.has(crate::run::capability_of(kind))
    }

    async fn ask(
        &self,
        questions: Vec<Question>,
        until: Option<u64>,
        _before: bool,
    ) -> Result<Vec<Answer>, AskError> {
        // A question is kept before anybody can see it.
        self.keep();
        if self.cancels_here() {
            return std::future::pending().await;
        }
        if let Some(until) = until
            && self.draw(4) == 0
        {
            self.now.fetch_max(until, Ordering::Relaxed);
            return Err(AskError::TimedOut);
        }
        self.now.fetch_add(self.draw(100_000), Ordering::Relaxed);
        questions
            .iter()
            .map(|question| self.answer(question))
            .collect()
    }

    fn log(&self, said: Said, _level: LogLevel, _logger: Option<String>, message: String) {
        self.log.lock().push((said.call, message));
        self.keep_eagerly();
    }

    async fn settle(&self) {
        self.keep();
    }

    /// Nothing leaves a trial: whoever is asked knows nothing and says so, or cannot be reached.
    async fn send(&self, _request: Outgoing) -> Outcome {
        if self.draw(4) == 0 {
            return Err(Failure::Terminated);
        }
        Ok(Response {
            status: 200,
            fields: vec![(
                "content-type".to_owned(),
                Blob::from(b"application/json".to_vec()),
            )],
            body: Blob::from(b"{}".to_vec()),
        })
    }

    async fn values(&self, call: u64, operation: Operation) -> kept::Outcome {
        let limits = &self.facts.policy.limits;
        let mut shelf = self.shelf.lock();
        // Where what is left would be read. Nobody reads it here.
        let id = ArtifactId(Uuid::from_u128(call.into()));
        if let Some(made) = shelf.made.iter().find(|made| made.call == call) {
            return match made.what {
                Thing::Change(_, changed) => values::told(changed),
                Thing::Artifact(_, put) => artifacts::told(id, put),
            };
        }
        let (what, outcome) = match values::sorted(operation) {
            Ok(Asked::Value(key)) => return Ok(Found::Value(shelf.values.value(&key).map(Bytes))),
            Ok(Asked::Keys(which)) => {
                let KeyPage { keys, next } = shelf.values.keys(&which);
                return Ok(Found::Keys { keys, next });
            }
            Ok(Asked::Change(change)) => {
                let changed = shelf.values.change(change.clone(), values::room(limits));
                (Thing::Change(change, changed), values::told(changed))
            }
            Err(Leaving { data, .. }) => {
                let size = data.len() as u64;
                let (count, bytes) = shelf.left();
                let put = artifacts::room(limits).fits(count, bytes, size);
                (Thing::Artifact(size, put), artifacts::told(id, put))
            }
        };
        shelf.made.push(Made { call, what });
        outcome
    }

    fn changed(&self, _change: OwnedChange) {}
}
