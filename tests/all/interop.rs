//! Clients that are not ours, and know nothing of this server but its address.
//!
//! A client in another language is a script in `tests/clients`. It is told how to reach the server, which is a [`Way`],
//! and what to call, which is the same [`cases`] for all of them, and prints what it saw. A relay on the way shows what
//! it said on the wire. What a client lacks is named in its output, and asserted, so that it is noticed when it no longer
//! does.
//!
//! [`Way`]: script::Way

mod cases;
mod ext_tasks;
mod fastmcp;
mod mcp_sdk;
mod rmcp_client;
mod script;
mod shapes;
