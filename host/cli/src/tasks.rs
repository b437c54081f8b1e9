//! `tasks`: looking at what a server runs, answering what it asks, stopping it.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::admin::{Client, Reach, encode};
use crate::answer::{self, Reply};
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output::{self, cell, facts, lines, member, table};
use crate::watch::Watch;
use crate::{Done, answered};

/// The states of a task, as a list can be asked for them.
const STATUSES: [&str; 5] = [
    "working",
    "input_required",
    "completed",
    "failed",
    "cancelled",
];

fn cursor(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        "it is the number with which the list before this one ended (\"there are more: --cursor NUMBER\")"
            .to_owned()
    })
}

/// Tasks of a server.
#[derive(Subcommand)]
pub(crate) enum Tasks {
    /// Lists them, newest first
    List {
        /// Only those of this status: working, input_required, completed, failed, cancelled
        #[arg(long, value_parser = STATUSES)]
        status: Option<String>,
        /// Only those of this component
        #[arg(long)]
        component: Option<String>,
        /// At most so many
        #[arg(long)]
        limit: Option<u32>,
        /// Where the list before this one ended
        #[arg(long, value_parser = cursor)]
        cursor: Option<u64>,
        #[command(flatten)]
        reach: Reach,
    },
    /// Shows one: status, questions, result, and what its guest printed
    Show {
        /// Its id, or at least six signs of its beginning
        id: String,
        #[command(flatten)]
        reach: Reach,
    },
    Watch(Watch),
    /// Answers what one asks
    Answer(Answer),
    /// Asks one to stop
    Cancel {
        /// Its id, or at least six signs of its beginning
        id: String,
        #[command(flatten)]
        reach: Reach,
    },
    /// Goes on with one that was set aside
    Resume {
        /// Its id
        id: String,
        #[command(flatten)]
        reach: Reach,
    },
    /// Shows what one saw and let out, when, and by which process
    Journal {
        /// Its id
        id: String,
        #[command(flatten)]
        reach: Reach,
    },
    Export(Export),
}

/// Writes all that it takes to repeat a task into one file, for `longshore replay`
#[derive(Args)]
pub(crate) struct Export {
    /// Its id
    id: String,
    /// Where to; it is made readable by you alone
    #[arg(long, short, value_name = "FILE", default_value = "ID.longshore-task")]
    output: String,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Args)]
