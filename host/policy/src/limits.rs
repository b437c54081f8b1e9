//! The bounds on one run, each with the reason for its default.

use std::collections::BTreeMap;

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
    /// The value of one key of what a component keeps beyond its calls.
    pub value_bytes: u64,
    /// Keys that a component may keep.
    pub values: u64,
    /// Bytes of these, with their values.
    pub values_bytes: u64,
    /// One artifact that a call leaves. It is read as a whole.
    pub artifact_bytes: u64,
    /// Artifacts that a call may leave.
    pub artifacts: u64,
    /// Bytes of these.
    pub artifacts_bytes: u64,
    /// Records in the journal of a task. A guest that watches the clock makes a thousand a second.
    pub journal_records: u64,
    /// What those may hold.
    pub journal_bytes: u64,
    /// Exchanges over HTTP that are under way at once.
    pub http_at_once: u64,
    /// The body of one request.
    pub http_request_bytes: u64,
    /// The body of one response. All of it is kept in the journal.
    pub http_response_bytes: u64,
    /// The head of one response.
    pub http_head_bytes: u64,
    /// Until there is a connection.
    pub http_connect_ms: u64,
    /// From there until a response begins.
    pub http_first_byte_ms: u64,
    /// Between two pieces of a response.
    pub http_between_bytes_ms: u64,
    /// From the beginning of an exchange to its end.
    pub http_exchange_ms: u64,
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
            // All that is read is recorded, and most of it is small.
            value_bytes: 256 * KIB,
            values: 10_000,
            values_bytes: 16 * MIB,
            artifact_bytes: MIB,
            artifacts: 64,
            artifacts_bytes: 16 * MIB,
            journal_records: 200_000,
            journal_bytes: 64 * MIB,
            http_at_once: 8,
            http_request_bytes: MIB,
            http_response_bytes: 4 * MIB,
            http_head_bytes: 64 * KIB,
            http_connect_ms: 10_000,
            http_first_byte_ms: 60_000,
            http_between_bytes_ms: 30_000,
            http_exchange_ms: 600_000,
        }
    }
}

impl Limits {
    /// Each by the name of its setting behind `limits.`, in its unit.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let mut limits = self.clone();
        BOUNDS
            .iter()
            .map(move |bound| (bound.name, *(bound.place)(&mut limits) / bound.unit))
    }

    /// These, where they are above those lowered to them; and the settings by which they are.
    #[must_use]
    pub fn capped(&self, most: &Self) -> (Self, Vec<String>) {
        let (mut capped, mut most) = (self.clone(), most.clone());
        let mut keys = Vec::new();
        for Bound { name, place, .. } in &BOUNDS {
            let (value, most) = (place(&mut capped), *place(&mut most));
            if most < *value {
                *value = most;
                keys.push(format!("limits.{name}"));
            }
        }
        (capped, keys)
    }
}

/// A bound that can be named.
#[derive(Debug)]
pub struct Bound {
    /// Its name, with its unit: that of the setting behind `limits.`.
    pub name: &'static str,
    /// How much one of that unit is.
    unit: u64,
    /// The most that can be asked for and granted.
    most: u64,
    place: fn(&mut Limits) -> &mut u64,
}

/// Of one text that is held in memory.
const TEXT_KIB: u64 = 64 * KIB;
/// Of anything that is counted in memory.
const MANY: u64 = 1_000_000;
/// A run that computes for a day is none that anybody waits for.
const DAY_MS: u64 = 24 * 3_600_000;

const fn bound(
    name: &'static str,
    unit: u64,
    most: u64,
    place: fn(&mut Limits) -> &mut u64,
) -> Bound {
    Bound {
        name,
        unit,
        most,
        place,
    }
}

