//! What a task saw and let out, for whoever looks after it: from its journal, in order.

use longshore_catalog::component::Digest;
use longshore_journal::call::{Answer, Ask, AskError, Question};
use longshore_journal::record::{Record, What};
use longshore_journal::values::{self, Failure, Found};
use longshore_protocol::timestamp::iso8601;
use longshore_tasks::id::{Millis, TaskId};
use serde_json::{Value, json};

use crate::follow::FollowError;
use crate::run::record::{self, Opened, Unusable};
use crate::server::Server;
use crate::trial::export::Export;

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no such task.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// It has no journal that can be read.
    #[error("{0}")]
    Unusable(String),
}

impl From<Unusable> for HistoryError {
    fn from(unusable: Unusable) -> Self {
        Self::Unusable(unusable.to_string())
    }
}

impl From<longshore_tasks::store::StoreError> for HistoryError {
    fn from(error: longshore_tasks::store::StoreError) -> Self {
        Self::Follow(error.into())
    }
}

impl Server {
    /// All that was recorded of a task, as JSON: segment by segment, which process wrote it and when.
    pub async fn history(&self, id: TaskId) -> Result<Value, HistoryError> {
        let task = self.task(id, None).await?;
        let segments = self.tasks.segments(id).await?;
        let (_, opened, _) = record::open(&self.keys, &task, &segments)?;
        let mut clock = 0;
        let segments: Vec<Value> = opened
            .iter()
            .map(|segment| describe(segment, &mut clock, task.created_at))
            .collect();
        Ok(json!({
            "id": id.to_string(),
            "status": task.state.name().as_str(),
            "calls": task.journal.calls,
            "forgotten": task.journal.base,
            "replayDebtMs": task.replay_debt_ms(),
            "segments": segments,
        }))
    }

    /// One file with all that it takes to repeat a task elsewhere.
    pub async fn export(&self, id: TaskId) -> Result<Export, HistoryError> {
        let task = self.task(id, None).await?;
        let segments = self.tasks.segments(id).await?;
        let (_, opened, _) = record::open(&self.keys, &task, &segments)?;
        let digest = Digest::from_stored(task.pinned.digest.clone());
        let bytes = self
            .components
            .bytes(digest)
            .await
            .map_err(|error| HistoryError::Unusable(error.to_string()))?
            .ok_or_else(|| {
                HistoryError::Unusable(
                    "its component is not kept any more, since the task has ended and no name points at it"
                        .to_owned(),
                )
            })?;
        let records: Vec<Record> = opened
            .into_iter()
            .flat_map(|segment| segment.read.records)
            .collect();
        Ok(Export::new(
            &task,
            &self.keys.random_of(id),
            &bytes,
            &records,
        ))
    }
}

fn describe(segment: &Opened, clock: &mut u64, created_at: Millis) -> Value {
    let records: Vec<Value> = segment
        .read
        .records
        .iter()
        .map(|record| describe_record(record, clock, created_at))
        .collect();
    json!({
        "number": segment.number,
        "epoch": segment.epoch,
        "node": segment.read.header.node,
        "writtenAt": iso8601(segment.read.header.written_at_ms.cast_signed()),
        "records": records,
    })
}

