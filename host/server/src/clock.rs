//! The one place where the server reads the clock.

use std::time::{SystemTime, UNIX_EPOCH};

use longshore_tasks::id::Millis;

/// Now.
pub(crate) fn now() -> Millis {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}
