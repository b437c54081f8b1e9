//! `replay`: an exported task once more, with nothing from outside.

use std::path::PathBuf;

use anyhow::Context as _;
use longshore_server::policy::grant::Grant;
use longshore_server::trial::export::Export;
use serde_json::Value;

use crate::Done;
use crate::alone::Alone;
use crate::config::{Options, Told};
use crate::contents;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output::{self, cell};
use crate::trace;

/// Repeats a task from the file that `tasks export` wrote: offline, with nothing but what was recorded.
///
/// Shows what it printed and logged. Exit code 1 if it does not do what was recorded.
#[derive(clap::Args)]
pub(crate) struct Replay {
    /// What `longshore tasks export` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    told: Told,
}

impl Replay {
    pub(crate) async fn run(self) -> Result<Done, Failure> {
        trace::start(trace::PROMPT).or_exit(Exit::Usage)?;
        let Self { file, told } = self;
        let text = contents::read_aside(&file, contents::MOST_BYTES)
            .await
            .with_context(|| format!("reading {}", file.display()))
            .or_exit(Exit::Failed)?;
        let export = Export::read(&text)
            .with_context(|| format!("reading {}", file.display()))
            .or_exit(Exit::Failed)?;
        let bytes = export.component().or_exit(Exit::Failed)?;
        let config = told.config(Options::default())?;
        let Alone { server, .. } =
            Alone::of(&file, "replayed", bytes, &told, config, Grant::default()).await?;
        let replayed = server.replay(&export).await.or_exit(Exit::Failed)?;
        let exit = if replayed.same {
            Exit::Ok
        } else {
            Exit::Failed
        };
        let mut document = serde_json::to_value(&replayed).or_exit(Exit::Failed)?;
        document["status"] = export.status.clone().into();
        Ok(Done {
            text: describe(&document),
            document,
            exit,
        })
    }
}

fn describe(replayed: &Value) -> String {
    let mut text = format!(
        "task {} of {}, exported as {}\n{} records, {} calls: it {}\n",
        cell(replayed, "id"),
        cell(replayed, "tool"),
        cell(replayed, "status"),
        replayed["records"],
        replayed["calls"],
        cell(replayed, "ending"),
    );
    text.push_str(if replayed["same"] == true {
        "it did all that was recorded\n"
    } else {
        "it did not do what was recorded\n"
    });
    for (name, what) in [("stdout", "printed"), ("stderr", "printed to stderr")] {
        let printed = replayed[name].as_str().unwrap_or_default();
        if !printed.is_empty() {
            text.push_str(&format!("\n{what}\n{}", output::lines(printed)));
        }
    }
    let log: Vec<&str> = replayed["log"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !log.is_empty() {
        text.push_str(&format!("\nlogged\n{}\n", output::lines(&log.join("\n"))));
    }
    text
}
