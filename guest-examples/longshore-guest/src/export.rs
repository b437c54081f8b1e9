//! From tools to a component.
//!
//! Each tool leaves an [`Entry`] in a table that the linker puts together, so that nobody writes a list of them, and
//! this crate exports the component's functions over it.

use crate::argument::{Members, Mismatch};
use crate::bindings::exports::longshore::tool::tools;
use crate::bindings::longshore::tool::types::CallError;
use crate::panic::install_hook;
use crate::result::Outcome;
use crate::tool::{Description, Tool};

/// One row of a component's table of tools: functions, so that a call builds nothing for the tools that it does not
/// call.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name that callers use.
    pub name: &'static str,
    /// What the tool is.
    pub describe: fn() -> Description,
    /// Runs the tool on arguments in JSON.
    pub call: fn(&str) -> Outcome,
    /// Goes on from a restart point, on the same arguments and the state that was saved, if the tool saves any.
    pub resume: Option<fn(&str, &[u8]) -> Outcome>,
}

inventory::collect!(Entry);

impl Entry {
    /// The row of a tool.
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            describe: T::describe,
            call: call_parsed::<T>,
            resume: None,
        }
    }
}

fn call_parsed<T: Tool>(arguments: &str) -> Outcome {
    let arguments =
        serde_json::from_str(arguments).map_err(|error| does_not_fit(T::NAME, &error))?;
    T::call(arguments)
}

/// Runs a tool on arguments that are taken one by one.
///
/// # Errors
/// What the tool gives, or that the arguments do not fit.
pub fn run(
    name: &str,
    arguments: &str,
    tool: fn(&mut Members) -> Result<Outcome, Mismatch>,
) -> Outcome {
    run_on(name, arguments, tool)
}

pub(crate) fn run_on(
    name: &str,
    arguments: &str,
    tool: impl FnOnce(&mut Members) -> Result<Outcome, Mismatch>,
) -> Outcome {
    let value = serde_json::from_str(arguments).map_err(|error| does_not_fit(name, &error))?;
    Members::of(value)
        .and_then(|mut members| tool(&mut members))
        .unwrap_or_else(|mismatch| Err(does_not_fit(name, &mismatch)))
}

fn does_not_fit(name: &str, why: &dyn std::fmt::Display) -> CallError {
    CallError::tool(format!("the arguments of {name} do not fit: {why}"))
}

struct Component;

impl tools::Guest for Component {
    fn list_tools() -> Vec<tools::Tool> {
        install_hook();
        list(inventory::iter::<Entry>())
    }

    fn call_tool(name: String, arguments: String) -> Outcome {
        install_hook();
        call(inventory::iter::<Entry>(), &name, &arguments)
    }
}

crate::bindings::export!(Component with_types_in crate::bindings);

/// In the order of their names: the linker has none.
fn list<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<tools::Tool> {
    let mut tools: Vec<tools::Tool> = entries
        .into_iter()
        .map(|entry| (entry.describe)().into_wire(entry.name))
        .collect();
    tools.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    tools
}

fn call<'a>(entries: impl IntoIterator<Item = &'a Entry>, name: &str, arguments: &str) -> Outcome {
    (find(entries, name)?.call)(arguments)
}

pub(crate) fn resume_call<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    name: &str,
    arguments: &str,
    state: &[u8],
) -> Outcome {
    match find(entries, name)?.resume {
        Some(resume) => resume(arguments, state),
        None => Err(CallError::tool(format!(
            "{name} saved a restart point and cannot go on from it: name the function that can, with \
             `#[tool(restart = ...)]`"
        ))),
    }
}

fn find<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    name: &str,
) -> Result<&'a Entry, CallError> {
    /// JSON-RPC 2.0, invalid params: the host only calls tools that were listed, so this is another component's.
    const INVALID_PARAMS: i32 = -32602;

    entries
        .into_iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| CallError::rpc(INVALID_PARAMS, format!("no tool {name} in this component")))
}

/// Adds tools that are types which implement [`Tool`](crate::Tool) to the component: `longshore_guest::export!(Hello);`.
#[macro_export]
macro_rules! export {
    ($($tool:ty),+ $(,)?) => {
        $($crate::private::inventory::submit! { $crate::private::Entry::of::<$tool>() })+
    };
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bindings::longshore::tool::types::{Block, RpcError, ToolResult};

    struct Double;

    #[derive(serde::Deserialize)]
    struct Arguments {
        number: i64,
    }

    impl Tool for Double {
        const NAME: &'static str = "double";
        type Arguments = Arguments;

        fn describe() -> Description {
            Description {
                description: "Doubles a number.",
                ..Description::default()
            }
        }

        fn call(arguments: Arguments) -> Outcome {
            Ok((arguments.number * 2).to_string().into())
        }
    }

    const ENTRIES: &[Entry] = &[Entry::of::<Double>()];

    /// The text of a tool error.
    #[track_caller]
    pub(crate) fn tool_error(outcome: Outcome) -> String {
        let Err(CallError::Failed(result)) = outcome else {
            panic!("not a tool error: {outcome:?}")
        };
        match &*result.content {
            [Block::Text(text)] => text.clone(),
            other => panic!("not one text: {other:?}"),
        }
    }

    #[test]
    fn a_tool_is_listed_under_its_name() {
        let listed = list(ENTRIES);
        assert_eq!(listed.len(), 1);
        assert_eq!(
            (&*listed[0].name, &*listed[0].description),
            ("double", "Doubles a number.")
        );
    }

    #[test]
    fn tools_are_listed_in_the_order_of_their_names() {
        let named = |name| Entry {
            name,
            ..Entry::of::<Double>()
        };
        let listed = list(&[named("b"), named("c"), named("a")]);
        let names: Vec<&str> = listed.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[test]
    fn a_call_reaches_the_tool_with_its_arguments() {
        assert_eq!(
            call(ENTRIES, "double", r#"{"number":21}"#),
            Ok(ToolResult::text("42"))
        );
    }

    #[test]
    fn arguments_that_do_not_fit_are_a_tool_error() {
        let text = tool_error(call(ENTRIES, "double", r#"{"number":"x"}"#));
        assert!(
            text.starts_with("the arguments of double do not fit: invalid type: string"),
            "{text}"
        );
    }

    #[test]
    fn a_restart_reaches_what_the_tool_named_for_it() {
        let entry = Entry {
            resume: Some(|arguments, state| {
                Ok(format!("{arguments} from {}", String::from_utf8_lossy(state)).into())
            }),
            ..Entry::of::<Double>()
        };
        assert_eq!(
            resume_call(&[entry], "double", "{}", b"7"),
            Ok(ToolResult::text("{} from 7"))
        );
        let text = tool_error(resume_call(ENTRIES, "double", "{}", b"7"));
        assert!(text.starts_with("double saved a restart point"), "{text}");
    }

    #[test]
    fn an_unknown_tool_is_a_protocol_error() {
        let Err(CallError::Protocol(RpcError { code, .. })) = call(ENTRIES, "triple", "{}") else {
            panic!("a protocol error")
        };
        assert_eq!(code, -32602);
    }
}
