//! Which requests may be sent.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::authority::{Authority, Malformed, Scheme};
use crate::method::READS;
pub use crate::method::{Method, Methods};
use crate::network::Network;
use crate::pattern::HostPattern;
use crate::port;
pub use crate::port::Port;

/// What becomes of a request that may have been sent and whose answer was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InDoubt {
    /// The client is asked, if it can be; else the run ends.
    #[default]
    Ask,
    /// The run ends.
    Fail,
    /// The guest is told, as an error that it must not take for a failure.
    Tell,
    /// It is sent again under the same key.
    Resend,
}

impl InDoubt {
    /// How much happens that nobody was asked about, from nothing to the most.
    fn freedom(self) -> u8 {
        match self {
            Self::Fail => 0,
            Self::Ask => 1,
            Self::Tell => 2,
            Self::Resend => 3,
        }
    }
}

impl fmt::Display for InDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask => "ask",
            Self::Fail => "fail",
            Self::Tell => "tell",
            Self::Resend => "resend",
        })
    }
}

/// Requests that may be sent to some hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Rule {
    /// How.
    pub scheme: Scheme,
    /// To whom.
    pub host: HostPattern,
    /// To which port.
    pub port: Port,
    /// By which methods.
    pub methods: Methods,
    /// Whether also those that should change nothing are taken to change something.
    pub treat_as_write: bool,
    /// What becomes of one that is in doubt, if it is said.
    pub in_doubt: Option<InDoubt>,
    /// Networks that are not public and may be dialled all the same.
    pub networks: Vec<Network>,
}

/// A rule as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    scheme: Scheme,
    host: HostPattern,
    port: Option<port::Written>,
    methods: Option<Vec<String>>,
    #[serde(default)]
    treat_as_write: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_doubt: Option<InDoubt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    networks: Vec<Network>,
}

/// A rule that means nothing.
#[derive(Debug, thiserror::Error)]
pub enum BadRule {
    /// What is no method, or no host.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A method that is never sent.
    #[error("{0} is sent for nobody")]
    Never(Method),
    /// An empty list of methods.
    #[error(
        "a rule without methods allows nothing: leave `methods` out for those that change nothing"
    )]
    NoMethods,
    /// Every method, and some of them.
    #[error("`*` stands for every method, and no other stands beside it")]
    NotAlone,
    /// Port 0.
    #[error("port 0 is no port")]
    NoPort,
    /// A text that is no address to send requests to.
    #[error(
        "{0:?} is nothing that requests are sent to: write it like `https://api.example.org` or `GET,POST https://*.example.org:8443`"
    )]
    Form(String),
}

impl TryFrom<Written> for Rule {
    type Error = BadRule;

    fn try_from(written: Written) -> Result<Self, BadRule> {
        let Written {
            scheme,
            host,
            port,
            methods,
            treat_as_write,
            in_doubt,
            networks,
        } = written;
        let port = port.map_or_else(|| Port::At(scheme.port()), Port::from);
        if port == Port::At(0) {
            return Err(BadRule::NoPort);
        }
        Ok(Self {
            scheme,
            host,
            port,
            methods: methods
                .map_or_else(|| Ok(Methods::default()), |words| Methods::of_words(&words))?,
            treat_as_write,
            in_doubt,
            networks,
        })
    }
}

impl From<Rule> for Written {
    fn from(rule: Rule) -> Self {
        Self {
            scheme: rule.scheme,
            host: rule.host,
            port: Some(rule.port.into()),
            methods: Some(rule.methods.words()),
            treat_as_write: rule.treat_as_write,
            in_doubt: rule.in_doubt,
            networks: rule.networks,
        }
    }
}

impl FromStr for Rule {
    type Err = BadRule;

