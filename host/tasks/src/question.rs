//! What a task asked, and the keys under which it is answered.

use std::collections::HashSet;

use crate::id::Json;

/// One request for input, alive from the moment it is asked until its task ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Unique for the task's whole life, since a late answer must never meet another question.
    pub key: String,
    /// The request as the client sees it.
    pub request: Json,
    /// What became of it.
    pub fate: Fate,
}

/// What the key of a wait begins with that the host sees to and nobody is asked about. No author's key has such a
/// character.
pub const OF_HOST: char = '\u{1}';

impl Question {
    /// Whether it is a wait that the host sees to.
    #[must_use]
    pub fn is_of_host(&self) -> bool {
        self.key.starts_with(OF_HOST)
    }
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Waits for its answer.
    Open,
    /// The first answer that came; later ones are ignored.
    Answered(Json),
    /// Nobody waits for it any more: its wait ended, or the task is being cancelled.
    Withdrawn,
}

/// The key on the wire for a question that its author calls `name`: the name itself, then `name-2`,
/// `name-3` and so on, the first that was never used. A pure function of the uses so far, so that a
/// run that is replayed asks under the same keys.
#[must_use]
pub fn wire_key(name: &str, used: &HashSet<String>) -> String {
    if !used.contains(name) {
        return name.to_owned();
    }
    (2_u64..)
        .map(|n| format!("{name}-{n}"))
        .find(|key| !used.contains(key))
        .expect("a set in memory does not hold every number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_used_twice() {
        let mut used = HashSet::new();
        let mut keys = Vec::new();
        // The third name is what the second use of the first would have become.
        for name in ["a", "a", "a-2", "a", "b", "a-2"] {
            let key = wire_key(name, &used);
            used.insert(key.clone());
            keys.push(key);
        }
        assert_eq!(keys, ["a", "a-2", "a-2-2", "a-3", "b", "a-2-3"]);
    }
}
