//! Where a run begins, and what it remembers of itself.

use longshore_journal::tape::{Tape, Total};
use longshore_journal::world::{After, Begin, Origin};

/// The past of a run, and where its future is written down.
pub struct Journal {
    /// What its world is made from: the same in every process that runs the call.
    pub origin: Origin,
    /// What it saw and let out before.
    pub begin: Begin,
    /// What comes behind that.
    pub after: After,
    /// Where it records. Whoever started it takes the records from there.
    pub tape: Tape,
    /// Whether somebody has to be able to repeat it: then it gets the WASI that shows the same again, whatever others
    /// get here.
    pub is_recorded: bool,
    /// Through which export it is entered.
    pub entry: Entry,
    /// What it prints and logs up to this call was kept by an earlier process, and is dropped.
    pub printed_through: u64,
    /// What it used of its limits in earlier processes.
    pub spent: Spent,
}

/// Through which export a run is entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// At `call-tool`.
    Call,
    /// At `resume-tool`, with the newest state that it saved.
    Resume(Vec<u8>),
}

/// What a run used of its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time.
    pub cpu_ms: u64,
    /// Time at work.
    pub active_ms: u64,
}

/// What one run may have recorded: more than three minutes of a guest that does nothing but look at the
/// clock, which moves once a millisecond, or 18 hours of one that sleeps a second at a time.
pub const MOST_RECORDED: Total = Total {
    records: 200_000,
    bytes: 64 * 1024 * 1024,
};

impl Journal {
    /// That of a call that was never run before.
    #[must_use]
    pub fn fresh(origin: Origin) -> Self {
        Self {
            origin,
            begin: Begin::default(),
            after: After::Live,
            tape: Tape::default(),
            is_recorded: false,
            entry: Entry::Call,
            printed_through: 0,
            spent: Spent::default(),
        }
    }

    /// CPU time in which the run has to have repeated its past, in milliseconds: a slower machine that
    /// has other things to do still manages, and a run that loses its way is caught.
    pub(crate) fn replay_cpu_ms(&self) -> u64 {
        const FACTOR: u64 = 4;
        const START_MS: u64 = 5_000;
        self.spent
            .cpu_ms
            .saturating_mul(FACTOR)
            .saturating_add(START_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_may_take_several_times_as_long_as_it_took() {
        let mut journal = Journal::fresh(Origin {
            created_at_ms: 0,
            random_key: [0; 32],
            most: MOST_RECORDED,
        });
        assert_eq!(journal.replay_cpu_ms(), 5_000);
        journal.spent.cpu_ms = 1_000;
        assert_eq!(journal.replay_cpu_ms(), 9_000);
    }
}