    /// Reads `[METHOD,… ][SCHEME://]HOST[:PORT]`, as it is typed at a prompt.
    fn from_str(text: &str) -> Result<Self, BadRule> {
        let form = || BadRule::Form(text.chars().take(80).collect());
        let (methods, url) = match text.trim().split_once(' ') {
            Some((methods, url)) => (Some(methods), url.trim_start()),
            None => (None, text.trim()),
        };
        let methods = methods.map(|list| list.split(',').map(str::to_owned).collect());
        let (scheme, rest) = match url.split_once("://") {
            Some((word, rest)) => (Scheme::parse(word).ok_or_else(form)?, rest),
            None => (Scheme::default(), url),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // A path would look as if it bounded something.
        if rest.contains(['/', '?', '#', ' ']) {
            return Err(form());
        }
        let behind = rest.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match rest[behind..].split_once(':') {
            Some((left, port)) => {
                let port = match port {
                    "*" => Port::Any,
                    number => Port::At(number.parse().map_err(|_| form())?),
                };
                (&rest[..behind + left.len()], Some(port))
            }
            None => (rest, None),
        };
        Self::try_from(Written {
            scheme,
            host: host.parse()?,
            port: port.map(port::Written::from),
            methods,
            treat_as_write: false,
            in_doubt: None,
            networks: Vec::new(),
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let methods = self.methods.words().join(",");
        write!(f, "{methods} {}://{}", self.scheme, self.host)?;
        if self.port != Port::At(self.scheme.port()) {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

impl Rule {
    /// The requests of both. Whatever else is to be said of them the granted one says, and where it is silent the
    /// other; the networks are the granted ones only.
    #[must_use]
    pub fn meet(granted: &Self, asked: &Self) -> Option<Self> {
        if granted.scheme != asked.scheme {
            return None;
        }
        Some(Self {
            scheme: granted.scheme,
            host: granted.host.meet(&asked.host)?,
            port: granted.port.meet(asked.port)?,
            methods: granted.methods.meet(&asked.methods)?,
            treat_as_write: granted.treat_as_write || asked.treat_as_write,
            in_doubt: granted.in_doubt.or(asked.in_doubt),
            networks: granted.networks.clone(),
        })
    }

    /// Whether sending it once more changes nothing, as far as anybody can know.
    fn is_read(&self, method: &Method) -> bool {
        !self.treat_as_write && READS.contains(&method.as_str())
    }
}

/// A request, as far as it is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// How.
    pub scheme: Scheme,
    /// To whom.
    pub authority: Authority,
    /// By which method.
    pub method: Method,
}

/// Why a request is not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It goes nowhere.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// There is no rule at all.
    #[error("no outgoing HTTP is granted")]
    Nothing,
    /// There is none for that host.
    #[error("{0} is not granted")]
    Host(String),
    /// There are some for that host, by another way.
    #[error("{host} is granted, and not over {scheme}")]
    Scheme {
        /// The host.
        host: String,
        /// How it was to be reached.
        scheme: Scheme,
    },
    /// There are some for that host, at another port.
    #[error("{host} is granted, and not at port {port}")]
    Port {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// There are some for that address, by other methods.
    #[error("{host} is granted, and not for {method}")]
    Method {
        /// The host.
        host: String,
        /// The method.
        method: Method,
    },
}

/// What the rules that a request fits say of it together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Whether sending it once more may change something.
    pub is_write: bool,
    /// What becomes of it if it is in doubt.
    pub in_doubt: InDoubt,
    /// Networks that are not public and may be dialled all the same.
    pub networks: Vec<Network>,
}

/// Whether a request may be sent, and how.
///
/// Every rule that it fits has its word, and in no order: what any of them opens is open, and where any of them is
/// careful care is taken. So a rule cannot hide another one, and of what an operator is careful about a manifest can
/// talk nobody out: whichever of its own rules meet one of his, they all carry it.
pub fn verdict(rules: &[Rule], target: &Target) -> Result<Permit, Denied> {
    let fits = |rule: &&Rule| {
        rule.host.holds(&target.authority.host)
            && rule.scheme == target.scheme
            && rule.port.holds(target.authority.port)
            && rule.methods.holds(&target.method)
    };
    let fitting: Vec<&Rule> = rules.iter().filter(fits).collect();
    if fitting.is_empty() {
        return Err(denied(rules, target));
    }
    let said = fitting.iter().filter_map(|rule| rule.in_doubt);
    let networks = fitting.iter().flat_map(|rule| &rule.networks);
    Ok(Permit {
        is_write: fitting.iter().any(|rule| !rule.is_read(&target.method)),
        in_doubt: said.min_by_key(|said| said.freedom()).unwrap_or_default(),
        networks: networks.copied().collect(),
    })
}

/// Why none of the rules lets it be sent: the nearest miss is the one to be told of.
fn denied(rules: &[Rule], target: &Target) -> Denied {
    let Target {
        scheme,
        authority: Authority { host, port },
        method,
    } = target;
    let of_host: Vec<&Rule> = rules.iter().filter(|rule| rule.host.holds(host)).collect();
    let of_scheme = || of_host.iter().filter(|rule| rule.scheme == *scheme);
    let host = host.to_string();
    if rules.is_empty() {
        Denied::Nothing
    } else if of_host.is_empty() {
        Denied::Host(host)
    } else if of_scheme().next().is_none() {
        Denied::Scheme {
            host,
            scheme: *scheme,
        }
    } else if !of_scheme().any(|rule| rule.port.holds(*port)) {
        Denied::Port { host, port: *port }
    } else {
        Denied::Method {
            host,
            method: method.clone(),
        }
    }
}
