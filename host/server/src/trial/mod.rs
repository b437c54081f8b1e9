//! Runs without a server, whose outside is a script: to repeat what happened, and to find out whether a
//! tool can be gone on with from every point.

mod answers;
pub mod export;
mod points;
mod scripted;

use self::points::Trials;
pub use self::points::{Report, Violation};

use std::sync::Arc;

use longshore_catalog::registry::Owned;
use longshore_journal::record::Record;
use longshore_journal::tape::Total;
use longshore_journal::world::{After, Origin};
use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use longshore_sandbox::control::Control;
use longshore_sandbox::ending::{Ended, Ending, FaultKind};
use longshore_sandbox::journal::{Journal, Spent};
use longshore_sandbox::sandbox::{FirstTurn, Prepared, Run, Sandbox};
use longshore_sandbox::target::Target;

use self::export::{Export, ExportError};
use self::scripted::{Made, Schedule, Scripted};
use crate::reason::{self, RunReason};
use crate::run::record::beginning;
use crate::run::target;
use crate::server::Server;

/// What is known of a call before it runs.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) call_id: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) policy: Policy,
    /// What its client can do, JSON.
    pub(crate) capabilities: String,
    /// When it expires, in milliseconds since it was made.
    pub(crate) deadline_ms: u64,
}

/// What a run begins with.
pub(crate) struct Past {
    pub(crate) origin: Origin,
    pub(crate) records: Vec<Record>,
    /// Changes to what its component keeps that were made before.
    pub(crate) made: Vec<Made>,
}

/// One run that is over.
struct Tried {
    ended: Ended,
    /// All its records, those that it began with first.
    records: Vec<Record>,
    /// What it logged, each line with its call.
    log: Vec<(u64, String)>,
    /// All changes that were made to what its component keeps, also before it.
    made: Vec<Made>,
    /// What it cost to come to its last record.
    replay_us: u64,
}

pub(crate) fn most(limits: &Limits) -> Total {
    Total {
        records: limits.journal_records,
        bytes: limits.journal_bytes,
    }
}

/// Runs a tool from where those records end.
async fn run_from(
    sandbox: &Sandbox,
    prepared: &Prepared,
    facts: &Facts,
    past: Past,
    after: After,
    schedule: Schedule,
) -> Tried {
    let Past {
        origin,
        records,
        made,
    } = past;
    let mut journal = Journal::fresh(origin);
    let (begin, entry) = beginning(records.clone());
    journal.begin = begin;
    journal.entry = entry;
    journal.after = after;
    journal.is_recorded = true;
    // Whoever repeats a run here did not make it, and does not know what it cost.
    journal.spent = Spent {
        cpu_ms: facts.policy.limits.cpu_ms,
        active_ms: 0,
    };
    let control = Control::default();
    let outside = Arc::new(Scripted::new(
        facts.clone(),
        schedule,
        made,
        journal.tape.clone(),
        sandbox.clone(),
        control.clone(),
    ));
    let mut policy = facts.policy.clone();
    policy.limits.cpu_ms = policy.limits.cpu_ms.saturating_mul(2);
    let started = sandbox.start(Run {
        prepared: prepared.clone(),
        target: target::of_kept(&facts.tool, &facts.arguments).unwrap_or_else(|| Target::Tool {
            name: facts.tool.clone(),
            arguments: facts.arguments.clone(),
        }),
        policy,
        outside: Arc::clone(&outside) as Arc<_>,
        control,
        first_turn: FirstTurn::Queued,
        journal,
    });
    let watch = started.watch;
    let ended = started
        .ended
        .await
        .expect("a run reports how it ended, whatever happens to it");
    let (fresh, log, made) = outside.finish();
    let mut all = records;
    all.extend(fresh);
    Tried {
        replay_us: u64::try_from(watch.replay_cpu().as_micros()).unwrap_or(u64::MAX),
        ended,
        records: all,
        log,
        made,
    }
}

/// How a run ended, in one line.
fn ending_line(ending: &Ending) -> String {
    match ending {
        Ending::Returned(_) => "returned a result".to_owned(),
        Ending::ToolFailed(_) => "returned an error".to_owned(),
        Ending::Read(_) => "returned what was read".to_owned(),
        Ending::NotFound => "found nothing to read".to_owned(),
        Ending::Prompted(_) => "returned a prompt".to_owned(),
        Ending::BadArgument(_) => "returned that an argument is wrong".to_owned(),
        Ending::Completed(_) => "returned proposals".to_owned(),
        Ending::Protocol(error) => format!("returned the protocol error {}", error.code),
        Ending::Cancelled => "ended as cancelled".to_owned(),
        Ending::Stopped(reason) => format!(
            "was stopped ({})",
            reason::of_stop(*reason).map_or("cancelled", RunReason::as_str)
        ),
        Ending::Fault(fault) => format!(
            "failed ({}): {}",
            RunReason::from(fault.kind).as_str(),
            fault.message
        ),
        Ending::RecordsEnd { call } => format!("came to the end of its records at call {call}"),
    }
}

