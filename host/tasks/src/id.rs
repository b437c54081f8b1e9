//! Small values that must not be swapped for one another.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Names one task for its whole life; 122 random bits, so that it cannot be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub Uuid);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

/// A text that is no task id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a task id")]
pub struct BadId;

impl FromStr for TaskId {
    type Err = BadId;

    /// Accepts the one form that [`TaskId`] prints: other spellings of the same id would let a
    /// header and a body differ in text and agree in meaning.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = Uuid::try_parse(text).map_err(|_| BadId)?;
        if id.as_hyphenated().to_string() == text {
            Ok(Self(id))
        } else {
            Err(BadId)
        }
    }
}

impl TaskId {
    /// The first and the last id that begin with that text, if any can: at least some of the digits of an id and its
    /// dashes, as [`TaskId`] prints them.
    #[must_use]
    pub fn beginning_with(text: &str) -> Option<(Self, Self)> {
        let pattern = "00000000-0000-0000-0000-000000000000";
        let fits = text.len() <= pattern.len()
            && text.bytes().zip(pattern.bytes()).all(|(byte, sample)| {
                (sample == b'-') == (byte == b'-')
                    && (byte == b'-' || matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            });
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        if !fits || digits.is_empty() {
            return None;
        }
        let id = |filling: &str| {
            let all = format!("{digits}{}", filling.repeat(32 - digits.len()));
            Uuid::try_parse(&all).ok().map(Self)
        };
        Some((id("0")?, id("f")?))
    }
}

/// An instant in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Millis(pub i64);

impl Millis {
    /// This instant moved by `ms`, at the end of time rather than past it.
    #[must_use]
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// The same number without a sign, 0 before 1970.
    #[must_use]
    pub fn unsigned(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }

    /// Milliseconds from `earlier` to this instant, 0 if it lies later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// A JSON text that is passed on as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json(pub Arc<str>);

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(pub Arc<str>);

/// Who pays and who is isolated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(pub Arc<str>);

/// One start of one server process; a restart is another node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeId(pub Arc<str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_names_a_range_of_ids() {
        let id: TaskId = "0f9e8d7c-1111-4222-8333-444455556666".parse().unwrap();
        let text = id.to_string();
        for length in 1..=text.len() {
            let (first, last) = TaskId::beginning_with(&text[..length]).unwrap();
            assert!(first <= id && id <= last, "{length}");
        }
        assert_eq!(TaskId::beginning_with(&text), Some((id, id)));
        let (first, last) = TaskId::beginning_with("0f9e8d7c-2").unwrap();
        assert!(!(first <= id && id <= last));
        let longer = format!("{text}0");
        for bad in ["", "-", "0F9e8d", "0f9e8d7c1", "0f9e8d7-", "xyz", &longer] {
            assert_eq!(TaskId::beginning_with(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn an_id_has_one_spelling() {
        let id = TaskId(Uuid::from_u128(0x1234_5678_9abc_4def_8123_4567_89ab_cdef));
        let text = id.to_string();
        assert_eq!(text.parse::<TaskId>().unwrap(), id);
        for other in [
            text.to_uppercase(),
            text.replace('-', ""),
            format!("{{{text}}}"),
            format!("urn:uuid:{text}"),
            String::new(),
            format!("{text} "),
        ] {
            assert!(other.parse::<TaskId>().is_err(), "{other:?} was taken");
        }
    }
}
