//! The root secret and the keys made from it: one for each purpose, none of which tells another.

use longshore_server::seal::Keys;

/// The size of the root secret.
pub(crate) const ROOT_BYTES: usize = 32;

/// What the key of native code's seal is derived under. A context names one purpose for ever: a key
/// that must change gets a new context, with a new number at its end.
const ARTIFACT_SEAL: &str = "longshore 2026 seal of native code 1";
/// What the key is derived under that seals the keys of tasks.
const JOURNAL_SEAL: &str = "longshore 2026 seal of journal keys 1";
/// What the key is derived under that makes the keys of tasks' random numbers.
const RANDOM_NUMBERS: &str = "longshore 2026 random numbers of calls 1";

/// What the key is derived under that seals rounds of calls.
const ROUNDS: &str = "longshore 2026 seal of rounds 1";

/// What the sign is derived under by which the secret is known again.
const SIGN: &str = "longshore 2026 sign of the secret 1";

/// The secret that every key of a data directory is derived from.
pub(crate) struct RootSecret([u8; ROOT_BYTES]);

impl RootSecret {
    /// The secret of these bytes.
    pub(crate) fn new(bytes: [u8; ROOT_BYTES]) -> Self {
        Self(bytes)
    }

    /// The key that seals native code.
    pub(crate) fn artifact_key(&self) -> [u8; 32] {
        blake3::derive_key(ARTIFACT_SEAL, &self.0)
    }

    /// By what it is known again. It tells nothing of the secret, nor of any key.
    pub(crate) fn sign(&self) -> [u8; 32] {
        blake3::derive_key(SIGN, &self.0)
    }

    /// The keys that runs need.
    pub(crate) fn run_keys(&self) -> Keys {
        Keys {
            journal: blake3::derive_key(JOURNAL_SEAL, &self.0),
            random: blake3::derive_key(RANDOM_NUMBERS, &self.0),
            rounds: blake3::derive_key(ROUNDS, &self.0),
        }
    }
}

// By hand, so that no log ever shows it.
impl std::fmt::Debug for RootSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RootSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_neither_the_secret_nor_shown() {
        let secret = RootSecret::new([7; ROOT_BYTES]);
        assert_ne!(secret.artifact_key(), [7; ROOT_BYTES]);
        assert_ne!(
            secret.artifact_key(),
            RootSecret::new([8; ROOT_BYTES]).artifact_key()
        );
        let keys = secret.run_keys();
        let all = [
            secret.sign(),
            secret.artifact_key(),
            keys.journal,
            keys.random,
            keys.rounds,
        ];
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(format!("{secret:?}"), "RootSecret");
    }
}
