//! What components keep beyond their calls, and how each change to it takes place once.

use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::id::{TaskId, Tenant};
use crate::store::StoreError;

/// A place that keeps values. Whatever a method has acknowledged survives the death of the process.
#[async_trait]
pub trait ValueStore: Send + Sync {
    /// The value of that key.
    async fn value(&self, shelf: &Shelf, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// The keys that are asked for, in the order of their bytes.
    async fn keys(&self, shelf: &Shelf, which: Keys) -> Result<KeyPage, StoreError>;

    /// Makes a change and keeps what came of it, in one transaction; if it was the newest of its call before, only says
    /// what came of it then. A call makes its next change when nobody will ask for the one before any more. Refused as
    /// [`StoreError::Fenced`] if the call is further, or has ended as a task: whoever asks has lost it.
    async fn change(
        &self,
        shelf: &Shelf,
        once: Once,
        change: Change,
        room: Room,
    ) -> Result<Changed, StoreError>;

    /// Forgets what came of the newest change of a call that has ended without being a task. That of a task is forgotten
    /// with the commit that ends it.
    async fn forget(&self, call: TaskId) -> Result<(), StoreError>;

    /// The same for every call that is no task which goes on: for a process that begins.
    async fn forget_lost(&self) -> Result<(), StoreError>;

    /// How much there is.
    async fn taken(&self, shelf: &Shelf) -> Result<Taken, StoreError>;

    /// Takes everything away.
    async fn clear(&self, shelf: &Shelf) -> Result<(), StoreError>;
}

/// Whose values they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shelf {
    /// Within whom.
    pub tenant: Tenant,
    /// Which component, by its name.
    pub component: String,
}

/// Which change it is, so that it takes place once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Once {
    /// The call that makes it.
    pub call: TaskId,
    /// Which start of that call, if what a start sees is not recorded: the next one does everything anew.
    pub start: u64,
    /// The host call that makes it.
    pub number: u64,
}

/// A change to the value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whose value.
    pub key: String,
    /// What becomes of it.
    pub how: How,
}

/// What becomes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It is this one.
    Set(Vec<u8>),
    /// It is gone.
    Delete,
    /// It is the sum of what it was and this.
    Add(i64),
    /// It is `new` if it was `expected`.
    Swap {
        /// What it has to be.
        expected: Option<Vec<u8>>,
        /// What it becomes.
        new: Option<Vec<u8>>,
    },
}

/// What came of a change. It is kept as JSON: a kind that is added needs a name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Changed {
    /// It is made.
    Done,
    /// It is made, and this is the sum.
    Sum(i64),
    /// Whether the value was what was expected, and is another one now.
    Swapped(bool),
    /// What is there is no number. Nothing has changed.
    NoNumber,
    /// The sum is too large. Nothing has changed.
    Overflow,
    /// There would be more keys than this. Nothing has changed.
    TooManyKeys(u64),
    /// There would be more bytes than this. Nothing has changed.
    TooManyBytes(u64),
}

/// How much may be kept on a shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Keys.
    pub keys: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// How much is kept on a shelf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Keys.
    pub keys: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// Which keys to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// What they begin with.
    pub prefix: String,
    /// Behind which they come.
    pub after: Option<String>,
    /// At most so many, and at least one.
    pub limit: usize,
}

impl Keys {
    /// Where they begin.
    #[must_use]
    pub fn from(&self) -> Bound<&str> {
        match &self.after {
            Some(after) if *after >= self.prefix => Bound::Excluded(after),
            _ => Bound::Included(&self.prefix),
        }
    }

    /// The page of those among keys in order that begin there.
    pub fn page<E>(&self, keys: impl IntoIterator<Item = Result<String, E>>) -> Result<KeyPage, E> {
        let mut page = KeyPage::default();
        for key in keys {
            let key = key?;
            if !key.starts_with(&self.prefix) {
                break;
            }
            if page.keys.len() == self.limit.max(1) {
                page.next = page.keys.last().cloned();
                break;
            }
            page.keys.push(key);
        }
        Ok(page)
    }
}

