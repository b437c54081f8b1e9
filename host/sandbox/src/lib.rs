//! Where guests run: nothing outside this room names the engine.
//!
//! The way of an upload: [`precheck`] (what can be refused by reading), [`compile`] (native code, made
//! in a confined child process), [`artifact`] (kept and loaded again), `link` (does it fit our
//! interface), [`offer`] (what it lists; of one that is no tool by itself, what `typed` or `command` makes of it), [`sandbox`] (all of that behind one handle). The way of a call:
//! [`sandbox::Sandbox`] starts a run for a [`target`], which begins where its [`journal`] says, the guest's imports reach
//! [`outside::Outside`], [`control`] stops it, and [`ending`] says how it ended.

pub mod artifact;
mod bindings;
pub mod child;
mod command;
pub mod compile;
pub mod control;
mod cpu;
pub mod dirs;
pub mod ending;
mod engine;
mod epoch;
mod executor;
mod fault;
mod grants;
mod guests;
mod hash;
mod host;
mod host_wasi;
pub mod journal;
mod json;
mod library;
mod limiter;
mod link;
mod memory;
mod nobody;
pub mod offer;
mod output;
pub mod outside;
pub mod poll;
mod pool;
pub mod precheck;
pub mod refusal;
pub mod regular;
mod ring;
mod rules;
mod run;
pub mod sandbox;
pub mod target;
mod typed;
mod values;
pub mod waits;
mod wasi;

#[cfg(test)]
mod tests;
