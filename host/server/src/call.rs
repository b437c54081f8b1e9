//! `tools/call`, from the tool's name to a run.

use std::borrow::Cow;
use std::sync::Arc;

use longshore_catalog::registry::{Entry, Owned, Registry};
use longshore_catalog::schema::Compiled;
use longshore_catalog::tool::{Requirement, TaskMode};
use longshore_journal::tape::Tape;
use longshore_protocol::capability::Capability;
use longshore_protocol::content::ToolResult;
use longshore_protocol::error::RpcError;
use longshore_protocol::headers::ParameterHeaders;
use longshore_sandbox::sandbox::Prepared;
use longshore_sandbox::target::Target;
use longshore_tasks::store::StoreError;
use longshore_tasks::task::{Reach, Status, Task};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::admission::Place;
use crate::again::{Again, Joined, Joining, SameCall};
use crate::clock;
use crate::dispatch::store_trouble;
use crate::fresh;
use crate::handoff::{Followed, Following};
use crate::loaded::Loaded;
use crate::presence::Presence;
use crate::reason::RunReason;
use crate::run::aside::Wishes;
use crate::run::record::Recorder;
use crate::run::{CallFacts, Caller, HeldCall, NewRun, Start};
use crate::server::Server;
use crate::sessions::tasks;

/// What the caller gets now.
pub(crate) enum Answered {
    /// The result, a whole JSON text.
    Result(String),
    /// A task that goes on.
    Task(Box<Task>),
    /// Nothing yet: the call is to be waited for.
    Held(HeldCall),
    /// The same, of a call that joins a run.
    Joined(Box<Again>),
    /// The same, of one that follows a task.
    Following(Box<Following>),
}

/// Why the caller gets neither.
pub(crate) enum CallError {
    /// The call cannot be run as it is; nothing was started.
    Refused(RpcError),
    /// There is no room now; nothing was started.
    NoRoom(RunReason),
}

/// The least that the end of a task is kept: whoever waits for it has to be told.
const LEAST_RETENTION_MS: u64 = 10_000;

/// A run that is to begin, and what was found out about it.
pub(crate) struct Beginning<'r> {
    pub(crate) entry: &'r Arc<Entry<Loaded>>,
    pub(crate) target: Target,
    pub(crate) task_mode: TaskMode,
    pub(crate) output_schema: Option<Arc<Compiled>>,
    /// The longest that it may live, in milliseconds, if somebody asks for less than the node allows.
    pub(crate) deadline_ms: Option<u64>,
    /// How long it is to be kept after its end, in milliseconds, if somebody asks for less likewise.
    pub(crate) retention_ms: Option<u64>,
    /// Answers that came with the call, before anything was asked.
    pub(crate) answers: &'r [(Cow<'r, str>, &'r RawValue)],
    /// The caller's own key of the call.
    pub(crate) idempotency_key: Option<&'r str>,
    /// Where the call belongs in its trace.
    pub(crate) traceparent: Option<&'r str>,
}

/// What a client asks to be run.
pub(crate) struct CallRequest<'a> {
    pub(crate) tool: &'a str,
    /// An object, or nothing.
    pub(crate) arguments: Option<&'a RawValue>,
    /// The longest the client wants it to live, in milliseconds.
    pub(crate) deadline_ms: Option<u64>,
    /// What the client got instead of a result when it made this call before.
    pub(crate) state: Option<&'a str>,
    /// Its answers to what was asked then.
    pub(crate) answers: &'a [(Cow<'a, str>, &'a RawValue)],
    /// Its own key of this call.
    pub(crate) idempotency_key: Option<&'a str>,
    /// Where the call belongs in its trace.
    pub(crate) traceparent: Option<&'a str>,
    /// What the call is to become.
    pub(crate) becomes: Becomes,
    /// What the client wants to be told while it waits.
    pub(crate) wishes: Wishes,
    /// Headers that repeat arguments, of a transport that has any.
    pub(crate) headers: Option<&'a ParameterHeaders<'a>>,
    /// Whether the client is still there.
    pub(crate) presence: &'a Presence,
}

/// What a call is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Becomes {
    /// Whatever its tool says.
    Either,
    /// A task, since its client asks for one.
    Task {
        /// How long it is to be kept after its end, if the client says so.
        retention_ms: Option<u64>,
    },
}

