//! Values of the environment. None comes from the server's own.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EnvName(String);

/// A text that names no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no value of an environment: use letters, digits and _, beginning with a letter or _"
)]
pub struct BadEnvName(String);

const NAME_BYTES: usize = 128;

impl EnvName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EnvName {
    type Err = BadEnvName;

    fn from_str(text: &str) -> Result<Self, BadEnvName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let fits = (1..=NAME_BYTES).contains(&text.len())
            && text.bytes().all(plain)
            && !text.starts_with(|first: char| first.is_ascii_digit());
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadEnvName(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for EnvName {
    type Error = BadEnvName;

    fn try_from(text: String) -> Result<Self, BadEnvName> {
        text.parse()
    }
}

impl From<EnvName> for String {
    fn from(name: EnvName) -> Self {
        name.0
    }
}

impl fmt::Display for EnvName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
