//! The macros of `longshore-guest`, which documents them where it gives them on.
//!
//! - `tool`: a function becomes a tool.
//! - `shape`: a struct or an enum becomes the type of an argument, or of a result.
//! - `options`: what stands in `#[tool(...)]`, at each of its places.
//! - `text`: doc comments and names.

mod options;
mod shape;
mod text;
mod tool;

use proc_macro::TokenStream;

/// Makes a tool of a function.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(options.into(), &item.into()).into()
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
