//! What is kept of an upload.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::library::Library;
use crate::tool::Tool;

/// The name under which a component is called: it points at one digest at a time. Lower-case
/// letters, digits and dashes, at most 63, so that it is safe in paths, addresses and headers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// A text that cannot name a component.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot name a component: use 1 to 63 of a-z, 0-9 and -, beginning with a letter or digit"
)]
pub struct BadName(pub String);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let bytes = text.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (1..=63).contains(&bytes.len())
            && bytes.first().is_some_and(plain)
            && bytes.iter().all(|byte| plain(byte) || *byte == b'-');
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            // The text comes from outside and goes into an error that people read.
            Err(BadName(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for Name {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

/// Names a component's bytes: `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(String);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use std::fmt::Write as _;
        let mut text = String::from("sha256:");
        for byte in Sha256::digest(bytes) {
            let _infallible = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// A digest that a store kept.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The digest as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What makes a component a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// It lists what it offers.
    #[default]
    Tools,
    /// It exports functions, and each is one.
    Library,
    /// It is a program that is run.
    Command,
}

/// A function that is no tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Which, with its interface.
    pub function: String,
    /// Why not.
    pub why: String,
}

/// A component that was accepted, without its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// The name that points at it.
    pub name: Name,
    /// Its bytes.
    pub digest: Digest,
    /// How many bytes.
    pub size: u64,
    /// Its tools, as it listed them at upload, sorted by name.
    pub tools: Vec<Tool>,
    /// What makes it a tool.
    #[serde(default)]
    pub shape: Shape,
    /// Functions that it exports and that are no tools, with the reason.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// What it offers beside them, as it listed it at upload.
    pub library: Library,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// What it says that it needs, as it says it; nothing if it says nothing.
    pub manifest: Option<String>,
    /// Why its runs cannot be replayed; empty if they can.
    pub volatile: Vec<String>,
    /// When the name was pointed at it, in milliseconds since the Unix epoch.
    pub installed_at_ms: i64,
}

impl Component {
    /// The one that a call of that name is about. A program is one tool, whatever it was called when the call began: it
    /// has the name of its component, and the same bytes may have several.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        match self.shape {
            Shape::Command => self.tools.first(),
            Shape::Tools | Shape::Library => self.tools.iter().find(|tool| tool.name == name),
        }
    }

    /// The same, as it is under its own name: what is kept with its bytes may have been written under another.
    #[must_use]
    pub fn under_its_name(mut self) -> Self {
        if let (Shape::Command, [tool]) = (self.shape, self.tools.as_mut_slice()) {
            tool.name = self.name.to_string();
        }
        self
    }
}
