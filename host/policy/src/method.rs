//! Methods of requests, and sets of them.

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::authority::Malformed;
use crate::http::BadRule;

/// A method, as it stands in a request: `get` is not `GET`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Method(String);

/// The longest that is registered has 17.
const METHOD_BYTES: usize = 32;
/// Methods that ask for something else than an answer: a tunnel, and the request itself with all that was put
/// into it.
const NEVER: [&str; 2] = ["CONNECT", "TRACE"];
/// Methods that change nothing.
pub(crate) const READS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

impl Method {
    /// The method as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_never_sent(&self) -> bool {
        NEVER.iter().any(|never| self.0.eq_ignore_ascii_case(never))
    }
}

impl FromStr for Method {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if (1..=METHOD_BYTES).contains(&text.len()) && text.bytes().all(is_token) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Malformed::new(text, "is no HTTP method"))
        }
    }
}

impl TryFrom<String> for Method {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.0
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of methods. None has `CONNECT` or `TRACE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Methods {
    /// All others.
    Every,
    /// Those.
    These(BTreeSet<Method>),
}

impl Default for Methods {
    /// Those that change nothing.
    fn default() -> Self {
        Self::These(READS.iter().map(|&read| Method(read.to_owned())).collect())
    }
}

impl Methods {
    pub(crate) fn holds(&self, method: &Method) -> bool {
        match self {
            Self::Every => !method.is_never_sent(),
            Self::These(these) => these.contains(method),
        }
    }

    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Every, methods) | (methods, Self::Every) => Some(methods.clone()),
            (Self::These(one), Self::These(two)) => {
                let both: BTreeSet<Method> = one.intersection(two).cloned().collect();
                (!both.is_empty()).then_some(Self::These(both))
            }
        }
    }

    pub(crate) fn words(&self) -> Vec<String> {
        match self {
            Self::Every => vec!["*".to_owned()],
            Self::These(these) => these.iter().map(ToString::to_string).collect(),
        }
    }

    pub(crate) fn of_words(words: &[String]) -> Result<Self, BadRule> {
        if words == ["*"] {
            return Ok(Self::Every);
        }
        // Beside others it would be kept as one of them, and read again as all.
        if words.iter().any(|word| word == "*") {
            return Err(BadRule::NotAlone);
        }
        let these = words
            .iter()
            .map(|word| {
                let method: Method = word.parse()?;
                if method.is_never_sent() {
                    return Err(BadRule::Never(method));
                }
                Ok(method)
            })
            .collect::<Result<BTreeSet<Method>, BadRule>>()?;
        if these.is_empty() {
            return Err(BadRule::NoMethods);
        }
        Ok(Self::These(these))
    }
}
