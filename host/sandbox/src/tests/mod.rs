//! The host's side of runs, and whole runs of guests written by hand, without a compile child.

mod again;
mod ends;
mod exchanges;
mod fits;
mod host_wasi;
mod kit;
mod requests;
mod scratch;
mod script;
mod stops;
mod talks;
mod typed;
mod wasi;
