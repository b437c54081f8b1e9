//! The line between a guest and everything else.
//!
//! Every import call passes [`World::begin`], which counts it. What a guest can see of the outside is a
//! function of what the world was made from and of its records so far: where a record says what the guest
//! saw at this call, that is what it sees again; where the records are used up, the outside is asked and
//! its answer recorded. That step from one to the other is made here and nowhere else.

mod fault;
mod replay;
#[cfg(test)]
mod tests;

pub use fault::{Divergence, Fault, Misuse};

use self::replay::Replay;
use crate::call::{Answer, AskError, Question, Request};
use crate::http::{Outcome, Sent};
use crate::import::Import;
use crate::path::Path;
use crate::random::Stream;
use crate::record::{Bytes, Position, Record, Shown, What};
use crate::tape::{Tape, Total};
use crate::values;

/// What a world is made from: the same for every process that runs the same call.
#[derive(Clone)]
pub struct Origin {
    /// When the call was made, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// The key of its random numbers. Nobody else may know it.
    pub random_key: [u8; 32],
    /// The most that may be recorded.
    pub most: Total,
}

/// One run's view of the outside.
#[derive(Debug)]
pub struct World {
    created_at_ms: u64,
    most: Total,
    calls: u64,
    import: Import,
    path: Path,
    clock: u64,
    random: Stream,
    insecure: Stream,
    cancelled: bool,
    asked: u64,
    progress: Option<f64>,
    step: Option<Step>,
    /// What the guest said of itself since a status was last recorded.
    said: Shown,
    replay: Replay,
    tape: Tape,
}

#[derive(Debug)]
struct Step {
    name: String,
    began: u64,
}

/// What to do when the records are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Ask the outside.
    Live,
    /// End with [`Fault::RecordsEnd`]: this is only a repetition.
    Stop,
}

/// Where to begin.
#[derive(Debug, Default)]
pub struct Begin {
    /// Where the guest stood at its restart point, and after how many calls; at its start if none.
    pub from: Option<(u64, Position)>,
    /// What it saw and let out after that.
    pub records: Vec<Record>,
}

/// How a wait was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time had come.
    Time,
    /// The guest saw that it is cancelled.
    Cancelled,
    /// Something came of an exchange, or is to be decided about one: [`World::comes`] and [`World::asks_here`] say what.
    Exchange,
}

/// A question that was put, or is to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// This is what came back.
    Answered(Result<Vec<Answer>, AskError>),
    /// The outside is to be asked, until then by the guest's clock.
    Live {
        /// When the guest stops waiting.
        until: Option<u64>,
        /// Whether an earlier process has put the question already.
        before: bool,
    },
}

/// Before the first call.
const START: Import = Import::new("start");

impl World {
    /// A world that begins there and records on that tape.
    #[must_use]
    pub fn new(origin: &Origin, begin: Begin, after: After, tape: Tape) -> Self {
        let mut random = Stream::new(&origin.random_key, "random");
        let mut insecure = Stream::new(&origin.random_key, "insecure");
        let start = Position {
            path: Path::default().value(),
            ..Position::default()
        };
        let (calls, from) = begin.from.unwrap_or((0, start));
        random.set_position(from.random);
        insecure.set_position(from.insecure);
        for record in &begin.records {
            tape.count(record);
        }
        tape.set_calls(calls);
        tape.set_replaying(!begin.records.is_empty());
        Self {
            created_at_ms: origin.created_at_ms,
            most: origin.most,
            calls,
            import: START,
            path: Path::restored(from.path),
            clock: from.clock,
            random,
            insecure,
            cancelled: from.cancelled,
            asked: from.asked,
            progress: from.progress,
            step: None,
            said: Shown::default(),
            replay: Replay::new(begin.records, after),
            tape,
        }
    }

