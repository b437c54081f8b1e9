//! The rules: what each event does to a task, or why it does nothing.
//!
//! A task that works and that nobody owns always has a time at which somebody goes on with it, unless it
//! was set aside: whatever takes away its owner, or what it waits for, sets one.

use std::collections::BTreeMap;

use crate::event::{Effect, Event, NewQuestion, Outcome, Refused, Step};
use crate::id::{Json, Millis, NodeId};
use crate::question::{Fate, OF_HOST, Question};
use crate::task::{Progress, Reach, State, Task, Trust, Usage};

impl Task {
    /// The task after `event`, or why nothing changes.
    pub fn apply(&self, event: Event, now: Millis) -> Result<Step, Refused> {
        if self.state.name().is_final() {
            return Err(Refused::Ended);
        }
        let mut task = self.clone();
        let effects = match event {
            Event::StatusChanged { message, progress } => task.change_status(message, progress)?,
            Event::Asked { questions, wake_at } => task.ask(questions, wake_at)?,
            Event::Answered(answers) => task.answer(answers, now)?,
            Event::Withdrawn => task.withdraw(now)?,
            Event::CancelRequested => task.request_cancel(now)?,
            Event::Claimed { owner } => task.claim(owner)?,
            Event::Journalled { usage } => task.journal(usage)?,
            Event::Used { usage } => task.note_used(usage)?,
            Event::Parked { wake_at, usage } => task.park(wake_at, usage, now)?,
            Event::Released { usage } => task.release(usage, now)?,
            Event::Died => task.die(now)?,
            Event::Readmitted => task.readmit(now)?,
            Event::Shown { retention_ms } => task.show(retention_ms)?,
            Event::Ended { outcome, usage } => task.end(outcome, usage, now),
        };
        task.version += 1;
        // Who runs a task, and how often that changes, is nobody's business outside.
        if effects.contains(&Effect::Notify) {
            // A clock that was set back must not make a later change look earlier.
            task.updated_at = task.updated_at.max(now);
        }
        Ok(Step { task, effects })
    }

