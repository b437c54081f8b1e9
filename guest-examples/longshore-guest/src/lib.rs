//! Write a Longshore tool in Rust.
//!
//! A tool is a function:
//!
//! ```no_run
//! use longshore_guest::tool;
//!
//! /// Greets somebody by name.
//! #[tool]
//! fn hello(/** Who is greeted. */ name: String) -> String {
//!     format!("Hello, {name}!")
//! }
//! # fn main() {}
//! ```
//!
//! The crate that holds it is a `cdylib`; `cargo build --release --target wasm32-wasip2` gives the component.
//!
//! - [`macro@tool`]: a function becomes a tool. [`Argument`](macro@Argument) and [`Schema`](macro@Schema): structs
//!   and enums in its arguments and its result.
//! - [`macro@resource`], [`macro@prompt`]: a function becomes something that clients read, or that people choose and fill
//!   in; with proposals while they type, if wanted.
//! - [`Context`]: the call that is running: status, progress, questions, sleep, steps, restart points, log.
//! - [`result`]: what a tool answers, well or not.
//! - [`task`] and [`ask`]: what [`Context`] does, as functions.
//! - [`mod@resource`], [`mod@prompt`], [`completion`]: what those functions may return.
//! - [`http`]: requests to others, as far as the operator lets them be sent. [`manifest!`]: what to ask the operator for.
//! - [`wait`]: waiting for a state elsewhere, without being there.
//! - [`values`]: what the component keeps beyond its calls. [`artifacts`]: what a call leaves for whoever called.
//! - [`changes`]: notices to the clients that listen.
//! - [`mod@tool`]: the long form, for what the macro cannot say, such as a schema written by hand.
//! - [`bindings`]: the contract itself, for what has no shorter form here.

// The macros name this crate from outside, and its own tests use them.
extern crate self as longshore_guest;

pub mod argument;
pub mod artifacts;
pub mod ask;
pub mod bindings;
pub mod changes;
pub mod completion;
mod context;
mod export;
pub mod http;
mod kept;
mod panic;
pub mod prompt;
pub mod resource;
mod restart;
pub mod result;
mod schema;
pub mod task;
pub mod tool;
pub mod values;
pub mod wait;

pub use argument::Argument;
pub use bindings::exports::longshore::tool::tools::TaskMode;
pub use bindings::longshore::tool::types::{Block, CallError, ToolResult};
pub use context::Context;
pub use result::{Cancelled, Outcome};
pub use schema::Schema;
pub use tool::{Description, Requirement, Tool};

