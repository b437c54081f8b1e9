//! Whole runs of guests written by hand, without a compile child.

mod ends;
mod fits;
mod kit;
mod stops;
mod talks;
mod wasi;
