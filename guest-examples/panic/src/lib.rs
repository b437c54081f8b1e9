//! A tool with a bug: its caller gets a readable line, and nobody else notices.

use longshore_guest::tool::NoArguments;
use longshore_guest::{Description, Outcome, Tool};

struct Panic;

impl Tool for Panic {
    const NAME: &'static str = "panic";
    type Arguments = NoArguments;

    fn describe() -> Description {
        Description {
            description: "Panics, to show what becomes of it.",
            ..Description::default()
        }
    }

    fn call(_: NoArguments) -> Outcome {
        panic!("this tool panics on purpose")
    }
}

longshore_guest::export!(Panic);
