//! A decoded request, whatever it came over, to its answer.

use longshore_catalog::tool::TaskMode;
use longshore_protocol::capability::ClientCapabilities;
use longshore_protocol::cursor;
use longshore_protocol::envelope::RequestId;
use longshore_protocol::error::RpcError;
use longshore_protocol::headers::ParameterHeaders;
use longshore_protocol::meta::Meta;
use longshore_protocol::request::Request;
use longshore_protocol::result::{
    CacheHint, CacheScope, Discover, write_acknowledgement, write_tools_page,
};
use longshore_protocol::session::task::TaskSupport;
use longshore_protocol::tool;
use longshore_protocol::version::Revision;
use longshore_tasks::id::{Principal, TaskId, Tenant};
use longshore_tasks::store::StoreError;
use longshore_tasks::task::Task;

use crate::again::{self, Again};
use crate::call::{Answered, Becomes, CallError, CallRequest};
use crate::follow::FollowError;
use crate::handoff::{self, Following};
use crate::listen::{Filter, Listening};
use crate::polls::{Late, Polled};
use crate::presence::Presence;
use crate::reason::{RequestReason, RunReason};
use crate::run::aside::Wishes;
use crate::run::inquiry::{By, Inquiry};
use crate::run::{Caller, Heard, HeldCall, Reply};
use crate::server::Server;
use crate::wire::{self, TaskForm};

/// Lists change when components are uploaded, so clients may keep them only for a moment.
const LISTS: CacheHint = CacheHint {
    ttl_ms: 1_000,
    scope: CacheScope::Private,
};

/// What this server can do.
const OFFER: Discover<'_> = Discover {
    tools_list_changed: true,
    instructions: None,
    cache: LISTS,
};

/// Who a request comes from, as the transport knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who pays and who is isolated.
    pub tenant: Tenant,
    /// Who it is.
    pub principal: Principal,
}

impl Identity {
    /// Whoever is on this machine.
    #[must_use]
    pub fn local() -> Self {
        Self {
            tenant: Tenant("local".into()),
            principal: Principal("local".into()),
        }
    }
}

/// What is known of a request beside what it asks.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The id of the request.
    pub id: &'a RequestId,
    /// Who asks.
    pub identity: &'a Identity,
    /// What the request says of itself.
    pub meta: &'a Meta<'a>,
    /// Whether more than one message can be given back.
    pub can_stream: bool,
    /// Headers that repeat arguments, of a transport that has any.
    pub headers: Option<&'a ParameterHeaders<'a>>,
    /// Whether somebody still waits for the answer.
    pub presence: &'a Presence,
}

/// What a request is answered with.
pub enum Answer {
    /// Its result, one JSON text.
    Result(String),
    /// What comes of a call that goes on.
    Held(Held),
    /// What there is to hear from now on.
    Listening(Box<Listening>),
    /// Its result, in a while.
    Late(Box<Late>),
}

/// A call that goes on. Letting go of it before its end cancels it.
pub struct Held {
    server: Server,
    caller: Caller,
    call: Waits,
}

/// What is waited for.
enum Waits {
    Run(HeldCall),
    Joined(Box<Again>),
    Following(Box<Following>),
}

/// What there is to say to whoever waits for a call.
pub enum Said {
    /// A notification, one whole message.
    Aside(String),
    /// Questions, to a caller that can be reached with them.
    Inquiry(Inquiry),
    /// The result or the error, which ends it.
    End(Result<String, DispatchError>),
}

impl Held {
    /// Who asks, if anything is asked.
    #[must_use]
    pub fn asks(&self) -> Option<By> {
        match &self.call {
            Waits::Run(call) => Some(By::Call(call.answers())),
            Waits::Joined(again) => Some(By::Row(again.task_id())),
            Waits::Following(_) => None,
        }
    }