pub(crate) struct Answer {
    /// The task's id, or at least six signs of its beginning
    id: String,
    /// The question's key; not needed if only one is open
    key: Option<String>,
    /// Say yes; a form and a request to a model or for folders want JSON
    #[arg(long, value_name = "JSON", num_args = 0..=1, conflicts_with_all = ["fields", "decline", "dismiss"])]
    accept: Option<Option<String>>,
    /// Say yes, filling in a form field by field; a list takes one for each choice
    #[arg(long = "field", id = "fields", value_name = "NAME=VALUE", conflicts_with_all = ["decline", "dismiss"])]
    fields: Vec<String>,
    /// Say no
    #[arg(long, conflicts_with = "dismiss")]
    decline: bool,
    /// Close the question without saying yes or no
    #[arg(long)]
    dismiss: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Tasks {
    pub(crate) async fn run(self, as_json: bool) -> Result<Done, Failure> {
        match self {
            Self::List {
                status,
                component,
                limit,
                cursor,
                reach,
            } => {
                let limit = limit.map(|limit| limit.to_string());
                let cursor = cursor.map(|cursor| cursor.to_string());
                let query = query(&[
                    ("status", status),
                    ("component", component),
                    ("limit", limit),
                    ("cursor", cursor),
                ]);
                let list = Client::new(reach)?
                    .get(&format!("/v1/tasks{query}"))
                    .await?;
                Ok(answered(list, describe_list))
            }
            Self::Show { id, reach } => {
                let client = Client::new(reach)?;
                let task = client.get(&client.path_of(&id).await?).await?;
                Ok(answered(task, describe_task))
            }
            Self::Watch(watch) => watch.run(as_json).await,
            Self::Answer(answer) => answer.run().await,
            Self::Cancel { id, reach } => {
                let client = Client::new(reach)?;
                let path = client.path_of(&id).await?;
                let document = client.post(&format!("{path}/cancel"), &json!({})).await?;
                cancelled(document)
            }
            Self::Resume { id, reach } => {
                let client = Client::new(reach)?;
                let path = client.path_of(&id).await?;
                let document = client.post(&format!("{path}/resume"), &json!({})).await?;
                Ok(answered(document, |document| {
                    format!("the task goes on; it is {}", cell(document, "status"))
                }))
            }
            Self::Journal { id, reach } => {
                let client = Client::new(reach)?;
                let path = client.path_of(&id).await?;
                let journal = client.get(&format!("{path}/journal")).await?;
                Ok(answered(journal, describe_journal))
            }
            Self::Export(export) => export.run().await,
        }
    }
}

impl Export {
    async fn run(self) -> Result<Done, Failure> {
        let Self { id, output, reach } = self;
        let client = Client::new(reach)?;
        let path = client.path_of(&id).await?;
        let document = client.get(&format!("{path}/export")).await?;
        let whole = document["id"].as_str().unwrap_or(&id).to_owned();
        let file = if output == "ID.longshore-task" {
            format!("{whole}.longshore-task")
        } else {
            output
        };
        write_private(&file, document.to_string().as_bytes())
            .with_context(|| format!("writing {file}"))
            .or_exit(Exit::Failed)?;
        let warning = document["warning"].as_str().unwrap_or_default();
        output::note(&format!("careful: {warning}"));
        let told = json!({ "id": whole, "file": file, "warning": warning });
        Ok(answered(told, |told| {
            format!(
                "written to {}; repeat it with `longshore replay {}`",
                cell(told, "file"),
                cell(told, "file")
            )
        }))
    }
}

/// Never over a file that is there, and nobody else's to read.
fn write_private(file: &str, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    made.write_all(bytes)?;
    made.sync_all()
}

fn describe_journal(journal: &Value) -> String {
    let mut text = String::new();
    if let Some(forgotten) = journal["forgotten"].as_u64().filter(|count| *count > 0) {
        text.push_str(&format!(
            "{forgotten} segments before the newest restart point are not kept\n"
        ));
    }
    for segment in journal["segments"].as_array().into_iter().flatten() {
        text.push_str(&format!(
            "segment {}, kept {} by {}\n",
            segment["number"],
            cell(segment, "writtenAt"),
            cell(segment, "node"),
        ));
        for record in segment["records"].as_array().into_iter().flatten() {
            let detail = match &record["detail"] {
                Value::Object(members) if members.is_empty() => String::new(),
                detail => format!("  {}", output::line(&detail.to_string())),
            };
            text.push_str(&format!(
                "  {:>6}  {}  {:<7}  {}{detail}\n",
                record["call"],
                cell(record, "at"),
                cell(record, "direction"),
                cell(record, "what"),
            ));
        }
    }
    if text.is_empty() {
        text.push_str("nothing is recorded yet\n");
    }
    text
}

impl Answer {
    async fn run(self) -> Result<Done, Failure> {
        let Self {
            id,
            key,
            accept,
            fields,
            decline,
            dismiss,
            reach,
        } = self;
        let reply = match (accept, decline, dismiss) {
            (Some(content), _, _) => Some(Reply::Accept(content)),
            (None, true, _) => Some(Reply::Decline),
            (None, false, true) => Some(Reply::Dismiss),
            (None, false, false) if fields.is_empty() => None,
            (None, false, false) => Some(Reply::Fields(fields)),
        };
        let client = Client::new(reach)?;
        let path = client.path_of(&id).await?;
        let task = client.get(&path).await?;
        let none = Map::new();
        let questions = task["questions"].as_object().unwrap_or(&none);
        let refuse = |fault: String| {
            let asked = describe_questions(questions);
            Failure::new(Exit::Usage, format!("{fault}\n{asked}").trim_end())
        };
        if questions.is_empty() {
            return Err(Failure::new(
                Exit::Failed,
                format!("the task asks nothing now: it is {}", cell(&task, "status")),
            ));
        }
        let (key, request) = answer::choose(questions, key.as_deref()).map_err(refuse)?;
        let reply = reply.ok_or_else(|| refuse("the answer is missing".to_owned()))?;
        let content = answer::build(request, &reply).map_err(refuse)?;
        let answers = json!({ "answers": { key: content } });
        let document = client.post(&format!("{path}/answer"), &answers).await?;
        Ok(answered(document, |document| {
            format!("answered; the task is {}", cell(document, "status"))
        }))
    }
}

/// A beginning that is shorter than this is more likely a slip of the hand.
const SHORT_ID: usize = 6;
/// The length of a whole id.
const WHOLE_ID: usize = 36;

impl Client {
    /// Where the admin API has a task that is meant by its id, or by the beginning of it if no other begins so.
    pub(crate) async fn path_of(&self, id: &str) -> Result<String, Failure> {
        let is_of_an_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        let whole = match id.len() {
            _ if !id.bytes().all(is_of_an_id) => id.to_owned(),
            1..SHORT_ID => {
                let fault = format!(
                    "{id:?} is too short for the beginning of a task's id: give at least {SHORT_ID} of its signs"
                );
                return Err(Failure::new(Exit::Usage, fault));
            }
            SHORT_ID..WHOLE_ID => self.whole_id(id).await?,
            _ => id.to_owned(),
        };
        Ok(format!("/v1/tasks/{}", encode(&whole)))
    }

