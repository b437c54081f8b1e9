//! Secrets by their names: whom they may be shown to, and how. Their values are never here.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::authority::Host;
use crate::pattern::HostPattern;

/// The name of a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(String);

/// A secret that could be no one's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// A text that names none.
    #[error(
        "{0:?} names no secret: use 1 to 63 of a-z, 0-9, - and _, beginning with a letter or digit"
    )]
    Name(String),
    /// It may be shown to nobody.
    #[error("secret {0} names no hosts that it may be shown to")]
    NoHosts(String),
    /// It may be shown to everybody.
    #[error("secret {0} may be shown to any host: name those that may see it")]
    AnyHost(String),
    /// It goes into a header that is not named.
    #[error("secret {0} is sent as a header: say in `header` which")]
    NoHeader(String),
    /// It names a header and does not go into one of its choice.
    #[error("secret {0} names a header, which only one of kind `header` has")]
    Header(String),
    /// What it names is no header that may hold one.
    #[error("{header:?}, named by secret {name}, is no header that a secret can be sent in")]
    BadHeader {
        /// The secret.
        name: String,
        /// The text.
        header: String,
    },
}

impl SecretName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretName {
    type Err = BadSecret;

    fn from_str(text: &str) -> Result<Self, BadSecret> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (1..=63).contains(&text.len())
            && text.bytes().next().is_some_and(plain)
            && text
                .bytes()
                .all(|byte| plain(byte) || matches!(byte, b'-' | b'_'));
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadSecret::Name(text.chars().take(80).collect()))
        }
    }
}

impl TryFrom<String> for SecretName {
    type Error = BadSecret;

    fn try_from(text: String) -> Result<Self, BadSecret> {
        text.parse()
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a secret is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As a bearer token.
    Bearer,
    /// As user and password.
    Basic,
    /// As the value of a header of that name, in lower case.
    Header(String),
}

/// A secret and the hosts that may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Secret {
    /// Which.
    pub name: SecretName,
    /// Who may see it.
    pub hosts: Vec<HostPattern>,
    /// How.
    pub kind: Kind,
    /// Whether it is sent unencrypted as well, where everybody on the way can read it. Loopback has nobody on the way.
    pub plain: bool,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Word {
    #[default]
    Bearer,
    Basic,
    Header,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: SecretName,
    hosts: Vec<HostPattern>,
    #[serde(default)]
    kind: Word,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    plain: bool,
}

/// Headers that say what a request is or where it goes.
const NOT_FOR_SECRETS: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authorization",
];

impl TryFrom<Written> for Secret {
    type Error = BadSecret;

    fn try_from(written: Written) -> Result<Self, BadSecret> {
        let Written {
            name,
            hosts,
            kind,
            header,
            plain,
        } = written;
        let named = || name.to_string();
        if hosts.is_empty() {
            return Err(BadSecret::NoHosts(named()));
        }
        if hosts.contains(&HostPattern::Any) {
            return Err(BadSecret::AnyHost(named()));
        }
        let kind = match (kind, header) {
            (Word::Bearer, None) => Kind::Bearer,
            (Word::Basic, None) => Kind::Basic,
            (Word::Bearer | Word::Basic, Some(_)) => return Err(BadSecret::Header(named())),
            (Word::Header, None) => return Err(BadSecret::NoHeader(named())),
            (Word::Header, Some(header)) => {
                let lower = header.to_ascii_lowercase();
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                let fits = (1..=64).contains(&lower.len()) && lower.bytes().all(plain);
                if !fits || NOT_FOR_SECRETS.contains(&lower.as_str()) {
                    let header = header.chars().take(80).collect();
                    return Err(BadSecret::BadHeader {
                        name: named(),
                        header,
                    });
                }
                Kind::Header(lower)
            }
        };
        Ok(Self {
            name,
            hosts,
            kind,
            plain,
        })
    }
}

impl From<Secret> for Written {
    fn from(secret: Secret) -> Self {
        let (kind, header) = match secret.kind {
            Kind::Bearer => (Word::Bearer, None),
            Kind::Basic => (Word::Basic, None),
            Kind::Header(header) => (Word::Header, Some(header)),
        };
        Self {
            name: secret.name,
            hosts: secret.hosts,
            kind,
            header,
            plain: secret.plain,
        }
    }
}

impl Secret {
    /// Whether that host may see it.
    #[must_use]
    pub fn is_for(&self, host: &Host) -> bool {
        self.hosts.iter().any(|pattern| pattern.holds(host))
    }

    /// What of it was asked for: the same name, sent in the same way, to the hosts of both. Whether it may travel plain
    /// is for its owner to say, who is not the one who asks.
    #[must_use]
    pub fn meet(&self, asked: &[Self]) -> Option<Self> {
        let asked = asked.iter().find(|asked| asked.name == self.name)?;
        let hosts = self.hosts.iter();
        let hosts: Vec<HostPattern> = hosts
            .flat_map(|granted| asked.hosts.iter().filter_map(|asked| granted.meet(asked)))
            .collect();
        (self.kind == asked.kind && !hosts.is_empty()).then(|| Self {
            hosts,
            ..self.clone()
        })
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        let how = match &self.kind {
            Kind::Bearer => "as bearer token".to_owned(),
            Kind::Basic => "as user and password".to_owned(),
            Kind::Header(header) => format!("as {header}"),
        };
        write!(f, "{} to {} {how}", self.name, hosts.join(", "))?;
        if self.plain {
            f.write_str(", unencrypted as well")?;
        }
        Ok(())
    }
}
