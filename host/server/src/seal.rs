//! What is kept of a run is kept sealed: a journal holds all that a tool saw. Each task has a key of its
//! own, which lies in its row, sealed by the key of the data directory; with the row goes the key, and with
//! the key everything that may still lie on the disk.

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use longshore_tasks::artifacts::ArtifactId;
use longshore_tasks::id::{Principal, TaskId, Tenant};
use uuid::Uuid;

/// The bytes before what is sealed.
const NONCE: usize = 24;

/// The keys of a data directory that runs need.
#[derive(Clone)]
pub struct Keys {
    /// Seals the keys of tasks.
    pub journal: [u8; 32],
    /// Makes the keys of their random numbers.
    pub random: [u8; 32],
    /// Seals what a client gives back when it makes a call again.
    pub rounds: [u8; 32],
}

impl Keys {
    /// Keys that are lost with the process, for what is not kept any longer.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self {
            journal: random(),
            random: random(),
            rounds: random(),
        }
    }

    /// The key of one call's random numbers. Whoever holds only the database cannot make it.
    pub(crate) fn random_of(&self, id: TaskId) -> [u8; 32] {
        *blake3::keyed_hash(&self.random, id.0.as_bytes()).as_bytes()
    }

    /// The name of what a call leaves in the host call of that number, in that start of it. Whoever holds the id of the
    /// call cannot make it.
    pub(crate) fn artifact_of(&self, id: TaskId, start: u64, number: u64) -> ArtifactId {
        let mut hasher = blake3::Hasher::new_keyed(&self.random_of(id));
        hasher.update(b"artifact");
        hasher.update(&start.to_le_bytes());
        hasher.update(&number.to_le_bytes());
        let hash = hasher.finalize();
        let bytes = *hash.as_bytes().first_chunk().expect("a hash is 32 bytes");
        ArtifactId(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// A new key for a task, and how it is kept.
    pub(crate) fn new_task(&self, id: TaskId) -> (TaskKey, Vec<u8>) {
        let key = random();
        let kept = seal(&self.journal, &About::Key(id), &key);
        (TaskKey { id, key }, kept)
    }

    /// The key of a task as it was kept.
    pub(crate) fn open_task(&self, id: TaskId, kept: &[u8]) -> Result<TaskKey, Unsealed> {
        let key = open(&self.journal, &About::Key(id), kept)?;
        let key = key.try_into().map_err(|_| Unsealed)?;
        Ok(TaskKey { id, key })
    }
}

// By hand, so that no log ever shows them.
impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// What cannot be opened: made with another secret, meant for another place, or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it was sealed with another secret, or is damaged")]
pub(crate) struct Unsealed;

/// The key of one task.
pub(crate) struct TaskKey {
    id: TaskId,
    key: [u8; 32],
}

impl TaskKey {
    /// Seals a segment.
    pub(crate) fn seal_segment(&self, number: u64, bytes: &[u8]) -> Vec<u8> {
        seal(&self.key, &About::Segment(self.id, number), bytes)
    }

    /// Opens a segment.
    pub(crate) fn open_segment(&self, number: u64, sealed: &[u8]) -> Result<Vec<u8>, Unsealed> {
        open(&self.key, &About::Segment(self.id, number), sealed)
    }

    /// Seals what a run printed.
    pub(crate) fn seal_output(&self, bytes: &[u8]) -> Vec<u8> {
        seal(&self.key, &About::Output(self.id), bytes)
    }

    /// Opens what a run printed.
    pub(crate) fn open_output(&self, sealed: &[u8]) -> Result<Vec<u8>, Unsealed> {
        open(&self.key, &About::Output(self.id), sealed)
    }
}

/// Seals a round for that caller.
pub(crate) fn seal_round(
    keys: &Keys,
    tenant: &Tenant,
    caller: &Principal,
    bytes: &[u8],
) -> Vec<u8> {
    seal(&keys.rounds, &About::Round(tenant, caller), bytes)
}

/// Opens a round of that caller.
pub(crate) fn open_round(
    keys: &Keys,
    tenant: &Tenant,
    caller: &Principal,
    sealed: &[u8],
) -> Result<Vec<u8>, Unsealed> {
    open(&keys.rounds, &About::Round(tenant, caller), sealed)
}

/// What something sealed is, so that it is nothing else's when somebody moves it.
enum About<'a> {
    Key(TaskId),
    Segment(TaskId, u64),
    Output(TaskId),
    Round(&'a Tenant, &'a Principal),
}

