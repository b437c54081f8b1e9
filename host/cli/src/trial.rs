//! `test`: whether a tool can be gone on with from every point at which its server may die.

use std::collections::HashMap;

use anyhow::Context as _;
use longshore_server::trial::{Report, Trial};
use serde_json::Value;

use crate::Done;
use crate::alone::{Alone, Which};
use crate::arguments::arguments;
use crate::config::Options;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output;
use crate::prompt::StatusLine;
use crate::run::tool;
use crate::signals::Stop;
use crate::trace;

/// Tries whether a tool goes on rightly from every point at which its server may die.
///
/// The tool runs in a scripted world: its clock moves as it is looked at, waits are over at once, forms are
/// filled in. Each run is broken off at every record of its journal and gone on with in another world, a day
/// later; what it saw and said before must stay, and the whole must be repeatable. Exit code 1 if not.
#[derive(clap::Args)]
pub(crate) struct Test {
    #[command(flatten)]
    which: Which,
    /// The tool; not needed if the component has one
    tool: Option<String>,
    /// An argument of the tool: text as it is, other kinds as JSON, as the tool's schema wants it
    #[arg(long = "arg", id = "arg", value_name = "NAME=VALUE")]
    single: Vec<String>,
    /// All arguments, as one JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "arg")]
    arguments: Option<String>,
    /// What the question of that key is always answered with
    #[arg(long = "answer", value_name = "KEY=JSON")]
    answers: Vec<String>,
    /// Different runs: other times, answers, cancels
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    schedules: u64,
    /// What chance is drawn from; the same seed gives the same runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl Test {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        trace::start(trace::PROMPT).or_exit(Exit::Usage)?;
        let mut stop = Stop::listen(Exit::Cancelled)
            .context("listening for signals")
            .or_exit(Exit::Failed)?;
        let answers = answers(&self.answers).map_err(|fault| Failure::new(Exit::Usage, fault))?;
        let config = self.which.told.config(Options::default())?;
        let mut status = StatusLine::new();
        status.show("compiling");
        let Alone { server, component } = self.which.alone(config).await?;
        let tool = tool(&component, self.tool.as_deref())?;
        let arguments = arguments(
            &tool["inputSchema"],
            &self.single,
            self.arguments.as_deref(),
        )
        .map_err(|fault| Failure::new(Exit::Usage, fault))?
        .to_string();
        let trial = Trial {
            tool: tool["name"].as_str().unwrap_or_default(),
            arguments: &arguments,
            schedules: self.schedules,
            seed: self.seed,
            answers,
        };
        let all = self.schedules;
        let trying = server.try_tool(trial, |done, points| {
            status.show(&format!("schedule {done} of {all}, {points} crash points"));
        });
        let report = tokio::select! {
            report = trying => report.map_err(|fault| Failure::new(Exit::Usage, fault))?,
            () = stop.asked() => return Err(Failure::new(Exit::Cancelled, "the trial was broken off")),
        };
        status.clear();
        let volatile: Vec<&str> = component["volatile"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut document = serde_json::to_value(&report).or_exit(Exit::Failed)?;
        document["volatile"] = component["volatile"].clone();
        document["holds"] = report.holds().into();
        Ok(Done {
            text: describe(&report, &volatile),
            document,
            exit: if report.holds() && volatile.is_empty() {
                Exit::Ok
            } else {
                Exit::Failed
            },
        })
    }
}

fn answers(given: &[String]) -> Result<HashMap<String, Value>, String> {
    given
        .iter()
        .map(|pair| {
            let (key, json) = pair
                .split_once('=')
                .ok_or_else(|| format!("{pair:?} is no answer: write KEY=JSON"))?;
            let value = serde_json::from_str(json)
                .map_err(|error| format!("the answer to {key:?} is not JSON: {error}"))?;
            Ok((key.to_owned(), value))
        })
        .collect()
}

fn describe(report: &Report, volatile: &[&str]) -> String {
    let Report {
        tool,
        schedules,
        crash_points,
        violations,
        violated,
        endings,
        records,
        bytes,
        calls,
        calls_again,
        log_lines_again,
        replay_us,
        cpu_us,
    } = report;
    let ms = |us: &u64| format!("{:.1} ms", *us as f64 / 1_000.0);
    let mut text = format!("{tool}: {schedules} schedules, {crash_points} crash points\n");
    for (ending, count) in endings {
        text.push_str(&format!("  {count} of them {}\n", output::line(ending)));
    }
    text.push_str(&format!(
        "journal of a run: at most {records} records, {bytes} bytes, for {calls} calls\n\
         lost in a crash: nothing that anybody was shown\n\
         done again after one: at most {calls_again} calls and {log_lines_again} log lines since the last record\n\
         to come back to a point: at most {} of CPU time, of a run's {}\n",
        ms(replay_us),
        ms(cpu_us),
    ));
    for reason in volatile {
        text.push_str(&format!("volatile: {reason}\n"));
    }
    if *violated == 0 {
        text.push_str("goes on rightly from every point\n");
        return text;
    }
    text.push_str(&format!(
        "{violated} points from which it does not go on rightly"
    ));
    text.push_str(if (violations.len() as u64) < *violated {
        ", the first of them:\n"
    } else {
        ":\n"
    });
    for violation in violations {
        text.push_str(&format!(
            "  schedule {}, after {} records ({}): {}\n",
            violation.schedule,
            violation.after_records,
            violation.last,
            output::line(&violation.what)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_a_key_and_json() {
        let good = answers(&["a={\"b\":1}".to_owned(), "c=\"d=e\"".to_owned()]).unwrap();
        assert_eq!(good["a"]["b"], 1);
        assert_eq!(good["c"], "d=e");
        assert!(answers(&["a".to_owned()]).unwrap_err().contains("KEY=JSON"));
        assert!(answers(&["a=b".to_owned()]).unwrap_err().contains("\"a\""));
    }
}
