//! Questions: put to the client through the row and answered from it, or put to whoever holds the call.

use std::collections::HashMap;
use std::time::Duration;

use longshore_journal::call::{Answer, AskError, Question};
use longshore_sandbox::control::StopReason;
use longshore_tasks::event::{Event, Refused};
use longshore_tasks::id::{Json, Millis};
use longshore_tasks::question::{Fate, wire_key};
use longshore_tasks::task::{Reach, State};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::row::{Change, Patience};
use super::{Carrier, Driver};
use crate::clock;
use crate::run::Reply;
use crate::run::desk::Asking;
use crate::run::inquiry::{Answers, Inquiry};
use crate::waits::Watch;
use crate::wire::{self, Asked};

/// Questions that are out.
pub(super) struct Waiting {
    asked: Vec<(String, Asked)>,
    /// When the guest stops waiting.
    wake_at: Option<Millis>,
    until: Option<Instant>,
    /// Whether its client has less time than the guest would wait.
    is_round: bool,
    /// What whoever holds the call has answered so far.
    handed_in: HashMap<String, Json>,
    /// What is waited for in this process alone, since there is no row for it.
    watch: Option<Watch>,
    /// What came back, while the run waits for a place to go on.
    answers: Option<Result<Vec<Answer>, AskError>>,
    reply: oneshot::Sender<Result<Vec<Answer>, AskError>>,
}

impl Waiting {
    /// When nobody waits for the answers any more, as long as they have not come.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until.filter(|_| self.answers.is_none())
    }

    pub(super) fn wake_at(&self) -> Option<Millis> {
        self.wake_at
    }

    /// Whether somebody else could go on with it.
    pub(super) fn is_in_row(&self) -> bool {
        self.watch.is_none()
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answers.is_some()
    }
}

impl Driver {
    pub(super) async fn ask(&mut self, asking: Asking) {
        let Asking {
            questions,
            until,
            before,
            reply,
        } = asking;
        if let Some(answers) = self.given(&questions) {
            let _guest_is_gone = reply.send(Ok(answers));
            return;
        }
        let put = if let [wait] = &questions[..]
            && wait.is_wait()
        {
            self.put_wait(wait, until, before).await
        } else if before {
            self.asked_before(&questions).map(|asked| (asked, None))
        } else {
            self.put(&questions, until).await.map(|asked| (asked, None))
        };
        let (asked, watch) = match put {
            Ok(put) => put,
            Err(error) => {
                let _guest_is_gone = reply.send(Err(error));
                return;
            }
        };
        let guest_until = until.map(|ms| self.call.created_at.plus(ms));
        let wake_at = match &self.carrier {
            Carrier::Task(row) if row.state == State::InputRequired => row.wake_at,
            _ => guest_until,
        };
        let until = wake_at.and_then(|at| {
            Instant::now().checked_add(Duration::from_millis(at.since(clock::now())))
        });
        let is_wait = questions.iter().any(Question::is_wait);
        self.waiting = Some(Waiting {
            asked,
            // A row that works says when it goes on at the latest.
            wake_at: wake_at.or(is_wait.then_some(self.call.deadline_at)),
            until,
            is_round: wake_at != guest_until,
            watch,
            handed_in: HashMap::new(),
            answers: None,
            reply,
        });
        if self.has_waited_in_vain() {
            self.settle(Err(AskError::TimedOut));
            return;
        }
        // They may be there: from the time of another process, or because somebody was quick.
        self.deliver_answers();
        if self.waiting.is_some() {
            self.pause();
        }
    }

    /// The answers to all of these, if they came with the call itself: a client may know what a tool asks.
    fn given(&mut self, questions: &[Question]) -> Option<Vec<Answer>> {
        let is_wait = questions.iter().any(Question::is_wait);
        if self.call.given.is_empty() || is_wait || !matches!(self.carrier, Carrier::Held { .. }) {
            return None;
        }
        let mut used = self.used_keys.clone();
        let answers = questions
            .iter()
            .map(|question| {
                let asked = wire::asked(&question.ask, &self.call.caller.capabilities).ok()?;
                let key = wire_key(&question.key, &used);
                let (_, given) = self.call.given.iter().find(|(name, _)| *name == key)?;
                if given.get().len() as u64 > self.call.policy.limits.answer_bytes {
                    return None;
                }
                let taken = asked.check(&key, given).ok()?;
                used.insert(key);
                asked.answer(&taken.0)
            })
            .collect::<Option<Vec<Answer>>>()?;
        self.used_keys = used;
        Some(answers)
    }