    async fn whole_id(&self, beginning: &str) -> Result<String, Failure> {
        let refuse = |fault: String| Failure {
            reason: "not-found".to_owned(),
            ..Failure::new(Exit::Failed, fault)
        };
        let query = query(&[
            ("id", Some(beginning.to_ascii_lowercase())),
            ("limit", Some("2".to_owned())),
        ]);
        let list = self.get(&format!("/v1/tasks{query}")).await?;
        let ids: Vec<&str> = list["tasks"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|task| task["id"].as_str())
            .collect();
        match ids.as_slice() {
            [id] => Ok((*id).to_owned()),
            [] => Err(refuse(format!(
                "no such task: no id begins with {beginning:?}: `longshore tasks list` shows them"
            ))),
            several => Err(refuse(format!(
                "several tasks' ids begin with {beginning:?}, such as {}: give more of it",
                several.join(" and ")
            ))),
        }
    }
}

fn query(pairs: &[(&str, Option<String>)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", encode(value.as_ref()?))))
        .collect();
    if pairs.is_empty() {
        String::new()
    } else {
        format!("?{}", pairs.join("&"))
    }
}

/// A cancel that comes after the end has not done what was asked for.
fn cancelled(document: Value) -> Result<Done, Failure> {
    let status = cell(&document, "status");
    let is_ended = matches!(status.as_str(), "completed" | "failed" | "cancelled");
    if is_ended && document["changed"] == false {
        return Err(Failure::new(
            Exit::Failed,
            format!("the task had ended before: it is {status}"),
        ));
    }
    Ok(answered(document, |document| {
        if document["changed"] == false {
            "the task was asked to stop before"
        } else {
            "the task is asked to stop"
        }
        .to_owned()
    }))
}

fn describe_list(list: &Value) -> String {
    let rows: Vec<[String; 6]> = list["tasks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|task| {
            [
                "id",
                "status",
                "component",
                "tool",
                "createdAt",
                "statusMessage",
            ]
            .map(|name| cell(task, name))
        })
        .collect();
    if rows.is_empty() {
        return "no tasks".to_owned();
    }
    let mut text = table(
        ["ID", "STATUS", "COMPONENT", "TOOL", "CREATED", "MESSAGE"],
        &rows,
    );
    if let Some(cursor) = member(list, "cursor") {
        text.push_str(&format!("there are more: --cursor {cursor}\n"));
    }
    text
}

fn describe_task(task: &Value) -> String {
    let progress = &task["progress"];
    let progress = progress["done"]
        .as_f64()
        .map(|done| match progress["total"].as_f64() {
            Some(total) => format!("{done} of {total}"),
            None => done.to_string(),
        });
    let mut text = facts(&[
        ("id", member(task, "id")),
        ("component", member(task, "component")),
        ("digest", member(task, "digest")),
        ("tool", member(task, "tool")),
        ("arguments", member(task, "arguments")),
        ("status", member(task, "status")),
        ("message", member(task, "statusMessage")),
        ("progress", progress),
        (
            "waits for",
            task["waitsFor"].as_array().and_then(|waits| {
                let waits = waits.iter().filter_map(Value::as_str);
                let lines: Vec<_> = waits.map(output::line).collect();
                (!lines.is_empty()).then(|| lines.join("; "))
            }),
        ),
        (
            "set aside",
            (task["quarantined"] == true)
                .then(|| "the server died too often while it ran".to_owned()),
        ),
        (
            "parked until",
            (task["parked"] == true)
                .then(|| member(task, "wakeAt").unwrap_or_else(|| "it is answered".to_owned())),
        ),
        ("held up", member(task, "heldUp")),
        ("created", member(task, "createdAt")),
        ("updated", member(task, "updatedAt")),
        ("asked to stop", member(task, "cancelRequestedAt")),
        ("deadline", member(task, "deadlineAt")),
        ("CPU", task["cpuMs"].as_u64().map(|ms| format!("{ms} ms"))),
        (
            "replay debt",
            task["replayDebtMs"]
                .as_u64()
                .map(|ms| format!("{ms} ms of CPU time")),
        ),
    ]);
    let questions = task["questions"]
        .as_object()
        .map(describe_questions)
        .unwrap_or_default();
    for part in [
        questions,
        describe_result(&task["result"]),
        describe_error(&task["error"]),
        describe_output(&task["output"]),
    ] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text
}

/// Questions for people, with how to answer them.
pub(crate) fn describe_questions(questions: &Map<String, Value>) -> String {
    questions
        .iter()
        .map(|(key, request)| answer::describe(key, request))
        .collect()
}

fn describe_result(result: &Value) -> String {
    if result.is_null() {
        return String::new();
    }
    let mut text = if result["isError"] == true {
        "result: the tool failed\n"
    } else {
        "result\n"
    }
    .to_owned();
    for block in result["content"].as_array().into_iter().flatten() {
        match block["text"].as_str() {
            Some(words) => text.push_str(&indented(words)),
            None => text.push_str(&format!("  {}\n", brief(block))),
        }
    }
    if let Some(structured) = result.get("structuredContent") {
        text.push_str(&format!("  {}\n", output::json(structured)));
    }
    text
}

/// A `CallToolResult` as what was asked for: its content on stdout, and the code that it means.
pub(crate) fn result_done(result: Value) -> Done {
    let exit = if result["isError"] == true {
        Exit::Failed
    } else {
        Exit::Ok
    };
    let blocks = result["content"].as_array().into_iter().flatten();
    let parts: Vec<String> = blocks
        .map(|block| match block["text"].as_str() {
            Some(words) => words.to_owned(),
            None => brief(block),
        })
        .collect();
    Done {
        text: output::for_stdout(&parts.join("\n")).into_owned(),
        document: result,
        exit,
    }
}

/// Why a call has no result, in one line.
pub(crate) fn failure_of(what: &str, reason: Option<&str>, message: &str) -> Failure {
    let because = reason
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    let failure = Failure::new(Exit::Failed, format!("{what} failed{because}: {message}"));
    Failure {
        reason: reason.map_or(failure.reason, str::to_owned),
        ..failure
    }
}

/// A block that is no text: what it is, not what it holds.
fn brief(block: &Value) -> String {
    let of = block.get("resource").unwrap_or(block);
    let words = ["mimeType", "name", "uri"]
        .into_iter()
        .filter_map(|name| member(of, name));
    let words: Vec<String> = std::iter::once(cell(block, "type")).chain(words).collect();
    format!("[{}]", words.join(" "))
}

fn describe_error(error: &Value) -> String {
    if error.is_null() {
        return String::new();
    }
    let reason = member(&error["data"], "reason")
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    format!(
        "error {}{reason}\n  {}\n",
        cell(error, "code"),
        cell(error, "message")
    )
}

/// What a guest printed and logged, for people.
pub(crate) fn describe_output(printed: &Value) -> String {
    let mut text = String::new();
    for (name, dropped) in [("stdout", "stdoutDropped"), ("stderr", "stderrDropped")] {
        let words = printed[name].as_str().unwrap_or_default();
        if words.is_empty() {
            continue;
        }
        text.push_str(&format!(
            "{name}{}\n{}",
            lost(&printed[dropped], "bytes"),
            indented(words)
        ));
    }
    let mut log = printed["log"].as_array().into_iter().flatten().peekable();
    if log.peek().is_some() {
        text.push_str(&format!("log{}\n", lost(&printed["logDropped"], "lines")));
    }
    for entry in log {
        let logger = member(entry, "logger")
            .map(|logger| format!(" {logger}:"))
            .unwrap_or_default();
        text.push_str(&format!(
            "  {}{logger} {}\n",
            cell(entry, "level"),
            cell(entry, "message")
        ));
    }
    text
}

fn lost(count: &Value, what: &str) -> String {
    match count.as_u64() {
        None | Some(0) => String::new(),
        Some(count) => format!(" (without the first {count} {what})"),
    }
}

fn indented(text: &str) -> String {
    lines(text)
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_hold_what_was_given() {
        let rows = [
            ([("status", None), ("limit", None)], ""),
            (
                [("status", Some("failed")), ("limit", None)],
                "?status=failed",
            ),
            (
                [("status", Some("a&b")), ("limit", Some("3"))],
                "?status=a%26b&limit=3",
            ),
        ];
        for (pairs, expected) in rows {
            assert_eq!(
                query(&pairs.map(|(name, value)| (name, value.map(str::to_owned)))),
                expected
            );
        }
    }

    #[test]
    fn a_cancel_after_the_end_fails() {
        let rows = [
            ("working", true, true),
            ("working", false, true),
            ("cancelled", true, true),
            ("completed", false, false),
        ];
        for (status, changed, is_done) in rows {
            let outcome = cancelled(json!({ "status": status, "changed": changed }));
            assert_eq!(outcome.is_ok(), is_done, "{status} {changed}");
        }
    }

    #[test]
    fn lists_show_whole_ids() {
        let id = "0f9e8d7c-1111-4222-8333-444455556666";
        let list = json!({ "tasks": [{ "id": id, "status": "working", "component": "c", "tool": "t", "statusMessage": "a\u{1b}[0m", "createdAt": "now" }], "cursor": 7 });
        let text = describe_list(&list);
        assert!(
            text.contains(id) && text.contains("a\\u001b[0m") && text.ends_with("--cursor 7\n"),
            "{text}"
        );
        assert_eq!(
            describe_list(&json!({ "tasks": [], "cursor": null })),
            "no tasks"
        );
    }

    #[test]
    fn a_task_is_shown_with_all_that_is_there() {
        let task = json!({
            "id": "i", "status": "failed", "progress": { "done": 2.0, "total": 4.0 }, "questions": {}, "result": null,
            "error": { "code": 1000, "message": "it\ntrapped", "data": { "reason": "trap" } },
            "output": { "stdout": "one\ntwo\n", "stdoutDropped": 3, "stderr": "", "stderrDropped": 0,
                "log": [{ "level": "info", "logger": null, "message": "m" }], "logDropped": 0 },
        });
        let expected = "id        i\nstatus    failed\nprogress  2 of 4\n\nerror 1000 (trap)\n  it\\ntrapped\n\n\
                        stdout (without the first 3 bytes)\n  one\n  two\nlog\n  info m\n";
        assert_eq!(describe_task(&task), expected);
    }

    #[test]
    fn results_show_text_and_name_the_rest() {
        let result = json!({
            "isError": true,
            "content": [{ "type": "text", "text": "a\nb" }, { "type": "image", "mimeType": "image/png", "data": "AAAA" },
                { "type": "resource", "resource": { "uri": "x:y", "text": "t" } }],
            "structuredContent": { "n": 1 },
        });
        let expected = "result: the tool failed\n  a\n  b\n  [image image/png]\n  [resource x:y]\n  {\"n\":1}\n";
        assert_eq!(describe_result(&result), expected);
    }
}
