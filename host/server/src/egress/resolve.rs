//! Names to addresses.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// Who knows the addresses of names.
#[async_trait]
pub(super) trait Resolve: Send + Sync + 'static {
    /// Every address of that name, the best first, for that call.
    async fn resolve(&self, call: &str, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Names that are looked up at the same time. Each takes a thread until the system gives up, however long somebody
/// waits for it, and others need threads as well.
const AT_ONCE: usize = 64;
/// Of one call: somebody who looks up names that nobody knows leaves most of them to everybody else.
const OF_A_CALL: usize = 4;

/// This machine's own resolver.
pub(super) struct System {
    all: Arc<Semaphore>,
    calls: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Default for System {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_ONCE)),
            calls: Mutex::default(),
        }
    }
}

impl System {
    fn of_call(&self, call: &str) -> Arc<Semaphore> {
        let mut calls = self.calls.lock();
        if let Some(places) = calls.get(call).and_then(Weak::upgrade) {
            return places;
        }
        calls.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(OF_A_CALL));
        calls.insert(call.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[async_trait]
impl Resolve for System {
    async fn resolve(&self, call: &str, name: &str) -> io::Result<Vec<IpAddr>> {
        let of_call = self.of_call(call).acquire_owned().await;
        let of_all = Arc::clone(&self.all).acquire_owned().await;
        let name = name.to_owned();
        let looking = tokio::task::spawn_blocking(move || {
            let _places = (of_call, of_all);
            let found = (name.as_str(), 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        });
        looking.await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_call_that_waits_for_names_leaves_places_to_others() {
        let system = System::default();
        let of_one = system.of_call("one");
        let held: Vec<_> =
            std::iter::from_fn(|| system.of_call("one").try_acquire_owned().ok()).collect();
        assert_eq!(held.len(), OF_A_CALL);
        let one = system.resolve("one", "localhost");
        assert!(one.now_or_never().is_none(), "it waits for its own");
        assert!(
            !system
                .resolve("other", "localhost")
                .await
                .unwrap()
                .is_empty()
        );
        drop((held, of_one));
        assert!(!system.resolve("one", "localhost").await.unwrap().is_empty());
        // Whoever is gone is forgotten.
        system.of_call("new");
        assert_eq!(system.calls.lock().len(), 1);
    }
}