/// Some keys, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPage {
    /// The keys.
    pub keys: Vec<String>,
    /// Behind which there are more.
    pub next: Option<String>,
}

/// What a change does to the value of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// What is to be written, if anything is: a value, or that there is none.
    pub write: Option<Option<Vec<u8>>>,
    /// What is kept on the shelf then.
    pub taken: Taken,
    /// What is said of it.
    pub changed: Changed,
}

/// Decides about a change, by what there is.
#[must_use]
pub fn decide(change: &Change, now: Option<&[u8]>, taken: Taken, room: Room) -> Decided {
    let refused = |changed| Decided {
        write: None,
        taken,
        changed,
    };
    let (new, changed) = match &change.how {
        How::Set(value) => (Some(value.clone()), Changed::Done),
        How::Delete => (None, Changed::Done),
        How::Add(delta) => {
            let Some(number) = now.map_or(Some(0), number) else {
                return refused(Changed::NoNumber);
            };
            let Some(sum) = number.checked_add(*delta) else {
                return refused(Changed::Overflow);
            };
            (Some(sum.to_string().into_bytes()), Changed::Sum(sum))
        }
        How::Swap { expected, .. } if expected.as_deref() != now => {
            return refused(Changed::Swapped(false));
        }
        How::Swap { new, .. } => (new.clone(), Changed::Swapped(true)),
    };
    if new.as_deref() == now {
        return refused(changed);
    }
    let size = |value: &[u8]| (change.key.len() + value.len()) as u64;
    let one = |value: Option<&[u8]>| u64::from(value.is_some());
    let then = Taken {
        keys: (taken.keys + one(new.as_deref())).saturating_sub(one(now)),
        bytes: (taken.bytes + new.as_deref().map_or(0, size)).saturating_sub(now.map_or(0, size)),
    };
    // What makes it less is never refused, whatever the room was before.
    if then.keys > room.keys && then.keys > taken.keys {
        return refused(Changed::TooManyKeys(room.keys));
    }
    if then.bytes > room.bytes && then.bytes > taken.bytes {
        return refused(Changed::TooManyBytes(room.bytes));
    }
    Decided {
        write: Some(new),
        taken: then,
        changed,
    }
}

/// The number that a value stands for: the text of a decimal integer.
fn number(value: &[u8]) -> Option<i64> {
    str::from_utf8(value).ok()?.parse().ok()
}

/// The values of one component in memory.
#[derive(Clone, Debug, Default)]
pub struct Values {
    values: BTreeMap<String, Vec<u8>>,
    taken: Taken,
}

