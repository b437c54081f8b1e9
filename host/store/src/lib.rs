//! How tasks and components are kept, behind the traits of `longshore-tasks` and `longshore-catalog`.
//!
//! Read in this order: [`memory`] (what a store does, without a file; the model that the others are
//! tested against), [`sqlite`] (one file for one process: the embedded default).
//!
//! Every store passes one suite of tests, `tests/suite`.

pub mod memory;
pub mod sqlite;

mod successor;