    /// Asks the client.
    async fn put(
        &mut self,
        questions: &[Question],
        until: Option<u64>,
    ) -> Result<Vec<(String, Asked)>, AskError> {
        let capabilities = &self.call.caller.capabilities;
        // Kept only if the questions are put: one that is refused uses up no key.
        let mut used = self.used_keys.clone();
        let asked: Vec<(String, Asked)> = questions
            .iter()
            .map(|question| {
                let asked = wire::asked(&question.ask, capabilities)?;
                let key = wire_key(&question.key, &used);
                used.insert(key.clone());
                Ok((key, asked))
            })
            .collect::<Result<_, AskError>>()?;
        self.put_questions(&asked, until).await?;
        self.used_keys = used;
        Ok(asked)
    }

    /// Begins to wait for something that the host sees to: in the row, if there is one that the caller follows, so that
    /// the run need not be there; else here.
    async fn put_wait(
        &mut self,
        wait: &Question,
        until: Option<u64>,
        before: bool,
    ) -> Result<(Vec<(String, Asked)>, Option<Watch>), AskError> {
        let asked = wire::asked(&wait.ask, &self.call.caller.capabilities)?;
        if self.call.can_wait_for_answers() && !before {
            // Where that fails for now it waits here.
            let _is_task = self.become_task().await;
        }
        let is_followed = self.recorder.is_some()
            && matches!(&self.carrier, Carrier::Task(row) if row.reach == Reach::Id);
        if is_followed
            && before
            && let Carrier::Task(row) = &self.carrier
        {
            let mut waits = row.questions.iter().rev().filter(|one| one.is_of_host());
            if let Some(there) = waits.find(|there| *there.request.0 == *asked.request()) {
                let key = there.key.clone();
                self.server.see_to_waits(row);
                return Ok((vec![(key, asked)], None));
            }
        }
        let key = wire_key(&wait.key, &self.used_keys);
        self.used_keys.insert(key.clone());
        if !is_followed {
            let answers = Answers(std::sync::Arc::clone(&self.desk));
            let what = (key.clone(), asked.request());
            let watch = self
                .server
                .watch_call(self.call.id, &self.call.policy, what, answers);
            let watch = watch.ok_or_else(|| {
                AskError::Unsupported("it is not sent by the policy of this call".to_owned())
            })?;
            return Ok((vec![(key, asked)], Some(watch)));
        }
        let mut events: Vec<Event> = self.take_unshown().into_iter().collect();
        events.push(Event::Asked {
            questions: vec![asked.as_new(&key)],
            wake_at: until.map(|ms| self.call.created_at.plus(ms)),
        });
        match self.commit(events, Patience::Endless).await {
            Change::Done => {}
            Change::Refused(_) | Change::Lost | Change::Unavailable => {
                return Err(AskError::CallCancelled);
            }
        }
        if let Carrier::Task(row) = &self.carrier {
            self.server.see_to_waits(row);
        }
        Ok((vec![(key, asked)], None))
    }

    /// What an earlier process asked, as its row has it: the last questions of all, since a guest asks
    /// nothing more before it is answered.
    fn asked_before(&self, questions: &[Question]) -> Result<Vec<(String, Asked)>, AskError> {
        let Carrier::Task(row) = &self.carrier else {
            return Err(AskError::CallCancelled);
        };
        let theirs: Vec<_> = row
            .questions
            .iter()
            .filter(|asked| !asked.is_of_host())
            .collect();
        let first = theirs.len().checked_sub(questions.len());
        let theirs = first.map_or(&[][..], |first| &theirs[first..]);
        if theirs.len() != questions.len() {
            return Err(AskError::Invalid(
                "the question was asked by an earlier process and is not there any more".to_owned(),
            ));
        }
        questions
            .iter()
            .zip(theirs)
            .map(|(question, kept)| {
                let asked = wire::asked(&question.ask, &self.call.caller.capabilities)?;
                Ok((kept.key.clone(), asked))
            })
            .collect()
    }