/// Makes a tool of a function, and a component of all the tools in a crate: there is no list of them to write.
///
/// ```no_run
/// use std::time::Duration;
///
/// use longshore_guest::{CallError, Context, tool};
///
/// /// Counts down to zero, and says so.
/// #[tool(task_mode = "always", read_only)]
/// fn count_down(
///     /// Where it starts.
///     #[tool(minimum = 1)]
///     from: u32,
///     /// Seconds between two numbers.
///     #[tool(default = 1.0)]
///     pause: f64,
///     ctx: &Context,
/// ) -> Result<String, CallError> {
///     let pause = Duration::try_from_secs_f64(pause).map_err(|error| error.to_string())?;
///     for left in (1..=from).rev() {
///         ctx.status(format!("{left} to go"));
///         ctx.sleep(pause)?;
///     }
///     Ok("zero".to_owned())
/// }
/// # fn main() {}
/// ```
///
/// **Name.** That of the function, with `-` for `_`.
///
/// **Description.** The doc comment. Models choose by it.
///
/// **Arguments.** Each is a member of the JSON object that callers give, described by its own doc comment. There are
/// texts, integers (a caller may write `3.0`), floats, `bool`, `Option` for what may be left out, `Vec`, maps with
/// `String` keys, [`serde_json::Value`] for anything, and structs and enums that derive [`Argument`](macro@Argument).
/// The host checks them against the schema before the tool runs. An argument of type `&Context` is not the caller's:
/// it is the call that is running.
///
/// **Result.** A text, a number, a [`ToolResult`], or a `Result` of one. An error of any type that is `Display` is an
/// answer that the model can read, and try again; [`CallError`] can say other things. A panic ends the call, and its
/// message is the last word of the log.
///
/// Options of the tool, `#[tool(...)]`:
///
/// - `name = "..."`, `title = "..."`: the name for callers, and one for people.
/// - `task_mode = "never" | "on-detach" | "auto" | "always"`: when a call becomes a task; `auto` if not said.
/// - `requires("tasks", "elicitation.form", ...)`: what a caller must be capable of; see [`Requirement`].
/// - `output`: the result is data, and its type derives `Serialize` and [`Schema`](macro@Schema).
/// - `deadline_ms = N`: what a call may take, in milliseconds.
/// - `read_only`, `idempotent`, `destructive = false`, `open_world = false`: hints to clients, and to the host, which
///   may start a call again whose process died if it is one of the first two.
/// - `restart = FUNCTION`: where the call goes on behind a restart point that it saved with [`Context::checkpoint`],
///   now and after every later death of its process. The function takes the saved state, then all that the tool
///   takes, and returns what the tool returns:
///
///   ```no_run
///   use longshore_guest::{Context, tool};
///
///   /// Adds up the numbers below a limit.
///   #[tool(task_mode = "always", restart = add_from)]
///   fn add_up(/** The limit. */ limit: u64, ctx: &Context) -> u64 {
///       add_from((0, 0), limit, ctx)
///   }
///
///   fn add_from((mut next, mut sum): (u64, u64), limit: u64, ctx: &Context) -> u64 {
///       if next == limit {
///           return sum;
///       }
///       sum += next;
///       next += 1;
///       ctx.checkpoint(&(next, sum))
///   }
///   # fn main() {}
///   ```
///
/// Options of an argument:
///
/// - `name = "..."`: the name for callers.
/// - `default` or `default = VALUE`: it may be left out, and this stands in.
/// - `title`, `minimum`, `maximum`, `min_length`, `max_length`, `min_items`, `max_items`, `pattern`, `format`: as in
///   JSON Schema.
/// - `header = "Name"`: clients repeat the value in the HTTP header `Mcp-Param-Name`, for what stands between to read.
///   Never for a secret.
pub use longshore_guest_macros::tool;

/// Makes something that clients can read of a function.
///
/// ```no_run
/// use longshore_guest::resource;
///
/// /// What is to be done.
/// #[resource("notes://all", mime_type = "text/plain")]
/// fn all() -> String {
///     "Buy milk.".to_owned()
/// }
///
/// /// What is to be done on one day.
/// #[resource("notes://{day}", mime_type = "text/plain")]
/// fn of_day(#[resource(complete = days)] day: String) -> Option<&'static str> {
///     (day == "monday").then_some("Buy milk.")
/// }
///
/// fn days(typed: &str) -> Vec<&'static str> {
///     ["monday", "tuesday"].into_iter().filter(|day| day.starts_with(typed)).collect()
/// }
/// # fn main() {}
/// ```
///
/// The URI is absolute and stands first. With variables in braces it is a template, and the function takes each
/// variable as a `String`: one segment of the path, decoded. The doc comment is the description. An argument of type
/// `&Context` is the request that is running.
///
/// **Result.** A text, bytes (a `Vec<u8>` or a slice), an `Option` for what may not be there, a `Result`, or a list of
/// [`Contents`](mod@resource); see [`IntoRead`](resource::IntoRead).
///
/// Options: `name = "..."` (that of the function, with `-` for `_`, if not said), `title = "..."`, `mime_type = "..."`.
/// Options of a variable: `complete = FUNCTION`, which proposes values for what was typed so far.
pub use longshore_guest_macros::resource;

/// Makes a prompt of a function, for people to choose and fill in.
///
/// ```no_run
/// use longshore_guest::prompt;
///
/// /// Asks for a review of some code.
/// #[prompt(title = "Review")]
/// fn review(
///     /// The code.
///     code: String,
///     /// What it is written in.
///     #[prompt(complete = languages)]
///     language: Option<String>,
/// ) -> String {
///     format!("Review this {} code:\n\n{code}", language.unwrap_or_default())
/// }
///
/// fn languages(typed: &str) -> Vec<&'static str> {
///     ["Go", "Rust"].into_iter().filter(|name| name.starts_with(typed)).collect()
/// }
/// # fn main() {}
/// ```
///
/// The name is that of the function, with `-` for `_`; the doc comment is the description. Arguments are texts:
/// `String`, or `Option<String>` for what may be left out, each described by its own doc comment. An argument of type
/// `&Context` is the request that is running.
///
/// **Result.** A text or a [`Block`], which is one message of the person, a list of [`Message`](prompt::Message)s, or a
/// `Result` of one, whose error says what is wrong with an argument; see [`IntoPrompt`](prompt::IntoPrompt).
///
/// Options: `name = "..."`, `title = "..."`. Options of an argument: `name = "..."`, and `complete = FUNCTION`, which
/// proposes values for what was typed so far.
pub use longshore_guest_macros::prompt;

