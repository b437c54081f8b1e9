//! Names to addresses.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Who knows the addresses of names.
#[async_trait]
pub(super) trait Resolve: Send + Sync + 'static {
    /// Every address of that name, the best first.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// This machine's own resolver.
#[derive(Clone, Copy, Debug)]
pub(super) struct System;

#[async_trait]
impl Resolve for System {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((name, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
