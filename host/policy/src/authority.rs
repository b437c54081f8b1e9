//! Whom a request goes to, read once: what is judged is what is dialled.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use idna::AsciiDenyList;
use serde::{Deserialize, Serialize};

/// How a request travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    #[default]
    Https,
}

impl Scheme {
    /// The port that is meant where none is named.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// The word in front of `://`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The scheme of that word, in whatever case.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Http, Self::Https]
            .into_iter()
            .find(|scheme| word.eq_ignore_ascii_case(scheme.as_str()))
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no host, or no host and port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} {fault}")]
pub struct Malformed {
    text: String,
    fault: &'static str,
}

/// Enough of a text to know it by in a message.
const SHOWN_CHARS: usize = 80;

impl Malformed {
    pub(crate) fn new(text: &str, fault: &'static str) -> Self {
        Self {
            text: text.chars().take(SHOWN_CHARS).collect(),
            fault,
        }
    }
}

/// A host name in the one form that it is compared in: lower case, ASCII, without the dot at its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(String);

/// Of a whole name, and of one label, as DNS has it.
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

impl Domain {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its labels, the outermost last.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// Whether it lies in the other one, at whatever depth, and is not that one itself.
    #[must_use]
    pub fn is_below(&self, other: &Self) -> bool {
        self.0
            .strip_suffix(other.as_str())
            .is_some_and(|rest| rest.ends_with('.'))
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A host: a name that is still to be resolved, or an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name.
    Name(Domain),
    /// An address. An IPv4 address inside an IPv6 one that only wraps it is the IPv4 address.
    Address(IpAddr),
}

impl Host {
    /// Reads a host as it stands in a URL, an IPv6 address in brackets.
    ///
    /// Forms that a resolver or another parser could take for something else are refused and not guessed at:
    /// numbers that are no dotted-decimal address, user names, escapes.
    pub fn read(text: &str) -> Result<Self, Malformed> {
        let refuse = |fault| Err(Malformed::new(text, fault));
        if text.contains('@') {
            return refuse("names a user; credentials do not belong in an address");
        }
        if let Some(inside) = text.strip_prefix('[') {
            let address = inside.strip_suffix(']').map(str::parse::<Ipv6Addr>);
            return match address {
                Some(Ok(address)) => Ok(Self::Address(address.to_canonical())),
                _ => refuse("is no IPv6 address in brackets"),
            };
        }
        if text.contains(':') {
            return refuse("has a colon in its host; an IPv6 address stands in brackets");
        }
        if text.contains('%') {
            return refuse("has an escape in its host");
        }
        let Ok(ascii) = idna::domain_to_ascii_cow(text.as_bytes(), AsciiDenyList::URL) else {
            return refuse("is no host name");
        };
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        if name.is_empty() {
            return refuse("names no host");
        }
        if name.split('.').next_back().is_some_and(is_numeric) {
            // Resolvers read such names as addresses, each in its own way.
            return match name.parse::<Ipv4Addr>() {
                Ok(address) => Ok(Self::Address(address.into())),
                Err(_) => {
                    refuse("is a number that is no address in its usual form, like 192.0.2.1")
                }
            };
        }
        if name.len() > NAME_BYTES || !name.split('.').all(is_label) {
            return refuse("is no host name");
        }
        Ok(Self::Name(Domain(name.to_owned())))
    }
}

fn is_numeric(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x");
    hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || (!label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=LABEL_BYTES).contains(&label.len())
        && label
            .bytes()
            .all(|byte| plain(byte) || matches!(byte, b'-' | b'_'))
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A host and a port: what a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port, also where it was not named.
    pub port: u16,
}

impl Authority {
    /// Reads what stands behind `://` in a URL of that scheme, up to the path.
    pub fn read(scheme: Scheme, text: &str) -> Result<Self, Malformed> {
        let (host, port) = split(text);
        let host =
            Host::read(host).map_err(|Malformed { fault, .. }| Malformed::new(text, fault))?;
        let port = match port {
            None | Some("") => scheme.port(),
            Some(digits) => {
                port_of(digits).ok_or_else(|| Malformed::new(text, "has no valid port"))?
            }
        };
        Ok(Self { host, port })
    }
}

/// The host, and what stands behind the colon after it.
fn split(text: &str) -> (&str, Option<&str>) {
    let behind = text.rfind(']').map_or(0, |at| at + 1);
    match text[behind..].find(':') {
        Some(at) => (&text[..behind + at], Some(&text[behind + at + 1..])),
        None => (text, None),
    }
}

fn port_of(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| plain && *port != 0)
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
