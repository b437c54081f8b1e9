//! Servers that are broken on purpose, one rule each: whoever tests that nothing is lost at a crash has to know that
//! their test would see it. No setting leads here.

/// The rule that a server breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// What a run says of itself is no record, so that whatever it looked at before may look otherwise afterwards.
    OutputsUnrecorded,
    /// What can be seen is kept before the records that led to it.
    KeptLate,
    /// A run goes on writing though another one has its task.
    EpochUnchecked,
}
