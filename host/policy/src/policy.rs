//! What is in force: what the component asks for, the operator grants and the tenant may have, all three.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dirs::Mount;
use crate::document::Fault;
use crate::env::EnvName;
use crate::grant::Grant;
use crate::http::{Denied, Permit, Rule, Target, verdict};
use crate::limits::Limits;
use crate::manifest::Manifest;
use crate::pattern::HostPattern;
use crate::secrets::Secret;

/// What a run may touch and use. It keeps the one that it began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The version of this form.
    pub version: Version,
    /// Requests that it may send.
    pub http: Vec<Rule>,
    /// Directories of the host.
    pub dirs: Vec<Mount>,
    /// Its environment.
    pub env: BTreeMap<EnvName, String>,
    /// Secrets that its requests may carry.
    pub secrets: Vec<Secret>,
    /// What it may use.
    pub limits: Limits,
    /// Whether it gets time to clean up when it is cancelled.
    pub cleanup: bool,
}

/// Rules that are in force at most. A manifest and a grant may each have so many that every pair of them would be too
/// many to keep with each task and to look through for each request.
pub const MOST_RULES: usize = 1024;

/// The requests of both, each rule once. Of more than may be there are none: which were left out would be anybody's
/// guess, and one of them may be the careful one.
fn common(granted: &[Rule], asked: &[Rule]) -> Vec<Rule> {
    let pairs = granted
        .iter()
        .flat_map(|granted| asked.iter().filter_map(|asked| Rule::meet(granted, asked)));
    let mut rules: Vec<Rule> = Vec::new();
    for rule in pairs {
        if rules.contains(&rule) {
            continue;
        }
        if rules.len() == MOST_RULES {
            return Vec::new();
        }
        rules.push(rule);
    }
    rules
}

/// The one version that there is; a row of another is refused as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Version;

const VERSION: u32 = 1;

impl TryFrom<u32> for Version {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        if number == VERSION {
            Ok(Self)
        } else {
            Err(format!(
                "a policy of version {number}, and this program knows {VERSION}"
            ))
        }
    }
}

impl From<Version> for u32 {
    fn from(Version: Version) -> Self {
        VERSION
    }
}

/// What a tenant may have at most, whatever is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenant {
    /// Everything that one of its components may ever get; none where it is not bounded so.
    pub most: Option<Manifest>,
    /// Whether a rule may hold every host there is.
    pub any_host: bool,
}

impl Policy {
    /// Nothing but these limits.
    #[must_use]
    pub fn nothing(limits: Limits) -> Self {
        Self {
            version: Version,
            http: Vec::new(),
            dirs: Vec::new(),
            env: BTreeMap::new(),
            secrets: Vec::new(),
            limits,
            cleanup: true,
        }
    }

    /// What all three agree on. A component without a manifest is bounded by the other two alone: it has promised
    /// nothing, and asks for nothing either, so that it has just what the operator names.
    #[must_use]
    pub fn in_force(
        asked: Option<&Manifest>,
        grant: &Grant,
        tenant: &Tenant,
        own: &Limits,
    ) -> Self {
        let Grant {
            http,
            dirs,
            env,
            secrets,
            limits,
            cleanup,
        } = grant.clone();
        let any_host = tenant.any_host;
        let granted = Self {
            version: Version,
            http: http
                .into_iter()
                .filter(|rule| any_host || rule.host != HostPattern::Any)
                .collect(),
            dirs,
            env,
            secrets,
            limits: limits.in_place_of(own),
            cleanup,
        };
        let most = tenant.most.as_ref();
        [asked, most]
            .into_iter()
            .flatten()
            .fold(granted, Self::within)
    }

    /// What of it lies within that.
    fn within(self, most: &Manifest) -> Self {
        let Manifest {
            http,
            dirs,
            env,
            secrets,
            limits,
            cleanup,
            // It describes a program and is nothing that a run has.
            usage: _,
        } = most;
        Self {
            version: Version,
            http: common(&self.http, http),
            dirs: self
                .dirs
                .iter()
                .filter_map(|mount| mount.meet(dirs))
                .collect(),
            env: self
                .env
                .into_iter()
                .filter(|(name, _)| env.contains(name))
                .collect(),
            secrets: self
                .secrets
                .iter()
                .filter_map(|secret| secret.meet(secrets))
                .collect(),
            limits: limits.lowering(&self.limits),
            cleanup: self.cleanup && *cleanup,
        }
    }

    /// Whether a request may be sent, and how.
    pub fn verdict(&self, target: &Target) -> Result<Permit, Denied> {
        verdict(&self.http, target)
    }

    /// As a task keeps it.
    #[must_use]
    pub fn kept(&self) -> String {
        serde_json::to_string(self).expect("it has no key that is no text")
    }

    /// What a task kept. Tasks of a version that granted nothing kept their limits alone.
    pub fn of_kept(text: &str) -> Result<Self, Fault> {
        let fault = |error: serde_json::Error| Fault(error.to_string());
        let value: Value = serde_json::from_str(text).map_err(fault)?;
        let Value::Object(members) = &value else {
            return Err(Fault("a policy is an object".to_owned()));
        };
        if members.contains_key("version") {
            serde_json::from_value(value).map_err(fault)
        } else {
            let limits = serde_json::from_value(value).map_err(fault)?;
            Ok(Self::nothing(limits))
        }
    }
}
