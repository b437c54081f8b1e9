//! What a policy comes to in a run.

use std::path::PathBuf;
use std::sync::Arc;

use longshore_policy::dirs::Mount;
use longshore_policy::http::Rule;
use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use longshore_policy::secrets::Secret;

use crate::command::Program;
use crate::sandbox::WasiKind;

/// What one run has.
#[derive(Clone)]
pub(crate) struct Grants {
    pub(crate) limits: Limits,
    /// Its environment.
    pub(crate) env: Arc<[(String, String)]>,
    /// Directories of the host.
    pub(crate) mounts: Arc<[Mount]>,
    /// What the server keeps for itself, which none of them may hold.
    pub(crate) own: Arc<[PathBuf]>,
    /// Requests that are sent for it.
    pub(crate) http: Arc<[Rule]>,
    /// Secrets that those may carry.
    pub(crate) secrets: Arc<[Secret]>,
    /// What it is started with, if it is a program.
    pub(crate) program: Option<Arc<Program>>,
}

impl Grants {
    /// Which WASI such a run gets in a sandbox of that kind: only the engine's own knows directories of the host.
    pub(crate) fn wasi(&self, kind: WasiKind) -> WasiKind {
        if self.mounts.is_empty() {
            kind
        } else {
            WasiKind::Host
        }
    }

    /// Names every part of a policy, so that a new one does not compile until it is decided what it comes to.
    pub(crate) fn of(policy: Policy, own: &Arc<[PathBuf]>) -> Self {
        let Policy {
            version: _,
            http,
            secrets,
            // What becomes of a run that is cancelled is for whoever cancels it.
            cleanup: _,
            dirs,
            env,
            limits,
        } = policy;
        let value = |(name, value)| (String::from(name), value);
        Self {
            limits,
            env: shared(env.into_iter().map(value).collect()),
            mounts: shared(dirs),
            own: Arc::clone(own),
            http: shared(http),
            secrets: shared(secrets),
            // Whoever starts it knows that.
            program: None,
        }
    }
}

/// A list that nobody changes. Most are empty, and those cost nothing.
fn shared<T>(list: Vec<T>) -> Arc<[T]> {
    if list.is_empty() {
        Arc::default()
    } else {
        list.into()
    }
}
