//! Names to addresses.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Semaphore;

/// Who knows the addresses of names.
#[async_trait]
pub(super) trait Resolve: Send + Sync + 'static {
    /// Every address of that name, the best first.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Names that are looked up at the same time. Each takes a thread until the system gives up, however long somebody
/// waits for it, and others need threads as well.
const AT_ONCE: usize = 64;

/// This machine's own resolver.
pub(super) struct System(Arc<Semaphore>);

impl Default for System {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

#[async_trait]
impl Resolve for System {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let place = Arc::clone(&self.0).acquire_owned().await;
        let name = name.to_owned();
        let looking = tokio::task::spawn_blocking(move || {
            let _place = place;
            let found = (name.as_str(), 0).to_socket_addrs()?;
            Ok(found.map(|address| address.ip()).collect())
        });
        looking.await.map_err(io::Error::other)?
    }
}
