//! The outside of a component that is only asked for its tools.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use longshore_journal::call::{Answer, AskError, AskKind, LogLevel, Question};
use longshore_journal::http::{Failure, Outcome};
use longshore_journal::world::Origin;
use tokio::time::Instant;

use crate::journal::MOST_RECORDED;
use crate::outside::{Outgoing, Outside, OwnedChange, Said};

/// Nobody is there; only time passes.
pub(crate) struct Nobody {
    began: Instant,
}

impl Default for Nobody {
    fn default() -> Self {
        Self {
            began: Instant::now(),
        }
    }
}

/// The world of a component that is asked for its tools. Its random numbers are always the same: the
/// list is made once and kept, and two machines should see the same one.
pub(crate) fn listing_origin() -> Origin {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Origin {
        created_at_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
        random_key: *blake3::hash(b"list-tools").as_bytes(),
        most: MOST_RECORDED,
    }
}

#[async_trait]
impl Outside for Nobody {
    fn call_id(&self) -> String {
        String::new()
    }

    fn deadline_ms(&self) -> Option<u64> {
        None
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn wait_until(&self, ms: u64) {
        match self.began.checked_add(Duration::from_millis(ms)) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn set_status(&self, _message: String) {}

    fn report_progress(&self, _done: f64, _total: Option<f64>, _message: Option<String>) {}

    fn detach(&self) {}

    fn can_ask(&self, _kind: AskKind) -> bool {
        false
    }

    async fn ask(
        &self,
        _questions: Vec<Question>,
        _until: Option<u64>,
        _before: bool,
    ) -> Result<Vec<Answer>, AskError> {
        Err(AskError::Unsupported("there is no call yet".into()))
    }

    fn log(&self, _said: Said, _level: LogLevel, _logger: Option<String>, _message: String) {}

    async fn settle(&self) {}

    async fn send(&self, _request: Outgoing) -> Outcome {
        Err(Failure::Refused)
    }

    fn changed(&self, _change: OwnedChange) {}
}
