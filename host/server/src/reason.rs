//! Why something was refused or ended: the closed list, with the code and the remedy of each.

use std::ops::RangeInclusive;

use longshore_catalog::library::Refusal as ListRefusal;
use longshore_sandbox::control::StopReason;
use longshore_sandbox::ending::FaultKind;
use longshore_sandbox::refusal::Reason as UploadReason;

/// Why a run has no result, or a call no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunReason {
    /// An instruction that cannot be executed.
    Trap,
    /// Calls nested too deeply.
    StackOverflow,
    /// More CPU time than allowed.
    CpuLimit,
    /// More wall time than allowed.
    WallLimit,
    /// More memory than allowed.
    MemoryLimit,
    /// More handles than allowed.
    HandleLimit,
    /// A host call that carries more than allowed.
    HostcallLimit,
    /// A result larger than allowed.
    OutputLimit,
    /// More questions than allowed.
    InputLimit,
    /// A result that is not what it should be.
    BadOutput,
    /// The guest ended its process.
    Exit,
    /// Something that no policy grants.
    PolicyDenied,
    /// The process that ran it died.
    Interrupted,
    /// Its deadline passed.
    Expired,
    /// Nobody waited for it any more.
    Abandoned,
    /// It did not repeat what it did before.
    Nondeterminism,
    /// An effect may or may not have happened.
    InDoubt,
    /// It took the process down with it.
    Quarantined,
    /// Our own fault.
    HostFault,
    /// Every place was taken for too long.
    Busy,
    /// Too many calls wait already.
    QueueFull,
    /// More to be recorded of it than allowed.
    JournalLimit,
    /// It took too long to repeat what it did before.
    ReplayLimit,
}

/// The numbers that the host gives to errors of runs, now and in time to come.
pub(crate) const OWN_CODES: RangeInclusive<i32> = 1_000..=1_999;

impl RunReason {
    /// In the order of their codes. New ones are added at the end: a code is never used again.
    pub const ALL: [Self; 23] = [
        Self::Trap,
        Self::StackOverflow,
        Self::CpuLimit,
        Self::WallLimit,
        Self::MemoryLimit,
        Self::HandleLimit,
        Self::HostcallLimit,
        Self::OutputLimit,
        Self::InputLimit,
        Self::BadOutput,
        Self::Exit,
        Self::PolicyDenied,
        Self::Interrupted,
        Self::Expired,
        Self::Abandoned,
        Self::Nondeterminism,
        Self::InDoubt,
        Self::Quarantined,
        Self::HostFault,
        Self::Busy,
        Self::QueueFull,
        Self::JournalLimit,
        Self::ReplayLimit,
    ];

    /// The word in `error.data.reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::StackOverflow => "stack-overflow",
            Self::CpuLimit => "cpu-limit",
            Self::WallLimit => "wall-limit",
            Self::MemoryLimit => "memory-limit",
            Self::HandleLimit => "handle-limit",
            Self::HostcallLimit => "hostcall-limit",
            Self::OutputLimit => "output-limit",
            Self::InputLimit => "input-limit",
            Self::BadOutput => "bad-output",
            Self::Exit => "exit",
            Self::PolicyDenied => "policy-denied",
            Self::Interrupted => "interrupted",
            Self::Expired => "expired",
            Self::Abandoned => "abandoned",
            Self::Nondeterminism => "nondeterminism",
            Self::InDoubt => "in-doubt",
            Self::Quarantined => "quarantined",
            Self::HostFault => "host-fault",
            Self::Busy => "busy",
            Self::QueueFull => "queue-full",
            Self::JournalLimit => "journal-limit",
            Self::ReplayLimit => "replay-limit",
        }
    }

    /// The error's number. MCP leaves every number outside -32768 to -32000 to servers; only a fault
    /// of our own is a JSON-RPC internal error.
    #[must_use]
    pub fn code(self) -> i32 {
        const FIRST: i32 = *OWN_CODES.start();
        const INTERNAL_ERROR: i32 = -32_603;
        if self == Self::HostFault {
            return INTERNAL_ERROR;
        }
        let place = Self::ALL
            .iter()
            .position(|reason| *reason == self)
            .expect("the list holds every reason");
        FIRST + i32::try_from(place).expect("the list is short")
    }
}

impl From<FaultKind> for RunReason {
    fn from(kind: FaultKind) -> Self {
        match kind {
            FaultKind::Trap => Self::Trap,
            FaultKind::StackOverflow => Self::StackOverflow,
            FaultKind::CpuLimit => Self::CpuLimit,
            FaultKind::MemoryLimit => Self::MemoryLimit,
            FaultKind::HandleLimit => Self::HandleLimit,
            FaultKind::HostcallLimit => Self::HostcallLimit,
            FaultKind::OutputLimit => Self::OutputLimit,
            FaultKind::InputLimit => Self::InputLimit,
            FaultKind::BadOutput => Self::BadOutput,
            FaultKind::Exit => Self::Exit,
            FaultKind::Nondeterminism => Self::Nondeterminism,
            FaultKind::JournalLimit => Self::JournalLimit,
            FaultKind::ReplayLimit => Self::ReplayLimit,
            FaultKind::InDoubt => Self::InDoubt,
            FaultKind::Host => Self::HostFault,
        }
    }
}

