//! Restart points: a call that saved how far it is goes on from there when its process dies.
//!
//! Only a component with a tool that says `#[tool(restart = ...)]` exports `longshore:tool/restart`. The macro writes
//! that export into the tool's own crate: here it would be part of every component.

use serde::de::DeserializeOwned;

use crate::argument::{Members, Mismatch};
use crate::bindings::longshore::tool::types::CallError;
use crate::export::{Entry, resume_call, run_on};
use crate::panic::install_hook;
use crate::result::Outcome;

/// What the macro's export names.
pub mod bindings {
    #![expect(missing_docs, reason = "what the generator adds has none")]

    wit_bindgen::generate!({
        inline: "
            package longshore:guest-restart;

            world restarts {
                export longshore:tool/restart@0.1.0;
            }
        ",
        path: "../../wit",
        world: "longshore:guest-restart/restarts",
        with: { "longshore:tool/types@0.1.0": crate::bindings::longshore::tool::types },
        pub_export_macro: true,
    });
}

/// The way back in, over the same table of tools as the way in.
#[derive(Debug, Clone, Copy)]
pub struct Restart;

impl bindings::exports::longshore::tool::restart::Guest for Restart {
    fn resume_tool(name: String, arguments: String, state: Vec<u8>) -> Outcome {
        install_hook();
        resume_call(inventory::iter::<Entry>(), &name, &arguments, &state)
    }
}

/// Runs a tool from a restart point, on arguments that are taken one by one.
///
/// # Errors
/// What the tool gives, or that the arguments or the state do not fit.
pub fn resume<S: DeserializeOwned>(
    name: &str,
    arguments: &str,
    state: &[u8],
    tool: fn(S, &mut Members) -> Result<Outcome, Mismatch>,
) -> Outcome {
    let state = serde_json::from_slice(state).map_err(|error| {
        CallError::tool(format!(
            "the restart point of {name} does not fit what `restart` names: {error}"
        ))
    })?;
    run_on(name, arguments, |members| tool(state, members))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::longshore::tool::types::ToolResult;
    use crate::export::tests::tool_error;

    fn add(arguments: &str, state: &[u8]) -> Outcome {
        resume("add", arguments, state, |sum: u32, members| {
            let more: u32 = members.take("more")?;
            Ok(Ok((sum + more).to_string().into()))
        })
    }

    #[test]
    fn a_tool_gets_its_state_and_its_arguments() {
        assert_eq!(add(r#"{"more":2}"#, b"40"), Ok(ToolResult::text("42")));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let state = tool_error(add(r#"{"more":2}"#, b"{}"));
        assert!(
            state.starts_with("the restart point of add does not fit what `restart` names: "),
            "{state}"
        );
        assert_eq!(
            tool_error(add("{}", b"40")),
            "the arguments of add do not fit: more is missing"
        );
    }
}