    async fn put_questions(
        &mut self,
        asked: &[(String, Asked)],
        until: Option<u64>,
    ) -> Result<(), AskError> {
        if let Carrier::Held {
            inquiries: Some(inquiries),
            ..
        } = &self.carrier
        {
            let put = asked.iter().map(|(key, asked)| asked.as_put(key));
            inquiries.leave(Inquiry::Put(put.collect()));
            return Ok(());
        }
        const CANNOT_BE_KEPT: &str = "the question cannot be kept now; try again later";
        // Under a key it has a row from the start, and is answered as it would be without.
        let is_unseen = matches!(&self.carrier, Carrier::Task(row) if row.reach == Reach::Again);
        if is_unseen && self.call.can_wait_for_answers() && !self.become_task().await {
            return Err(AskError::Unsupported(CANNOT_BE_KEPT.to_owned()));
        }
        let mut caller = None;
        if matches!(self.carrier, Carrier::Held { .. }) {
            let is_kept = if self.call.can_wait_for_answers() {
                self.become_task().await
            } else if self.call.goes_in_rounds() {
                caller = self.keep_row(Reach::Again).await;
                caller.is_some()
            } else {
                return Err(AskError::Unsupported(
                    "this caller can be asked only in a task: it does not know tasks, or the tool does not become one"
                        .to_owned(),
                ));
            };
            if !is_kept {
                return Err(AskError::Unsupported(CANNOT_BE_KEPT.to_owned()));
            }
        }
        let mut wake_at = until.map(|ms| self.call.created_at.plus(ms));
        if matches!(&self.carrier, Carrier::Task(row) if row.reach == Reach::Again) {
            let round_over = clock::now().plus(self.server.settings.round_ms);
            wake_at = Some(wake_at.map_or(round_over, |at| at.min(round_over)));
        }
        let mut events: Vec<Event> = self.take_unshown().into_iter().collect();
        events.push(Event::Asked {
            questions: asked.iter().map(|(key, asked)| asked.as_new(key)).collect(),
            wake_at,
        });
        match self.commit(events, Patience::Endless).await {
            Change::Done => {
                if let (Some(caller), Carrier::Task(row)) = (caller, &self.carrier)
                    && caller.send(Reply::Asks(row.clone())).is_err()
                {
                    // Nobody was told what is asked, so nobody will answer.
                    self.begin_cancel(StopReason::Abandoned);
                    return Err(AskError::CallCancelled);
                }
                Ok(())
            }
            Change::Refused(Refused::BadQuestions) => Err(AskError::Invalid(
                "a key is used twice among these questions".to_owned(),
            )),
            Change::Refused(_) | Change::Lost | Change::Unavailable => Err(AskError::CallCancelled),
        }
    }

    /// Whether an earlier process stopped waiting and could not tell the guest any more.
    fn has_waited_in_vain(&self) -> bool {
        let (Carrier::Task(row), Some(waiting)) = (&self.carrier, &self.waiting) else {
            return false;
        };
        row.cancel_requested_at.is_none()
            && row.questions.iter().any(|question| {
                question.fate == Fate::Withdrawn
                    && waiting.asked.iter().any(|(key, _)| *key == question.key)
            })
    }