impl Server {
    /// Starts a tool for that caller, once there is a place for it.
    pub(crate) async fn call(
        &self,
        caller: Caller,
        request: CallRequest<'_>,
    ) -> Result<Answered, CallError> {
        if self.follows(request.tool) {
            let CallRequest {
                tool,
                arguments,
                wishes,
                ..
            } = request;
            return Ok(match self.follow(caller, tool, arguments, wishes).await? {
                Followed::Result(result) => Answered::Result(result),
                Followed::Waiting(following) => Answered::Following(following),
            });
        }
        if let Some(state) = request.state {
            return self.go_on_with(caller, request, state).await;
        }
        let is_there = |registry: &Registry<Loaded>| registry.tool(request.tool).is_some();
        let registry = self.registry_where(request.presence, is_there).await?;
        // First of all: the tool may be another one by now, or gone, and the call was in order when it came.
        if let Some(key) = request.idempotency_key {
            let arguments = strict(request.arguments)?;
            let call = SameCall {
                tool: request.tool,
                arguments: &arguments,
            };
            if let Some(joined) = self.join_key(&caller, &call, key).await? {
                let mode = mode_of(&registry, request.tool);
                return Ok(self.joined(caller, joined, request.wishes, mode));
            }
        }
        let Some(Owned { entry, tool }) = registry.tool(request.tool) else {
            return Err(CallError::Refused(RpcError::invalid_params(format!(
                "unknown tool {:?}: tools/list names the tools there are",
                request.tool.chars().take(128).collect::<String>()
            ))));
        };
        let needed: Vec<Capability> = tool.requires.iter().copied().map(capability).collect();
        if let Err(error) = caller.capabilities.require(&needed) {
            if !caller.revision.has_sessions() {
                return Err(CallError::Refused(error));
            }
            // A session has no tasks that a call could need, nor a code that says what else is missing.
            let missing: Vec<&str> = needed
                .iter()
                .filter(|needed| {
                    **needed != Capability::Tasks && !caller.capabilities.has(**needed)
                })
                .map(|needed| needed.word())
                .collect();
            if !missing.is_empty() {
                let text = format!(
                    "this tool needs a client that offers: {}",
                    missing.join(", ")
                );
                return Ok(Answered::Result(ToolResult::error_text(&text, &self.info)));
            }
        }

        if request.becomes != Becomes::Either && tool.task_mode == TaskMode::Never {
            return Err(CallError::Refused(tasks::forbidden(request.tool)));
        }

        let loaded: &Loaded = &entry.payload;
        let schemas = loaded.tool(&tool.name).ok_or_else(|| {
            CallError::Refused(RpcError::internal(
                "the tool is listed but was not prepared",
            ))
        })?;
        let arguments = request.arguments.map_or("{}", RawValue::get);
        let value = strict(request.arguments)?;
        if let Some(headers) = request.headers {
            for parameter in &schemas.headers {
                let argument = parameter
                    .path
                    .iter()
                    .try_fold(&value, |value, name| value.get(name));
                headers
                    .check(&parameter.name, argument)
                    .map_err(CallError::Refused)?;
            }
        }
        if let Err(problems) = schemas.input.check(&value) {
            let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
            // For the model, which can correct itself, so it is a result and not an error of the protocol
            // (MCP 2026-07-28, Tools, error handling).
            let text = format!(
                "the arguments do not fit the tool's input schema: {}",
                list.join("; ")
            );
            return Ok(Answered::Result(ToolResult::error_text(&text, &self.info)));
        }

        let beginning = Beginning {
            entry,
            target: Target::Tool {
                name: tool.name.clone(),
                arguments: arguments.to_owned(),
            },
            task_mode: tool.task_mode,
            output_schema: schemas.output.clone(),
            deadline_ms: [tool.deadline_ms, request.deadline_ms]
                .into_iter()
                .flatten()
                .min(),
            retention_ms: match request.becomes {
                Becomes::Task { retention_ms } => retention_ms,
                Becomes::Either => None,
            },
            answers: request.answers,
            idempotency_key: request.idempotency_key,
            traceparent: request.traceparent,
        };
        let (call, prepared, place) = self.admit(caller, beginning, request.presence).await?;
        let turns = schemas.turns.clone();

        let is_asked_for = request.becomes != Becomes::Either;
        let is_task =
            (is_asked_for || tool.task_mode == TaskMode::Always) && call.may_become_task();
        if is_task || call.idempotency_key.is_some() {
            let reach = if is_task { Reach::Id } else { Reach::Again };
            let mut row = call.new_row(self.node.clone(), Status::default(), reach);
            let recorder = call.is_recorded(&self.settings).then(|| {
                Recorder::new(&self.keys, call.id, self.node.clone(), Tape::default())
                    .mutated(self.mutant)
            });
            row.journal_key = recorder
                .as_ref()
                .map(|recorder| recorder.kept_key().to_vec());
            match self.tasks.create(row.clone(), None, None).await {
                Ok(()) => {}
                Err(StoreError::Exists) if let Some(key) = request.idempotency_key => {
                    // The same call came twice at the same moment, and the other was quicker.
                    let same = SameCall {
                        tool: request.tool,
                        arguments: &value,
                    };
                    let joined = self.join_key(&call.caller, &same, key).await?;
                    return match joined {
                        Some(joined) => {
                            Ok(self.joined(call.caller, joined, request.wishes, tool.task_mode))
                        }
                        None => Err(CallError::NoRoom(RunReason::Busy)),
                    };
                }
                Err(error) => {
                    tracing::error!(%error, "a task could not be kept");
                    return Err(CallError::Refused(store_trouble(&error)));
                }
            }
            let caller = call.caller.clone();
            let _the_task_goes_on = self.start_run(NewRun {
                call,
                prepared,
                place,
                turns,
                alone: None,
                start: Start::Task(Box::new(row.clone()), recorder),
            });
            if is_task {
                return Ok(Answered::Task(Box::new(row)));
            }
            let joined = Joined::from_the_first(self, row.id);
            return Ok(self.joined(caller, joined, request.wishes, tool.task_mode));
        }

        Ok(Answered::Held(self.start_run(NewRun {
            call,
            prepared,
            place,
            turns,
            alone: None,
            start: Start::Held(request.wishes),
        })))
    }
}

