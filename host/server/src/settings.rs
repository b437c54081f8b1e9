//! What a server can be told, each with the reason for its default.

use std::path::PathBuf;
use std::time::Duration;

use longshore_policy::limits::Limits;

/// What a server can be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a call of an `auto` tool may take before it becomes a task, in milliseconds: shorter
    /// than a person notices, longer than most tools need.
    pub inline_budget_ms: u64,
    /// How often clients are asked to poll, in milliseconds.
    pub poll_interval_ms: u64,
    /// How long the answer to a poll that comes before its time is held back while nothing changes, in
    /// milliseconds; never beyond the interval. Some clients poll every few milliseconds at first.
    pub early_poll_ms: u64,
    /// How long a cancelled guest has to clean up, in milliseconds.
    pub grace_ms: u64,
    /// Shortest time between two visible changes of a task's status, in milliseconds: a person reads
    /// no faster, and each costs a commit.
    pub status_every_ms: u64,
    /// Shortest time between two progress notifications of a held call, in milliseconds: as often as a bar on a
    /// screen can be seen to move.
    pub progress_every_ms: u64,
    /// Longest silence on a held call whose client wants to hear of progress, in milliseconds: the server says then that
    /// it is still there. Shorter than the patience of any client that is known.
    pub beat_ms: u64,
    /// How long a call is held for a client that does not know tasks, in milliseconds, before it goes on as a task that
    /// is followed by tools: less than the half minute after which many clients give up.
    pub hold_ms: u64,
    /// The same for a client that hears of progress meanwhile, which keeps it patient for longer.
    pub hold_progress_ms: u64,
    /// How long one call of `longshore_task_wait` takes at most, in milliseconds: such a client gives up on it as soon as
    /// on any other.
    pub follow_ms: u64,
    /// Whether that is done at all, and its tools are listed.
    pub handoff: bool,
    /// How long the questions of a call wait for the call to be made again with the answers, in milliseconds.
    pub round_ms: u64,
    /// The least time between two requests that look for what a tool waits for.
    pub poll_least_ms: u64,
    /// How long a task may live, in milliseconds, unless the tool or the call asks for less.
    pub deadline_ms: u64,
    /// How long a task can be read after its end, in milliseconds.
    pub retention_ms: u64,
    /// Whether what a run sees is recorded, so that it goes on after the death of its process. If not, tools run
    /// on the host's own clocks and randomness, and their tasks fail when the server stops.
    pub durable: bool,
    /// Longest time for which what a run recorded is kept in memory only, in milliseconds: what it does in that
    /// time may be done once more after a crash. What anybody can see is kept before it is shown.
    pub journal_every_ms: u64,
    /// How long a run that waits for an answer or a time keeps its memory, in milliseconds, if it cost little to
    /// get there: most people who answer at all answer soon.
    pub warm_ms: u64,
    /// Runs that may do so at the same time. Any other is parked as soon as it waits.
    pub warm: usize,
    /// Shortest wait for a time that a run is parked for, in milliseconds.
    pub park_from_ms: u64,
    /// Runs at the same time.
    pub running: usize,
    /// Of those, the ones of one tenant.
    pub running_each: usize,
    /// Calls that wait for one of those places.
    pub queued: usize,
    /// Of those, the ones of one tenant.
    pub queued_each: usize,
    /// Tasks that wait and have given their place to others. While there are as many, nothing new begins.
    pub parked: usize,
    /// How long a call waits for a place, in milliseconds.
    pub queue_wait_ms: u64,
    /// How long a call waits for its component to be compiled, in milliseconds.
    pub compile_wait_ms: u64,
    /// One request body on the protocol's endpoint, in bytes.
    pub request_bytes: usize,
    /// One uploaded component, in bytes.
    pub upload_bytes: usize,
    /// Uploads at the same time: each is in memory until it is compiled.
    pub uploads: usize,
    /// Headers of one request; a client of ours sends about ten, and one for each argument that is repeated.
    pub headers: usize,
    /// All headers of one request, in bytes. An argument that is repeated as a header can be long.
    pub header_bytes: usize,
    /// How long the headers of a request may take, in seconds.
    pub header_s: u64,
    /// How long a request body may pause between two parts, in seconds.
    pub body_pause_s: u64,
    /// How long a client may take in nothing of an answer, in seconds, before its connection is given up.
    pub write_s: u64,
    /// Large answers that their clients have not taken in yet, in bytes, over all connections: a hundred of the largest
    /// results. Whoever asks for much and reads nothing holds no more memory than that.
    pub answers_bytes: usize,
    /// Connections for the requests of all tools.
    pub http_connections: usize,
    /// Clients that listen at the same time. Each is a connection that may say nothing for hours.
    pub listeners: usize,
    /// Of those, the ones of one caller.
    pub listeners_each: usize,
    /// How long one of them is told over HTTP, in seconds, before it has to ask again. A proxy may hold the connection of a
    /// client that is long gone, and read on in its place: nothing else would tell it from one that listens.
    pub listen_s: u64,
    /// Tasks that one of them may name: each is read when it begins, and is news that may wait for it.
    pub listen_tasks: usize,
    /// Resources that one of them may name: each is compared with every template that there is.
    pub listen_resources: usize,
    /// Early polls of one caller that wait for news: more than a client that is merely hasty ever has.
    pub early_polls: usize,
    /// Sessions at the same time. A client that goes away without a word leaves its own behind until it is idle for
    /// too long, so that there is room for many that nobody uses.
    pub sessions: usize,
    /// Of those, the ones of one caller.
    pub sessions_each: usize,
    /// How long a session lasts that nobody uses, in seconds: as long as a person is away from a client, which opens
    /// another one if it has to.
    pub session_idle_s: u64,
    /// What a session keeps of answers whose client lost its connection, in bytes: one result of the largest kind and
    /// some of the usual.
    pub session_kept_bytes: usize,
    /// Connections at the same time.
    pub connections: usize,
    /// Tools on one page of a list.
    pub page: usize,
    /// Directories of the server's own, which no component is granted.
    pub own_dirs: Vec<PathBuf>,
    /// Whether a grant may name every host there is.
    pub any_host: bool,
    /// The bounds on one run.
    pub limits: Limits,
}

