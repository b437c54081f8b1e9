//! For clients that know nothing of tasks: a call that takes longer than they wait goes on as a task, and three tools of
//! the server's own follow it. They never answer questions, since a model must not answer in the place of a person.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use longshore_protocol::content::{Content, ToolResult};
use longshore_protocol::guest_meta::GuestMeta;
use longshore_protocol::result::ServerInfo;
use longshore_tasks::id::TaskId;
use longshore_tasks::store::Query;
use longshore_tasks::task::{Progress, State, StateName, Task};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::call::CallError;
use crate::dispatch::{DispatchError, store_trouble};
use crate::follow::FollowError;
use crate::run::Caller;
use crate::run::aside::{Asides, Wishes};
use crate::server::Server;

const WAIT: &str = "longshore_task_wait";
const LIST: &str = "longshore_task_list";
const CANCEL: &str = "longshore_task_cancel";
/// Tasks that are listed.
const LISTED: usize = 50;

/// The descriptors of these tools, in the order of their names.
pub(crate) const DESCRIPTORS: [&str; 3] = [
    r#"{"name":"longshore_task_cancel","title":"Cancel a task","description":"Asks a task to stop. Use it only if its result is not wanted any more.","inputSchema":{"type":"object","properties":{"taskId":{"type":"string","description":"The id of the task."}},"required":["taskId"],"additionalProperties":false},"annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":true,"openWorldHint":false}}"#,
    r#"{"name":"longshore_task_list","title":"List tasks","description":"Lists your tasks, the newest first, with their ids and how they stand.","inputSchema":{"type":"object","additionalProperties":false},"annotations":{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}}"#,
    r#"{"name":"longshore_task_wait","title":"Wait for a task","description":"Waits for a task and returns its result as soon as there is one. If that takes too long for one call, it says how the task stands instead, and is to be called again. A call of a tool that takes long names the id of its task.","inputSchema":{"type":"object","properties":{"taskId":{"type":"string","description":"The id of the task."}},"required":["taskId"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}}"#,
];

/// What is told in place of a result to a client that does not know tasks.
pub(crate) fn handed_off(task: &Task, info: &ServerInfo) -> String {
    let text = format!(
        "This takes longer. It goes on as task {0}; call {WAIT} with {{\"taskId\":\"{0}\"}} for its result.{1}",
        task.id,
        standing(task)
    );
    said(&text, task, info)
}

fn said(text: &str, task: &Task, info: &ServerInfo) -> String {
    let about = json!({ "taskId": task.id.to_string(), "status": task.state.name().as_str() });
    ToolResult {
        content: &[Content::Text(text)],
        structured: None,
        meta: Some(&GuestMeta::of_host("task", &about.to_string())),
        is_error: false,
    }
    .to_json(info)
}

/// How far it is, in words.
fn standing(task: &Task) -> String {
    let mut text = String::new();
    if let Some(message) = &task.status.message {
        let _never_fails = write!(text, " It says: {message}.");
    }
    if let Some(Progress { done, total }) = task.status.progress {
        let _never_fails = match total {
            Some(total) => write!(text, " Done: {done} of {total}."),
            None => write!(text, " Done: {done}."),
        };
    }
    text
}

/// What a call of one of these tools gets.
pub(crate) enum Followed {
    Result(String),
    Waiting(Box<Following>),
}

/// A call that waits for a task.
pub(crate) struct Following {
    server: Server,
    caller: Caller,
    id: TaskId,
    until: Instant,
    asides: Option<Arc<Asides>>,
}

/// What it hears.
pub(crate) enum Heard {
    Aside(String),
    End(Result<String, DispatchError>),
}

impl Following {
    pub(crate) async fn next(&mut self) -> Heard {
        let server = self.server.clone();
        let watch = server.bus.watch(self.id);
        loop {
            // Watching first and looking then, so that no change falls in between.
            let changed = watch.changed();
            let task = match server.task(self.id, Some(&self.caller)).await {
                Ok(task) => task,
                Err(error) => return Heard::End(server.followed_badly(error)),
            };
            let is_over = task.state.name() != StateName::Working
                || self.until <= Instant::now()
                || server.bus.is_closed();
            if is_over {
                return Heard::End(Ok(server.stands(&task)));
            }
            let aside = async {
                match &self.asides {
                    Some(asides) => asides.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(self.until) => {}
                aside = aside => return Heard::Aside(aside),
            }
        }
    }
}

impl Server {
    /// Whether a call of that name is one of these tools.
    pub(crate) fn follows(&self, tool: &str) -> bool {
        self.settings.handoff && [WAIT, LIST, CANCEL].contains(&tool)
    }