/// What a stopped run ends as, where that is not a cancel.
#[must_use]
pub fn of_stop(stop: StopReason) -> Option<RunReason> {
    match stop {
        StopReason::Cancelled | StopReason::Abandoned => None,
        StopReason::WallLimit => Some(RunReason::WallLimit),
        StopReason::Expired => Some(RunReason::Expired),
        // A run that was put away has no end; one that has all the same was interrupted.
        StopReason::Shutdown | StopReason::Parked => Some(RunReason::Interrupted),
    }
}

/// Why a request was refused before anything was done for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestReason {
    /// Its body, its headers, or one of its values.
    TooLarge,
    /// More headers, ids or other items than it may have.
    TooMany,
    /// It did not come to its end in time.
    TooSlow,
    /// Its body ended before its length.
    Broken,
    /// Its body is compressed.
    Encoding,
    /// Without the admin token, or with another.
    Unauthorized,
    /// Of something that is not there.
    NotFound,
    /// By a method of HTTP that is not for that address.
    Method,
    /// What stands behind its `?`.
    Query,
    /// Its body is not what it should be.
    Body,
    /// The answer does not fit the question.
    Answer,
    /// An answer to what is not asked, or not any more.
    NotAsked,
    /// The store cannot be read or written now.
    StoreUnavailable,
    /// It belongs to no session, or to one that has ended.
    NoSession,
    /// By its `Host` or `Origin` it is for another server, or from a foreign page.
    Foreign,
    /// It brings, or wants, another kind of content than there is.
    MediaType,
    /// Of a task that is not set aside.
    NotQuarantined,
    /// The records of a task cannot be used.
    Journal,
}

impl RequestReason {
    /// Every reason there is.
    pub const ALL: [Self; 18] = [
        Self::TooLarge,
        Self::TooMany,
        Self::TooSlow,
        Self::Broken,
        Self::Encoding,
        Self::Unauthorized,
        Self::NotFound,
        Self::Method,
        Self::Query,
        Self::Body,
        Self::Answer,
        Self::NotAsked,
        Self::StoreUnavailable,
        Self::NoSession,
        Self::Foreign,
        Self::MediaType,
        Self::NotQuarantined,
        Self::Journal,
    ];

    /// The word for programs, which never changes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too-large",
            Self::TooMany => "too-many",
            Self::TooSlow => "too-slow",
            Self::Broken => "broken",
            Self::Encoding => "encoding",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not-found",
            Self::Method => "method",
            Self::Query => "query",
            Self::Body => "body",
            Self::Answer => "answer",
            Self::NotAsked => "not-asked",
            Self::StoreUnavailable => "store-unavailable",
            Self::NoSession => "no-session",
            Self::Foreign => "foreign",
            Self::MediaType => "media-type",
            Self::NotQuarantined => "not-quarantined",
            Self::Journal => "journal",
        }
    }

    /// The member `data` of an error on the wire.
    #[must_use]
    pub fn data(self) -> String {
        format!("{{\"reason\":\"{}\"}}", self.as_str())
    }
}

/// Whether the host itself says that word, of a run or a request.
pub(crate) fn is_ours(word: &str) -> bool {
    RunReason::ALL.iter().any(|reason| reason.as_str() == word)
        || RequestReason::ALL
            .iter()
            .any(|reason| reason.as_str() == word)
        || UploadReason::of(word).is_some()
}

impl From<RequestReason> for &'static str {
    fn from(reason: RequestReason) -> Self {
        reason.as_str()
    }
}

/// The word for a name that somebody else has.
pub(crate) const NAME_COLLISION: &str = "name-collision";

/// Why an upload was refused, or another request to the admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A word of the closed list.
    pub reason: &'static str,
    /// One line that names the thing and the remedy.
    pub message: String,
}

impl Refusal {
    /// A refusal of that word.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

impl From<longshore_sandbox::refusal::Refusal> for Refusal {
    fn from(refusal: longshore_sandbox::refusal::Refusal) -> Self {
        Self {
            reason: refusal.reason.as_str(),
            message: refusal.message,
        }
    }
}

impl From<ListRefusal> for Refusal {
    fn from(refusal: ListRefusal) -> Self {
        Self {
            reason: refusal.reason(),
            message: refusal.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words_are_unique_and_stay() {
        let codes: Vec<i32> = RunReason::ALL.iter().map(|reason| reason.code()).collect();
        let unique: std::collections::HashSet<_> = codes.iter().collect();
        assert_eq!(unique.len(), RunReason::ALL.len());
        // Clients may have stored these.
        assert_eq!(RunReason::Trap.code(), 1000);
        assert_eq!(RunReason::Interrupted.code(), 1012);
        assert_eq!(RunReason::QueueFull.code(), 1020);
        assert_eq!(RunReason::JournalLimit.code(), 1021);
        assert_eq!(RunReason::ReplayLimit.code(), 1022);
        assert_eq!(RunReason::HostFault.code(), -32603);
    }
}
