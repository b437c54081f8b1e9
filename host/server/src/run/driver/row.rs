//! The row and the journal of a run: what is committed, and against whom.

use std::time::Duration;

use longshore_sandbox::control::StopReason;
use longshore_sandbox::sandbox::Printed;
use longshore_tasks::event::{Effect, Event, Refused};
use longshore_tasks::question::{Fate, Question};
use longshore_tasks::store::{self, Commit, StoreError};
use longshore_tasks::task::{Reach, State, Task};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Carrier, Driver};
use crate::clock;
use crate::mutant::Mutant;
use crate::run::record::{Puts, Recorder, Written};
use crate::run::{Output, Reply};
use crate::settings::Settings;

/// All that compute together have so much of it not very often, whatever their number.
const CPU_WORTH_KEEPING_MS: u64 = 100;

/// How often what a run does is kept under which processes have died.
const FLUSH_OF_A_SUSPECT: Duration = Duration::from_millis(50);

/// What came of an attempt to change the row.
pub(super) enum Change {
    Done,
    Refused(Refused),
    Unavailable,
    Lost,
}

/// Whether to try again while the store cannot be written, or somebody else has changed the row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Until it works: the result exists nowhere else.
    Endless,
    /// Not while the store cannot be written: something newer will come.
    None,
    /// Only if nothing has changed meanwhile: else it must be decided again.
    Once,
}

impl Driver {
    /// Makes the call a task, if it is not one, and tells the caller. False if it stays held.
    pub(super) async fn become_task(&mut self) -> bool {
        if let Carrier::Task(row) = &self.carrier
            && row.reach == Reach::Again
        {
            return self.show().await;
        }
        if !matches!(self.carrier, Carrier::Held { .. }) {
            return true;
        }
        let Some(answer) = self.keep_row(Reach::Id).await else {
            return false;
        };
        if let Carrier::Task(row) = &self.carrier
            && answer.send(Reply::Task(row.clone())).is_err()
        {
            // Nobody has the task's id, so nobody will ever ask for its result.
            self.begin_cancel(StopReason::Abandoned);
        }
        self.pause();
        true
    }

    /// Gives the task's id to whoever waits for the call.
    async fn show(&mut self) -> bool {
        self.budget_at = None;
        let event = Event::Shown {
            retention_ms: self.server.settings.retention_ms,
        };
        match self.commit(vec![event], Patience::Once).await {
            Change::Done => true,
            Change::Refused(_) | Change::Unavailable => {
                self.budget_at = Some(Instant::now() + Duration::from_secs(1));
                false
            }
            Change::Lost => false,
        }
    }

    /// Makes a held call a row, and gives back where its caller waits. None if it stays held.
    pub(super) async fn keep_row(&mut self, reach: Reach) -> Option<oneshot::Sender<Reply>> {
        let Carrier::Held { status, .. } = &self.carrier else {
            return None;
        };
        let node = self.server.node.clone();
        let mut row = self.call.new_row(node, status.clone(), reach);
        if reach == Reach::Again {
            // It is of use for no longer than its rounds.
            row.retention_ms = row.retention_ms.min(self.server.settings.round_ms);
        }
        if self.recorder.is_none() && self.call.is_recorded(&self.server.settings) {
            let recorder = Recorder::new(
                &self.server.keys,
                self.call.id,
                self.server.node.clone(),
                self.tape.clone(),
            );
            self.recorder = Some(recorder.mutated(self.server.mutant));
        }
        let (used, said) = (self.usage(), self.said());
        let written = self.recorder.as_mut().and_then(|recorder| {
            row.journal_key = Some(recorder.kept_key().to_vec());
            recorder.write(&mut row, clock::now(), used, Puts::Nothing)
        });
        let segment = written.as_ref().map(|written| written.segment.clone());
        if let Err(error) = self.server.tasks.create(row.clone(), segment, None).await
            // The write may have happened and only its answer been lost.
            && !self.is_created(&row, &error).await
        {
            tracing::warn!(%error, "a held call could not become a task; it is tried again");
            let again_at = Instant::now() + Duration::from_secs(1);
            if self.call.may_become_task() {
                self.budget_at = Some(again_at);
            } else {
                self.hold_at = Some(again_at);
            }
            return None;
        }
        self.note_kept(written.as_ref());
        self.note_sure(said);
        self.budget_at = None;
        self.hold_at = None;
        self.put_off_showing();
        match std::mem::replace(&mut self.carrier, Carrier::Task(Box::new(row))) {
            Carrier::Held { answer, asides, .. } => {
                // Of a task is told what its row shows, to whoever asks for that.
                if let Some(asides) = asides {
                    asides.close();
                }
                Some(answer)
            }
            Carrier::Task(_) | Carrier::LetGo | Carrier::Lost => None,
        }
    }

    async fn is_created(&self, row: &Task, error: &StoreError) -> bool {
        matches!(error, StoreError::Exists | StoreError::Unavailable(_))
            && matches!(
                self.server.tasks.get(row.id).await,
                Ok(Some(there)) if there.journal == row.journal && there.lease == row.lease
            )
    }

