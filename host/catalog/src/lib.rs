//! What can be called, read and filled in: components, their names and digests, and the lists frozen with them.
//!
//! Read in this order: [`component`] (what is kept of an upload), [`tool`] and [`library`] (what a component may
//! offer, checked once at upload), [`schema`] (JSON Schemas and what they refuse), [`header`] (arguments that
//! clients repeat as HTTP headers), [`uri`] (URIs, and templates of them), [`registry`] (all components that are in
//! force, by the names of what they offer), [`store`] (how they are kept).

pub mod component;
pub mod header;
mod json;
pub mod library;
pub mod registry;
pub mod schema;
pub mod store;
pub mod tool;
pub mod uri;