/// Whether a run did something else than was recorded of it.
fn is_divergence(ending: &Ending) -> bool {
    matches!(ending, Ending::Fault(fault) if fault.kind == FaultKind::Nondeterminism)
}

/// What came of a repetition.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replayed {
    /// The task.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// Whether it did all that was recorded, and nothing else.
    pub same: bool,
    /// How the repetition ended.
    pub ending: String,
    /// Records that there are.
    pub records: usize,
    /// Calls that it made.
    pub calls: u64,
    /// What it printed.
    pub stdout: String,
    /// What it printed there.
    pub stderr: String,
    /// What it logged.
    pub log: Vec<String>,
    /// CPU time of the repetition, in microseconds.
    pub cpu_us: u64,
}

/// Repeats an exported task with nothing from outside.
///
/// # Errors
///
/// If the file cannot be used. A task that differs is no error but an answer.
async fn replay(
    sandbox: &Sandbox,
    prepared: &Prepared,
    export: &Export,
    here: &Limits,
) -> Result<Replayed, ExportError> {
    let (facts, capped) = export.facts(here)?;
    let past = export.past(&facts.policy.limits)?;
    let records = past.records.len();
    let is_whole = past
        .records
        .last()
        .is_some_and(|record| matches!(record.what, longshore_journal::record::What::Ended { .. }));
    let tried = run_from(
        sandbox,
        prepared,
        &facts,
        past,
        After::Stop,
        Schedule::quiet(),
    )
    .await;
    let ends_with_records = matches!(tried.ended.ending, Ending::RecordsEnd { .. });
    let same = if is_whole {
        // It has returned, then as now.
        let is_broken_off = matches!(
            tried.ended.ending,
            Ending::Fault(_) | Ending::Stopped(_) | Ending::RecordsEnd { .. }
        );
        !is_broken_off
    } else {
        ends_with_records
    };
    let ending = if ends_with_records {
        "came to the end of what was recorded".to_owned()
    } else {
        ending_line(&tried.ended.ending)
    };
    let ending = if same || capped.is_empty() {
        ending
    } else {
        format!(
            "{ending}; it may use less here than it might then, by {}",
            capped.join(", ")
        )
    };
    Ok(Replayed {
        id: facts.call_id,
        tool: facts.tool,
        same,
        ending,
        records,
        calls: tried.ended.calls,
        stdout: tried.ended.stdout.text,
        stderr: tried.ended.stderr.text,
        log: tried.log.into_iter().map(|(_, line)| line).collect(),
        cpu_us: tried.ended.cpu_us.max(tried.replay_us),
    })
}

impl Server {
    /// Tries one of the tools that this server has from every point of many runs.
    ///
    /// # Errors
    ///
    /// If there is no such tool, or its schema does not take the arguments.
    pub async fn try_tool(
        &self,
        what: Trial<'_>,
        progress: impl FnMut(u64, u64),
    ) -> Result<Report, String> {
        let registry = self.registry();
        let Owned { entry, tool } = registry
            .tool(what.tool)
            .ok_or_else(|| format!("there is no tool {:?}", what.tool))?;
        let value: serde_json::Value =
            serde_json::from_str(what.arguments).map_err(|error| error.to_string())?;
        let ready = entry
            .payload
            .tool(&tool.name)
            .ok_or_else(|| "the tool is listed but was not prepared".to_owned())?;
        ready.input.check(&value).map_err(|problems| {
            let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!(
                "the arguments do not fit the tool's input schema: {}",
                list.join("; ")
            )
        })?;
        let trials = Trials {
            tool: tool.name.clone(),
            arguments: what.arguments.to_owned(),
            schedules: what.schedules,
            seed: what.seed,
            answers: what.answers,
            policy: Policy::clone(&entry.payload.policy()),
            deadline_ms: self.settings.deadline_ms,
        };
        let prepared = entry.payload.code.made().await;
        let prepared = prepared.map_err(|refusal| refusal.message)?;
        Ok(trials.run(&self.sandbox, &prepared, progress).await)
    }

    /// Repeats an exported task whose component is the only one that this server has.
    ///
    /// # Errors
    ///
    /// If the file cannot be used, or the component is not the one that it is of.
    pub async fn replay(&self, export: &Export) -> Result<Replayed, ExportError> {
        let registry = self.registry();
        let entry = registry
            .components()
            .find(|entry| entry.component.digest.as_str() == export.digest)
            .ok_or_else(|| {
                ExportError::Damaged(
                    "its component is not the one that its digest names".to_owned(),
                )
            })?;
        let prepared = entry.payload.code.made().await;
        let prepared = prepared.map_err(|refusal| ExportError::Damaged(refusal.message))?;
        replay(&self.sandbox, &prepared, export, &self.settings.limits).await
    }
}

/// What is to be tried of a tool.
pub struct Trial<'a> {
    /// Its name.
    pub tool: &'a str,
    /// Its arguments, JSON.
    pub arguments: &'a str,
    /// How many schedules.
    pub schedules: u64,
    /// What they are made from.
    pub seed: u64,
    /// Answers that are given, by key.
    pub answers: std::collections::HashMap<String, serde_json::Value>,
}