    /// The row as somebody else left it.
    pub(super) fn see_row(&mut self, row: Task) {
        let Carrier::Task(known) = &mut self.carrier else {
            return;
        };
        let is_checked = self.server.mutant != Some(Mutant::EpochUnchecked);
        if row.lease.epoch != known.lease.epoch && is_checked {
            // Whoever claimed it later runs it now; this run may not write under their number.
            self.lose();
            return;
        }
        if row.version > known.version {
            **known = row;
        }
        self.act_on_row();
    }

    fn act_on_row(&mut self) {
        let Carrier::Task(row) = &self.carrier else {
            return;
        };
        if row.state.name().is_final() {
            // Somebody ended it: whatever the run still does is of no use.
            self.server
                .sandbox
                .stop(&self.control, StopReason::Cancelled);
        } else if row.cancel_requested_at.is_some() {
            self.begin_cancel(StopReason::Cancelled);
        }
        self.deliver_answers();
    }

    /// Keeps what was recorded, or what was used if there is nothing else.
    pub(super) async fn keep_journal(&mut self, patience: Patience) {
        let Carrier::Task(row) = &self.carrier else {
            self.flush_at =
                Instant::now() + Duration::from_millis(self.server.settings.journal_every_ms);
            return;
        };
        self.flush_at = Instant::now() + flush_every(row, &self.server.settings);
        let usage = self.usage();
        if self.recorder.as_ref().is_none_or(Recorder::is_empty) {
            if usage.cpu_ms >= row.usage.cpu_ms + CPU_WORTH_KEEPING_MS {
                let used = Event::Used { usage };
                let _a_later_one_keeps_more = self.commit(vec![used], patience).await;
            }
            return;
        }
        // A step or a restart point leaves out what was printed before it.
        let output = (patience == Patience::Endless).then(|| self.output_now());
        let _a_later_commit_keeps_it = self
            .commit_with(vec![Event::Journalled { usage }], output.as_ref(), patience)
            .await;
    }

    /// What the run and those before it have put out so far.
    pub(super) fn output_now(&self) -> Output {
        let (log, log_dropped) = self.log.read();
        let now = Output {
            stdout: self.watch.stdout(),
            stderr: self.watch.stderr(),
            log,
            log_dropped,
        };
        match &self.earlier {
            Some(earlier) => earlier.followed_by(now, &self.call.policy.limits),
            None => now,
        }
    }

    fn note_kept(&mut self, written: Option<&Written>) {
        if let (Some(recorder), Some(written)) = (&mut self.recorder, written) {
            recorder.kept(written);
        }
    }

    /// How much the run has printed and logged. Whatever is recorded is asked for later, so that it leads there.
    fn said(&self) -> (Printed, u64) {
        (self.watch.printed(), self.log.written())
    }

    /// All records that lead to so much are kept.
    fn note_sure(&self, (printed, lines): (Printed, u64)) {
        self.watch.note_sure(printed);
        self.log.note_sure(lines);
    }

    /// Commits the row after these events, with all that was recorded before them.
    pub(super) async fn commit(&mut self, events: Vec<Event>, patience: Patience) -> Change {
        self.commit_with(events, None, patience).await
    }

