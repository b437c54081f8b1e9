//! MCP on the wire: bytes in, typed requests out, and the exact text of every answer.
//!
//! Nothing here waits, reads a clock or knows a transport: HTTP and stdio call the same functions.
//!
//! In, in the order in which a message passes:
//! [`envelope`] (JSON-RPC, parameters left as text) → [`decode`] (every check in its order, with [`headers`] if
//! there are any) → [`meta`] and [`capability`] (who asks, and what they can do) → [`request`] (what they ask; [`listening`] and
//! [`completing`] are two that ask for much).
//!
//! The revisions before 2026-07-28 have [`session`]s, which say some of this once for all requests; [`session::decode`]
//! reads those into the same types where both ask the same.
//!
//! Out: [`error`] (codes and their HTTP status), [`response`] (the envelope), [`result`] (discover, lists,
//! acknowledgements), [`tool`] (descriptors), [`content`] (what a tool answers), [`resource`] (what is read),
//! [`prompt`] (what is filled in, and proposals for it), [`task`] (tasks),
//! [`elicitation`] and [`form`] (questions to the client, and their answers), [`notification`] (what is told besides).
//!
//! Below both: [`version`], [`cursor`], [`timestamp`], [`guest_meta`], [`json`].
//!
//! Answers are written straight into text, and JSON that a guest, a client or a store gave is spliced in as it is.
//! Every text written here is one line, so that it is a frame for stdio and for an event stream as it stands.

pub mod capability;
pub mod completing;
pub mod content;
pub mod cursor;
pub mod decode;
pub mod elicitation;
pub mod envelope;
pub mod error;
mod extra;
pub mod form;
pub mod guest_meta;
pub mod headers;
pub mod json;
pub mod listening;
pub mod meta;
pub mod notification;
pub mod prompt;
pub mod request;
pub mod resource;
pub mod response;
pub mod result;
pub mod session;
pub mod task;
pub mod timestamp;
pub mod tool;
pub mod version;

mod write;
