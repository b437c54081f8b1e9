//! What a component keeps beyond its calls, and what a call leaves, as far as a guest sees it.

use serde::{Deserialize, Serialize};

use crate::path::Path;
use crate::record::Bytes;

/// What a guest does with what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `key-value.get`
    Get {
        /// Whose value.
        key: String,
    },
    /// `key-value.set`
    Set {
        /// Whose value.
        key: String,
        /// Which.
        value: Vec<u8>,
    },
    /// `key-value.delete`
    Delete {
        /// Which key.
        key: String,
    },
    /// `key-value.list-keys`
    List {
        /// What the keys begin with.
        prefix: String,
        /// Behind which they come.
        after: Option<String>,
        /// At most so many.
        limit: u32,
    },
    /// `key-value.increment`
    Increment {
        /// Whose number.
        key: String,
        /// By how much.
        delta: i64,
    },
    /// `key-value.swap`
    Swap {
        /// Whose value.
        key: String,
        /// What it has to be.
        expected: Option<Vec<u8>>,
        /// What it becomes.
        new: Option<Vec<u8>>,
    },
    /// `artifacts.put`
    Put {
        /// What it is called.
        name: String,
        /// Its media type.
        mime_type: String,
        /// What is left.
        data: Vec<u8>,
    },
}

/// What came of it.
pub type Outcome = Result<Found, Failure>;

/// What a guest sees. New kinds are only ever added at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// A value, if there is one.
    Value(Option<Bytes>),
    /// It is done.
    Done,
    /// A number.
    Number(i64),
    /// Whether it was swapped.
    Swapped(bool),
    /// Keys.
    Keys {
        /// In order.
        keys: Vec<String>,
        /// Behind which there are more.
        next: Option<String>,
    },
    /// Where what was left is read.
    Uri(String),
}

/// Why it was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// It is over a limit.
    Limit(String),
    /// It makes no sense.
    Invalid(String),
}

impl Operation {
    /// Whether it may change something.
    #[must_use]
    pub fn is_change(&self) -> bool {
        match self {
            Self::Get { .. } | Self::List { .. } => false,
            Self::Set { .. }
            | Self::Delete { .. }
            | Self::Increment { .. }
            | Self::Swap { .. }
            | Self::Put { .. } => true,
        }
    }

    pub(crate) fn mix_into(&self, path: &mut Path) {
        let mut option = |bytes: Option<&[u8]>| match bytes {
            Some(bytes) => path.mix_bytes(bytes),
            None => path.mix(u64::MAX),
        };
        match self {
            Self::Get { key } | Self::Delete { key } => option(Some(key.as_bytes())),
            Self::Set { key, value } => {
                option(Some(key.as_bytes()));
                option(Some(value));
            }
            Self::List {
                prefix,
                after,
                limit,
            } => {
                option(Some(prefix.as_bytes()));
                option(after.as_ref().map(String::as_bytes));
                path.mix(u64::from(*limit));
            }
            Self::Increment { key, delta } => {
                option(Some(key.as_bytes()));
                path.mix(delta.cast_unsigned());
            }
            Self::Swap { key, expected, new } => {
                option(Some(key.as_bytes()));
                option(expected.as_deref());
                option(new.as_deref());
            }
            Self::Put {
                name,
                mime_type,
                data,
            } => {
                option(Some(name.as_bytes()));
                option(Some(mime_type.as_bytes()));
                option(Some(data));
            }
        }
    }
}

impl Found {
    /// About how much memory it takes, besides its own size.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Value(value) => value.as_ref().map_or(0, |value| value.0.len()),
            Self::Keys { keys, .. } => keys.iter().map(|key| key.len() + size_of::<String>()).sum(),
            Self::Uri(uri) => uri.len(),
            Self::Done | Self::Number(_) | Self::Swapped(_) => 0,
        }
    }
}