    /// The same with what the run has printed, against whatever others do to the row meanwhile.
    pub(super) async fn commit_with(
        &mut self,
        events: Vec<Event>,
        output: Option<&Output>,
        patience: Patience,
    ) -> Change {
        let asked_before =
            matches!(&self.carrier, Carrier::Task(row) if row.state == State::InputRequired);
        let puts = if events
            .iter()
            .any(|event| matches!(event, Event::Asked { .. }))
            || (self.server.mutant == Some(Mutant::KeptLate) && asked_before)
        {
            Puts::Questions
        } else {
            Puts::Nothing
        };
        let mut pause = Duration::from_millis(50);
        loop {
            let Carrier::Task(row) = &self.carrier else {
                return Change::Lost;
            };
            let now = clock::now();
            let used = self.usage();
            let mut next = (**row).clone();
            let mut is_seen = false;
            for event in &events {
                match next.apply(event.clone(), now) {
                    Ok(step) => {
                        next = step.task;
                        // The other effects are this run's own doing.
                        is_seen |= step.effects.contains(&Effect::Notify);
                    }
                    // A status that says nothing new must not keep what follows it from being done.
                    Err(Refused::Nothing) if matches!(event, Event::StatusChanged { .. }) => {}
                    // It was given up for dead, and somebody else may have it: not a word more.
                    Err(Refused::Unowned) => {
                        self.lose();
                        return Change::Lost;
                    }
                    Err(refused) => return Change::Refused(refused),
                }
            }
            if next.version == row.version {
                return Change::Refused(Refused::Nothing);
            }
            let (from_version, from_epoch) = (row.version, row.lease.epoch);
            let said = self.said();
            let is_late = self.server.mutant == Some(Mutant::KeptLate)
                && is_seen
                && !next.state.name().is_final();
            let written = self
                .recorder
                .as_mut()
                .filter(|_| !is_late)
                .and_then(|recorder| recorder.write(&mut next, now, used, puts));
            // The guest waits until such a segment is kept, so that this is all that it printed before.
            let skipped = written
                .as_ref()
                .is_some_and(|written| written.skips && output.is_none())
                .then(|| self.output_now());
            let output = output
                .or(skipped.as_ref())
                // Most runs say nothing, and then there is nothing to keep.
                .filter(|output| !output.is_empty())
                .zip(self.recorder.as_ref())
                .map(|(output, recorder)| store::Output {
                    calls: self.tape.calls(),
                    body: recorder.key().seal_output(&output.to_bytes()),
                });
            let commit = Commit {
                from_version,
                from_epoch,
                task: next.clone(),
                segment: written.as_ref().map(|written| written.segment.clone()),
                output,
            };
            match self.server.tasks.commit(commit).await {
                Ok(()) => {
                    self.note_kept(written.as_ref());
                    self.note_sure(said);
                    if is_seen {
                        self.server.tell_of(&next);
                    }
                    if next.stalls == 0
                        && let Some(mark) = self.mark.take()
                    {
                        mark.end();
                    }
                    self.carrier = Carrier::Task(Box::new(next));
                    if is_late {
                        let usage = self.usage();
                        let late = vec![Event::Journalled { usage }];
                        let _too_late = Box::pin(self.commit_with(late, None, patience)).await;
                    }
                    return Change::Done;
                }
                Err(StoreError::Fenced)
                    if self.server.mutant == Some(Mutant::EpochUnchecked)
                        && self.reload().await => {}
                Err(StoreError::Conflict) => {
                    if !self.reload().await {
                        return Change::Lost;
                    }
                    if patience == Patience::Once {
                        return Change::Refused(Refused::Nothing);
                    }
                }
                Err(StoreError::Fenced | StoreError::Missing | StoreError::Exists) => {
                    self.lose();
                    return Change::Lost;
                }
                Err(error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_))) => {
                    if patience == Patience::Endless {
                        tracing::warn!(%error, "a change of a task waits for the store");
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(Duration::from_secs(5));
                    }
                    // The write may have happened and only its answer been lost.
                    if !self.reload().await {
                        return Change::Lost;
                    }
                    if self.has_landed(&next, written.as_ref()).await {
                        self.note_kept(written.as_ref());
                        self.note_sure(said);
                        return Change::Done;
                    }
                    if patience != Patience::Endless {
                        return Change::Unavailable;
                    }
                }
            }
        }
    }

    /// Whether a commit without an answer was made after all: its segment is there, byte for byte, or
    /// what only this run can have written.
    async fn has_landed(&self, next: &Task, written: Option<&Written>) -> bool {
        let Carrier::Task(row) = &self.carrier else {
            return false;
        };
        let Some(written) = written else {
            return came_of(row, next);
        };
        let number = written.segment.number;
        row.journal.segments > number
            && matches!(
                self.server.tasks.segment(self.call.id, number).await,
                Ok(Some(there)) if there.frames == written.segment.frames
            )
    }

    /// Reads the row again. False if it is not this run's any more.
    pub(super) async fn reload(&mut self) -> bool {
        match self.server.tasks.get(self.call.id).await {
            Ok(Some(row)) => {
                // It may be a commit of ours whose answer was lost; telling of one twice does no harm.
                self.server.tell_of(&row);
                self.see_row(row);
                true
            }
            Ok(None) => {
                self.lose();
                false
            }
            // The next attempt to commit meets the same trouble and waits.
            Err(_) => true,
        }
    }

    fn lose(&mut self) {
        self.carrier = Carrier::Lost;
        self.server
            .sandbox
            .stop(&self.control, StopReason::Shutdown);
    }
}

/// How often the journal of a run is kept by itself.
pub(super) fn flush_every(row: &Task, settings: &Settings) -> Duration {
    let usual = Duration::from_millis(settings.journal_every_ms);
    if row.stalls > 0 {
        // Whoever comes further is innocent of the deaths before. That is to be known before the next one.
        usual.min(FLUSH_OF_A_SUSPECT)
    } else {
        usual
    }
}

/// Whether a row is that one, or what others made of it: they answer and cancel, and nothing else.
fn came_of(row: &Task, one: &Task) -> bool {
    let is_kept = |(there, wanted): (&Question, &Question)| {
        there.key == wanted.key && (wanted.fate == Fate::Open || there.fate == wanted.fate)
    };
    row.version >= one.version
        && (&row.lease, &row.journal, row.usage) == (&one.lease, &one.journal, one.usage)
        && (&row.status, row.reach) == (&one.status, one.reach)
        && row.questions.len() == one.questions.len()
        && row.questions.iter().zip(&one.questions).all(is_kept)
        && (one.cancel_requested_at.is_none() || one.cancel_requested_at == row.cancel_requested_at)
}