impl Values {
    /// The value of that key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.values.get(key).cloned()
    }

    /// The keys that are asked for.
    #[must_use]
    pub fn keys(&self, which: &Keys) -> KeyPage {
        let range = self
            .values
            .range::<str, _>((which.from(), Bound::Unbounded));
        let keys = range.map(|(key, _)| Ok::<_, std::convert::Infallible>(key.clone()));
        let Ok(page) = which.page(keys);
        page
    }

    /// Makes a change.
    pub fn change(&mut self, change: Change, room: Room) -> Changed {
        let now = self.values.get(&change.key).map(Vec::as_slice);
        let decided = decide(&change, now, self.taken, room);
        self.taken = decided.taken;
        match decided.write {
            Some(Some(value)) => {
                self.values.insert(change.key, value);
            }
            Some(None) => {
                self.values.remove(&change.key);
            }
            None => {}
        }
        decided.changed
    }

    /// How much there is.
    #[must_use]
    pub fn taken(&self) -> Taken {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { keys: 2, bytes: 20 };

    #[test]
    fn a_change_is_decided_by_what_there_is() {
        use Changed::{Done, NoNumber, Overflow, Sum, Swapped, TooManyBytes, TooManyKeys};
        let set = |value: &str| How::Set(value.into());
        let swap = |expected: Option<&str>, new: Option<&str>| How::Swap {
            expected: expected.map(Into::into),
            new: new.map(Into::into),
        };
        let rows: &[(&str, How, Changed, Option<&str>)] = &[
            ("n", How::Add(2), Sum(2), Some("2")),
            ("n", How::Add(-5), Sum(-3), Some("-3")),
            (
                "n",
                set("9223372036854775807"),
                Done,
                Some("9223372036854775807"),
            ),
            ("n", How::Add(1), Overflow, Some("9223372036854775807")),
            // 1 + 19 bytes: there is room for nothing else.
            ("m", set(""), TooManyBytes(20), None),
            ("n", set("x"), Done, Some("x")),
            ("n", How::Add(1), NoNumber, Some("x")),
            ("n", swap(Some("y"), Some("z")), Swapped(false), Some("x")),
            ("n", swap(None, Some("z")), Swapped(false), Some("x")),
            ("n", swap(Some("x"), Some("z")), Swapped(true), Some("z")),
            ("m", swap(None, Some("1")), Swapped(true), Some("1")),
            ("o", set(""), TooManyKeys(2), None),
            ("m", swap(Some("1"), None), Swapped(true), None),
            ("m", swap(None, None), Swapped(true), None),
            ("o", set(""), Done, Some("")),
            ("o", How::Add(1), NoNumber, Some("")),
            ("o", How::Delete, Done, None),
            ("o", How::Delete, Done, None),
        ];
        let mut values = Values::default();
        for (number, (key, how, changed, after)) in rows.iter().enumerate() {
            let change = Change {
                key: (*key).to_owned(),
                how: how.clone(),
            };
            assert_eq!(values.change(change, ROOM), *changed, "row {number}");
            let after = after.map(|after| after.as_bytes().to_vec());
            assert_eq!(values.value(key), after, "row {number}");
            let (keys, bytes) = values
                .values
                .iter()
                .fold((0, 0), |(keys, bytes), (key, value)| {
                    (keys + 1, bytes + key.len() as u64 + value.len() as u64)
                });
            assert_eq!(values.taken(), Taken { keys, bytes }, "row {number}");
        }
    }

    /// What the keys begin with, behind which they come, at most how many; which come, and behind which there are more.
    type Listed<'a> = (
        &'a str,
        Option<&'a str>,
        usize,
        &'a [&'a str],
        Option<&'a str>,
    );

    #[test]
    fn keys_come_in_pages() {
        let mut values = Values::default();
        for key in ["a/1", "a/2", "a/3", "b", "a"] {
            let change = Change {
                key: key.to_owned(),
                how: How::Set(Vec::new()),
            };
            let room = Room { keys: 9, bytes: 99 };
            assert_eq!(values.change(change, room), Changed::Done);
        }
        let rows: &[Listed<'_>] = &[
            ("", None, 9, &["a", "a/1", "a/2", "a/3", "b"], None),
            ("a/", None, 2, &["a/1", "a/2"], Some("a/2")),
            ("a/", Some("a/2"), 2, &["a/3"], None),
            ("a/", Some("a/1"), 2, &["a/2", "a/3"], None),
            // What lies before all of them hides none.
            ("a/", Some("a"), 1, &["a/1"], Some("a/1")),
            ("a/", Some("c"), 1, &[], None),
            ("c", None, 1, &[], None),
            ("", None, 0, &["a"], Some("a")),
        ];
        for (prefix, after, limit, keys, next) in rows {
            let page = values.keys(&Keys {
                prefix: (*prefix).to_owned(),
                after: after.map(str::to_owned),
                limit: *limit,
            });
            assert_eq!(
                (&page.keys[..], page.next.as_deref()),
                (
                    &keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()[..],
                    *next
                ),
                "{prefix} {after:?}"
            );
        }
    }
}
