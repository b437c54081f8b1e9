//! Clients that are not ours, and know nothing of this server but its address.

mod python;
mod rmcp_client;
