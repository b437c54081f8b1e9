//! What a component asks for: the most that it will ever get.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::dirs::{self, Asked};
use crate::document::{self, Fault, Shape};
use crate::env::EnvName;
use crate::http::Rule;
use crate::limits::Named;
use crate::secrets::Secret;

/// The section of a component that holds its manifest.
pub const SECTION: &str = "longshore:manifest";

/// What its author says that a component needs. Nothing is granted by it; nothing beyond it ever is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Manifest {
    /// Requests that it sends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<Rule>,
    /// Directories that it uses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<Asked>,
    /// Values of the environment that it reads.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub env: BTreeSet<EnvName>,
    /// Secrets that its requests carry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// The most that its runs use.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub limits: Named,
    /// Whether a cancelled run has anything to clean up.
    pub cleanup: bool,
    /// Whether it is a program that prints its usage if it is run with `--help`, which describes it then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub usage: bool,
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            http: Vec::new(),
            dirs: Vec::new(),
            env: BTreeSet::new(),
            secrets: Vec::new(),
            limits: Named::default(),
            cleanup: true,
            usage: false,
        }
    }
}

const ASKED_DIR: Shape = Shape::Table(&[("guest", Shape::Value), ("access", Shape::Value)]);
pub(crate) const RULE: Shape = Shape::Table(&[
    ("scheme", Shape::Value),
    ("host", Shape::Value),
    ("port", Shape::Value),
    ("methods", Shape::List(&Shape::Value)),
    ("treat_as_write", Shape::Value),
    ("in_doubt", Shape::Value),
    ("networks", Shape::List(&Shape::Value)),
]);
pub(crate) const SECRET: Shape = Shape::Table(&[
    ("name", Shape::Value),
    ("hosts", Shape::List(&Shape::Value)),
    ("kind", Shape::Value),
    ("header", Shape::Value),
    ("plain", Shape::Value),
]);
const SHAPE: Shape = Shape::Table(&[
    ("http", Shape::List(&RULE)),
    ("dirs", Shape::List(&ASKED_DIR)),
    ("env", Shape::List(&Shape::Value)),
    ("secrets", Shape::List(&SECRET)),
    ("limits", Shape::Limits),
    ("cleanup", Shape::Value),
    ("usage", Shape::Value),
]);

impl Manifest {
    /// Reads the TOML of a component.
    pub fn of_toml(text: &str) -> Result<Self, Fault> {
        let manifest: Self = document::of_toml(text, &SHAPE)?;
        if manifest.http.iter().any(|rule| !rule.networks.is_empty()) {
            return Err(Fault(
                "a manifest cannot name networks: which are opened is the operator's to say"
                    .to_owned(),
            ));
        }
        if manifest.secrets.iter().any(|secret| secret.plain) {
            return Err(Fault(
                "a manifest cannot say `plain`: whether a secret may be read on its way is the operator's to say"
                    .to_owned(),
            ));
        }
        if let Some((one, other)) = dirs::clash(manifest.dirs.iter().map(|asked| &asked.guest)) {
            return Err(Fault(format!(
                "directories {one} and {other} lie in one another"
            )));
        }
        named_once(&manifest.secrets)?;
        Ok(manifest)
    }
}

pub(crate) fn named_once(secrets: &[Secret]) -> Result<(), Fault> {
    let mut names = BTreeSet::new();
    match secrets.iter().find(|secret| !names.insert(&secret.name)) {
        Some(twice) => Err(Fault(format!("secret {} is named twice", twice.name))),
        None => Ok(()),
    }
}