    /// Calls begun so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether records are left to be repeated.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        !self.replay.is_over()
    }

    /// Questions that the guest has asked, also before the restart point that it began at.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// When the call was made, in milliseconds since 1970.
    #[must_use]
    pub fn created_at_ms(&self) -> u64 {
        self.created_at_ms
    }

    /// Counts a call of a function of WASI. What it passes is taken into the guest's path by the two
    /// numbers; [`World::passed`] takes bytes.
    pub fn begin(&mut self, import: Import, first: u64, second: u64) -> Result<(), Fault> {
        self.count(import)?;
        self.path.mix(first);
        self.path.mix(second);
        Ok(())
    }

    /// Takes what the current call passes into the guest's path.
    pub fn passed(&mut self, bytes: &[u8]) {
        self.path.mix_bytes(bytes);
    }

    /// Counts a call of a function of `longshore:tool`, and keeps the rules of steps.
    pub fn begin_request(&mut self, request: &Request<'_>) -> Result<(), Fault> {
        self.count(request.import())?;
        request.mix_into(&mut self.path);
        let open = self.step.as_ref().map(|step| &step.name);
        Err(Fault::Misuse(match (request, open) {
            (Request::StepBegin(_), Some(open)) => Misuse::NestedStep { open: open.clone() },
            (Request::Ask { .. } | Request::Poll { .. }, Some(open)) => {
                Misuse::AskInStep { open: open.clone() }
            }
            (Request::Checkpoint(_), Some(open)) => Misuse::CheckpointInStep { open: open.clone() },
            (Request::StepEnd { name, .. }, open) if open.map(String::as_str) != Some(*name) => {
                Misuse::UnmatchedStepEnd {
                    name: (*name).to_owned(),
                }
            }
            _ => return Ok(()),
        }))
    }

    fn count(&mut self, import: Import) -> Result<(), Fault> {
        self.calls += 1;
        self.import = import;
        self.path.mix(import.code());
        self.tape.set_calls(self.calls);
        // Whatever stands at an earlier call was seen there before and is not asked for now.
        match self.replay.next() {
            Some(record) if record.call < self.calls => Err(self.diverged(&format!(
                "what was recorded at call {} ({}) was not asked for",
                record.call,
                record.what.name()
            ))),
            _ => Ok(()),
        }
    }

    // What the guest sees

    /// The guest's clock now, in milliseconds since its call was made, and at most once in a call. The
    /// real one is looked at only if it is not a repetition.
    pub fn clock(&mut self, real_ms: impl FnOnce() -> u64) -> Result<u64, Fault> {
        if let Some(What::Clock(ms)) = self.replay.at(self.calls) {
            self.clock = *ms;
            self.took();
            return Ok(self.clock);
        }
        if self.go_live()? {
            let real = real_ms();
            // It never goes back, whatever the machine's clock does.
            if real > self.clock {
                self.clock = real;
                self.push(What::Clock(real))?;
            }
        }
        Ok(self.clock)
    }

    /// The guest's clock as it last saw it.
    #[must_use]
    pub fn clock_seen(&self) -> u64 {
        self.clock
    }

    /// Whether the guest sees that it is cancelled.
    pub fn cancelled(&mut self, really: impl FnOnce() -> bool) -> Result<bool, Fault> {
        if self.cancelled {
            return Ok(true);
        }
        if let Some(What::Cancelled) = self.replay.at(self.calls) {
            self.cancelled = true;
            self.took();
            return Ok(true);
        }
        if self.go_live()? && really() {
            self.cancelled = true;
            self.push(What::Cancelled)?;
        }
        Ok(self.cancelled)
    }

    /// Random bytes that nobody can guess.
    pub fn random(&mut self, bytes: &mut [u8]) {
        self.random.fill(bytes);
    }

    /// Random bytes for hash tables and the like.
    pub fn insecure_random(&mut self, bytes: &mut [u8]) {
        self.insecure.fill(bytes);
    }

    /// The guest begins to wait. None if it really has to; then comes [`World::woke`].
    pub fn wait(&mut self, until: u64) -> Result<Option<Wake>, Fault> {
        let path = self.path.stamp();
        match self.replay.at(self.calls) {
            Some(What::Waited {
                until: recorded,
                path: stamp,
            }) => {
                if (*recorded, *stamp) != (until, path) {
                    return Err(self.diverged("it waits for something else"));
                }
                self.took();
            }
            _ => {
                if !self.go_live()? {
                    return Err(self.diverged("it waits where it did not"));
                }
                self.push(What::Waited { until, path })?;
                return Ok(None);
            }
        }
        let wake = match self.replay.at(self.calls) {
            Some(What::Woke(ms)) => {
                self.clock = *ms;
                Wake::Time
            }
            Some(What::Cancelled) => {
                self.cancelled = true;
                Wake::Cancelled
            }
            Some(What::Came { .. } | What::Asked { .. }) => return Ok(Some(Wake::Exchange)),
            _ if self.go_live()? => return Ok(None),
            _ => return Err(self.diverged("its wait has no end")),
        };
        self.took();
        Ok(Some(wake))
    }

    /// The wait is over, and the real clock stands there.
    pub fn woke(&mut self, wake: Wake, real_ms: u64) -> Result<(), Fault> {
        match wake {
            Wake::Time => {
                self.clock = self.clock.max(real_ms);
                self.push(What::Woke(self.clock))
            }
            Wake::Cancelled => {
                self.cancelled = true;
                self.push(What::Cancelled)
            }
            // What came says so itself.
            Wake::Exchange => Ok(()),
        }
    }

    /// The guest asks. Its clock was looked at before.
    pub fn ask(&mut self, questions: &[Question], wait_ms: Option<u64>) -> Result<Asked, Fault> {
        self.asked += questions.len() as u64;
        let path = self.path.stamp();
        let until = wait_ms.map(|ms| self.clock.saturating_add(ms));
        match self.replay.at(self.calls) {
            Some(What::Asked {
                questions: recorded,
                until: recorded_until,
                path: stamp,
            }) => {
                if (recorded.as_slice(), *recorded_until, *stamp) != (questions, until, path) {
                    return Err(self.diverged("it asks something else"));
                }
                self.took();
            }
            _ => {
                if !self.go_live()? {
                    return Err(self.diverged("it asks where it did not"));
                }
                let questions = questions.to_vec();
                self.push(What::Asked {
                    questions,
                    until,
                    path,
                })?;
                return Ok(Asked::Live {
                    until,
                    before: false,
                });
            }
        }
        match self.replay.at(self.calls) {
            Some(What::Answered(answers)) => {
                let answers = answers.clone();
                self.took();
                Ok(Asked::Answered(answers))
            }
            _ if self.go_live()? => Ok(Asked::Live {
                until,
                before: true,
            }),
            _ => Err(self.diverged("its question has no answer")),
        }
    }

    /// What came back to a question that was asked live.
    pub fn answered(&mut self, answers: &Result<Vec<Answer>, AskError>) -> Result<(), Fault> {
        self.push(What::Answered(answers.clone()))
    }

    /// What the guest sees next of its exchanges in this call, as far as that is recorded.
    pub fn comes(&mut self) -> Option<(u64, Outcome)> {
        let Some(What::Came { exchange, outcome }) = self.replay.at(self.calls) else {
            return None;
        };
        let came = (*exchange, outcome.clone());
        self.took();
        Some(came)
    }

    /// Something has come of an exchange, and the guest sees it in this call.
    pub fn came(&mut self, exchange: u64, outcome: &Outcome) -> Result<(), Fault> {
        let outcome = outcome.clone();
        self.push(What::Came { exchange, outcome })
    }

    /// So many requests that may change something are under way in this process.
    pub fn note_writes(&self, under_way: u64) {
        self.tape.set_writes(under_way);
    }

    /// The key of what was asked in this call, if the records say that something was.
    #[must_use]
    pub fn asks_here(&self) -> Option<&str> {
        match self.replay.at(self.calls) {
            Some(What::Asked { questions, .. }) => questions.first().map(|first| &*first.key),
            _ => None,
        }
    }

    /// Whether the outside is to be asked for what is not recorded.
    pub fn is_live(&self) -> Result<bool, Fault> {
        self.go_live()
    }

    // What the guest lets out

    /// A request is complete. Whether an earlier process has got so far with it, and may have sent it.
    pub fn sends(&mut self, sent: &Sent) -> Result<bool, Fault> {
        let path = self.path.stamp();
        match self.replay.at(self.calls) {
            Some(What::Sent {
                sent: recorded,
                path: stamp,
            }) => {
                if (recorded, *stamp) != (sent, path) {
                    return Err(self.diverged("it sends another request"));
                }
                self.took();
                Ok(true)
            }
            _ => {
                if !self.go_live()? {
                    return Err(self.diverged("it sends a request where it did not"));
                }
                let sent = sent.clone();
                self.push(What::Sent { sent, path })?;
                Ok(false)
            }
        }
    }

    /// The guest changes what its component keeps. What came of it, if that is recorded; else it is to be done, once
    /// this is kept, and then comes [`World::found`].
    pub fn changes(&mut self) -> Result<Option<values::Outcome>, Fault> {
        let path = self.path.stamp();
        match self.replay.at(self.calls) {
            Some(What::Changes { path: stamp }) => {
                if *stamp != path {
                    return Err(self.diverged("it changes something else"));
                }
                self.took();
                // The process may have died with it done.
                self.finds()
            }
            _ => {
                if !self.go_live()? {
                    return Err(self.diverged("it changes something where it did not"));
                }
                self.push(What::Changes { path })?;
                Ok(None)
            }
        }
    }

    /// What the guest sees of what its component keeps, if that is recorded; else it is to be looked up, and then comes
    /// [`World::found`].
    pub fn finds(&mut self) -> Result<Option<values::Outcome>, Fault> {
        let path = self.path.stamp();
        match self.replay.at(self.calls) {
            Some(What::Found {
                outcome,
                path: stamp,
            }) => {
                if *stamp != path {
                    return Err(self.diverged("it looks for something else"));
                }
                let outcome = outcome.clone();
                self.took();
                Ok(Some(outcome))
            }
            _ if self.go_live()? => Ok(None),
            _ => Err(self.diverged("it looks for something where it did not")),
        }
    }

    /// What was looked up or done live.
    pub fn found(&mut self, outcome: &values::Outcome) -> Result<(), Fault> {
        let (outcome, path) = (outcome.clone(), self.path.stamp());
        self.push(What::Found { outcome, path })
    }

    /// Whether the guest is further than it ever said that it was, also before the restart point that it began at; if so
    /// it is that far from now on. Whatever is not further is not let out.
    pub fn comes_further(&mut self, done: f64) -> bool {
        let is_more = done.is_finite() && self.progress.is_none_or(|before| done > before);
        if is_more {
            self.progress = Some(done);
        }
        is_more
    }

    /// The guest says how it is doing.
    pub fn show(&mut self, shown: Shown) -> Result<(), Fault> {
        let path = self.path.stamp();
        if self.is_replaying() {
            if shown.message.is_some() {
                self.said.message = shown.message;
            }
            if shown.progress.is_some() {
                self.said.progress = shown.progress;
            }
            let Some(What::Shown {
                shown: recorded,
                path: stamp,
            }) = self.replay.at(self.calls)
            else {
                // Nobody saw it: something newer came in time.
                return Ok(());
            };
            let same = *stamp == path
                && (recorded.message.is_none() || recorded.message == self.said.message)
                && (recorded.progress.is_none() || recorded.progress == self.said.progress);
            if !same {
                return Err(self.diverged("it says something else of itself"));
            }
            self.said = Shown::default();
            self.took();
            return Ok(());
        }
        self.go_live()?;
        let total = self.tape.push_shown(self.calls, shown, path);
        self.check(total)
    }

    /// The guest prints or logs. Nothing of it is recorded, but that it came so far: what it looked at before has to look
    /// the same to whoever repeats it, once others have seen this.
    pub fn says(&mut self) -> Result<(), Fault> {
        self.show(Shown::default())
    }

    /// Whether something may be told to the outside that is not recorded: it was told before if this is a
    /// repetition.
    #[must_use]
    pub fn may_tell(&self) -> bool {
        self.replay.is_over() && self.replay.after() == After::Live
    }

    /// Begins a step. What it left if it was done before; the guest then stands behind its end.
    pub fn step_begin(&mut self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        let Some(done) = self.replay.step(self.calls) else {
            self.step = Some(Step {
                name: name.to_owned(),
                began: self.calls,
            });
            return Ok(None);
        };
        let Record {
            call,
            what:
                What::Step {
                    name: recorded,
                    value,
                    at,
                    ..
                },
        } = done
        else {
            unreachable!("the search finds steps");
        };
        if recorded != name {
            return Err(self.diverged(&format!("this step was {recorded:?}")));
        }
        self.calls = call;
        self.clock = at.clock;
        self.random.set_position(at.random);
        self.insecure.set_position(at.insecure);
        self.cancelled = at.cancelled;
        self.progress = at.progress;
        self.path = Path::restored(at.path);
        self.said = Shown::default();
        self.tape.set_calls(call);
        self.note_live();
        Ok(Some(value.0))
    }

    /// Ends the open step. It is not done again once its record is kept.
    pub fn step_end(&mut self, value: &[u8]) -> Result<(), Fault> {
        if !self.go_live()? {
            return Err(self.diverged("a step ends that was not done"));
        }
        let Step { name, began } = self.step.take().expect("that a step is open was checked");
        // What it saw is of no use any more: whoever goes on begins behind it.
        self.tape.forget_from(began);
        let at = self.position();
        self.push(What::Step {
            began,
            name,
            value: Bytes(value.to_vec()),
            at,
        })
    }

    /// Saves a point to start from.
    pub fn checkpoint(&mut self, state: &[u8]) -> Result<(), Fault> {
        if !self.go_live()? {
            return Err(self.diverged("it saves a restart point where it did not"));
        }
        let at = self.position();
        // What was said before is the row's, and whoever goes on here knows nothing of it.
        self.said = Shown::default();
        self.tape.forget_all();
        self.push(What::Checkpoint {
            state: Bytes(state.to_vec()),
            at,
        })
    }

    /// The guest returned, and this is a hash of what.
    pub fn ended(&mut self, result: [u8; 16]) -> Result<(), Fault> {
        let path = self.path.stamp();
        if let Some(What::Ended {
            result: recorded,
            path: stamp,
        }) = self.replay.at(self.calls)
        {
            if (*recorded, *stamp) != (result, path) {
                return Err(self.diverged("it returns something else"));
            }
            self.took();
            return Ok(());
        }
        if let Some(record) = self.replay.next() {
            let text = format!(
                "it returns before call {} ({})",
                record.call,
                record.what.name()
            );
            return Err(self.diverged(&text));
        }
        self.go_live()?;
        self.push(What::Ended { result, path })
    }

    fn position(&self) -> Position {
        Position {
            clock: self.clock,
            random: self.random.position(),
            insecure: self.insecure.position(),
            cancelled: self.cancelled,
            path: self.path.value(),
            asked: self.asked,
            progress: self.progress,
        }
    }

    /// The record that stands here was used.
    fn took(&mut self) {
        self.replay.took();
        self.note_live();
    }

    fn note_live(&mut self) {
        if self.replay.is_over() {
            self.tape.set_replaying(false);
        }
    }

    /// Whether the outside is to be asked. The only way from the records to it.
    fn go_live(&self) -> Result<bool, Fault> {
        if !self.replay.is_over() {
            return Ok(false);
        }
        match self.replay.after() {
            After::Live => Ok(true),
            After::Stop => Err(Fault::RecordsEnd { call: self.calls }),
        }
    }

    fn push(&mut self, what: What) -> Result<(), Fault> {
        let call = self.calls;
        let total = self.tape.push(Record { call, what });
        self.check(total)
    }

    fn check(&self, total: Total) -> Result<(), Fault> {
        if total.records > self.most.records {
            return Err(Fault::Full {
                what: "records",
                most: self.most.records,
            });
        }
        if total.bytes > self.most.bytes {
            return Err(Fault::Full {
                what: "bytes",
                most: self.most.bytes,
            });
        }
        Ok(())
    }

    fn diverged(&self, how: &str) -> Fault {
        Fault::Diverged(Divergence {
            call: self.calls,
            import: self.import.name(),
            how: how.to_owned(),
        })
    }
}