    fn change_status(
        &mut self,
        message: Option<String>,
        progress: Option<Progress>,
    ) -> Result<Vec<Effect>, Refused> {
        self.must_run()?;
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
            return Err(Refused::Nothing);
        }
        self.stalls = 0;
        Ok(vec![Effect::Notify])
    }

    // Questions

    fn ask(
        &mut self,
        questions: Vec<NewQuestion>,
        wake_at: Option<Millis>,
    ) -> Result<Vec<Effect>, Refused> {
        self.must_run()?;
        if self.cancel_requested_at.is_some() {
            return Err(Refused::Cancelling);
        }
        if questions.is_empty() || self.state != State::Working || self.open().next().is_some() {
            return Err(Refused::BadQuestions);
        }
        let is_for_client = questions.iter().any(|new| !new.key.starts_with(OF_HOST));
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
        self.stalls = 0;
        if !is_for_client {
            // Nobody is asked: it works, as far as anybody sees.
            return Ok(Vec::new());
        }
        self.state = State::InputRequired;
        self.wake_at = wake_at;
        Ok(vec![Effect::Notify])
    }

    fn answer(
        &mut self,
        mut answers: BTreeMap<String, Json>,
        now: Millis,
    ) -> Result<Vec<Effect>, Refused> {
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
        if self.open().next().is_some() {
            return Ok(vec![Effect::Notify]);
        }
        let was_for_client = self.state == State::InputRequired;
        self.go_on(now);
        Ok(if was_for_client {
            vec![Effect::Resume, Effect::Notify]
        } else {
            vec![Effect::Resume]
        })
    }

    fn withdraw(&mut self, now: Millis) -> Result<Vec<Effect>, Refused> {
        if self.open().next().is_none() {
            return Err(Refused::Nothing);
        }
        let was_for_client = self.state == State::InputRequired;
        self.withdraw_open();
        self.go_on(now);
        Ok(was_for_client
            .then_some(Effect::Notify)
            .into_iter()
            .collect())
    }

    fn request_cancel(&mut self, now: Millis) -> Result<Vec<Effect>, Refused> {
        if self.cancel_requested_at.is_some() {
            return Err(Refused::Nothing);
        }
        self.cancel_requested_at = Some(now);
        // What is still open will never be used: the run sees the cancel instead of an answer.
        self.withdraw_open();
        self.go_on(now);
        Ok(vec![Effect::Cancel, Effect::Notify])
    }

    fn withdraw_open(&mut self) {
        for question in &mut self.questions {
            if question.fate == Fate::Open {
                question.fate = Fate::Withdrawn;
            }
        }
    }

    /// It waits for nothing any more: its run sees that by itself, or somebody has to bring it back.
    fn go_on(&mut self, now: Millis) {
        self.state = State::Working;
        self.wake_at = self.lease.owner.is_none().then_some(now);
    }

    // Owners

    fn claim(&mut self, owner: NodeId) -> Result<Vec<Effect>, Refused> {
        if self.trust() == Trust::Quarantined {
            return Err(Refused::Quarantined);
        }
        if self.lease.owner.as_ref() == Some(&owner) {
            return Err(Refused::Owned);
        }
        self.lease.epoch += 1;
        self.lease.owner = Some(owner);
        // A question's wait ends at the same time, whoever sees to it.
        if self.state != State::InputRequired {
            self.wake_at = None;
        }
        Ok(Vec::new())
    }

    fn journal(&mut self, usage: Usage) -> Result<Vec<Effect>, Refused> {
        self.must_run()?;
        self.use_up(usage);
        self.stalls = 0;
        Ok(Vec::new())
    }

    /// No progress: whoever goes on does it again.
    fn note_used(&mut self, usage: Usage) -> Result<Vec<Effect>, Refused> {
        self.must_run()?;
        let before = self.usage;
        self.use_up(usage);
        if self.usage == before {
            return Err(Refused::Nothing);
        }
        Ok(Vec::new())
    }

    /// A run that repeats what an earlier one did has not come as far yet.
    fn use_up(&mut self, usage: Usage) {
        self.usage = self.usage.or_more(usage);
    }

    fn park(
        &mut self,
        wake_at: Option<Millis>,
        usage: Usage,
        now: Millis,
    ) -> Result<Vec<Effect>, Refused> {
        self.let_go()?;
        self.use_up(usage);
        self.stalls = 0;
        // What it waited for may have come at the same moment: then it goes on at once.
        let is_due = self.cancel_requested_at.is_some()
            || (self.state == State::Working && wake_at.is_none());
        self.wake_at = if is_due { Some(now) } else { wake_at };
        Ok(Vec::new())
    }

    fn release(&mut self, usage: Usage, now: Millis) -> Result<Vec<Effect>, Refused> {
        self.let_go()?;
        self.use_up(usage);
        if self.state == State::Working {
            self.wake_at = Some(now);
        }
        Ok(Vec::new())
    }

    fn die(&mut self, now: Millis) -> Result<Vec<Effect>, Refused> {
        self.let_go()?;
        // A guest that waits for an answer is on no thread, so the death was not its doing.
        if self.state == State::InputRequired {
            return Ok(Vec::new());
        }
        self.stalls = self.stalls.saturating_add(1);
        if self.trust() != Trust::Quarantined {
            self.wake_at = Some(now);
            return Ok(Vec::new());
        }
        // Nobody runs it any more; but who wanted it to stop still does, and that takes no run.
        self.wake_at = self.cancel_requested_at.map(|_| now);
        self.status.message = Some(format!(
            "set aside after the server died {} times while this ran; `longshore tasks resume {}` tries again",
            self.stalls, self.id
        ));
        Ok(vec![Effect::Notify])
    }

    fn readmit(&mut self, now: Millis) -> Result<Vec<Effect>, Refused> {
        if self.trust() != Trust::Quarantined {
            return Err(Refused::Nothing);
        }
        // The line that says that it was set aside is not true any more.
        self.status.message = Some(format!(
            "tried again after the server died {} times while this ran",
            self.stalls
        ));
        self.stalls = 0;
        self.wake_at = Some(now);
        Ok(vec![Effect::Resume, Effect::Notify])
    }

    fn show(&mut self, retention_ms: u64) -> Result<Vec<Effect>, Refused> {
        if self.reach == Reach::Id {
            return Err(Refused::Nothing);
        }
        self.reach = Reach::Id;
        self.retention_ms = retention_ms;
        Ok(vec![Effect::Notify])
    }

    fn let_go(&mut self) -> Result<(), Refused> {
        self.must_run()?;
        self.lease.owner = None;
        Ok(())
    }

    /// What only a run can say is not taken from one that was put away or given up for dead: it would
    /// bring back a task that was set aside.
    fn must_run(&self) -> Result<(), Refused> {
        match self.lease.owner {
            Some(_) => Ok(()),
            None => Err(Refused::Unowned),
        }
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
        self.use_up(usage);
        self.lease.owner = None;
        self.wake_at = None;
        self.stalls = 0;
        if !self.keeps_questions() {
            self.questions.clear();
        }
        vec![Effect::Notify]
    }
}
