//! What a component may touch and how much it may use, as data.
//!
//! [`limits`] holds every bound on one run. Nothing is granted yet beyond them: a component sees no
//! directory, no network, no environment.

pub mod limits;
