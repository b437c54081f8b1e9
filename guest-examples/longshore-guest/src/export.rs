//! From tools to a component.

use crate::bindings::exports::longshore::tool::tools;
use crate::bindings::longshore::tool::types::CallError;
use crate::panic::install_hook;
use crate::result::Outcome;
use crate::tool::{Description, Tool};

/// One row of a component's table of tools, as [`export!`](crate::export!) makes it from a [`Tool`]: functions, so
/// that a call builds nothing for the tools that it does not call.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name that callers use.
    pub name: &'static str,
    /// What the tool is.
    pub describe: fn() -> Description,
    /// Runs the tool on arguments in JSON.
    pub call: fn(&str) -> Outcome,
}

impl Entry {
    /// The row of a tool.
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            describe: T::describe,
            call: call_parsed::<T>,
        }
    }
}

fn call_parsed<T: Tool>(arguments: &str) -> Outcome {
    let arguments = serde_json::from_str(arguments).map_err(|error| {
        CallError::tool(format!("the arguments of {} do not fit: {error}", T::NAME))
    })?;
    T::call(arguments)
}

/// Answers `list-tools`.
#[doc(hidden)]
#[must_use]
pub fn list(entries: &[Entry]) -> Vec<tools::Tool> {
    install_hook();
    entries
        .iter()
        .map(|entry| (entry.describe)().into_wire(entry.name))
        .collect()
}

/// Answers `call-tool`.
#[doc(hidden)]
pub fn call(entries: &[Entry], name: &str, arguments: &str) -> Outcome {
    /// JSON-RPC 2.0, invalid params: the host only calls tools that were listed, so this is another component's.
    const INVALID_PARAMS: i32 = -32602;

    install_hook();
    match entries.iter().find(|entry| entry.name == name) {
        Some(entry) => (entry.call)(arguments),
        None => Err(CallError::rpc(
            INVALID_PARAMS,
            format!("no tool {name} in this component"),
        )),
    }
}

/// Makes a component of tools: `longshore_guest::export!(Hello, Goodbye);`, once in a `cdylib` crate. It takes types
/// that implement [`Tool`](crate::Tool).
#[macro_export]
macro_rules! export {
    ($($tool:ty),+ $(,)?) => {
        const _: () = {
            struct Component;

            const ENTRIES: &[$crate::Entry] = &[$($crate::Entry::of::<$tool>()),+];

            impl $crate::bindings::exports::longshore::tool::tools::Guest for Component {
                fn list_tools() -> ::std::vec::Vec<$crate::bindings::exports::longshore::tool::tools::Tool> {
                    $crate::list(ENTRIES)
                }

                fn call_tool(name: ::std::string::String, arguments: ::std::string::String) -> $crate::Outcome {
                    $crate::call(ENTRIES, &name, &arguments)
                }
            }

            $crate::bindings::export!(Component with_types_in $crate::bindings);
        };
    };
}

#[cfg(test)]
mod tests {
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
    fn a_call_reaches_the_tool_with_its_arguments() {
        assert_eq!(
            call(ENTRIES, "double", r#"{"number":21}"#),
            Ok(ToolResult::text("42"))
        );
    }

    #[test]
    fn arguments_that_do_not_fit_are_a_tool_error() {
        let Err(CallError::Failed(result)) = call(ENTRIES, "double", r#"{"number":"x"}"#) else {
            panic!("a tool error")
        };
        let [Block::Text(text)] = &*result.content else {
            panic!("one text")
        };
        assert!(
            text.starts_with("the arguments of double do not fit: invalid type: string"),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_tool_is_a_protocol_error() {
        let Err(CallError::Protocol(RpcError { code, .. })) = call(ENTRIES, "triple", "{}") else {
            panic!("a protocol error")
        };
        assert_eq!(code, -32602);
    }
}
