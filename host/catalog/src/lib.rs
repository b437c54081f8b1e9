//! What can be called: components, their names and digests, and the tools frozen with them.
//!
//! Read in this order: [`component`] (what is kept of an upload), [`tool`] (what a component may
//! offer, checked once at upload), [`schema`] (JSON Schemas and what they refuse), [`header`] (arguments that
//! clients repeat as HTTP headers), [`registry`] (all components that are in force, by tool name), [`store`] (how
//! they are kept).

pub mod component;
pub mod header;
mod json;
pub mod registry;
pub mod schema;
pub mod store;
pub mod tool;
