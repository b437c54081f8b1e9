//! The revisions of MCP that are spoken here. This is the one list of them.
//!
//! There are two eras. In the older one a client opens a session by `initialize`, which settles the revision; in the
//! newer one each request says all that is needed to answer it, and may be refused for the revision that it names.

/// A revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Revision {
    /// 2026-07-28: each request says all that is needed to answer it.
    R20260728,
    /// 2025-11-25: sessions; pages to visit, tools in sampling, and an experiment with tasks.
    R20251125,
    /// 2025-06-18: sessions.
    R20250618,
}

impl Revision {
    /// Every revision, the newest first.
    pub const ALL: [Self; 3] = [Self::R20260728, Self::R20251125, Self::R20250618];

    /// The names of those that a request may name: what `server/discover` and error -32022 show. What `initialize`
    /// settles is not among them, since a request that names it would be refused.
    pub const NAMES: [&str; 1] = [Self::R20260728.as_str()];

    /// The names of those that `initialize` settles.
    pub const SESSION_NAMES: [&str; 2] = [Self::R20251125.as_str(), Self::R20250618.as_str()];

    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::R20260728 => "2026-07-28",
            Self::R20251125 => "2025-11-25",
            Self::R20250618 => "2025-06-18",
        }
    }

    /// Whether what a call asks goes to the client in place of its result (MCP 2026-07-28, multi round-trip requests).
    #[must_use]
    pub fn has_rounds(self) -> bool {
        match self {
            Self::R20260728 => true,
            Self::R20251125 | Self::R20250618 => false,
        }
    }

    /// The revision of that name, if it is spoken here.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == name)
    }

    /// Whether it is spoken in sessions.
    #[must_use]
    pub const fn has_sessions(self) -> bool {
        match self {
            Self::R20260728 => false,
            Self::R20251125 | Self::R20250618 => true,
        }
    }

    /// What `initialize` is answered with: the revision asked for if it can be, else the nearest that the client may
    /// know as well. It decides then whether to go on (MCP 2025-11-25, Lifecycle, version negotiation).
    #[must_use]
    pub fn settled(asked: &str) -> Self {
        match Self::parse(asked) {
            Some(revision) if revision.has_sessions() => revision,
            // Names are dates, so they are in order as texts.
            _ if is_date(asked) && asked > Self::R20251125.as_str() => Self::R20251125,
            _ => Self::R20250618,
        }
    }

    /// Whether a transport's header with that text belongs to a session. 2025-03-26 does: a client that asked for it
    /// was told 2025-06-18, and some still name what they asked for.
    #[must_use]
    pub fn is_of_sessions(header: &str) -> bool {
        header == "2025-03-26" || Self::SESSION_NAMES.contains(&header)
    }

    /// Whether that text names this era's revision or a later one, spoken here or not.
    #[must_use]
    pub fn is_sessionless(header: &str) -> bool {
        is_date(header) && header >= Self::R20260728.as_str()
    }
}

fn is_date(name: &str) -> bool {
    name.len() == 10
        && name.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_initialize_settles() {
        let rows = [
            ("2025-11-25", Revision::R20251125),
            ("2025-06-18", Revision::R20250618),
            // Older than all that is spoken here.
            ("2025-03-26", Revision::R20250618),
            ("2024-11-05", Revision::R20250618),
            // Between the two, and before the first of all.
            ("2025-09-01", Revision::R20250618),
            ("1900-01-01", Revision::R20250618),
            // Newer, also where it is spoken without sessions.
            ("2026-07-28", Revision::R20251125),
            ("2026-01-01", Revision::R20251125),
            ("2099-12-31", Revision::R20251125),
            // No dates.
            ("", Revision::R20250618),
            ("1.0.0", Revision::R20250618),
            ("DRAFT-2026-v1", Revision::R20250618),
            ("2099-12-31x", Revision::R20250618),
            ("9999999999", Revision::R20250618),
        ];
        for (asked, expected) in rows {
            assert_eq!(Revision::settled(asked), expected, "{asked:?}");
        }
    }

    #[test]
    fn headers_tell_the_eras_apart() {
        let rows = [
            ("2025-03-26", true, false),
            ("2025-06-18", true, false),
            ("2025-11-25", true, false),
            ("2024-11-05", false, false),
            ("2026-07-28", false, true),
            ("2027-01-01", false, true),
            ("v999.0.0", false, false),
            ("", false, false),
        ];
        for (header, of_sessions, sessionless) in rows {
            assert_eq!(Revision::is_of_sessions(header), of_sessions, "{header:?}");
            assert_eq!(Revision::is_sessionless(header), sessionless, "{header:?}");
        }
    }
}
