//! Ports of rules.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Which ports a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// That one.
    At(u16),
    /// Every one.
    Any,
}

/// A port as it is written: a number, or a star.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Number(u16),
    Star(Star),
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Star {
    #[serde(rename = "*")]
    Star,
}

impl From<Written> for Port {
    fn from(written: Written) -> Self {
        match written {
            Written::Number(port) => Self::At(port),
            Written::Star(Star::Star) => Self::Any,
        }
    }
}

impl From<Port> for Written {
    fn from(port: Port) -> Self {
        match port {
            Port::At(port) => Self::Number(port),
            Port::Any => Self::Star(Star::Star),
        }
    }
}

impl Port {
    /// Whether it is one of them.
    #[must_use]
    pub fn holds(self, port: u16) -> bool {
        match self {
            Self::At(at) => at == port,
            Self::Any => true,
        }
    }

    /// The ports of both.
    #[must_use]
    pub fn meet(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, port) | (port, Self::Any) => Some(port),
            (Self::At(one), Self::At(two)) => (one == two).then_some(self),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(port) => port.fmt(f),
            Self::Any => f.write_str("*"),
        }
    }
}