impl Server {
    /// Goes on with a call whose client was asked something.
    async fn go_on_with(
        &self,
        caller: Caller,
        request: CallRequest<'_>,
        state: &str,
    ) -> Result<Answered, CallError> {
        let value = strict(request.arguments)?;
        let call = SameCall {
            tool: request.tool,
            arguments: &value,
        };
        let joined = self
            .join_round(&caller, &call, state, request.answers)
            .await?;
        let mode = mode_of(&self.registry(), request.tool);
        Ok(self.joined(caller, joined, request.wishes, mode))
    }

    /// A call that waits for a run that there is.
    pub(crate) fn joined(
        &self,
        caller: Caller,
        joined: Joined,
        wishes: Wishes,
        mode: TaskMode,
    ) -> Answered {
        let may_be_handed_off =
            self.settings.handoff && !caller.capabilities.tasks && mode != TaskMode::Never;
        let joining = Joining {
            joined,
            wishes,
            may_be_handed_off,
        };
        Answered::Joined(Box::new(Again::new(self, caller, joining)))
    }
}

impl Server {
    /// Waits for the code of a run and a place for it.
    pub(crate) async fn admit(
        &self,
        caller: Caller,
        beginning: Beginning<'_>,
        presence: &Presence,
    ) -> Result<(CallFacts, Prepared, Place), CallError> {
        let Beginning {
            entry,
            target,
            task_mode,
            output_schema,
            deadline_ms,
            retention_ms,
            answers,
            idempotency_key,
            traceparent,
        } = beginning;
        let prepared = self.code_of(&entry.payload, presence).await?;
        if self.alarms.count() >= self.settings.parked {
            return Err(CallError::NoRoom(RunReason::QueueFull));
        }
        let place = self
            .admission
            .enter(&caller.tenant, presence)
            .await
            .map_err(CallError::NoRoom)?;
        let now = clock::now();
        let most = self.settings.deadline_ms;
        let call = CallFacts {
            id: fresh::task_id(),
            created_at: now,
            component: entry.component.name.to_string(),
            digest: entry.component.digest.to_string(),
            _component: Arc::clone(entry),
            target,
            task_mode,
            output_schema,
            caller,
            policy: entry.payload.policy(),
            deadline_at: now.plus(deadline_ms.map_or(most, |asked| asked.min(most))),
            retention_ms: retention_ms.map_or(self.settings.retention_ms, |wanted| {
                wanted
                    .max(LEAST_RETENTION_MS)
                    .min(self.settings.retention_ms)
            }),
            given: answers
                .iter()
                .map(|(key, answer)| (key.to_string(), (*answer).to_owned()))
                .collect(),
            idempotency_key: idempotency_key.map(str::to_owned),
            traceparent: traceparent.map(str::to_owned),
        };
        Ok((call, prepared, place))
    }
}

/// The mode of a tool. A run goes on also if its tool was removed meanwhile.
fn mode_of(registry: &Registry<Loaded>, tool: &str) -> TaskMode {
    let owned = registry.tool(tool);
    owned.map_or(TaskMode::Auto, |owned| owned.tool.task_mode)
}

fn strict(arguments: Option<&RawValue>) -> Result<Value, CallError> {
    let text = arguments.map_or("{}", RawValue::get);
    longshore_protocol::json::strict_value(text).map_err(|fault| {
        CallError::Refused(RpcError::invalid_params(format!("arguments: {fault}")))
    })
}

fn capability(requirement: Requirement) -> Capability {
    match requirement {
        Requirement::Tasks => Capability::Tasks,
        Requirement::Elicitation => Capability::Elicitation,
        Requirement::ElicitationForm => Capability::ElicitationForm,
        Requirement::ElicitationUrl => Capability::ElicitationUrl,
        Requirement::Sampling => Capability::Sampling,
        Requirement::SamplingTools => Capability::SamplingTools,
        Requirement::Roots => Capability::Roots,
    }
}