    pub(crate) async fn follow(
        &self,
        caller: Caller,
        tool: &str,
        arguments: Option<&RawValue>,
        wishes: Wishes,
    ) -> Result<Followed, CallError> {
        if tool == LIST {
            return Ok(Followed::Result(self.list_of(&caller).await?));
        }
        let arguments: Value = arguments
            .and_then(|raw| longshore_protocol::json::strict_value(raw.get()).ok())
            .unwrap_or_default();
        let id = arguments["taskId"].as_str();
        let Some(id) = id.and_then(|id| id.trim().parse::<TaskId>().ok()) else {
            let text = format!("{tool} needs `taskId`, the id of a task: {LIST} shows them");
            return Ok(Followed::Result(ToolResult::error_text(&text, &self.info)));
        };
        if tool == CANCEL {
            return Ok(Followed::Result(self.cancel_of(&caller, id).await?));
        }
        let asides = (!wishes.are_none()).then(|| {
            let most = self.settings.limits.log_ring_bytes;
            Arc::new(Asides::new(wishes, &self.settings, most))
        });
        Ok(Followed::Waiting(Box::new(Following {
            server: self.clone(),
            caller,
            id,
            until: Instant::now() + Duration::from_millis(self.settings.follow_ms),
            asides,
        })))
    }

    /// How a task stands: its result, if it has one.
    fn stands(&self, task: &Task) -> String {
        let info = &self.info;
        match &task.state {
            State::Completed { result, .. } => result.0.to_string(),
            State::Failed { failure, .. } => {
                let reason = failure.data.as_ref().map_or("", |data| &data.0);
                let text = format!("The task failed: {} {reason}", failure.message);
                ToolResult::error_text(text.trim_end(), info)
            }
            State::Cancelled { .. } => ToolResult::error_text("The task was cancelled.", info),
            State::Working => {
                let text = format!(
                    "Task {} still works.{} Call {WAIT} again for its result.",
                    task.id,
                    standing(task)
                );
                said(&text, task, info)
            }
            State::InputRequired => {
                let asked: Vec<&str> = task
                    .open_questions()
                    .map(|question| question.key.as_str())
                    .collect();
                let text = format!(
                    "Task {0} waits for an answer ({1}), which this client cannot ask for. A person answers it on the \
                     server's machine: `longshore tasks show {0}`, then `longshore tasks answer {0}`. Tell them so.",
                    task.id,
                    asked.join(", ")
                );
                said(&text, task, info)
            }
        }
    }

    fn followed_badly(&self, error: FollowError) -> Result<String, DispatchError> {
        match error {
            FollowError::Unknown => Ok(ToolResult::error_text(
                &format!("{error}: {LIST} shows those there are"),
                &self.info,
            )),
            error => Err(error.into()),
        }
    }

    async fn cancel_of(&self, caller: &Caller, id: TaskId) -> Result<String, CallError> {
        match self.cancel_task(id, Some(caller)).await {
            Ok(_) => {
                let text = format!("Task {id} was asked to stop; {WAIT} shows how it ends.");
                Ok(ToolResult {
                    content: &[Content::Text(&text)],
                    structured: None,
                    meta: None,
                    is_error: false,
                }
                .to_json(&self.info))
            }
            Err(error) => self.followed_badly(error).map_err(|error| match error {
                DispatchError::Refused(error) | DispatchError::Run(error) => {
                    CallError::Refused(error)
                }
                DispatchError::NoRoom { reason, .. } => CallError::NoRoom(reason),
            }),
        }
    }

    async fn list_of(&self, caller: &Caller) -> Result<String, CallError> {
        let trouble = |error| CallError::Refused(store_trouble(&error));
        let mut tasks = Vec::new();
        let mut after = None;
        while tasks.len() < LISTED {
            let query = Query {
                of: Some((caller.tenant.clone(), caller.principal.clone())),
                limit: LISTED - tasks.len(),
                after,
                ..Query::default()
            };
            let page = self.tasks.list(query).await.map_err(trouble)?;
            tasks.extend(page.tasks);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let lines: Vec<String> = tasks
            .iter()
            .map(|task| {
                let said = task.status_message.as_deref().unwrap_or_default();
                format!("{} {} {} {said}", task.id, task.state.as_str(), task.tool)
                    .trim_end()
                    .to_owned()
            })
            .collect();
        let text = if lines.is_empty() {
            "There are no tasks.".to_owned()
        } else {
            lines.join("\n")
        };
        Ok(ToolResult {
            content: &[Content::Text(&text)],
            structured: None,
            meta: None,
            is_error: false,
        }
        .to_json(&self.info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_what_they_say_and_in_order() {
        let names: Vec<String> = DESCRIPTORS
            .iter()
            .map(|text| {
                let value: Value = serde_json::from_str(text).unwrap();
                value["name"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(names, [CANCEL, LIST, WAIT]);
    }
}
