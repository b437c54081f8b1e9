//! Servers that are broken on purpose, one rule each: whoever tests that nothing is lost at a crash has to know that
//! their test would see it. No setting leads here, and a server that is built as usual breaks none.
//!
//! Each is caught where crashes are enumerated, and passes all else that is tried with `just mutants`. Of two tests,
//! both of the rule that is broken, that is a matter of chance: servers that are killed under load may catch one that
//! keeps late, and so may whoever exports a task in the very moment after it asks.

/// The rule that a server breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// What a run says of itself is no record, so that whatever it looked at before may look otherwise afterwards.
    OutputsUnrecorded,
    /// What can be seen is kept before the records that led to it, which follow at once.
    KeptLate,
    /// A run goes on writing though another one has its task.
    EpochUnchecked,
}

impl Mutant {
    /// The rule that every server of this build breaks: a build for nothing but to see which tests notice. It is chosen
    /// by a variable of the compiler.
    pub const BUILT_IN: Option<Self> = match option_env!("LONGSHORE_MUTANT") {
        None => None,
        Some(word) => Some(match word.as_bytes() {
            b"outputs-unrecorded" => Self::OutputsUnrecorded,
            b"kept-late" => Self::KeptLate,
            b"epoch-unchecked" => Self::EpochUnchecked,
            _ => panic!("LONGSHORE_MUTANT names a rule that no server is made to break"),
        }),
    };
}
