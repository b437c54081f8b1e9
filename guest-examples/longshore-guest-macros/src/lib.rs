//! The macros of `longshore-guest`, which documents them where it gives them on.
//!
//! - `tool`: a function becomes a tool.
//! - `library`: a function becomes a resource or a prompt.
//! - `shape`: a struct or an enum becomes the type of an argument, or of a result.
//! - `options`: what stands in `#[tool(...)]`, at each of its places.
//! - `text`: doc comments and names.

mod library;
mod options;
mod shape;
mod text;
mod tool;

use std::sync::atomic::{AtomicBool, Ordering};

use proc_macro::TokenStream;

/// Whether a tool of the crate that is being compiled named a restart point before. A compiler compiles one crate,
/// and nothing in the language says "once in this crate".
static HAS_RESTART: AtomicBool = AtomicBool::new(false);

/// Makes a tool of a function.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    let is_first_restart = || !HAS_RESTART.swap(true, Ordering::Relaxed);
    tool::expand(options.into(), &item.into(), is_first_restart).into()
}

/// Whether these exports were written in the crate before.
static HAS_RESOURCES: AtomicBool = AtomicBool::new(false);
static HAS_PROMPTS: AtomicBool = AtomicBool::new(false);
static HAS_COMPLETIONS: AtomicBool = AtomicBool::new(false);

fn library_exports() -> library::Exports<'static> {
    library::Exports {
        resources: &HAS_RESOURCES,
        prompts: &HAS_PROMPTS,
        completions: &HAS_COMPLETIONS,
    }
}

/// Makes something that clients can read of a function.
#[proc_macro_attribute]
pub fn resource(options: TokenStream, item: TokenStream) -> TokenStream {
    library::resource(options.into(), &item.into(), &library_exports()).into()
}

/// Makes a prompt of a function.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, item: TokenStream) -> TokenStream {
    library::prompt(options.into(), &item.into(), &library_exports()).into()
}

/// Makes a struct or an enum a type that an argument of a tool, or the answer to a form, may have.
#[proc_macro_derive(Argument, attributes(tool))]
pub fn argument(item: TokenStream) -> TokenStream {
    shape::expand(item.into(), shape::Use::Argument).into()
}

/// Says how the values of a struct or an enum look as JSON, for a result that is data.
#[proc_macro_derive(Schema, attributes(tool, serde))]
pub fn schema(item: TokenStream) -> TokenStream {
    shape::expand(item.into(), shape::Use::Result).into()
}