/// A record, and when it was by the clock that the guest saw.
fn describe_record(record: &Record, clock: &mut u64, created_at: Millis) -> Value {
    match &record.what {
        What::Clock(ms) | What::Woke(ms) => *clock = *ms,
        What::Step { at, .. } | What::Checkpoint { at, .. } => *clock = at.clock,
        _ => {}
    }
    let at = |ms: u64| iso8601(created_at.plus(ms).0);
    let (direction, detail) = match &record.what {
        What::Clock(_) => ("saw", json!({})),
        What::Cancelled => ("saw", json!({})),
        What::Waited { until, .. } => ("did", json!({ "until": at(*until) })),
        What::Woke(_) => ("saw", json!({})),
        What::Asked {
            questions, until, ..
        } => (
            "let out",
            json!({
                "questions": questions.iter().map(describe_question).collect::<Vec<_>>(),
                "until": until.map(at),
            }),
        ),
        What::Answered(Ok(answers)) => (
            "saw",
            json!({ "answers": answers.iter().map(describe_answer).collect::<Vec<_>>() }),
        ),
        What::Answered(Err(error)) => ("saw", json!({ "error": describe_error(error) })),
        What::Shown { shown, .. } => (
            "let out",
            json!({
                "message": shown.message,
                "progress": shown.progress.map(|(done, total)| json!({ "done": done, "total": total })),
            }),
        ),
        What::Step {
            began, name, value, ..
        } => (
            "did",
            json!({ "name": name, "began": began, "bytes": value.0.len() }),
        ),
        What::Checkpoint { state, .. } => ("did", json!({ "bytes": state.0.len() })),
        What::Ended { .. } => ("let out", json!({})),
        What::Sent { sent, .. } => (
            "let out",
            json!({
                "exchange": sent.exchange,
                "method": sent.method,
                "url": sent.url,
                "bytes": sent.body_bytes,
                "isWrite": sent.is_write,
            }),
        ),
        What::Came { exchange, outcome } => (
            "saw",
            match outcome {
                Ok(response) => json!({
                    "exchange": exchange,
                    "status": response.status,
                    "bytes": response.body.len(),
                }),
                Err(failure) => json!({ "exchange": exchange, "error": failure.to_string() }),
            },
        ),
        What::Changes { .. } => ("let out", json!({})),
        What::Found { outcome, .. } => ("saw", describe_found(outcome)),
    };
    json!({
        "call": record.call,
        "at": at(*clock),
        "what": record.what.name(),
        "direction": direction,
        "detail": detail,
    })
}

/// What a run saw of what its component keeps, without the values themselves.
fn describe_found(outcome: &values::Outcome) -> Value {
    match outcome {
        Ok(Found::Value(value)) => json!({ "bytes": value.as_ref().map(|value| value.0.len()) }),
        Ok(Found::Done) => json!({}),
        Ok(Found::Number(number)) => json!({ "number": number }),
        Ok(Found::Swapped(swapped)) => json!({ "swapped": swapped }),
        Ok(Found::Keys { keys, next }) => json!({ "keys": keys.len(), "more": next.is_some() }),
        Ok(Found::Uri(uri)) => json!({ "uri": uri }),
        Err(Failure::Limit(text)) => json!({ "error": format!("limit: {text}") }),
        Err(Failure::Invalid(text)) => json!({ "error": format!("invalid: {text}") }),
    }
}

fn describe_question(question: &Question) -> Value {
    let asked = match &question.ask {
        Ask::Form { message, .. } | Ask::Url { message, .. } => message.as_str(),
        Ask::Sample(_) => "a model's reply",
        Ask::Roots(_) => "the client's folders",
        Ask::Raw(json) | Ask::Wait(json) => json.as_str(),
    };
    json!({ "key": question.key, "asked": asked })
}

fn describe_answer(answer: &Answer) -> Value {
    let raw = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    match answer {
        Answer::Accepted(content) => json!({ "accepted": content.as_deref().map(raw) }),
        Answer::Declined => json!("declined"),
        Answer::Dismissed => json!("dismissed"),
        Answer::Sampled(text) => json!({ "sampled": raw(text) }),
        Answer::Roots(text) => json!({ "roots": raw(text) }),
        Answer::Raw(text) => json!({ "raw": raw(text) }),
    }
}

fn describe_error(error: &AskError) -> String {
    match error {
        AskError::Unsupported(text) => format!("unsupported: {text}"),
        AskError::Invalid(text) => format!("invalid: {text}"),
        AskError::Limit(text) => format!("limit: {text}"),
        AskError::TimedOut => "timed out".to_owned(),
        AskError::CallCancelled => "the call was cancelled".to_owned(),
    }
}
