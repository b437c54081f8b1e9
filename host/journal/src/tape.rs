//! What a run has recorded and nobody has kept yet: written by the run, taken by its owner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::record::{Record, Shown, What};

/// The two ends of a run's records. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tape(Arc<Mutex<Fresh>>);

#[derive(Debug, Default)]
struct Fresh {
    /// None where a later record made an earlier one needless.
    records: Vec<Option<Record>>,
    /// Where the newest status stands, if it was not taken.
    shown: Option<usize>,
    calls: u64,
    replaying: bool,
    /// Requests under way that may change something.
    writes: u64,
    total: Total,
}

/// All that a run has recorded, with what it was replayed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Records.
    pub records: u64,
    /// About how many bytes they hold.
    pub bytes: u64,
}

/// What was recorded since the last time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// The records, in order.
    pub records: Vec<Record>,
    /// Calls that the guest had begun.
    pub calls: u64,
}

impl Tape {
    fn fresh(&self) -> MutexGuard<'_, Fresh> {
        // Nothing panics between two changes that belong together.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tape of a run that is to repeat these records: whoever looks at it before the run has begun knows.
    #[must_use]
    pub fn behind(records: &[Record]) -> Self {
        let tape = Self::default();
        tape.set_replaying(!records.is_empty());
        tape
    }

    /// All records that are new.
    #[must_use]
    pub fn take(&self) -> Taken {
        let mut fresh = self.fresh();
        fresh.shown = None;
        Taken {
            records: std::mem::take(&mut fresh.records)
                .into_iter()
                .flatten()
                .collect(),
            calls: fresh.calls,
        }
    }

    /// Whether there is nothing to take.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fresh().records.is_empty()
    }

    /// Whether the run repeats what was recorded before it.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.fresh().replaying
    }

    /// Calls begun so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.fresh().calls
    }

    /// All records of the run so far.
    #[must_use]
    pub fn total(&self) -> Total {
        self.fresh().total
    }

    /// Requests that are under way and may change something. A run that is let go of now leaves them in doubt.
    #[must_use]
    pub fn writes_under_way(&self) -> u64 {
        self.fresh().writes
    }

    pub(crate) fn set_writes(&self, writes: u64) {
        self.fresh().writes = writes;
    }

    pub(crate) fn set_calls(&self, calls: u64) {
        self.fresh().calls = calls;
    }

    pub(crate) fn set_replaying(&self, replaying: bool) {
        self.fresh().replaying = replaying;
    }

    /// Counts what was recorded by an earlier process.
    pub(crate) fn count(&self, record: &Record) {
        self.fresh().total.add(record);
    }

    pub(crate) fn push(&self, record: Record) -> Total {
        let mut fresh = self.fresh();
        // Any other record says that the guest came so far; but that it asks is not kept before its questions are.
        if !matches!(record.what, What::Asked { .. }) {
            fresh.forget_output();
        }
        fresh.total.add(&record);
        fresh.records.push(Some(record));
        fresh.total
    }

    /// A status takes the place of one that was not taken yet: only the newest can be seen.
    pub(crate) fn push_shown(&self, call: u64, shown: Shown, path: u32) -> Total {
        let mut fresh = self.fresh();
        if shown.is_empty() && fresh.shown.is_some_and(|at| at + 1 < fresh.records.len()) {
            // What was said before all that stays where it is.
            fresh.shown = None;
        }
        let mut merged = shown;
        if let Some(at) = fresh.shown.take()
            && let Some(earlier) = fresh.records[at].take()
        {
            fresh.total.remove(&earlier);
            if let What::Shown { shown: earlier, .. } = earlier.what {
                merged.message = merged.message.or(earlier.message);
                merged.progress = merged.progress.or(earlier.progress);
            }
            if at + 1 == fresh.records.len() {
                fresh.records.pop();
            }
        }
        let record = Record {
            call,
            what: What::Shown {
                shown: merged,
                path,
            },
        };
        fresh.total.add(&record);
        fresh.shown = Some(fresh.records.len());
        fresh.records.push(Some(record));
        fresh.total
    }

    /// Forgets everything: a restart point stands for it.
    pub(crate) fn forget_all(&self) {
        let mut fresh = self.fresh();
        fresh.records.clear();
        fresh.shown = None;
        fresh.total = Total::default();
    }

    /// Forgets what was recorded from that call on and not taken yet: a finished step stands for it.
    pub(crate) fn forget_from(&self, call: u64) {
        let mut fresh = self.fresh();
        while let Some(last) = fresh.records.last() {
            match last {
                Some(record) if record.call < call => break,
                Some(record) => {
                    let record = record.clone();
                    fresh.total.remove(&record);
                    fresh.records.pop();
                }
                None => {
                    fresh.records.pop();
                }
            }
        }
        let left = fresh.records.len();
        fresh.shown = fresh.shown.filter(|at| *at < left);
    }
}

