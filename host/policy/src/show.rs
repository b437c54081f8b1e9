//! Policies for people: one line for each thing, under a word for its kind.

use std::collections::BTreeMap;

use crate::env::EnvName;
use crate::grant::Grant;
use crate::http::Rule;
use crate::limits::Named;
use crate::manifest::Manifest;
use crate::policy::Policy;
use crate::secrets::Secret;

/// Lines, each with the word for what it is about.
pub type Lines = Vec<(&'static str, String)>;

fn lines<T: ToString>(word: &'static str, of: impl IntoIterator<Item = T>) -> Lines {
    of.into_iter().map(|one| (word, one.to_string())).collect()
}

fn rule(rule: &Rule) -> String {
    let mut line = rule.to_string();
    if rule.treat_as_write {
        line.push_str(", all taken to change something");
    }
    if let Some(in_doubt) = rule.in_doubt {
        line.push_str(&format!(", in doubt: {in_doubt}"));
    }
    if !rule.networks.is_empty() {
        let networks: Vec<String> = rule.networks.iter().map(ToString::to_string).collect();
        line.push_str(&format!(", also in {}", networks.join(", ")));
    }
    line
}

fn limits(limits: &Named) -> Lines {
    let named = limits.iter().map(|(name, value)| format!("{name} {value}"));
    lines("limit", named)
}

fn cleanup(cleanup: bool) -> Lines {
    lines(
        "cleanup",
        (!cleanup).then_some("none: a cancelled run ends at once"),
    )
}

/// What every policy has lines for.
fn common(
    http: &[Rule],
    dirs: impl IntoIterator<Item: ToString>,
    env: impl IntoIterator<Item: ToString>,
    secrets: &[Secret],
) -> Lines {
    let parts = [
        lines("http", http.iter().map(rule)),
        lines("dir", dirs),
        lines("env", env),
        lines("secret", secrets),
    ];
    parts.into_iter().flatten().collect()
}

fn values(env: &BTreeMap<EnvName, String>) -> impl Iterator<Item = String> {
    env.iter().map(|(name, value)| format!("{name}={value}"))
}

impl Manifest {
    /// What is asked for.
    #[must_use]
    pub fn lines(&self) -> Lines {
        let Self {
            http,
            dirs,
            env,
            secrets,
            limits: named,
            cleanup: clean,
            // It asks for nothing by that.
            usage: _,
        } = self;
        let parts = [
            common(http, dirs, env, secrets),
            limits(named),
            cleanup(*clean),
        ];
        parts.into_iter().flatten().collect()
    }
}

impl Grant {
    /// What is granted.
    #[must_use]
    pub fn lines(&self) -> Lines {
        let Self {
            http,
            dirs,
            env,
            secrets,
            limits: named,
            cleanup: clean,
        } = self;
        let parts = [
            common(http, dirs, values(env), secrets),
            limits(named),
            cleanup(*clean),
        ];
        parts.into_iter().flatten().collect()
    }
}

impl Policy {
    /// What is in force beside the limits, of which there are always all.
    #[must_use]
    pub fn lines(&self) -> Lines {
        let Self {
            version: _,
            http,
            dirs,
            env,
            secrets,
            limits: _,
            cleanup: clean,
        } = self;
        let parts = [common(http, dirs, values(env), secrets), cleanup(*clean)];
        parts.into_iter().flatten().collect()
    }
}
