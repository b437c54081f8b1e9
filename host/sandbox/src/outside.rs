//! What a run needs of the world; whoever starts runs implements it.

use async_trait::async_trait;
use longshore_journal::call::{Answer, AskError, AskKind, LogLevel, Question};

/// The far side of the imports of package `longshore:tool`. One value serves one run. Texts come as
/// the guest gave them, cut or refused by the run's limits before they get here.
#[async_trait]
pub trait Outside: Send + Sync + 'static {
    /// Names the call, the same for its whole life.
    fn call_id(&self) -> String;

    /// Milliseconds until the call's deadline, if it has one.
    fn time_left_ms(&self) -> Option<u64>;

    /// A line of status; only the newest matters.
    fn set_status(&self, message: String);

    /// How far the run has come; both numbers are finite and `done` has grown.
    fn report_progress(&self, done: f64, total: Option<f64>, message: Option<String>);

    /// The caller need not wait any longer.
    fn detach(&self);

    /// Whether the caller can be asked in this way.
    fn can_ask(&self, kind: AskKind) -> bool;

    /// Asks all of it at once; answers come in the order of the questions. Returns when all are
    /// answered, when `wait_ms` is over, or when the call is cancelled.
    async fn ask(
        &self,
        questions: Vec<Question>,
        wait_ms: Option<u64>,
    ) -> Result<Vec<Answer>, AskError>;

    /// A log line for whoever called.
    fn log(&self, level: LogLevel, logger: Option<String>, message: String);

    /// What the component says has changed.
    fn changed(&self, change: OwnedChange);
}

/// What a component says has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedChange {
    /// Its tools.
    Tools,
    /// Its prompts.
    Prompts,
    /// Its resources.
    Resources,
    /// One resource.
    Resource(String),
}
