//! What a run needs of the world; whoever starts runs implements it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use longshore_journal::call::{Answer, AskError, AskKind, LogLevel, Question};
use longshore_journal::http::Outcome;
use longshore_journal::values;
use longshore_policy::authority::{Authority, Scheme};
use longshore_policy::http::Method;
use longshore_policy::network::Network;
use longshore_policy::secrets::Secret;

/// The far side of a guest's imports. One value serves one run. Texts come as the guest gave them, cut
/// or refused by the run's limits before they get here. A run that is repeated shows its status again,
/// and tells nothing else twice.
#[async_trait]
pub trait Outside: Send + Sync + 'static {
    /// Names the call, the same for its whole life.
    fn call_id(&self) -> String;

    /// The call's deadline, if it has one, in milliseconds since the call was made; the same for its whole
    /// life.
    fn deadline_ms(&self) -> Option<u64>;

    /// Milliseconds since the call was made. Need not be the same in another process, nor grow.
    fn now_ms(&self) -> u64;

    /// Returns once [`Outside::now_ms`] is that or more.
    async fn wait_until(&self, ms: u64);

    /// A line of status; only the newest matters.
    fn set_status(&self, message: String);

    /// How far the run has come; both numbers are finite and `done` has grown.
    fn report_progress(&self, done: f64, total: Option<f64>, message: Option<String>);

    /// The caller need not wait any longer.
    fn detach(&self);

    /// Whether the caller can be asked in this way.
    fn can_ask(&self, kind: AskKind) -> bool;

    /// Asks all of it at once; answers come in the order of the questions. Returns when all are
    /// answered, when [`Outside::now_ms`] is `until`, or when the call is cancelled. `before` says that an
    /// earlier process has put the questions already.
    async fn ask(
        &self,
        questions: Vec<Question>,
        until: Option<u64>,
        before: bool,
    ) -> Result<Vec<Answer>, AskError>;

    /// A log line for whoever called. A run that is repeated says it again, but for those lines that were kept before.
    fn log(&self, said: Said, level: LogLevel, logger: Option<String>, message: String);

    /// Returns once all that was recorded so far survives this process.
    async fn settle(&self);

    /// Sends a request that the run's policy lets be sent, and returns when all of its response is there. Letting go
    /// of it breaks the exchange off.
    async fn send(&self, request: Outgoing) -> Outcome;

    /// Does that with what is kept, in the call of that number. A change that an earlier process has made in
    /// that call is not made again: what came of it then is said again. Where there is no call, nothing is kept.
    async fn values(&self, call: u64, operation: values::Operation) -> values::Outcome {
        let _nobody_does_it = (call, operation);
        Err(values::Failure::Invalid("there is no call yet".to_owned()))
    }

    /// What the component says has changed.
    fn changed(&self, change: OwnedChange);

    /// Who is told of each turn that the run has on a thread, if anybody is.
    fn witness(&self) -> Option<Arc<dyn Witness>> {
        None
    }
}

/// A request of a guest: complete, judged by its policy, and not sent yet.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Names the exchange within its call, the same in every process.
    pub exchange: u64,
    /// What is to be done.
    pub method: Method,
    /// How it travels.
    pub scheme: Scheme,
    /// To whom: this host is resolved, once, and dialled.
    pub authority: Authority,
    /// Path and query, beginning with a slash.
    pub path: String,
    /// Fields as the guest gave them, names in lower case.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The whole body.
    pub body: Bytes,
    /// Networks that are not public and may be dialled all the same.
    pub networks: Vec<Network>,
    /// Secrets that this host may see.
    pub secrets: Vec<Secret>,
    /// Whether it carries a key by which its target can tell that it is the same again.
    pub is_keyed: bool,
    /// What it may take.
    pub bounds: Bounds,
}

/// What an exchange may take, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Until there is a connection, with TLS if that is wanted.
    pub connect_ms: u64,
    /// From there until the head of the response.
    pub first_byte_ms: u64,
    /// Between two pieces of the body.
    pub between_bytes_ms: u64,
    /// In all.
    pub whole_ms: u64,
    /// The head of the response.
    pub head_bytes: u64,
    /// The body of the response.
    pub body_bytes: u64,
}

/// Who is told when a run is on a thread.
pub trait Witness: Send + Sync {
    /// Its turn begins.
    fn enters(&self);

    /// Its turn is over.
    fn leaves(&self);
}

/// A run whose turns somebody is told of.
pub(crate) async fn witnessed<T>(
    witness: Option<Arc<dyn Witness>>,
    run: impl Future<Output = T>,
) -> T {
    let Some(witness) = witness else {
        return run.await;
    };
    let mut run = pin!(run);
    poll_fn(|context| {
        witness.enters();
        let polled = run.as_mut().poll(context);
        witness.leaves();
        polled
    })
    .await
}

/// When a line was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said {
    /// The number of the import call that logged it.
    pub call: u64,
    /// Records that are kept lead there: whoever repeats them logs the same again.
    pub is_sure: bool,
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