    /// The wait for answers is over; they may have come at the last moment.
    pub(super) async fn stop_waiting(&mut self) {
        if self
            .waiting
            .as_ref()
            .is_some_and(|waiting| !waiting.is_in_row())
        {
            self.give(Err(AskError::TimedOut));
            return;
        }
        if matches!(self.carrier, Carrier::Held { .. }) {
            self.withdraw();
            self.give(Err(AskError::TimedOut));
            return;
        }
        if self
            .waiting
            .as_ref()
            .is_some_and(|waiting| waiting.is_round)
        {
            // The guest would have waited for longer, but whoever called did not come back. Whatever comes in between
            // may be the answers, so that it is decided again then.
            match self
                .commit(vec![Event::CancelRequested], Patience::Once)
                .await
            {
                Change::Done => self.begin_cancel(StopReason::Abandoned),
                Change::Refused(_) | Change::Lost => self.deliver_answers(),
                Change::Unavailable => self.put_off_answers(),
            }
            return;
        }
        match self.commit(vec![Event::Withdrawn], Patience::Endless).await {
            Change::Refused(Refused::Nothing) => self.deliver_answers(),
            _ => self.give(Err(AskError::TimedOut)),
        }
    }

    fn put_off_answers(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.until = Some(Instant::now() + Duration::from_secs(1));
        }
    }

    /// Gives the guest its answers once all are there.
    pub(super) fn deliver_answers(&mut self) {
        let (Carrier::Task(row), Some(waiting)) = (&self.carrier, &self.waiting) else {
            return;
        };
        if waiting.is_answered() {
            return;
        }
        let answers: Option<Vec<Answer>> = waiting
            .asked
            .iter()
            .map(|(key, asked)| {
                let question = row.questions.iter().find(|question| question.key == *key)?;
                match &question.fate {
                    Fate::Answered(answer) => asked.answer(&answer.0),
                    Fate::Open | Fate::Withdrawn => None,
                }
            })
            .collect();
        if let Some(answers) = answers {
            self.give(Ok(answers));
        }
    }

    /// Answers of whoever holds the call. The first to a question counts; one that is none answers for all, since the
    /// guest is told of all at once.
    pub(super) fn take_answers(&mut self, answers: Vec<(String, Result<Json, AskError>)>) {
        for (key, answer) in answers {
            let Some(waiting) = &mut self.waiting else {
                return;
            };
            let is_asked = waiting.asked.iter().any(|(asked, _)| *asked == key);
            let comes_here = matches!(self.carrier, Carrier::Held { .. }) || !waiting.is_in_row();
            if !is_asked || waiting.is_answered() || !comes_here {
                continue;
            }
            match answer {
                Ok(answer) => {
                    waiting.handed_in.entry(key).or_insert(answer);
                }
                Err(error) => {
                    waiting.handed_in.insert(key, Json::from("null"));
                    self.withdraw();
                    self.give(Err(error));
                    return;
                }
            }
        }
        let Some(waiting) = &self.waiting else {
            return;
        };
        let answers: Option<Vec<Answer>> = waiting
            .asked
            .iter()
            .map(|(key, asked)| asked.answer(&waiting.handed_in.get(key)?.0))
            .collect();
        if let Some(answers) = answers.filter(|_| !waiting.is_answered()) {
            self.give(Ok(answers));
        }
    }

    /// Tells whoever holds the call which of its questions need no answer any more.
    pub(super) fn withdraw(&self) {
        let (
            Carrier::Held {
                inquiries: Some(inquiries),
                ..
            },
            Some(waiting),
        ) = (&self.carrier, &self.waiting)
        else {
            return;
        };
        if waiting.is_answered() {
            return;
        }
        let open = waiting
            .asked
            .iter()
            .filter(|(key, _)| !waiting.handed_in.contains_key(key))
            .map(|(key, _)| key.clone())
            .collect();
        inquiries.leave(Inquiry::Withdrawn(open));
    }

    /// What came back goes to the guest as soon as it has a place to go on.
    fn give(&mut self, answers: Result<Vec<Answer>, AskError>) {
        if let Some(waiting) = &mut self.waiting {
            waiting.answers = Some(answers);
            self.sit_down();
        }
    }

    /// Answers the guest now.
    pub(super) fn settle(&mut self, answers: Result<Vec<Answer>, AskError>) {
        if let Some(waiting) = self.waiting.take() {
            let _guest_is_gone = waiting.reply.send(answers);
        }
    }

    /// Gives the guest what came back.
    pub(super) fn settle_answered(&mut self) {
        if let Some(answers) = self
            .waiting
            .as_mut()
            .and_then(|waiting| waiting.answers.take())
        {
            self.settle(answers);
        }
    }
}
