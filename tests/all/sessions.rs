//! Clients of the revisions that have sessions, on the endpoint that serves the newest one as well.

mod asking;
mod calls;
mod opening;
mod tasks;
