//! The experimental tasks of MCP 2025-11-25: an adapter over the same rows.
//!
//! A client that asks for a task gets one at once. What the task asks is put to the client while it waits for the result.

use std::collections::BTreeSet;

use longshore_protocol::cursor;
use longshore_protocol::error::{METHOD_NOT_FOUND, RpcError};
use longshore_protocol::meta::Meta;
use longshore_protocol::request::Request;
use longshore_protocol::session::task::{TaskRequest, result_of, write_list};
use longshore_tasks::id::TaskId;
use longshore_tasks::store::Query;
use longshore_tasks::task::{State, Task};
use tokio::time::{Duration, Instant};

use super::Session;
use crate::call::{Answered, Becomes, CallError, CallRequest};
use crate::dispatch::{DispatchError, Said, no_place, store_trouble, task as parse};
use crate::presence::Presence;
use crate::reason::RunReason;
use crate::run::Caller;
use crate::run::aside::Wishes;
use crate::run::inquiry::{Inquiry, Put};
use crate::server::Server;
use crate::wire;

/// Tasks on one page of a list.
const PAGE: usize = 50;
/// How long a cancel is waited for beyond the grace of its run.
const CANCEL_WAIT: Duration = Duration::from_secs(2);

/// What a request about a task is answered with.
pub(super) enum Told {
    /// Its result, one JSON text.
    Now(String),
    /// The result of the task, once there is one.
    Following(Box<Following>),
}

/// A task whose result somebody waits for.
pub(super) struct Following {
    server: Server,
    caller: Caller,
    id: TaskId,
    /// Whether questions can be put meanwhile.
    asks: bool,
    /// The keys of those that were put.
    put: BTreeSet<String>,
}

impl Server {
    /// `tools/call` as a task.
    pub(super) async fn call_as_task(
        &self,
        session: &Session,
        meta: &Meta<'_>,
        call: Request<'_>,
        ttl_ms: Option<u64>,
        presence: &Presence,
    ) -> Result<String, DispatchError> {
        let Request::ToolsCall {
            name, arguments, ..
        } = call
        else {
            return Err(RpcError::internal("only a call can be a task").into());
        };
        let mut caller = session.caller();
        // It asks for a task, so that it can be given one, and be asked in it; whoever goes on with the task later has
        // to see that too.
        caller.capabilities.tasks = true;
        caller.capabilities_json = caller.capabilities.to_json();
        let request = CallRequest {
            tool: &name,
            arguments,
            deadline_ms: meta.deadline_ms,
            state: None,
            answers: &[],
            idempotency_key: None,
            traceparent: meta.trace.traceparent.as_deref(),
            becomes: Becomes::Task {
                retention_ms: ttl_ms,
            },
            wishes: Wishes::default(),
            headers: None,
            presence,
        };
        match self.call(caller, request).await {
            Ok(Answered::Task(task)) => Ok(self.write_created(&task)),
            Ok(Answered::Result(result)) => {
                Err(RpcError::invalid_params(first_text(&result)).into())
            }
            Ok(Answered::Held(_) | Answered::Joined(_) | Answered::Following(_)) => {
                Err(RpcError::internal("the call is no task").into())
            }
            Err(CallError::Refused(error)) => Err(error.into()),
            Err(CallError::NoRoom(reason)) => Err(no_place(reason)),
        }
    }

    /// `tasks/get`, `tasks/result`, `tasks/cancel` and `tasks/list` of a session. `can_stream` says whether a task can ask.
    pub(super) async fn serve_task(
        &self,
        session: &Session,
        request: TaskRequest<'_>,
        can_stream: bool,
    ) -> Result<Told, DispatchError> {
        let caller = session.caller();
        Ok(Told::Now(match request {
            TaskRequest::Get(id) => self.write_one(&self.task(parse(&id)?, Some(&caller)).await?),
            TaskRequest::Cancel(id) => self.cancel_and_wait(parse(&id)?, &caller).await?,
            TaskRequest::List(cursor) => self.session_tasks(&caller, cursor.as_deref()).await?,
            TaskRequest::Result(id) => {
                let id = parse(&id)?;
                // Who may not see it hears so at once.
                self.task(id, Some(&caller)).await?;
                return Ok(Told::Following(Box::new(Following {
                    server: self.clone(),
                    caller,
                    id,
                    asks: can_stream,
                    put: BTreeSet::new(),
                })));
            }
        }))
    }

