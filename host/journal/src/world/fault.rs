//! Why a run cannot go on at the line.

/// The guest cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It broke a rule of the interface; its run ends with a trap that says so.
    #[error(transparent)]
    Misuse(Misuse),
    /// It did not do what it did before, so nothing that was recorded can be trusted for it.
    #[error(transparent)]
    Diverged(Divergence),
    /// It has more recorded than it may.
    #[error("more than {most} {what} in the journal of this run")]
    Full {
        /// What there is too much of.
        what: &'static str,
        /// What it may have.
        most: u64,
    },
    /// It was only to be repeated, and has come to the end of that.
    #[error("the records end at call {call}")]
    RecordsEnd {
        /// The first call that has no record.
        call: u64,
    },
}

/// Where a guest took another way than before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("call {call} ({import}) differs from what was recorded: {how}")]
pub struct Divergence {
    /// The first call that is known to differ.
    pub call: u64,
    /// The function that was called.
    pub import: &'static str,
    /// In which way.
    pub how: String,
}

/// The guest broke a rule of the interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// `step-begin` within a step.
    #[error("step-begin within the step {open:?}: end that one first")]
    NestedStep {
        /// The step that is open.
        open: String,
    },
    /// `step-end` of a step that is not open.
    #[error("step-end of {name:?}, which is not the step that is open")]
    UnmatchedStepEnd {
        /// The step that was to end.
        name: String,
    },
    /// A question within a step.
    #[error("a question within the step {open:?}: ask before it begins or after it ends")]
    AskInStep {
        /// The step that is open.
        open: String,
    },
    /// A restart point within a step.
    #[error("a restart point within the step {open:?}: save it before it begins or after it ends")]
    CheckpointInStep {
        /// The step that is open.
        open: String,
    },
}
