//! The bounds on one run, each with the reason for its default.

use serde::{Deserialize, Serialize};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The bounds on one run. A task keeps the ones that it began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
// A run that began with an earlier version has none of the newer ones in its row.
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Linear memory of the whole run, over all its memories. It also bounds how long one bulk
    /// instruction can keep a thread, since none can be interrupted halfway.
    pub memory_bytes: u64,
    /// Elements of all its tables.
    pub table_elements: u64,
    /// Core instances, memories and tables that one component may consist of, each.
    pub instances: u64,
    /// Handles, and entries in the host's table behind them; also the files and directories of a run.
    pub handles: u64,
    /// Bytes that one host call may carry out of the guest.
    pub hostcall_bytes: u64,
    /// Bytes of randomness that one host call may ask for.
    pub random_bytes: u64,
    /// Bytes of the files that a run may keep while it runs.
    pub scratch_bytes: u64,
    /// CPU time of the guest.
    pub cpu_ms: u64,
    /// Wall time of a run, less what it waits for people and clocks.
    pub active_wall_ms: u64,
    /// One result, as the JSON that is kept and sent.
    pub result_bytes: u64,
    /// What is kept of each of stdout and stderr: the newest.
    pub output_ring_bytes: u64,
    /// What is kept of what the guest logs: the newest.
    pub log_ring_bytes: u64,
    /// One line of its log; longer ones are cut.
    pub log_line_bytes: u64,
    /// One line of status; longer ones are cut.
    pub status_bytes: u64,
    /// Questions that may wait for an answer at once.
    pub questions_open: u64,
    /// Questions in the whole life of a call.
    pub questions_in_life: u64,
    /// One question: its message and its schema.
    pub question_bytes: u64,
    /// One answer to a question. It is kept with its task, and every wake reads it.
    pub answer_bytes: u64,
    /// Bytes that one step may hand back, or one restart point hold.
    pub step_bytes: u64,
    /// Records in the journal of a task. A guest that watches the clock makes a thousand a second.
    pub journal_records: u64,
    /// What those may hold.
    pub journal_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 * MIB,
            table_elements: 100_000,
            instances: 64,
            handles: 10_000,
            // Lowering a list costs far more CPU than its bytes: at 4 MiB it stays below one slice.
            hostcall_bytes: 4 * MIB,
            random_bytes: 64 * KIB,
            scratch_bytes: 16 * MIB,
            cpu_ms: 30_000,
            active_wall_ms: 600_000,
            result_bytes: MIB,
            output_ring_bytes: 256 * KIB,
            log_ring_bytes: 256 * KIB,
            log_line_bytes: 8 * KIB,
            status_bytes: KIB,
            questions_open: 16,
            questions_in_life: 256,
            question_bytes: 16 * KIB,
            answer_bytes: MIB,
            step_bytes: MIB,
            journal_records: 200_000,
            journal_bytes: 64 * MIB,
        }
    }
}