impl Fresh {
    /// Forgets that the guest came so far, if that is all that its newest status says.
    fn forget_output(&mut self) {
        let Some(at) = self.shown else { return };
        let said = self.records[at].take_if(
            |record| matches!(&record.what, What::Shown { shown, .. } if shown.is_empty()),
        );
        let Some(said) = said else { return };
        self.shown = None;
        self.total.remove(&said);
        if at + 1 == self.records.len() {
            self.records.pop();
        }
    }
}

impl Total {
    /// Of one record, its place and its stamp.
    const EACH: u64 = 16;

    fn add(&mut self, record: &Record) {
        self.records += 1;
        self.bytes += Self::EACH + record.what.bytes() as u64;
    }

    fn remove(&mut self, record: &Record) {
        self.records -= 1;
        self.bytes -= Self::EACH + record.what.bytes() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(message: Option<&str>, done: Option<f64>) -> Shown {
        Shown {
            message: message.map(str::to_owned),
            progress: done.map(|done| (done, None)),
        }
    }

    fn clock(call: u64) -> Record {
        Record {
            call,
            what: What::Clock(call),
        }
    }

    #[test]
    fn of_status_only_the_newest_is_kept_with_all_that_it_says() {
        let tape = Tape::default();
        tape.push_shown(1, shown(Some("a"), None), 1);
        tape.push(clock(2));
        tape.push_shown(3, shown(None, Some(1.0)), 3);
        tape.push_shown(4, shown(None, Some(2.0)), 4);
        assert_eq!(tape.total().records, 2);
        let expected = Record {
            call: 4,
            what: What::Shown {
                shown: shown(Some("a"), Some(2.0)),
                path: 4,
            },
        };
        assert_eq!(tape.take().records, [clock(2), expected]);
        assert!(tape.is_empty());

        // What was taken may have been seen: the next one stands beside it.
        tape.push_shown(5, shown(Some("b"), None), 5);
        let taken = tape.take().records;
        assert_eq!(taken.len(), 1);
        assert!(matches!(&taken[0].what, What::Shown { shown, .. } if shown.progress.is_none()));
        assert_eq!(tape.total().records, 3);
    }

    #[test]
    fn that_something_was_printed_is_kept_unless_a_later_record_says_as_much() {
        let tape = Tape::default();
        let printed = |call| tape.push_shown(call, shown(None, None), 0);
        printed(1);
        tape.push(clock(2));
        printed(3);
        printed(4);
        let taken = tape.take().records;
        assert_eq!((taken.len(), taken[0].call, taken[1].call), (2, 2, 4));
        assert_eq!(taken[1].what.name(), "output");
        assert_eq!(tape.total().records, 2);
        // What was said before it stands at it.
        tape.push_shown(5, shown(Some("a"), None), 5);
        printed(6);
        tape.push(clock(7));
        let taken = tape.take().records;
        assert_eq!((taken.len(), taken[0].call), (2, 6));
        assert_eq!(taken[0].what.name(), "status");
        // But not if something happened since.
        tape.push_shown(8, shown(Some("a"), None), 8);
        tape.push(clock(9));
        printed(10);
        printed(11);
        let taken = tape.take().records;
        let calls: Vec<u64> = taken.iter().map(|record| record.call).collect();
        assert_eq!(calls, [8, 9, 11]);
        // A question may be kept later than what was printed before it.
        printed(12);
        let asked = What::Asked {
            questions: Vec::new(),
            until: None,
            path: 0,
        };
        tape.push(Record {
            call: 13,
            what: asked,
        });
        assert_eq!(tape.take().records.len(), 2);
    }

    #[test]
    fn what_a_step_did_is_forgotten_and_not_what_came_before() {
        let tape = Tape::default();
        tape.push(clock(1));
        tape.push_shown(2, shown(Some("before"), None), 2);
        tape.push(clock(4));
        tape.push_shown(5, shown(Some("within"), None), 5);
        tape.forget_from(3);
        assert_eq!(tape.take().records, [clock(1)]);
        assert_eq!(tape.total().records, 1);
    }
}
