//! The revisions of MCP that are spoken here. This is the one list of them.

/// A revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Revision {
    /// 2026-07-28: each request says all that is needed to answer it.
    R20260728,
}

impl Revision {
    /// Every revision, the newest first.
    pub const ALL: [Self; 1] = [Self::R20260728];

    /// The name of each, in the same order: what `server/discover` and error -32022 show.
    pub const NAMES: [&str; Self::ALL.len()] = [Self::ALL[0].as_str()];

    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::R20260728 => "2026-07-28",
        }
    }

    /// Whether what a call asks goes to the client in place of its result (MCP 2026-07-28, multi round-trip requests).
    #[must_use]
    pub fn has_rounds(self) -> bool {
        match self {
            Self::R20260728 => true,
        }
    }

    /// The revision of that name, if it is spoken here.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == name)
    }
}