/// Every bound on a run.
#[rustfmt::skip]
pub const BOUNDS: [Bound; 35] = [
    bound("memory_mib", MIB, 256, |limits| &mut limits.memory_bytes),
    bound("table_elements", 1, MANY, |limits| &mut limits.table_elements),
    bound("instances", 1, MANY, |limits| &mut limits.instances),
    bound("handles", 1, MANY, |limits| &mut limits.handles),
    bound("hostcall_kib", KIB, TEXT_KIB, |limits| &mut limits.hostcall_bytes),
    bound("random_kib", KIB, TEXT_KIB, |limits| &mut limits.random_bytes),
    bound("scratch_mib", MIB, 1024, |limits| &mut limits.scratch_bytes),
    bound("cpu_ms", 1, DAY_MS, |limits| &mut limits.cpu_ms),
    bound("active_wall_ms", 1, DAY_MS, |limits| &mut limits.active_wall_ms),
    bound("result_kib", KIB, TEXT_KIB, |limits| &mut limits.result_bytes),
    bound("output_ring_kib", KIB, TEXT_KIB, |limits| &mut limits.output_ring_bytes),
    bound("log_ring_kib", KIB, TEXT_KIB, |limits| &mut limits.log_ring_bytes),
    bound("log_line_bytes", 1, MANY, |limits| &mut limits.log_line_bytes),
    bound("status_bytes", 1, MANY, |limits| &mut limits.status_bytes),
    bound("questions_open", 1, MANY, |limits| &mut limits.questions_open),
    bound("questions_in_life", 1, MANY, |limits| &mut limits.questions_in_life),
    bound("question_kib", KIB, TEXT_KIB, |limits| &mut limits.question_bytes),
    bound("answer_kib", KIB, TEXT_KIB, |limits| &mut limits.answer_bytes),
    bound("step_kib", KIB, TEXT_KIB, |limits| &mut limits.step_bytes),
    bound("value_kib", KIB, TEXT_KIB, |limits| &mut limits.value_bytes),
    bound("values", 1, MANY, |limits| &mut limits.values),
    bound("values_mib", MIB, 1024, |limits| &mut limits.values_bytes),
    bound("artifact_kib", KIB, TEXT_KIB, |limits| &mut limits.artifact_bytes),
    bound("artifacts", 1, MANY, |limits| &mut limits.artifacts),
    bound("artifacts_mib", MIB, 1024, |limits| &mut limits.artifacts_bytes),
    bound("journal_records", 1, 10 * MANY, |limits| &mut limits.journal_records),
    bound("journal_mib", MIB, 1024, |limits| &mut limits.journal_bytes),
    bound("http_at_once", 1, 1_000, |limits| &mut limits.http_at_once),
    bound("http_request_kib", KIB, TEXT_KIB, |limits| &mut limits.http_request_bytes),
    bound("http_response_kib", KIB, TEXT_KIB, |limits| &mut limits.http_response_bytes),
    bound("http_head_kib", KIB, 1024, |limits| &mut limits.http_head_bytes),
    bound("http_connect_ms", 1, DAY_MS, |limits| &mut limits.http_connect_ms),
    bound("http_first_byte_ms", 1, DAY_MS, |limits| &mut limits.http_first_byte_ms),
    bound("http_between_bytes_ms", 1, DAY_MS, |limits| &mut limits.http_between_bytes_ms),
    bound("http_exchange_ms", 1, DAY_MS, |limits| &mut limits.http_exchange_ms),
];

/// Some bounds, by their names and in their units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub struct Named(BTreeMap<&'static str, u64>);

/// A bound that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBound {
    /// There is none of that name.
    #[error("there is no limit {0:?}")]
    Unknown(String),
    /// It is more than anybody may have, or nothing.
    #[error("limit {name} must be 1 to {most}, and {value} is not")]
    OutOfRange {
        /// Which.
        name: &'static str,
        /// The most.
        most: u64,
        /// What was said.
        value: u64,
    },
}

impl TryFrom<BTreeMap<String, u64>> for Named {
    type Error = BadBound;

    fn try_from(named: BTreeMap<String, u64>) -> Result<Self, BadBound> {
        let mut bounds = BTreeMap::new();
        for (name, value) in named {
            let bound = BOUNDS.iter().find(|bound| bound.name == name);
            let Bound { name, most, .. } = bound.ok_or(BadBound::Unknown(name))?;
            let (name, most) = (*name, *most);
            if !(1..=most).contains(&value) {
                return Err(BadBound::OutOfRange { name, most, value });
            }
            bounds.insert(name, value);
        }
        Ok(Self(bounds))
    }
}

impl From<Named> for BTreeMap<String, u64> {
    fn from(named: Named) -> Self {
        let owned = |(name, value): (&str, u64)| (name.to_owned(), value);
        named.0.into_iter().map(owned).collect()
    }
}

impl Named {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each with its name and its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(name, value)| (*name, *value))
    }

    /// The limits with these in place of what they have.
    #[must_use]
    pub fn in_place_of(&self, limits: &Limits) -> Limits {
        self.over(limits, |_, named| named)
    }

    /// The limits, where they are above these lowered to them.
    #[must_use]
    pub fn lowering(&self, limits: &Limits) -> Limits {
        self.over(limits, u64::min)
    }

    fn over(&self, limits: &Limits, choose: impl Fn(u64, u64) -> u64) -> Limits {
        let mut limits = limits.clone();
        for bound in &BOUNDS {
            if let Some(value) = self.0.get(bound.name) {
                let place = (bound.place)(&mut limits);
                *place = choose(*place, value * bound.unit);
            }
        }
        limits
    }
}
