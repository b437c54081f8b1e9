//! What runs leave for whoever called them: bytes that are read by a name of their own, for as long as what came of the
//! call is kept.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use uuid::Uuid;

use crate::id::{BadId, Millis, Principal, TaskId, Tenant};
use crate::store::StoreError;

/// A place that keeps artifacts. Whatever a method has acknowledged survives the death of the process. Those of a task
/// go with its row.
#[async_trait]
pub trait ArtifactStore: Send + Sync {
    /// Keeps one, unless it is kept already. Refused as [`StoreError::Fenced`] if the call has ended as a task.
    async fn put(&self, artifact: Artifact, room: Room) -> Result<Put, StoreError>;

    /// The one of that name, if it is that caller's and its time is not over.
    async fn artifact(
        &self,
        id: ArtifactId,
        tenant: &Tenant,
        principal: &Principal,
        now: Millis,
    ) -> Result<Option<Artifact>, StoreError>;

    /// A call has ended without being a task: what it left is forgotten then.
    async fn left_until(&self, call: TaskId, forget_at: Millis) -> Result<(), StoreError>;

    /// The same for every call that has not ended and is no task: for a process that begins.
    async fn left_by_lost(&self, forget_at: Millis) -> Result<(), StoreError>;

    /// Deletes up to `limit` that are to be forgotten, of calls that are no tasks.
    async fn sweep_artifacts(&self, now: Millis, limit: usize) -> Result<usize, StoreError>;
}

/// Names one artifact; 122 bits that nobody can guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArtifactId(pub Uuid);

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TaskId(self.0).fmt(f)
    }
}

impl FromStr for ArtifactId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<TaskId>().map(|id| Self(id.0))
    }
}

/// One artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its name.
    pub id: ArtifactId,
    /// The call that left it.
    pub call: TaskId,
    /// Who called: nobody else may read it.
    pub tenant: Tenant,
    /// The same.
    pub principal: Principal,
    /// What it is called.
    pub name: String,
    /// Its media type.
    pub mime_type: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// How much one call may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Artifacts.
    pub count: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// What came of leaving one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is kept.
    Kept,
    /// There would be more than so many.
    TooMany(u64),
    /// There would be more bytes than this.
    TooManyBytes(u64),
}

impl Room {
    /// Whether one of that size fits beside so many others of that size.
    #[must_use]
    pub fn fits(self, count: u64, bytes: u64, size: u64) -> Put {
        if count >= self.count {
            Put::TooMany(self.count)
        } else if bytes.saturating_add(size) > self.bytes {
            Put::TooManyBytes(self.bytes)
        } else {
            Put::Kept
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_room_for_so_much() {
        let room = Room {
            count: 3,
            bytes: 10,
        };
        for (count, bytes, size, expected) in [
            (0, 0, 10, Put::Kept),
            (0, 0, 11, Put::TooManyBytes(10)),
            (2, 10, 0, Put::Kept),
            (2, 10, 1, Put::TooManyBytes(10)),
            (3, 0, 0, Put::TooMany(3)),
            (0, 1, u64::MAX, Put::TooManyBytes(10)),
        ] {
            let put = room.fits(count, bytes, size);
            assert_eq!(put, expected, "{size} beside {count} of {bytes}");
        }
    }
}