/// Makes a struct or an enum a type that an argument of a tool may have, or the answer to a form.
///
/// ```
/// use longshore_guest::{Argument, Schema};
/// use serde_json::json;
///
/// /// A place in a city.
/// #[derive(Argument)]
/// struct Address {
///     street: String,
///     /// The number of the house.
///     #[tool(minimum = 1)]
///     number: u32,
///     kind: Option<Kind>,
/// }
///
/// #[derive(Argument)]
/// #[tool(rename_all = "kebab-case")]
/// enum Kind {
///     Home,
///     WorkPlace,
/// }
///
/// assert_eq!(
///     Address::schema(),
///     json!({
///         "type": "object",
///         "properties": {
///             "street": { "type": "string" },
///             "number": {
///                 "type": "integer", "minimum": 1, "maximum": u32::MAX, "description": "The number of the house.",
///             },
///             "kind": { "type": "string", "enum": ["home", "work-place"] },
///         },
///         "required": ["street", "number"],
///         "additionalProperties": false,
///         "description": "A place in a city.",
///     })
/// );
/// let address = Address::from_json(json!({ "street": "Dock Road", "number": 7.0, "kind": "work-place" }));
/// assert!(matches!(address, Ok(Address { number: 7, kind: Some(Kind::WorkPlace), .. })));
/// ```
///
/// Fields have the options of an argument of [`macro@tool`], variants have `name`. Names are as in the source unless
/// `rename_all` is one of `kebab-case`, `snake_case`, `camelCase` and `PascalCase`.
pub use longshore_guest_macros::Argument;

/// Says how the values of a struct or an enum look as JSON, for a tool with `output`. It goes with serde's
/// `Serialize`, and follows its `rename`, `rename_all` and `skip_serializing_if`.
///
/// ```
/// use longshore_guest::Schema;
/// use serde_json::json;
///
/// #[derive(serde::Serialize, Schema)]
/// struct Counts {
///     words: u64,
///     longest: Option<String>,
/// }
///
/// assert_eq!(
///     Counts::schema(),
///     json!({
///         "type": "object",
///         "properties": {
///             "words": { "type": "integer", "minimum": 0 },
///             "longest": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
///         },
///         "required": ["words", "longest"],
///         "additionalProperties": false,
///     })
/// );
/// ```
pub use longshore_guest_macros::Schema;

/// Says what this component asks its operator for, in TOML. Nothing is granted by it: it is what may be granted at most.
///
/// ```
/// longshore_guest::manifest!(
///     r#"
///     [[http]]
///     host = "api.example.org"
///     methods = ["GET", "POST"]
///     "#
/// );
/// ```
#[macro_export]
macro_rules! manifest {
    ($toml:expr) => {
        const _: () = {
            const TEXT: &[u8] = $toml.as_bytes();
            #[cfg_attr(target_family = "wasm", unsafe(link_section = "longshore:manifest"))]
            #[used]
            static MANIFEST: [u8; TEXT.len()] = {
                let mut bytes = [0; TEXT.len()];
                bytes.copy_from_slice(TEXT);
                bytes
            };
        };
    };
}

/// What the macros use, and nobody else.
#[doc(hidden)]
pub mod private {
    pub use inventory;
    pub use serde_json::{Value, json};

    pub use crate::argument::{Members, choice};
    pub use crate::completion::{
        Completer, Completion, Completions, IntoCompletion, bindings as completion_bindings,
    };
    pub use crate::export::{Entry, run};
    pub use crate::prompt::{
        ArgumentEntry, Given, IntoPrompt, PromptArgument, PromptEntry, Prompted, Prompts,
        bindings as prompt_bindings,
    };
    pub use crate::resource::{
        IntoRead, Read, ReadError, ResourceEntry, Resources, bindings as resource_bindings,
    };
    pub use crate::restart::{Restart, bindings as restart_bindings, resume};
    pub use crate::schema::{Member, described, object};
}
