//! One file or directory.

use std::collections::BTreeMap;

/// Names a node; never used for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub(super) u64);

impl NodeId {
    /// Its number, which counts from 1.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// A time since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Whole seconds.
    pub seconds: u64,
    /// The rest.
    pub nanoseconds: u32,
}

/// When a node was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it was made or this was set: reading does not count.
    pub accessed: Time,
    /// When what it holds was changed.
    pub modified: Time,
    /// When anything of it was changed.
    pub changed: Time,
}

/// What a time becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It stays.
    Keep,
    /// Now.
    Now,
    /// That.
    To(Time),
}

impl Change {
    pub(super) fn of(self, before: Time, now: Time) -> Time {
        match self {
            Self::Keep => before,
            Self::Now => now,
            Self::To(time) => time,
        }
    }
}

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// How many names it has: one, or none once it is unlinked.
    pub links: u64,
    /// Its bytes, 0 for a directory.
    pub size: u64,
    /// When it was used.
    pub times: Times,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) body: Body,
    /// The directory in which it has its name, if it has one.
    pub(super) parent: Option<NodeId>,
    /// How many have it open.
    pub(super) holders: u64,
    pub(super) times: Times,
}

#[derive(Debug)]
pub(super) enum Body {
    File(Vec<u8>),
    Directory(BTreeMap<String, NodeId>),
}

impl Node {
    pub(super) fn new(body: Body, now: Time) -> Self {
        Self {
            body,
            parent: None,
            holders: 0,
            times: Times {
                accessed: now,
                modified: now,
                changed: now,
            },
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.body {
            Body::File(_) => Kind::File,
            Body::Directory(_) => Kind::Directory,
        }
    }

    pub(super) fn size(&self) -> u64 {
        match &self.body {
            Body::File(bytes) => bytes.len() as u64,
            Body::Directory(_) => 0,
        }
    }

    pub(super) fn modified(&mut self, now: Time) {
        self.times.modified = now;
        self.times.changed = now;
    }
}
