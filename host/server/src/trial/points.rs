//! Whether a tool can be gone on with from every point: it is run against many schedules, and from
//! every record of each run it goes on in another world.

use std::collections::{BTreeMap, HashMap};

use longshore_journal::record::{Record, What};
use longshore_journal::segment::{self, Header, Link};
use longshore_journal::world::{After, Origin};
use longshore_policy::policy::Policy;
use longshore_sandbox::ending::{Ending, FaultKind};
use longshore_sandbox::sandbox::{Prepared, Sandbox};
use serde::Serialize;
use serde_json::Value;

use super::scripted::Schedule;
use super::{Facts, Past, Tried, ending_line, is_divergence, run_from};
use crate::run::HOST_ABI;

/// Everything a client may be able to do.
const ABLE: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
/// A day: what an earlier process saw is long ago for the later one.
const LATER_MS: u64 = 86_400_000;
/// Far from the time at which anything is stamped, and not zero.
const MADE_AT_MS: u64 = 1_800_000_000_000;
/// Reported at most.
const VIOLATIONS: usize = 20;

/// What is to be tried.
pub(super) struct Trials {
    /// The tool.
    pub tool: String,
    /// Its arguments, JSON.
    pub arguments: String,
    /// How many schedules.
    pub schedules: u64,
    /// What they are made from.
    pub seed: u64,
    /// Answers that are given, by key.
    pub answers: HashMap<String, Value>,
    /// What a run may touch and use.
    pub policy: Policy,
    /// How long it may live.
    pub deadline_ms: u64,
}

/// What came of it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The tool.
    pub tool: String,
    /// Schedules that were run.
    pub schedules: u64,
    /// Points at which the process died.
    pub crash_points: u64,
    /// Points from which the run did not go on as it had begun.
    pub violations: Vec<Violation>,
    /// How many there were in all.
    pub violated: u64,
    /// How runs ended, and how many so.
    pub endings: BTreeMap<String, u64>,
    /// The most records of one run.
    pub records: u64,
    /// The most bytes of one journal.
    pub bytes: u64,
    /// The most calls of one run.
    pub calls: u64,
    /// The most calls that a run had made since its last record when it died, which it makes again.
    pub calls_again: u64,
    /// The most lines that it had logged since then, which it may log again.
    pub log_lines_again: u64,
    /// The most CPU time that it took to come back to a point, in microseconds.
    pub replay_us: u64,
    /// The most CPU time of a run, in microseconds.
    pub cpu_us: u64,
}

/// A point from which a run did not go on as it had begun.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The number of the schedule.
    pub schedule: u64,
    /// Records that were kept.
    pub after_records: usize,
    /// The last of them.
    pub last: String,
    /// What happened.
    pub what: String,
}

impl Trials {
    /// Tries all of it. `progress` hears of every schedule that is done.
    pub(super) async fn run(
        &self,
        sandbox: &Sandbox,
        prepared: &Prepared,
        mut progress: impl FnMut(u64, u64),
    ) -> Report {
        let mut report = Report {
            tool: self.tool.clone(),
            ..Report::default()
        };
        for number in 0..self.schedules {
            self.one_schedule(sandbox, prepared, number, &mut report)
                .await;
            report.schedules += 1;
            progress(report.schedules, report.crash_points);
        }
        report
    }

    async fn one_schedule(
        &self,
        sandbox: &Sandbox,
        prepared: &Prepared,
        number: u64,
        report: &mut Report,
    ) {
        let run = |records: Vec<Record>, made, after, schedule| {
            let past = Past {
                origin: self.origin(number),
                records,
                made,
            };
            async move { run_from(sandbox, prepared, &self.facts(), past, after, schedule).await }
        };
        let first = run(Vec::new(), Vec::new(), After::Live, self.schedule(number)).await;
        report.note(&first);
        let mut violate = |after_records: usize, what: String| {
            report.violated += 1;
            if report.violations.len() < VIOLATIONS {
                let last = after_records
                    .checked_sub(1)
                    .and_then(|at| first.records.get(at))
                    .map_or_else(|| "its start".to_owned(), line);
                report.violations.push(Violation {
                    schedule: number,
                    after_records,
                    last,
                    what,
                });
            }
        };

        // Nothing but the records: all of it must come again.
        let whole = run(
            first.records.clone(),
            Vec::new(),
            After::Stop,
            self.later(number, 0),
        )
        .await;
        if let Some(what) = differs(&first, &whole) {
            violate(
                first.records.len(),
                format!("repeated as a whole, it {what}"),
            );
        }
        let mut again = Again::default();
        for cut in 0..first.records.len() {
            if matches!(first.records[cut].what, What::Ended { .. })
                && cut + 1 < first.records.len()
            {
                continue;
            }
            again.crash_points += 1;
            let kept = first.records[..cut].to_vec();
            let reached = kept.last().map_or(0, |record| record.call);
            // A change is made between the two records of it: of the last one nobody knows whether it was.
            let is_in_doubt =
                matches!(kept.last(), Some(last) if matches!(last.what, What::Changes { .. }));
            let is_undone = is_in_doubt && (number + cut as u64).is_multiple_of(2);
            let until = if is_undone { reached } else { reached + 1 };
            let made = first.made.iter().filter(|made| made.call < until);
            let made = made.cloned().collect();
            let resumed = run(kept, made, After::Live, self.later(number, cut as u64)).await;
            again.note(&first, reached, first.records[cut].call, &resumed);
            if is_divergence(&resumed.ended.ending) {
                violate(cut, ending_line(&resumed.ended.ending));
                continue;
            }
            if let Some(what) = log_differs(&first, &resumed, reached) {
                violate(cut, what);
                continue;
            }
            let whole = run(
                resumed.records.clone(),
                Vec::new(),
                After::Stop,
                self.later(number, cut as u64 + 1),
            )
            .await;
            if let Some(what) = differs(&resumed, &whole) {
                violate(cut, format!("gone on with and then repeated, it {what}"));
            }
        }
        report.crash_points += again.crash_points;
        report.calls_again = report.calls_again.max(again.calls);
        report.log_lines_again = report.log_lines_again.max(again.log_lines);
        report.replay_us = report.replay_us.max(again.replay_us);
    }

