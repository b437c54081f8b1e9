//! One file that holds all that it takes to repeat a task, anywhere and without a server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longshore_journal::record::Record;
use longshore_journal::segment::{self, Header, Link, Reader};
use longshore_journal::world::Origin;
use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use longshore_protocol::capability::ClientCapabilities;
use longshore_tasks::task::{State, Task};
use serde::{Deserialize, Serialize};

use super::{Facts, Past};
use crate::run::HOST_ABI;

/// What the file is.
const FORMAT: &str = "longshore task 3";
/// What its owner must know.
const WARNING: &str = "this file holds everything that the tool was given, saw and said: arguments, answers, times, and the key of its random numbers";

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Export {
    format: String,
    warning: String,
    /// The task.
    pub id: String,
    host_abi: u32,
    component: String,
    /// The component's digest.
    pub digest: String,
    /// The tool.
    pub tool: String,
    arguments: String,
    limits: Limits,
    /// Not in files that were written before anything could be granted.
    #[serde(default)]
    policy: Option<Policy>,
    capabilities: String,
    created_at_ms: u64,
    deadline_at_ms: u64,
    random_key: String,
    /// How the task stood when it was exported.
    pub status: String,
    journal: String,
    bytes: String,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It is something else.
    #[error("it is no file that `longshore tasks export` wrote: {0}")]
    Foreign(String),
    /// It is of another version.
    #[error(
        "it was written by a version whose tools see version {0} of their host; this one has {HOST_ABI}"
    )]
    HostAbi(u32),
    /// What is in it does not belong together.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

impl Export {
    pub(crate) fn new(
        task: &Task,
        random_key: &[u8; 32],
        bytes: &[u8],
        records: &[Record],
    ) -> Self {
        let header = Header {
            host_abi: task.pinned.host_abi,
            node: String::new(),
            written_at_ms: task.updated_at.unsigned(),
            previous: Link::default(),
        };
        let (journal, _) = segment::write(&header, records);
        let policy = Policy::of_kept(&task.pinned.policy.0)
            .unwrap_or_else(|_| Policy::nothing(Limits::default()));
        Self {
            format: FORMAT.to_owned(),
            warning: WARNING.to_owned(),
            id: task.id.to_string(),
            host_abi: task.pinned.host_abi,
            component: task.pinned.component.clone(),
            digest: task.pinned.digest.clone(),
            tool: task.pinned.tool.clone(),
            arguments: task.pinned.arguments.0.to_string(),
            limits: policy.limits.clone(),
            policy: Some(policy),
            capabilities: task.pinned.client.0.to_string(),
            created_at_ms: task.created_at.unsigned(),
            deadline_at_ms: task.deadline_at.unsigned(),
            random_key: STANDARD.encode(random_key),
            status: match &task.state {
                State::Failed { failure, .. } => format!("failed: {}", failure.message),
                state => state.name().as_str().to_owned(),
            },
            journal: STANDARD.encode(journal),
            bytes: STANDARD.encode(bytes),
        }
    }

    /// Reads a file.
    pub fn read(text: &[u8]) -> Result<Self, ExportError> {
        let export: Self = serde_json::from_slice(text)
            .map_err(|error| ExportError::Foreign(error.to_string()))?;
        if export.format != FORMAT {
            return Err(ExportError::Foreign(format!("it says {:?}", export.format)));
        }
        if export.host_abi != HOST_ABI {
            return Err(ExportError::HostAbi(export.host_abi));
        }
        Ok(export)
    }

    /// The component's bytes.
    pub fn component(&self) -> Result<Vec<u8>, ExportError> {
        decode("the component", &self.bytes)
    }

    pub(crate) fn past(&self, limits: &Limits) -> Result<Past, ExportError> {
        let bytes = decode("the journal", &self.journal)?;
        // The first segment of a file has nothing before it, whatever its task had forgotten.
        let read = Reader::new(true)
            .read(0, &bytes)
            .map_err(|error| ExportError::Damaged(error.to_string()))?;
        let key = decode("the random key", &self.random_key)?;
        let random_key = key
            .try_into()
            .map_err(|_| ExportError::Damaged("the random key has another size".to_owned()))?;
        Ok(Past {
            made: Vec::new(),
            origin: Origin {
                created_at_ms: self.created_at_ms,
                random_key,
                most: super::most(limits),
            },
            records: read.records,
        })
    }

    /// What is known of the call, with what it may use here, and the settings by which that is less than it was.
    pub(crate) fn facts(&self, here: &Limits) -> Result<(Facts, Vec<String>), ExportError> {
        ClientCapabilities::parse(&self.capabilities).map_err(|fault| {
            ExportError::Damaged(format!("what its client could do: {}", fault.message))
        })?;
        // Whoever wrote the file decides nothing about the machine that it is repeated on.
        let (limits, capped) = self.limits.capped(here);
        let facts = Facts {
            call_id: self.id.clone(),
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            // Its past holds all else that it saw: no file opens a directory, and what comes of a request is in it.
            policy: match self.policy.clone() {
                None => Policy::nothing(limits),
                Some(policy) => Policy {
                    limits,
                    dirs: Vec::new(),
                    ..policy
                },
            },
            capabilities: self.capabilities.clone(),
            deadline_ms: self.deadline_at_ms.saturating_sub(self.created_at_ms),
        };
        Ok((facts, capped))
    }
}

fn decode(what: &str, text: &str) -> Result<Vec<u8>, ExportError> {
    STANDARD
        .decode(text)
        .map_err(|error| ExportError::Damaged(format!("{what}: {error}")))
}
