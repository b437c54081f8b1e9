//! What may happen to a task, and what follows.

use std::collections::BTreeMap;

use crate::id::{Json, Millis};
use crate::question::{Fate, Question};
use crate::task::{Failure, Progress, State, Task, Usage};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The guest said how it is doing; the newest counts.
    StatusChanged {
        /// A new line, or none to keep the old one.
        message: Option<String>,
        /// New numbers, or none to keep the old ones.
        progress: Option<Progress>,
    },
    /// The guest asked, all of it at once, under keys that this task has never used.
    Asked(Vec<NewQuestion>),
    /// Somebody answered; keys that wait for nothing are ignored.
    Answered(BTreeMap<String, Json>),
    /// The guest stopped waiting for what is still open.
    Withdrawn,
    /// Somebody wants it to stop.
    CancelRequested,
    /// The run ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// What all its runs have used.
        usage: Usage,
    },
}

/// One question before it is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct NewQuestion {
    /// Its key on the wire.
    pub key: String,
    /// The request as the client sees it.
    pub request: Json,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// With a result, which may say that the tool failed.
    Completed(Json),
    /// Without one.
    Failed(Failure),
    /// Because it was told to, with a line that says more if there is more to say.
    Cancelled(Option<String>),
}

/// A task after an event, and what must be done once it is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The next row.
    pub task: Task,
    /// What to do after the commit, and not before.
    pub effects: Vec<Effect>,
}

/// What must be done after the commit that justifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Every question is settled: the run goes on.
    Resume,
    /// Its run is to be told that it is cancelled.
    Cancel,
    /// Those who watch it are told.
    Notify,
}

/// Why an event changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The task has ended, and that never changes.
    #[error("the task has ended")]
    Ended,
    /// The event says nothing new.
    #[error("nothing changes")]
    Nothing,
    /// A task that is being cancelled asks nothing any more.
    #[error("the task is being cancelled")]
    Cancelling,
    /// The questions break a rule that the run must keep: a key was used before, or twice, or the
    /// list is empty, or earlier questions are still open.
    #[error("the questions cannot be asked now")]
    BadQuestions,
}

impl Task {
    /// The task after `event`, or why nothing changes.
    pub fn apply(&self, event: Event, now: Millis) -> Result<Step, Refused> {
        if self.state.name().is_final() {
            return Err(Refused::Ended);
        }
        let mut task = self.clone();
        let effects = match event {
            Event::StatusChanged { message, progress } => task.change_status(message, progress)?,
            Event::Asked(questions) => task.ask(questions)?,
            Event::Answered(answers) => task.answer(answers)?,
            Event::Withdrawn => task.withdraw()?,
            Event::CancelRequested => task.request_cancel(now)?,
            Event::Ended { outcome, usage } => task.end(outcome, usage, now),
        };
        task.version += 1;
        // A clock that was set back must not make a later change look earlier.
        task.updated_at = task.updated_at.max(now);
        Ok(Step { task, effects })
    }

    fn change_status(
        &mut self,
        message: Option<String>,
        progress: Option<Progress>,
    ) -> Result<Vec<Effect>, Refused> {
        let before = self.status.clone();
        if message.is_some() {
            self.status.message = message;
        }
        if let Some(new) = progress {
            let grows = self.status.progress.is_none_or(|old| new.done > old.done);
            if new.done.is_finite() && new.total.is_none_or(f64::is_finite) && grows {
                self.status.progress = Some(new);
            }
        }
        if self.status == before {
            Err(Refused::Nothing)
        } else {
            Ok(vec![Effect::Notify])
        }
    }

    fn ask(&mut self, questions: Vec<NewQuestion>) -> Result<Vec<Effect>, Refused> {
        if self.cancel_requested_at.is_some() {
            return Err(Refused::Cancelling);
        }
        if questions.is_empty() || self.state != State::Working {
            return Err(Refused::BadQuestions);
        }
        for NewQuestion { key, request } in questions {
            if self.questions.iter().any(|asked| asked.key == key) {
                return Err(Refused::BadQuestions);
            }
            self.questions.push(Question {
                key,
                request,
                fate: Fate::Open,
            });
        }
        self.state = State::InputRequired;
        Ok(vec![Effect::Notify])
    }

    fn answer(&mut self, mut answers: BTreeMap<String, Json>) -> Result<Vec<Effect>, Refused> {
        let mut taken = false;
        for question in &mut self.questions {
            if question.fate != Fate::Open {
                continue;
            }
            if let Some(answer) = answers.remove(&question.key) {
                question.fate = Fate::Answered(answer);
                taken = true;
            }
        }
        if !taken {
            return Err(Refused::Nothing);
        }
        if self.open_questions().next().is_some() {
            return Ok(vec![Effect::Notify]);
        }
        self.state = State::Working;
        Ok(vec![Effect::Resume, Effect::Notify])
    }

    fn withdraw(&mut self) -> Result<Vec<Effect>, Refused> {
        if self.state != State::InputRequired {
            return Err(Refused::Nothing);
        }
        self.withdraw_open();
        Ok(vec![Effect::Notify])
    }

    fn request_cancel(&mut self, now: Millis) -> Result<Vec<Effect>, Refused> {
        if self.cancel_requested_at.is_some() {
            return Err(Refused::Nothing);
        }
        self.cancel_requested_at = Some(now);
        // What is still open will never be used: the run sees the cancel instead of an answer.
        self.withdraw_open();
        Ok(vec![Effect::Cancel, Effect::Notify])
    }

    fn withdraw_open(&mut self) {
        for question in &mut self.questions {
            if question.fate == Fate::Open {
                question.fate = Fate::Withdrawn;
            }
        }
        self.state = State::Working;
    }

    fn end(&mut self, outcome: Outcome, usage: Usage, now: Millis) -> Vec<Effect> {
        let at = now.max(self.created_at);
        self.state = match outcome {
            Outcome::Completed(result) => State::Completed { at, result },
            Outcome::Failed(failure) => {
                self.status.message = Some(failure.message.clone());
                State::Failed { at, failure }
            }
            Outcome::Cancelled(message) => {
                if message.is_some() {
                    self.status.message = message;
                }
                State::Cancelled { at }
            }
        };
        self.usage = usage;
        self.lease.owner = None;
        self.wake_at = None;
        self.questions.clear();
        vec![Effect::Notify]
    }
}
