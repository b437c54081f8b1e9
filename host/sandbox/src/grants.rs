//! What a policy comes to in a run.

use std::sync::Arc;

use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;

/// What one run has.
#[derive(Clone)]
pub(crate) struct Grants {
    pub(crate) limits: Limits,
    /// Its environment.
    pub(crate) env: Arc<[(String, String)]>,
}

impl Grants {
    /// Names every part of a policy, so that a new one does not compile until it is decided what it comes to.
    pub(crate) fn of(policy: Policy) -> Self {
        let Policy {
            version: _,
            // No request is sent for a guest yet, so no secret goes anywhere either.
            http: _,
            secrets: _,
            // What becomes of a run that is cancelled is for whoever cancels it.
            cleanup: _,
            dirs: _,
            env,
            limits,
        } = policy;
        let value = |(name, value)| (String::from(name), value);
        Self {
            limits,
            env: env.into_iter().map(value).collect(),
        }
    }
}
