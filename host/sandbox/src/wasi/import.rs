//! Names of functions.

/// The function of that name, numbered when this is compiled.
macro_rules! import {
    ($name:literal) => {
        const { longshore_journal::import::Import::new($name) }
    };
}
