//! Proposals while somebody types an argument of a prompt or a variable of a resource's URI.
//!
//! Only a component with a `complete = ...` exports `longshore:tool/completions`.

use crate::panic::install_hook;
use crate::prompt::PromptEntry;
use crate::resource::ResourceEntry;

pub use self::bindings::exports::longshore::tool::completions::Completion;
use self::bindings::exports::longshore::tool::completions::{Guest, Reference};

/// What the macro's export names.
pub mod bindings {
    #![expect(missing_docs, reason = "what the generator adds has none")]

    wit_bindgen::generate!({
        inline: "
            package longshore:guest-completions;

            world completer {
                export longshore:tool/completions@0.1.0;
            }
        ",
        path: "../../wit",
        world: "longshore:guest-completions/completer",
        with: { "longshore:tool/types@0.1.0": crate::bindings::longshore::tool::types },
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
    });
}

/// Proposes how to go on with what was typed so far.
pub type Completer = fn(&str) -> Completion;

/// What a function of `complete = ...` may return: the proposals, the best first.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a list of proposals",
    label = "not a `Vec` of texts, nor a `Completion`"
)]
pub trait IntoCompletion {
    /// The proposals that this is.
    fn into_completion(self) -> Completion;
}

impl IntoCompletion for Completion {
    fn into_completion(self) -> Completion {
        self
    }
}

/// All that there are.
impl<T: Into<String>> IntoCompletion for Vec<T> {
    fn into_completion(self) -> Completion {
        let values: Vec<String> = self.into_iter().map(Into::into).collect();
        Completion {
            total: u32::try_from(values.len()).ok(),
            values,
            has_more: false,
        }
    }
}

/// The way to a component's proposals.
#[derive(Debug, Clone, Copy)]
pub struct Completions;

impl Guest for Completions {
    fn complete(of: Reference, argument: String, value: String, _context: String) -> Completion {
        install_hook();
        let completers = match of {
            Reference::Prompt(name) => inventory::iter::<PromptEntry>()
                .find(|entry| entry.name == name)
                .map(|entry| entry.completers),
            Reference::ResourceTemplate(text) => inventory::iter::<ResourceEntry>()
                .find(|entry| entry.uri == text)
                .map(|entry| entry.completers),
        };
        completed(completers.unwrap_or_default(), &argument, &value)
    }
}

fn completed(completers: &[(&str, Completer)], argument: &str, value: &str) -> Completion {
    let completer = completers.iter().find(|(name, _)| *name == argument);
    match completer {
        Some((_, complete)) => complete(value),
        None => Vec::<String>::new().into_completion(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_finds_its_completer() {
        let completers: &[(&str, Completer)] =
            &[("a", |typed| vec![format!("{typed}!")].into_completion())];
        let found = completed(completers, "a", "x");
        assert_eq!(
            (found.values, found.total, found.has_more),
            (vec!["x!".to_owned()], Some(1), false)
        );
        assert!(completed(completers, "b", "x").values.is_empty());
    }
}
