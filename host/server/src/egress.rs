//! The way out: requests of guests, sent by rules of ours.
//!
//! Whom a request may go to is decided before it gets here, by reading its authority once. That same authority is
//! resolved once, each address is judged, and the one that was judged is dialled; no redirect is followed, no proxy
//! asked, nothing unpacked, and every wait and every size has a bound.

mod dial;
mod exchange;
mod resolve;
mod tls;
pub mod vault;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use longshore_journal::http::{Failure, Outcome};
use longshore_sandbox::outside::Outgoing;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use self::exchange::Ready;
use self::resolve::{Resolve, System};
use self::tls::Roots;
use self::vault::Vault;

/// Sends requests.
pub(crate) struct Egress {
    roots: Roots,
    resolver: Arc<dyn Resolve>,
    vault: Vault,
    places: Semaphore,
    /// What this server listens at, which nobody is let to.
    own: Mutex<Vec<SocketAddr>>,
}

impl Egress {
    /// One with so many connections at the same time.
    pub(crate) fn new(vault: Vault, connections: usize) -> Self {
        Self {
            roots: Roots::default(),
            resolver: Arc::<System>::default(),
            vault,
            places: Semaphore::new(connections.min(Semaphore::MAX_PERMITS)),
            own: Mutex::default(),
        }
    }

    /// The server listens there.
    pub(crate) fn is_ours(&self, address: SocketAddr) {
        self.own.lock().push(address);
    }

    /// Sends a request of that call.
    pub(crate) async fn send(&self, call: &str, outgoing: Outgoing) -> Outcome {
        let began = Instant::now();
        let (method, to) = (outgoing.method.clone(), outgoing.authority.clone());
        let whole = Duration::from_millis(outgoing.bounds.whole_ms);
        let outcome = timeout(whole, self.exchange(call, outgoing))
            .await
            .unwrap_or(Err(Failure::ResponseTimeout));
        let ms = began.elapsed().as_millis();
        // Path, fields and body may be private.
        match &outcome {
            Ok(response) => {
                tracing::debug!(call, %method, %to, status = response.status, ms, "a request was sent");
            }
            Err(failure) => {
                tracing::debug!(call, %method, %to, %failure, ms, "a request has no response");
            }
        }
        outcome
    }

    async fn exchange(&self, call: &str, outgoing: Outgoing) -> Outcome {
        let Ready { request, guarded } = exchange::request(call, &outgoing, &self.vault)?;
        let until = Instant::now() + Duration::from_millis(outgoing.bounds.connect_ms);
        // Held until the connection is gone.
        let _place = timeout_at(until, self.places.acquire())
            .await
            .map_err(|_| Failure::ConnectionLimit)?
            .map_err(|_| Failure::ConnectionLimit)?;
        let connection = self
            .connect(call, &outgoing, guarded.as_ref(), until)
            .await?;
        exchange::exchange(connection, request, &outgoing).await
    }
}
