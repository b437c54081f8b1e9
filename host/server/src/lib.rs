//! The hall: everything between the protocol and the engine.
//!
//! An upload: [`components`], and what is held ready of it: `loaded`, with what it is granted: [`grants`]; what is served from the start on: [`starting`] and [`folder`]. A call: [`call`] finds the tool, checks and admits it, `library` does the same for
//! what is read, filled in or completed, [`run`] owns it from there to its end. What a client sees of it later: [`follow`], [`polls`] and [`listen`], to which
//! [`bus`] brings what happened. Wire shapes of tasks, results and
//! questions are made in [`wire`] and nowhere else, and `errors` has the codes of whatever fails. `sessions` serve the
//! revisions before 2026-07-28. [`dispatch`] takes a decoded request whatever it
//! came over; [`http`] and [`stdio`] are ways for it to come, and [`local`] needs none. What tools ask of others goes out by [`egress`], and `waits` sends what they wait for again and again. [`server`] holds the pieces together.

pub mod admission;
pub mod again;
pub mod alarms;
pub mod bus;
pub mod call;
pub mod components;
pub mod dispatch;
pub mod egress;
pub mod folder;
pub mod follow;
mod fresh;
pub mod grants;
pub mod handoff;
pub mod history;
pub(crate) mod holds;
pub mod http;
mod library;
pub mod listen;
mod loaded;
pub mod local;
pub mod marks;
#[doc(hidden)]
pub mod mutant;
pub mod polls;
pub mod presence;
pub mod reason;
pub mod recovery;
pub(crate) mod requests;
pub mod rounds;
pub mod run;
pub mod seal;
pub mod server;
pub mod settings;
pub mod starting;
pub mod stdio;
pub mod trial;
mod waits;
pub mod wire;

/// What components are called.
pub use longshore_catalog::component;
/// What people write about policies, for whoever reads and shows it.
pub use longshore_policy as policy;

mod clock;
mod code;
mod errors;
mod sessions;