impl Settings {
    /// How long a call is held for a client that does not know tasks.
    pub(crate) fn hold(&self, hears_progress: bool) -> Duration {
        Duration::from_millis(if hears_progress {
            self.hold_progress_ms
        } else {
            self.hold_ms
        })
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            inline_budget_ms: 300,
            poll_interval_ms: 1_000,
            early_poll_ms: 1_000,
            grace_ms: 1_000,
            status_every_ms: 250,
            progress_every_ms: 25,
            beat_ms: 10_000,
            hold_ms: 25_000,
            hold_progress_ms: 240_000,
            follow_ms: 25_000,
            handoff: true,
            round_ms: 15 * 60_000,
            poll_least_ms: 1_000,
            deadline_ms: 7 * 24 * 3_600_000,
            retention_ms: 24 * 3_600_000,
            durable: true,
            journal_every_ms: 250,
            warm_ms: 2_000,
            warm: 64,
            park_from_ms: 10_000,
            running: 256,
            running_each: 256,
            queued: 1_024,
            queued_each: 1_024,
            parked: 100_000,
            queue_wait_ms: 10_000,
            compile_wait_ms: 120_000,
            request_bytes: 1024 * 1024,
            upload_bytes: 32 * 1024 * 1024,
            uploads: 8,
            headers: 64,
            header_bytes: 64 * 1024,
            header_s: 10,
            body_pause_s: 10,
            write_s: 30,
            answers_bytes: 128 * 1024 * 1024,
            http_connections: 256,
            listeners: 1_024,
            listeners_each: 1_024,
            listen_s: 6 * 3_600,
            listen_tasks: 100,
            listen_resources: 100,
            early_polls: 64,
            sessions: 1_024,
            sessions_each: 1_024,
            session_idle_s: 30 * 60,
            session_kept_bytes: 2 * 1024 * 1024,
            connections: 4_096,
            page: 100,
            own_dirs: Vec::new(),
            any_host: false,
            limits: Limits::default(),
        }
    }
}
