//! What the operator lets a component have.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dirs::{self, Mount};
use crate::document::{self, Fault, Shape};
use crate::env::EnvName;
use crate::http::Rule;
use crate::limits::Named;
use crate::manifest::{RULE, SECRET, named_once};
use crate::secrets::Secret;

/// What the operator lets a component have. The empty one lets it have nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// Requests that it may send.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<Rule>,
    /// Directories of the host that it may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<Mount>,
    /// Its environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<EnvName, String>,
    /// Secrets that its requests may carry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// Limits of its runs in place of the server's own.
    #[serde(skip_serializing_if = "Named::is_empty")]
    pub limits: Named,
    /// Whether a cancelled run gets time to clean up.
    pub cleanup: bool,
}

impl Default for Grant {
    fn default() -> Self {
        Self {
            http: Vec::new(),
            dirs: Vec::new(),
            env: BTreeMap::new(),
            secrets: Vec::new(),
            limits: Named::default(),
            cleanup: true,
        }
    }
}

const MOUNT: Shape = Shape::Table(&[
    ("guest", Shape::Value),
    ("host", Shape::Value),
    ("access", Shape::Value),
]);
const SHAPE: Shape = Shape::Table(&[
    ("http", Shape::List(&RULE)),
    ("dirs", Shape::List(&MOUNT)),
    ("env", Shape::Names),
    ("secrets", Shape::List(&SECRET)),
    ("limits", Shape::Limits),
    ("cleanup", Shape::Value),
]);
/// All values of an environment together: each run has them in its memory.
const ENV_BYTES: usize = 32 * 1024;

impl Grant {
    /// Reads one in TOML.
    pub fn of_toml(text: &str) -> Result<Self, Fault> {
        document::of_toml(text, &SHAPE).and_then(Self::checked)
    }

    /// Reads one in JSON.
    pub fn of_json(value: Value) -> Result<Self, Fault> {
        document::of_json(value, &SHAPE).and_then(Self::checked)
    }

    /// Whether it lets a component have nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn checked(self) -> Result<Self, Fault> {
        if let Some((one, other)) = dirs::clash(self.dirs.iter().map(|mount| &mount.guest)) {
            return Err(Fault(format!(
                "directories {one} and {other} lie in one another"
            )));
        }
        named_once(&self.secrets)?;
        let bytes = |(name, value): (&EnvName, &String)| name.as_str().len() + value.len();
        if self.env.iter().map(bytes).sum::<usize>() > ENV_BYTES {
            return Err(Fault(format!(
                "the environment has more than {ENV_BYTES} bytes"
            )));
        }
        if let Some((name, _)) = self.env.iter().find(|(_, value)| value.contains('\0')) {
            return Err(Fault(format!("the value of {name} has a zero byte in it")));
        }
        Ok(self)
    }
}
