//! What becomes of a request when a guest hands it over: decided by the request, the policy and nothing else.

use std::sync::Arc;

use bytes::Bytes;
use longshore_policy::authority::{Authority, Scheme};
use longshore_policy::http::{InDoubt, Method, Permit, Rule, Target, verdict};
use longshore_policy::limits::Limits;
use longshore_policy::secrets::Secret;

use super::body::Budget;
use crate::grants::Grants;
use crate::outside::{Bounds, Outgoing};

/// What a run may send.
pub(crate) struct Terms {
    rules: Arc<[Rule]>,
    secrets: Arc<[Secret]>,
    bounds: Bounds,
    pub(crate) at_once: u64,
    /// What the bodies of requests may take.
    pub(crate) budget: Budget,
}

/// A request as a guest hands it over.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) scheme: Option<&'a str>,
    pub(crate) authority: &'a str,
    pub(crate) path: String,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) timeouts: Timeouts,
}

/// How long a guest is ready to wait, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Timeouts {
    pub(crate) connect: Option<u64>,
    pub(crate) first_byte: Option<u64>,
    pub(crate) between_bytes: Option<u64>,
}

/// A request that may be sent, and how.
pub(crate) struct Judged {
    /// It, without its body.
    pub(crate) outgoing: Outgoing,
    /// Whether it may change something.
    pub(crate) is_write: bool,
    /// What becomes of it if nobody knows whether it was.
    pub(super) in_doubt: InDoubt,
}

/// Why a request is not sent.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// What the guest is told.
    pub(crate) what: Refused,
    /// What whoever reads the log is told.
    pub(crate) why: String,
}

/// What a guest is told of a request that is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No policy lets it be sent.
    Denied,
    /// It has no method.
    Method,
    /// It goes nowhere.
    Uri,
    /// Its body is not what it says.
    Body,
    /// Too many are under way.
    TooMany,
}

impl Refusal {
    pub(super) fn new(what: Refused, why: &impl ToString) -> Self {
        Self {
            what,
            why: why.to_string(),
        }
    }
}

impl Terms {
    pub(crate) fn of(grants: &Grants) -> Self {
        let Limits {
            http_at_once,
            http_request_bytes,
            http_response_bytes,
            http_head_bytes,
            http_connect_ms,
            http_first_byte_ms,
            http_between_bytes_ms,
            http_exchange_ms,
            ..
        } = grants.limits;
        Self {
            rules: Arc::clone(&grants.http),
            secrets: Arc::clone(&grants.secrets),
            bounds: Bounds {
                connect_ms: http_connect_ms,
                first_byte_ms: http_first_byte_ms,
                between_bytes_ms: http_between_bytes_ms,
                whole_ms: http_exchange_ms,
                head_bytes: http_head_bytes,
                body_bytes: http_response_bytes,
            },
            at_once: http_at_once,
            budget: Budget::new(http_request_bytes, http_at_once),
        }
    }

    /// Decides about a request that is whole but for its body.
    pub(crate) fn judge(&self, exchange: u64, asked: Asked<'_>) -> Result<Judged, Refusal> {
        let Asked {
            method,
            scheme,
            authority,
            path,
            fields,
            timeouts,
        } = asked;
        let method: Method = method
            .parse()
            .map_err(|error| Refusal::new(Refused::Method, &error))?;
        // A guest that does not say how means what it can be sure of.
        let Some(scheme) = scheme.map_or(Some(Scheme::Https), Scheme::parse) else {
            let why = format!("{:?} is no scheme of HTTP", scheme.unwrap_or_default());
            return Err(Refusal::new(Refused::Uri, &why));
        };
        let authority = Authority::read(scheme, authority)
            .map_err(|error| Refusal::new(Refused::Uri, &error))?;
        let target = Target {
            scheme,
            authority,
            method,
        };
        let Permit {
            is_write,
            in_doubt,
            networks,
        } = verdict(&self.rules, &target)
            .map_err(|denied| Refusal::new(Refused::Denied, &denied))?;
        let secrets = self.secrets.iter();
        let secrets = secrets.filter(|secret| secret.is_for(&target.authority.host));
        let outgoing = Outgoing {
            exchange,
            scheme,
            path,
            fields,
            body: Bytes::new(),
            networks,
            secrets: secrets.cloned().collect(),
            is_keyed: is_write && in_doubt == InDoubt::Resend,
            bounds: self.bounds_for(timeouts),
            authority: target.authority,
            method: target.method,
        };
        Ok(Judged {
            outgoing,
            is_write,
            in_doubt,
        })
    }

    /// What the run may take at most, or less where the guest says so.
    fn bounds_for(&self, timeouts: Timeouts) -> Bounds {
        const NS_PER_MS: u64 = 1_000_000;
        let least = |most: u64, given: Option<u64>| {
            given.map_or(most, |ns| most.min(ns.div_ceil(NS_PER_MS)))
        };
        let Timeouts {
            connect,
            first_byte,
            between_bytes,
        } = timeouts;
        Bounds {
            connect_ms: least(self.bounds.connect_ms, connect),
            first_byte_ms: least(self.bounds.first_byte_ms, first_byte),
            between_bytes_ms: least(self.bounds.between_bytes_ms, between_bytes),
            ..self.bounds
        }
    }
}

impl Judged {
    /// Where it goes, without what may be private in it.
    pub(super) fn target(&self) -> String {
        let path = self.outgoing.path.split('?').next().unwrap_or_default();
        format!("{} {}{path}", self.outgoing.method, self.origin())
    }

    /// Where it goes, whole.
    pub(super) fn url(&self) -> String {
        format!("{}{}", self.origin(), self.outgoing.path)
    }

    fn origin(&self) -> String {
        let Outgoing {
            scheme, authority, ..
        } = &self.outgoing;
        if authority.port == scheme.port() {
            format!("{scheme}://{}", authority.host)
        } else {
            format!("{scheme}://{authority}")
        }
    }
}
