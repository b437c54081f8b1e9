//! Write a Longshore tool in Rust.
//!
//! A tool is a type that implements [`Tool`]; [`export!`] makes a component of one or more of them.
//!
//! ```no_run
//! use longshore_guest::{Description, Outcome, Tool};
//! use serde_json::json;
//!
//! struct Hello;
//!
//! #[derive(serde::Deserialize)]
//! struct Arguments {
//!     name: String,
//! }
//!
//! impl Tool for Hello {
//!     const NAME: &'static str = "hello";
//!     type Arguments = Arguments;
//!
//!     fn describe() -> Description {
//!         Description {
//!             description: "Greets somebody by name.",
//!             input: json!({
//!                 "type": "object",
//!                 "properties": { "name": { "type": "string" } },
//!                 "required": ["name"],
//!             }),
//!             ..Description::default()
//!         }
//!     }
//!
//!     fn call(arguments: Arguments) -> Outcome {
//!         Ok(format!("Hello, {}!", arguments.name).into())
//!     }
//! }
//!
//! longshore_guest::export!(Hello);
//! # fn main() {}
//! ```
//!
//! The crate that holds it is a `cdylib`; `cargo build --release --target wasm32-wasip2` gives the component.
//!
//! - [`tool`]: what a tool is and says of itself.
//! - [`result`]: what it answers, well or not.
//! - [`task`]: what it can do while it runs: status, progress, sleep, steps, log.
//! - [`ask`]: questions to the person, their client and its model.
//! - [`bindings`]: the contract itself, for what has no shorter form here.

pub mod ask;
pub mod bindings;
mod export;
mod panic;
pub mod result;
pub mod task;
pub mod tool;

pub use bindings::exports::longshore::tool::tools::TaskMode;
pub use bindings::longshore::tool::types::{Block, CallError, ToolResult};
pub use result::Outcome;
pub use tool::{Description, Requirement, Tool};

#[doc(hidden)]
pub use export::{Entry, call, list};
