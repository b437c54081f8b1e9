//! A host that tools send requests to. It remembers each, and answers when it is told to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, StreamExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::wait;

/// Longer than a request takes to get here from a machine that is busy.
const SOON: Duration = Duration::from_secs(60);

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What was to be done.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Its body, as text.
    pub body: String,
    /// Its fields, names in lower case.
    pub fields: Vec<(String, String)>,
}

impl Seen {
    /// The values of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Vec<&str> {
        let same = self.fields.iter().filter(|(field, _)| field == name);
        same.map(|(_, value)| value.as_str()).collect()
    }
}

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
}

fn log_of(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The host, for as long as this lives.
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    log: Arc<Mutex<Log>>,
    opens: watch::Sender<bool>,
    state: watch::Sender<&'static str>,
    serving: JoinHandle<()>,
}

impl Drop for Target {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Clone)]
struct Shared {
    log: Arc<Mutex<Log>>,
    is_open: watch::Receiver<bool>,
    state: watch::Receiver<&'static str>,
}

impl Target {
    /// Starts it; it answers at once.
    ///
    /// # Panics
    /// If there is no port for it.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it has an address");
        let (opens, is_open) = watch::channel(true);
        let (state, states) = watch::channel("");
        let log = Arc::<Mutex<Log>>::default();
        let shared = Shared {
            log: Arc::clone(&log),
            is_open,
            state: states,
        };
        let router = Router::new().fallback(answer).with_state(shared);
        let serving = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("it serves for as long as it lives");
        });
        Self {
            address,
            log,
            opens,
            state,
            serving,
        }
    }

    /// From now on it remembers requests and lets them wait.
    pub fn hold(&self) {
        self.opens.send_replace(false);
    }

    /// It answers again, also those that wait.
    pub fn release(&self) {
        self.opens.send_replace(true);
    }

    /// What it answers at `/state` from now on.
    pub fn is_now(&self, state: &'static str) {
        self.state.send_replace(state);
    }

    /// All that came, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        log_of(&self.log).seen.clone()
    }

    /// Returns once so many have come.
    pub async fn until(&self, count: usize) {
        let what = format!("{count} requests to come");
        wait::until(&what, SOON, || async {
            (log_of(&self.log).seen.len() >= count).then_some(())
        })
        .await;
    }
}

/// What a path asks for: `/bytes/N` a body of that size, `/head/N` a field of that size, `/late/N` an answer after so many
/// milliseconds, `/pause/N` one with a pause in its body.
fn asked(path: &str) -> Option<(&str, u64)> {
    let (what, amount) = path.strip_prefix('/')?.split_once('/')?;
    Some((what, amount.parse().ok()?))
}

async fn as_asked(what: &str, amount: u64) -> Response {
    let pause = Duration::from_millis(amount);
    let size = usize::try_from(amount).expect("it fits into memory");
    match what {
        "bytes" => "b".repeat(size).into_response(),
        "head" => ([("x-large", "h".repeat(size))], "").into_response(),
        "late" => {
            tokio::time::sleep(pause).await;
            StatusCode::NO_CONTENT.into_response()
        }
        "pause" => {
            let second = async move {
                tokio::time::sleep(pause).await;
                Ok::<_, Infallible>("second half")
            };
            let first = stream::iter([Ok("first half")]);
            Body::from_stream(first.chain(stream::once(second))).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn answer(
    State(mut shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = headers.iter();
    let nth = {
        let mut log = log_of(&shared.log);
        log.seen.push(Seen {
            method: method.to_string(),
            path: uri.to_string(),
            body: text(&body),
            fields: fields
                .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
                .collect(),
        });
        log.seen.len()
    };
    let opened = shared.is_open.wait_for(|is_open| *is_open).await;
    opened.expect("it is there for as long as it serves");
    if uri.path() == "/state" {
        let state = *shared.state.borrow();
        return state.into_response();
    }
    match asked(uri.path()) {
        Some((what, amount)) => as_asked(what, amount).await,
        None => format!("{{\"request\":{nth}}}").into_response(),
    }
}
