//! All that the MCP conformance suite expects of a server, in one component. Names, arguments and texts are the suite's.
//!
//! - `answers`: one tool for each kind of content.
//! - `running`: what a call may do while its caller waits.
//! - `tasks`: calls that go on without their caller.
//! - `rounds`: calls that ask before they have a result.
//! - `sessions`: what calls ask and log in the revisions that have sessions.
//! - `library`: resources, prompts, and proposals for them.
//! - `schema`: a schema that must come out as it went in.

mod answers;
mod library;
mod rounds;
mod running;
mod schema;
mod sessions;
mod tasks;
