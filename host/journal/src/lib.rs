//! What a run sees from outside and lets out, in the order in which the guest asked for it.
//!
//! [`call`] names what crosses the line between a guest and its host, [`world`] is the line: every
//! import passes it, gets its number, and is answered either from what was recorded or live. What is new
//! lies on a [`tape`] until the run's owner has it kept, as [`segment`]s of [`record`]s.

pub mod call;
pub mod files;
pub mod http;
pub mod import;
pub mod path;
pub mod random;
pub mod record;
pub mod segment;
pub mod tape;
pub mod values;
pub mod world;
