//! Sets of hosts, as rules name them.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::authority::{Domain, Host, Malformed};
use crate::suffix;

/// A set of hosts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum HostPattern {
    /// That one.
    Exact(Host),
    /// Every name below that one, and not that one: `*.example.org`.
    Below(Domain),
    /// Every host there is: `*`.
    Any,
}

impl HostPattern {
    /// Whether that host belongs to it.
    #[must_use]
    pub fn holds(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Exact(one), host) => one == host,
            (Self::Below(above), Host::Name(name)) => name.is_below(above),
            (Self::Below(_), Host::Address(_)) => false,
        }
    }

    /// The hosts of both.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Option<Self> {
        let narrower = match (self, other) {
            (Self::Any, narrower) | (narrower, Self::Any) => narrower,
            (Self::Exact(host), pattern) | (pattern, Self::Exact(host)) => {
                return pattern.holds(host).then(|| Self::Exact(host.clone()));
            }
            (Self::Below(one), Self::Below(two)) if one == two || one.is_below(two) => self,
            (Self::Below(one), Self::Below(two)) if two.is_below(one) => other,
            (Self::Below(_), Self::Below(_)) => return None,
        };
        Some(narrower.clone())
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => host.fmt(f),
            Self::Below(above) => write!(f, "*.{above}"),
            Self::Any => f.write_str("*"),
        }
    }
}

impl FromStr for HostPattern {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let refuse = |fault| Malformed::new(text, fault);
        if text.contains("://") {
            return Err(refuse("is a URL; scheme and port have keys of their own"));
        }
        let Some(above) = text.strip_prefix("*.") else {
            return if text.contains('*') {
                Err(refuse("has a star elsewhere than as its whole first label"))
            } else {
                Host::read(text).map(Self::Exact)
            };
        };
        match Host::read(above).map_err(|_| refuse("has no host name behind its star"))? {
            Host::Name(name) if suffix::is_public(&name) => Err(refuse(
                "would hold names of strangers: anybody can register one there; name the hosts one by one",
            )),
            Host::Name(name) => Ok(Self::Below(name)),
            Host::Address(_) => Err(refuse("has an address behind its star")),
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}
