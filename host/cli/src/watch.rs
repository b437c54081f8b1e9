//! `tasks watch`: a task of a server, followed to its end.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

use crate::admin::{Client, Reach};
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output::{self, cell, line, member};
use crate::prompt::{StatusLine, status};
use crate::signals::Stop;
use crate::tasks::{describe_questions, failure_of, result_done};
use crate::{Done, print};

/// How often it is asked: a server shows a new status no more often than that.
const LOOK: Duration = Duration::from_millis(250);
/// What of a task is worth a word when it changes; its CPU time always does.
const SHOWN: [&str; 5] = [
    "status",
    "statusMessage",
    "progress",
    "questions",
    "cancelRequestedAt",
];

/// Follows a task until it ends: what it says on stderr, its result on stdout.
///
/// It asks nothing: a question is shown with the way to answer it. Ctrl-C ends the watching and leaves the
/// task alone. With --json, each change is one line, the last of them with the result.
#[derive(clap::Args)]
pub(crate) struct Watch {
    /// Its id, or at least six signs of its beginning
    id: String,
    #[command(flatten)]
    reach: Reach,
}

impl Watch {
    pub(crate) async fn run(self, as_json: bool) -> Result<Done, Failure> {
        let client = Client::new(self.reach)?;
        let path = client.path_of(&self.id).await?;
        let mut seen = Value::Null;
        let mut status_line = StatusLine::new();
        let mut stop = Stop::listen(Exit::Cancelled)
            .context("listening for signals")
            .or_exit(Exit::Failed)?;
        loop {
            let task = client.get(&path).await?;
            if matches!(
                task["status"].as_str(),
                Some("completed" | "failed" | "cancelled")
            ) {
                status_line.clear();
                return ended(task, as_json);
            }
            let shown: Value = SHOWN.iter().map(|name| task[*name].clone()).collect();
            if shown != seen {
                if as_json {
                    print(&output::json(&task))?;
                } else {
                    say(&mut status_line, &task, &seen);
                }
                seen = shown;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = stop.asked() => {
                    status_line.clear();
                    return Err(Failure::new(
                        Exit::Cancelled,
                        format!("the task goes on: `longshore tasks watch {0}` follows it again, `longshore tasks cancel {0}` ends it", self.id),
                    ));
                }
            }
        }
    }
}

/// Shows a change: in its place on a terminal, as a line of its own elsewhere.
fn say(status_line: &mut StatusLine, task: &Value, before: &Value) {
    let progress = task["progress"]["done"]
        .as_f64()
        .map(|done| (done, task["progress"]["total"].as_f64()));
    let text = status(
        &cell(task, "status"),
        progress,
        member(task, "statusMessage").as_deref(),
    );
    if status_line.is_seen() {
        status_line.show(&text);
    } else {
        output::note(&line(&text));
    }
    let place = SHOWN.iter().position(|name| *name == "questions");
    let known = place.map_or(&Value::Null, |place| &before[place]);
    if let Some(questions) = task["questions"].as_object()
        && !questions.is_empty()
        && &task["questions"] != known
    {
        let asked = describe_questions(questions);
        status_line.note(&format!(
            "the task asks; answer with `longshore tasks answer {}`\n{}",
            cell(task, "id"),
            asked.trim_end()
        ));
    }
}

fn ended(task: Value, as_json: bool) -> Result<Done, Failure> {
    let exit = match task["status"].as_str() {
        Some("completed") if task["result"]["isError"] != true => Exit::Ok,
        Some("cancelled") => Exit::Cancelled,
        _ => Exit::Failed,
    };
    if as_json {
        return Ok(Done {
            document: task,
            text: String::new(),
            exit,
        });
    }
    match task["status"].as_str() {
        Some("completed") => Ok(result_done(task["result"].clone())),
        Some("cancelled") => Err(Failure::new(Exit::Cancelled, "the task was cancelled")),
        _ => Err(failure_of(
            "the task",
            task["error"]["data"]["reason"].as_str(),
            task["error"]["message"].as_str().unwrap_or_default(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_says_the_code() {
        let rows = [
            (
                json!({ "status": "completed", "result": { "isError": false } }),
                Exit::Ok,
            ),
            (
                json!({ "status": "completed", "result": { "isError": true } }),
                Exit::Failed,
            ),
            (
                json!({ "status": "failed", "error": { "message": "m", "data": { "reason": "trap" } } }),
                Exit::Failed,
            ),
            (json!({ "status": "cancelled" }), Exit::Cancelled),
        ];
        for (task, exit) in rows {
            assert_eq!(ended(task.clone(), true).unwrap().exit, exit, "{task}");
            let for_people =
                ended(task.clone(), false).map_or_else(|failure| failure.exit, |done| done.exit);
            assert_eq!(for_people, exit, "{task}");
        }
    }
}
