//! What a run sees from outside and lets out, in the order in which the guest asked for it.
//!
//! [`call`] names what crosses the line between a guest and its host, [`world`] is the line: every
//! import passes it, gets its number, and is answered either from what was recorded or live.

pub mod call;
pub mod world;
