//! What the tests of the whole house share: a server as a real process, a client that writes every
//! byte itself, the example components.

pub mod alive;
pub mod canary;
pub mod chance;
pub mod component;
pub mod crash;
pub mod effort;
pub mod events;
pub mod fault;
pub mod guests;
pub mod http;
pub mod inside;
pub mod kept;
pub mod manifest;
pub mod mcp;
pub mod pipes;
pub mod process;
pub mod session;
pub mod tap;
pub mod target;
pub mod usage;
pub mod wait;