    /// What comes next: any number of notifications and questions, then the end.
    pub async fn next(&mut self) -> Said {
        let reply = match &mut self.call {
            Waits::Run(call) => match call.next().await {
                Heard::Aside(text) => return Said::Aside(text),
                Heard::Inquiry(inquiry) => return Said::Inquiry(inquiry),
                Heard::Reply(reply) => reply,
            },
            Waits::Joined(again) => {
                return match again.next().await {
                    again::Heard::Aside(text) => Said::Aside(text),
                    again::Heard::Inquiry(inquiry) => Said::Inquiry(inquiry),
                    again::Heard::End(end) => Said::End(end),
                };
            }
            Waits::Following(following) => {
                return match following.next().await {
                    handoff::Heard::Aside(text) => Said::Aside(text),
                    handoff::Heard::End(end) => Said::End(end),
                };
            }
        };
        Said::End(match reply {
            Some(Reply::Ended(ended)) => ended.map_err(DispatchError::Run),
            Some(Reply::Task(task)) => Ok(self.server.task_given(&task, &self.caller)),
            Some(Reply::Asks(task)) => match self.server.round(&task, &self.caller) {
                Some(round) => round.map_err(DispatchError::Refused),
                None => Err(DispatchError::Refused(RpcError::internal(
                    "the call asks something that is not there any more",
                ))),
            },
            None => Err(DispatchError::Run(wire::rpc_error(&wire::failure(
                RunReason::HostFault,
                "the server failed while it ran this call",
            )))),
        })
    }
}

impl Late {
    /// The result, one JSON text.
    pub async fn result(&self) -> Result<String, DispatchError> {
        let task = self.task().await?;
        Ok(self.server().write(&task, TaskForm::Detailed))
    }
}

/// Why a request has no result.
#[derive(Clone, Debug)]
pub enum DispatchError {
    /// The request was refused.
    Refused(RpcError),
    /// The tool was run, and this came of it.
    Run(RpcError),
    /// There is no room now.
    NoRoom {
        /// Of what kind.
        reason: RunReason,
        /// One line for people.
        message: &'static str,
    },
}

impl From<RpcError> for DispatchError {
    fn from(error: RpcError) -> Self {
        Self::Refused(error)
    }
}

impl From<FollowError> for DispatchError {
    fn from(error: FollowError) -> Self {
        Self::Refused(match error {
            FollowError::Unknown => RpcError::invalid_params(error.to_string()),
            FollowError::Answer(error) => error,
            FollowError::Store(error) => {
                tracing::error!(%error, "a task could not be read or written");
                store_trouble(&error)
            }
        })
    }
}

impl Server {
    /// Answers a request.
    pub async fn dispatch(
        &self,
        incoming: &Incoming<'_>,
        request: Request<'_>,
    ) -> Result<Answer, DispatchError> {
        let &Incoming {
            id,
            identity,
            meta,
            can_stream,
            headers,
            presence,
        } = incoming;
        let caller = || caller(identity, meta);
        let result = match request {
            Request::Discover => self.discover(),
            Request::ToolsList { cursor } => {
                self.list_tools(cursor.as_deref(), meta.revision, &meta.capabilities)?
            }
            Request::ToolsCall {
                name,
                arguments,
                input_responses,
                request_state,
            } => {
                let wishes = Wishes {
                    progress: meta.progress_token.clone().filter(|_| can_stream),
                    log_level: meta.log_level.filter(|_| can_stream),
                };
                let request = CallRequest {
                    tool: &name,
                    arguments,
                    deadline_ms: meta.deadline_ms,
                    state: request_state.as_deref(),
                    answers: input_responses.as_deref().unwrap_or_default(),
                    idempotency_key: meta.idempotency_key.as_deref(),
                    traceparent: meta.trace.traceparent.as_deref(),
                    becomes: Becomes::Either,
                    wishes,
                    headers,
                    presence,
                };
                let caller = caller();
                let held = |caller, call| {
                    Ok(Answer::Held(Held {
                        server: self.clone(),
                        caller,
                        call,
                    }))
                };
                match self.call(caller.clone(), request).await {
                    Ok(Answered::Result(result)) => result,
                    Ok(Answered::Task(task)) => self.write(&task, TaskForm::Created),
                    Ok(Answered::Held(call)) => return held(caller, Waits::Run(call)),
                    Ok(Answered::Joined(call)) => return held(caller, Waits::Joined(call)),
                    Ok(Answered::Following(call)) => return held(caller, Waits::Following(call)),
                    Err(CallError::Refused(error)) => return Err(DispatchError::Refused(error)),
                    Err(CallError::NoRoom(reason)) => return Err(no_place(reason)),
                }
            }
            Request::TasksGet { task_id } => match self.poll(task(&task_id)?, caller()).await? {
                Polled::Now(task) => self.write(&task, TaskForm::Detailed),
                Polled::Late(late) => return Ok(Answer::Late(Box::new(late))),
            },
            Request::TasksUpdate {
                task_id,
                input_responses,
            } => {
                let answers: Vec<_> = input_responses
                    .iter()
                    .map(|(key, answer)| (key.as_ref(), *answer))
                    .collect();
                self.answer_task(task(&task_id)?, Some(&caller()), &answers)
                    .await?;
                self.acknowledge()
            }
            Request::TasksCancel { task_id } => {
                self.cancel_task(task(&task_id)?, Some(&caller())).await?;
                self.acknowledge()
            }
            Request::Listen {
                tools_list_changed,
                task_ids,
            } => {
                if !can_stream {
                    return Err(DispatchError::Refused(RpcError::invalid_request(
                        "what is listened to comes as a stream: the Accept header must allow text/event-stream",
                    )));
                }
                let filter = Filter {
                    tools_list_changed,
                    task_ids,
                };
                let listening = self.listen(&caller(), id, filter).await?;
                return Ok(Answer::Listening(Box::new(listening)));
            }
        };
        Ok(Answer::Result(result))
    }

