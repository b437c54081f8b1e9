//! From the text of a path to names.

use super::Refused;
use super::node::NodeId;

/// One name, as everywhere.
const NAME_BYTES: usize = 255;

/// Where a path leads.
pub(super) struct Path {
    pub(super) directory: NodeId,
    /// None if it is that directory itself.
    pub(super) name: Option<Name>,
    /// It ends in a slash, or is a directory for another reason.
    pub(super) is_directory: bool,
}

/// A name that something may bear.
pub(super) struct Name(String);

impl Name {
    pub(super) fn new(name: &str) -> Result<Self, Refused> {
        if name.len() > NAME_BYTES {
            return Err(Refused::NameTooLong);
        }
        if name.contains('\0') {
            return Err(Refused::Invalid);
        }
        Ok(Self(name.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// One step of a path.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Here,
    Up,
    Into(&'a str),
}

/// The steps of a path. One that is empty leads nowhere, one from the root leads outside.
pub(super) fn steps(path: &str) -> Result<impl Iterator<Item = Step<'_>>, Refused> {
    if path.is_empty() {
        return Err(Refused::NoEntry);
    }
    if path.starts_with('/') {
        return Err(Refused::Outside);
    }
    Ok(path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| match part {
            "." => Step::Here,
            ".." => Step::Up,
            name => Step::Into(name),
        }))
}
