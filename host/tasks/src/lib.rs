//! What a task is, apart from any protocol, clock, database or engine.
//!
//! Read in this order: [`task`] (the row), [`event`] (what may happen to it and what follows), `apply`
//! (the rules), [`question`] (keys, and what waits for an answer), [`store`] (how a row is kept), [`values`] and [`artifacts`] (what components keep beyond their calls, and calls leave).
//!
//! Results, questions and answers are JSON texts that nothing here looks into: a revision of the
//! protocol never needs a migration. Time and ids come in as values.

mod apply;
pub mod artifacts;
pub mod event;
pub mod id;
pub mod question;
pub mod store;
pub mod task;
pub mod values;
