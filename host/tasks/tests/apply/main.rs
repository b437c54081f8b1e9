//! Every state against every event: what changes, what follows, or why nothing does.

mod journal;
mod outcome;
mod owners;
mod properties;
mod states;
mod table;
mod waits;