    /// A cancel is answered with where the task stands then, which is `cancelled` unless its tool was faster; a task that
    /// has ended cannot be cancelled (MCP 2025-11-25, Tasks, cancellation).
    async fn cancel_and_wait(&self, id: TaskId, caller: &Caller) -> Result<String, DispatchError> {
        let task = self.task(id, Some(caller)).await?;
        if task.state.name().is_final() {
            let error = RpcError::invalid_params("the task has ended, and cannot be cancelled");
            return Err(error.into());
        }
        let until = Instant::now()
            + Duration::from_millis(self.settings.grace_ms).saturating_add(CANCEL_WAIT);
        let watch = self.bus.watch(id);
        self.cancel_task(id, Some(caller)).await?;
        loop {
            // Watching first and looking then, so that no change falls in between.
            let changed = watch.changed();
            let task = self.task(id, Some(caller)).await?;
            if task.state.name().is_final() || Instant::now() >= until {
                return Ok(self.write_one(&task));
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    async fn session_tasks(
        &self,
        caller: &Caller,
        after: Option<&str>,
    ) -> Result<String, DispatchError> {
        let after = after
            .map(|after| {
                let place = cursor::decode(after)?;
                place
                    .parse::<u64>()
                    .map_err(|_| RpcError::invalid_params("params.cursor is not one of this list"))
            })
            .transpose()?;
        let page = self
            .tasks
            .list(Query {
                of: Some((caller.tenant.clone(), caller.principal.clone())),
                limit: PAGE,
                after,
                ..Query::default()
            })
            .await
            .map_err(|error| store_trouble(&error))?;
        let mut written = Vec::with_capacity(page.tasks.len());
        for summary in page.tasks {
            // One that is forgotten meanwhile is left out.
            if let Ok(task) = self.task(summary.id, Some(caller)).await {
                written.push(self.write_one(&task));
            }
        }
        let next = page.next.map(|next| cursor::encode(&next.to_string()));
        let mut out = String::new();
        write_list(
            &mut out,
            written.iter().map(String::as_str),
            next.as_deref(),
        );
        Ok(out)
    }

    fn write_one(&self, task: &Task) -> String {
        let mut out = String::new();
        wire::on_wire(task, self.settings.poll_interval_ms, |task| {
            task.write_in_session(&mut out);
        });
        out
    }

    fn write_created(&self, task: &Task) -> String {
        let mut out = String::new();
        wire::on_wire(task, self.settings.poll_interval_ms, |task| {
            task.write_created_in_session(&mut out);
        });
        out
    }
}

/// What a result says first.
fn first_text(result: &str) -> String {
    serde_json::from_str::<serde_json::Value>(result)
        .ok()
        .and_then(|result| result["content"][0]["text"].as_str().map(str::to_owned))
        .unwrap_or_else(|| "the call cannot be a task".to_owned())
}

/// Why a tool's calls cannot be tasks.
pub(crate) fn forbidden(tool: &str) -> RpcError {
    RpcError::new(
        METHOD_NOT_FOUND,
        format!("calls of the tool `{tool}` cannot be tasks"),
    )
}

impl Following {
    pub(super) fn task_id(&self) -> TaskId {
        self.id
    }

    /// What comes next: questions as the task asks them, and its result. Letting go of it in between loses nothing.
    pub(super) async fn next(&mut self) -> Said {
        let server = self.server.clone();
        let watch = server.bus.watch(self.id);
        loop {
            // Watching first and looking then, so that no change falls in between.
            let changed = watch.changed();
            let task = match server.task(self.id, Some(&self.caller)).await {
                Ok(task) => task,
                Err(error) => return Said::End(Err(error.into())),
            };
            if let Some(end) = self.end_of(&task) {
                return Said::End(end);
            }
            if let Some(inquiry) = self.inquiry_of(&task) {
                return Said::Inquiry(inquiry);
            }
            if server.bus.is_closed() {
                let error =
                    RpcError::internal("the server stops; the task goes on when it is back");
                return Said::End(Err(error.into()));
            }
            changed.await;
        }
    }

    fn end_of(&self, task: &Task) -> Option<Result<String, DispatchError>> {
        match &task.state {
            State::Working | State::InputRequired => None,
            State::Completed { result, .. } => Some(Ok(result_of(&self.id.to_string(), &result.0))),
            State::Failed { failure, .. } => {
                Some(Err(DispatchError::Run(wire::rpc_error(failure))))
            }
            State::Cancelled { .. } => {
                let failure = wire::failure(RunReason::Abandoned, "the task was cancelled");
                Some(Err(DispatchError::Run(wire::rpc_error(&failure))))
            }
        }
    }

    fn inquiry_of(&mut self, task: &Task) -> Option<Inquiry> {
        if !self.asks {
            return None;
        }
        let open: BTreeSet<&str> = task
            .open_questions()
            .map(|question| question.key.as_str())
            .collect();
        let settled: Vec<String> = self
            .put
            .iter()
            .filter(|key| !open.contains(key.as_str()))
            .cloned()
            .collect();
        if !settled.is_empty() {
            self.put.retain(|key| !settled.contains(key));
            return Some(Inquiry::Withdrawn(settled));
        }
        let new: Vec<Put> = task
            .open_questions()
            .filter(|question| !self.put.contains(&question.key))
            .map(|question| Put {
                key: question.key.clone(),
                request: question.request.0.to_string(),
            })
            .collect();
        self.put.extend(new.iter().map(|put| put.key.clone()));
        (!new.is_empty()).then_some(Inquiry::Put(new))
    }
}
