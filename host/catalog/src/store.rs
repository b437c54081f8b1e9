//! How components are kept. One contract, whatever is underneath.

use async_trait::async_trait;

use crate::component::{Component, Digest, Name};

/// A place that keeps components, by digest, and the names that point at them.
#[async_trait]
pub trait ComponentStore: Send + Sync {
    /// Keeps the bytes and points the component's name at them, in one transaction.
    async fn install(&self, component: Component, bytes: Vec<u8>) -> Result<Installed, StoreError>;

    /// Keeps the bytes though no name points at them.
    async fn keep(&self, component: Component, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// Takes a name away, with what it was granted. The bytes stay while a task that has not ended needs them.
    async fn remove(&self, name: Name) -> Result<bool, StoreError>;

    /// Every component that a name points at, sorted by name.
    async fn installed(&self) -> Result<Vec<Component>, StoreError>;

    /// Keeps what the operator grants to whatever component has that name, in place of what it was granted before; with
    /// nothing, takes that away.
    async fn grant(&self, name: Name, grant: Option<String>) -> Result<(), StoreError>;

    /// What is granted, by name.
    async fn grants(&self) -> Result<Vec<(Name, String)>, StoreError>;

    /// The bytes of that digest, whether or not a name points at them.
    async fn bytes(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Deletes the bytes that neither a name nor a task that has not ended needs, and none of `served`; says
    /// which.
    async fn collect(&self, served: Vec<Digest>) -> Result<Vec<Digest>, StoreError>;
}

/// What installing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installed {
    /// The name is new.
    Created,
    /// The name pointed at other bytes.
    Replaced(Digest),
    /// The name pointed at the same bytes already; nothing was written.
    Unchanged,
}

/// Why a store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing is wrong with the request; it may work later.
    #[error("the store cannot be written or read now: {0}")]
    Unavailable(String),
    /// A row holds what this program never writes.
    #[error("the store holds a damaged row: {0}")]
    Corrupt(String),
}
