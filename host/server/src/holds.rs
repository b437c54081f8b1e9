//! Components that this process needs, though the store may not know of it: a call that is held has no row yet and may
//! get one at any time.

use std::collections::HashMap;
use std::sync::Arc;

use longshore_catalog::component::Digest;
use parking_lot::Mutex;

/// Those that are needed, with how often.
#[derive(Clone, Default)]
pub(crate) struct Holds(Arc<Mutex<HashMap<Digest, usize>>>);

/// A component is needed for as long as this is there.
pub(crate) struct Hold {
    holds: Holds,
    digest: Digest,
}

impl Holds {
    pub(crate) fn hold(&self, digest: &Digest) -> Hold {
        *self.0.lock().entry(digest.clone()).or_default() += 1;
        Hold {
            holds: self.clone(),
            digest: digest.clone(),
        }
    }

    /// Whether somebody needs it.
    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.0.lock().contains_key(digest)
    }

    /// All that are needed.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        self.0.lock().keys().cloned().collect()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holds = self.holds.0.lock();
        if let Some(count) = holds.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                holds.remove(&self.digest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_needed_until_the_last_one_lets_go() {
        let holds = Holds::default();
        let [one, other] = [b"a", b"b"].map(|bytes| Digest::of(bytes));
        let first = holds.hold(&one);
        let second = holds.hold(&one);
        assert!(holds.has(&one) && !holds.has(&other));
        drop(first);
        assert!(holds.has(&one) && holds.digests().len() == 1);
        drop(second);
        assert!(!holds.has(&one));
        assert!(holds.digests().is_empty());
    }
}