    fn discover(&self) -> String {
        let mut out = String::new();
        OFFER.write_to(&mut out, &self.info);
        out
    }

    /// The same for whoever opens a session.
    pub(crate) fn opened(&self, revision: Revision) -> String {
        let mut out = String::new();
        OFFER.write_opened(&mut out, revision, &self.info);
        out
    }

    fn list_tools(
        &self,
        cursor: Option<&str>,
        revision: Revision,
        capabilities: &ClientCapabilities,
    ) -> Result<String, RpcError> {
        let is_handed_off = self.settings.handoff && !capabilities.tasks;
        let after = cursor.map(cursor::decode).transpose()?;
        let registry = self.registry();
        let page = registry.page(after.as_deref(), self.settings.page);
        let next = page.next.map(cursor::encode);
        let descriptors = page.tools.iter().filter_map(|owned| {
            let ready = owned.entry.payload.tool(&owned.tool.name)?;
            let descriptor = match &ready.without_output {
                Some(descriptor) if is_handed_off => descriptor.as_str(),
                _ => ready.descriptor.as_str(),
            };
            Some((task_support(owned.tool.task_mode), descriptor))
        });
        let own = (self.settings.handoff && next.is_none())
            .then_some(handoff::DESCRIPTORS)
            .into_iter()
            .flatten()
            .map(|descriptor| (TaskSupport::Forbidden, descriptor));
        let descriptors = descriptors.chain(own);
        let mut out = String::new();
        if revision.has_sessions() {
            let older: Vec<String> = descriptors
                .map(|(support, descriptor)| tool::in_session(descriptor, revision, support))
                .collect();
            let older = older.iter().map(String::as_str);
            write_tools_page(&mut out, older, next.as_deref(), LISTS, &self.info);
        } else {
            let as_written = descriptors.map(|(_, descriptor)| descriptor);
            write_tools_page(&mut out, as_written, next.as_deref(), LISTS, &self.info);
        }
        Ok(out)
    }

    pub(crate) fn write(&self, task: &Task, form: TaskForm) -> String {
        let mut out = String::new();
        wire::write_task(
            &mut out,
            task,
            form,
            self.settings.poll_interval_ms,
            &self.info,
        );
        out
    }

    fn acknowledge(&self) -> String {
        let mut out = String::new();
        write_acknowledgement(&mut out, &self.info);
        out
    }
}

/// Whether calls may be made tasks by whoever calls, as MCP 2025-11-25 lets them.
fn task_support(mode: TaskMode) -> TaskSupport {
    match mode {
        TaskMode::Never => TaskSupport::Forbidden,
        TaskMode::OnDetach | TaskMode::Auto | TaskMode::Always => TaskSupport::Optional,
    }
}

/// What a client is told while the store cannot be read or written.
pub(crate) fn store_trouble(error: &StoreError) -> RpcError {
    RpcError::internal(error.to_string()).with_data(RequestReason::StoreUnavailable.data())
}

pub(crate) fn no_place(reason: RunReason) -> DispatchError {
    let message = match reason {
        RunReason::QueueFull => "too many calls wait for a place: try again later",
        _ => "every place for a run is taken, or the tool is still being compiled: try again later",
    };
    DispatchError::NoRoom { reason, message }
}

pub(crate) fn caller(identity: &Identity, meta: &Meta<'_>) -> Caller {
    Caller {
        tenant: identity.tenant.clone(),
        principal: identity.principal.clone(),
        revision: meta.revision,
        capabilities: meta.capabilities,
        capabilities_json: meta.capabilities_json.to_owned(),
    }
}

/// The id in a request. A text that is no id names no task, like any id that was never given out.
pub(crate) fn task(id: &str) -> Result<TaskId, FollowError> {
    id.parse().map_err(|_| FollowError::Unknown)
}
