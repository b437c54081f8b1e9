//! The experimental tasks of 2025-11-25: the same tasks under other names.
//!
//! What differs: a call becomes a task because its request says so, a task's result comes by a request of its own that
//! waits for it, and a result that says that the tool did not manage makes the task `failed`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{must_be, out, picked};
use crate::error::RpcError;
use crate::json::{self, is_object};
use crate::task::{Task, TaskState};
use crate::timestamp;
use crate::write::{Object, push_list};

/// Whether a tool's calls may become tasks, as its descriptor says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSupport {
    /// They may not.
    Forbidden,
    /// They may, and need not.
    Optional,
}

impl TaskSupport {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Optional => "optional",
        }
    }
}

/// A request about such a task.
#[derive(Debug)]
pub enum TaskRequest<'a> {
    /// Where it stands.
    Get(Cow<'a, str>),
    /// Its result, once there is one; what it asks is asked meanwhile.
    Result(Cow<'a, str>),
    /// That it end, and where it stands then.
    Cancel(Cow<'a, str>),
    /// The tasks of whoever asks, from the start or from where a page ended.
    List(Option<Cow<'a, str>>),
}

const METHODS: [&str; 4] = ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"];

pub(super) fn is_method(method: &str) -> bool {
    METHODS.contains(&method)
}

impl<'a> TaskRequest<'a> {
    pub(super) fn read(method: &str, params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let [id, cursor] = picked(params, ["taskId", "cursor"])?;
        if method == "tasks/list" {
            let cursor = cursor
                .map(|raw| json::string(raw).ok_or_else(|| must_be("cursor", "a string")))
                .transpose()?;
            return Ok(Self::List(cursor));
        }
        let id = id
            .and_then(json::string)
            .ok_or_else(|| must_be("taskId", "there, a string"))?;
        Ok(match method {
            "tasks/get" => Self::Get(id),
            "tasks/result" => Self::Result(id),
            _ => Self::Cancel(id),
        })
    }
}

/// Whether a call is to be a task, and for how long that is to be kept: the member `task` of its parameters.
pub(super) fn wish(params: Option<&RawValue>) -> Result<Option<Option<u64>>, RpcError> {
    let [task] = picked(params, ["task"])?;
    let Some(task) = task else {
        return Ok(None);
    };
    if !is_object(task) {
        return Err(must_be("task", "an object"));
    }
    let [ttl] = picked(Some(task), ["ttl"])?;
    match ttl.map(|raw| (raw.get(), json::unsigned(raw))) {
        None | Some(("null", _)) => Ok(Some(None)),
        Some((_, Some(ttl))) => Ok(Some(Some(ttl))),
        Some((_, None)) => Err(must_be("task.ttl", "a number of milliseconds")),
    }
}

impl Task<'_> {
    /// Writes the result of a call that was asked to be a task.
    pub fn write_created_in_session(&self, out: &mut String) {
        let mut result = Object::open(out);
        let mut task = result.object("task");
        self.write_session_members(&mut task);
        task.close();
        result.close();
    }

    /// Writes the result of `tasks/get` and `tasks/cancel`, or one of a list.
    pub fn write_in_session(&self, out: &mut String) {
        let mut task = Object::open(out);
        self.write_session_members(&mut task);
        task.close();
    }

    fn write_session_members(&self, task: &mut Object<'_>) {
        task.text("taskId", self.id);
        task.text("status", self.session_status());
        task.optional_text("statusMessage", self.status_message);
        task.text("createdAt", &timestamp::iso8601(self.created_at_ms));
        task.text("lastUpdatedAt", &timestamp::iso8601(self.updated_at_ms));
        match self.ttl_ms {
            Some(ttl) => task.plain("ttl", ttl),
            None => task.ours("ttl", "null"),
        }
        if let Some(interval) = self.poll_interval_ms {
            task.plain("pollInterval", interval);
        }
    }

    /// A tool that did not manage has failed here (MCP 2025-11-25, Tasks, status).
    fn session_status(&self) -> &'static str {
        let TaskState::Completed(result) = self.state else {
            return self.state.status();
        };
        let is_error = json::pick(result, &["isError"])
            .is_ok_and(|picked| picked.values[0].is_some_and(|raw| raw.get() == "true"));
        if is_error { "failed" } else { "completed" }
    }
}

/// Writes the result of `tasks/list`, of tasks that were written before.
pub fn write_list<'a>(
    out: &mut String,
    tasks: impl IntoIterator<Item = &'a str>,
    next_cursor: Option<&str>,
) {
    let mut result = Object::open(out);
    push_list(result.key("tasks"), tasks, |out, task| out.push_str(task));
    result.optional_text("nextCursor", next_cursor);
    result.close();
}

/// The result of `tasks/result`: what the call would have been answered with, and of which task it is.
#[must_use]
pub fn result_of(task: &str, result: &str) -> String {
    out::written(result, Some(task))
}