impl About<'_> {
    fn bytes(&self) -> Vec<u8> {
        let (kind, id, number) = match self {
            Self::Round(tenant, caller) => {
                let mut bytes = vec![b'r'];
                // With its length, so that no two pairs read the same.
                bytes.extend((tenant.0.len() as u64).to_le_bytes());
                bytes.extend(tenant.0.as_bytes());
                bytes.extend(caller.0.as_bytes());
                return bytes;
            }
            Self::Key(id) => (b'k', id, 0),
            Self::Segment(id, number) => (b's', id, *number),
            Self::Output(id) => (b'o', id, 0),
        };
        let mut bytes = vec![kind];
        bytes.extend(id.0.as_bytes());
        bytes.extend(number.to_le_bytes());
        bytes
    }
}

/// Nobody can guess it: three ids hold 366 random bits.
fn random() -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for _ in 0..3 {
        hasher.update(Uuid::new_v4().as_bytes());
    }
    hasher.finalize().into()
}

fn seal(key: &[u8; 32], about: &About<'_>, bytes: &[u8]) -> Vec<u8> {
    // At random, since the same segment may be sealed twice when a commit has to be tried again.
    let random = random();
    let nonce = XNonce::from_slice(&random[..NONCE]);
    let payload = Payload {
        msg: bytes,
        aad: &about.bytes(),
    };
    let sealed = XChaCha20Poly1305::new(Key::from_slice(key))
        .encrypt(nonce, payload)
        .expect("a segment is far smaller than what can be sealed");
    let mut out = Vec::with_capacity(NONCE + sealed.len());
    out.extend(nonce);
    out.extend(sealed);
    out
}

fn open(key: &[u8; 32], about: &About<'_>, sealed: &[u8]) -> Result<Vec<u8>, Unsealed> {
    let (nonce, rest) = sealed.split_at_checked(NONCE).ok_or(Unsealed)?;
    let payload = Payload {
        msg: rest,
        aad: &about.bytes(),
    };
    XChaCha20Poly1305::new(Key::from_slice(key))
        .decrypt(XNonce::from_slice(nonce), payload)
        .map_err(|_| Unsealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_where_it_belongs_and_nowhere_else() {
        let keys = Keys::of_this_process();
        let [one, other] = [TaskId(Uuid::from_u128(1)), TaskId(Uuid::from_u128(2))];
        let (key, kept) = keys.new_task(one);
        let sealed = key.seal_segment(3, b"what it saw");
        assert!(!sealed.windows(4).any(|window| window == b"what"));

        let again = keys.open_task(one, &kept).unwrap();
        assert_eq!(again.open_segment(3, &sealed).unwrap(), b"what it saw");
        assert_eq!(again.open_segment(4, &sealed), Err(Unsealed));
        assert_eq!(again.open_output(&sealed), Err(Unsealed));
        assert!(keys.open_task(other, &kept).is_err());
        assert!(Keys::of_this_process().open_task(one, &kept).is_err());
        let (second, _) = keys.new_task(one);
        assert_eq!(second.open_segment(3, &sealed), Err(Unsealed));

        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(again.open_segment(3, &changed), Err(Unsealed));
            assert_eq!(again.open_segment(3, &sealed[..at]), Err(Unsealed));
        }
        let output = key.seal_output(b"printed");
        assert_eq!(again.open_output(&output).unwrap(), b"printed");
    }

    #[test]
    fn a_call_has_its_own_random_numbers_and_always_the_same() {
        let keys = Keys::of_this_process();
        let of = |n| keys.random_of(TaskId(Uuid::from_u128(n)));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(format!("{keys:?}"), "Keys");
    }
}
