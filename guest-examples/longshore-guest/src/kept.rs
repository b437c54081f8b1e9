//! Why something was not kept, or not found.

use crate::bindings::longshore::tool::{artifacts, key_value};

/// Why something was not done. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// It is over a limit: of this one, or of all that is kept.
    Limit(String),
    /// It makes no sense: no key, a number that is none, a media type that is none.
    Invalid(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Limit(text) | Self::Invalid(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<key_value::Error> for Error {
    fn from(error: key_value::Error) -> Self {
        match error {
            key_value::Error::Limit(text) => Self::Limit(text),
            key_value::Error::Invalid(text) => Self::Invalid(text),
        }
    }
}

impl From<artifacts::Error> for Error {
    fn from(error: artifacts::Error) -> Self {
        match error {
            artifacts::Error::Limit(text) => Self::Limit(text),
            artifacts::Error::Invalid(text) => Self::Invalid(text),
        }
    }
}