    fn facts(&self) -> Facts {
        Facts {
            call_id: "00000000-0000-4000-8000-000000000000".to_owned(),
            tool: self.tool.clone(),
            arguments: self.arguments.clone(),
            policy: self.policy.clone(),
            capabilities: ABLE.to_owned(),
            deadline_ms: self.deadline_ms,
        }
    }

    fn origin(&self, number: u64) -> Origin {
        let mut random_key = [0; 32];
        random_key[..8].copy_from_slice(&(self.seed ^ number).to_le_bytes());
        Origin {
            created_at_ms: MADE_AT_MS,
            random_key,
            most: super::most(&self.policy.limits),
        }
    }

    /// The world of the first process: every second one keeps everything at once, some cancel.
    fn schedule(&self, number: u64) -> Schedule {
        Schedule {
            starts_at: 0,
            seed: mixed(self.seed, number),
            cancel_at_wait: (number % 4 == 3).then_some(number / 4),
            eager: number.is_multiple_of(2),
            answers: self.answers.clone(),
        }
    }

    /// The world of the process after it: a day later, with other chances, and now and then a cancel.
    fn later(&self, number: u64, cut: u64) -> Schedule {
        Schedule {
            starts_at: LATER_MS,
            seed: mixed(
                self.seed ^ 0x5bd1_e995,
                number.wrapping_mul(1_000).wrapping_add(cut),
            ),
            cancel_at_wait: (cut % 5 == 4).then_some(0),
            eager: cut.is_multiple_of(2),
            answers: self.answers.clone(),
        }
    }
}

impl Report {
    /// Whether every point held.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.violated == 0
    }

    fn note(&mut self, tried: &Tried) {
        *self
            .endings
            .entry(ending_line(&tried.ended.ending))
            .or_default() += 1;
        let header = Header {
            host_abi: HOST_ABI,
            node: String::new(),
            written_at_ms: 0,
            previous: Link::default(),
        };
        let (bytes, _) = segment::write(&header, &tried.records);
        self.records = self.records.max(tried.records.len() as u64);
        self.bytes = self.bytes.max(bytes.len() as u64);
        self.calls = self.calls.max(tried.ended.calls);
        self.cpu_us = self.cpu_us.max(tried.ended.cpu_us);
    }
}

/// What the points of one schedule have in common.
#[derive(Default)]
struct Again {
    crash_points: u64,
    calls: u64,
    log_lines: u64,
    replay_us: u64,
}

impl Again {
    /// The process died just before it kept the record of call `lost`, with all up to `reached` kept.
    fn note(&mut self, first: &Tried, reached: u64, lost: u64, resumed: &Tried) {
        self.calls = self.calls.max(lost.saturating_sub(reached));
        let lines = first
            .log
            .iter()
            .filter(|(call, _)| (reached + 1..lost).contains(call))
            .count();
        self.log_lines = self.log_lines.max(lines as u64);
        self.replay_us = self.replay_us.max(resumed.replay_us);
    }
}

/// In what a repetition differs from what it repeats.
fn differs(one: &Tried, again: &Tried) -> Option<String> {
    // Nobody is asked of what is in doubt where nothing is sent: the records end there.
    let was_in_doubt = matches!(&one.ended.ending, Ending::Fault(fault) if fault.kind == FaultKind::InDoubt)
        && matches!(again.ended.ending, Ending::RecordsEnd { .. });
    if one.ended.ending != again.ended.ending && !was_in_doubt {
        return Some(format!(
            "{} where it {}",
            ending_line(&again.ended.ending),
            ending_line(&one.ended.ending)
        ));
    }
    if one.ended.calls != again.ended.calls {
        return Some(format!(
            "made {} calls instead of {}",
            again.ended.calls, one.ended.calls
        ));
    }
    if one.records.len() != again.records.len() {
        return Some("recorded something new".to_owned());
    }
    None
}

/// Whether something was logged otherwise before the point up to which everything was kept.
fn log_differs(first: &Tried, resumed: &Tried, reached: u64) -> Option<String> {
    let until = |tried: &Tried| -> Vec<(u64, String)> {
        tried
            .log
            .iter()
            .filter(|(call, _)| *call <= reached)
            .cloned()
            .collect()
    };
    // A finished step is not done again, so what it logged is not logged again.
    let (first, resumed) = (until(first), until(resumed));
    resumed
        .iter()
        .find(|line| !first.contains(line))
        .map(|(call, line)| format!("logged {line:?} at call {call}, which it had not"))
}

fn line(record: &Record) -> String {
    format!("{} at call {}", record.what.name(), record.call)
}

fn mixed(seed: u64, number: u64) -> u64 {
    (seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1
}
