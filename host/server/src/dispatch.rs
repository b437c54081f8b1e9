//! A decoded request, whatever it came over, to its answer.

use longshore_catalog::registry::Kind;
use longshore_catalog::tool::TaskMode;
use longshore_protocol::cursor;
use longshore_protocol::envelope::RequestId;
use longshore_protocol::error::RpcError;
use longshore_protocol::headers::ParameterHeaders;
use longshore_protocol::meta::Meta;
use longshore_protocol::request::Request;
use longshore_protocol::result::{
    CacheHint, CacheScope, Discover, List, write_acknowledgement, write_page,
};
use longshore_protocol::session::task::TaskSupport;
use longshore_protocol::version::Revision;
use longshore_protocol::{resource, tool};
use longshore_tasks::id::{Principal, TaskId, Tenant};
use longshore_tasks::store::StoreError;
use longshore_tasks::task::Task;

use crate::again::{self, Again};
use crate::call::{Answered, Becomes, CallError, CallRequest};
use crate::follow::FollowError;
use crate::handoff::{self, Following};
use crate::library::Manner;
use crate::listen::Listening;
use crate::loaded::descriptor;
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
        let wishes = || Wishes {
            progress: meta.progress_token.clone().filter(|_| can_stream),
            log_level: meta.log_level.filter(|_| can_stream),
        };
        let manner = |state, answers: Option<_>| Manner {
            deadline_ms: meta.deadline_ms,
            state,
            answers: answers.unwrap_or_default(),
            traceparent: meta.trace.traceparent.as_deref(),
            wishes: wishes(),
            presence,
        };
        let result = match request {
            Request::Discover => self.discover(),
            Request::ToolsList { cursor } => self.list(List::Tools, cursor.as_deref(), meta)?,
            Request::ResourcesList { cursor } => {
                self.list(List::Resources, cursor.as_deref(), meta)?
            }
            Request::TemplatesList { cursor } => {
                self.list(List::Templates, cursor.as_deref(), meta)?
            }
            Request::PromptsList { cursor } => self.list(List::Prompts, cursor.as_deref(), meta)?,
            Request::ResourcesRead {
                uri,
                input_responses,
                request_state,
            } => {
                let manner = manner(request_state.as_deref(), input_responses.as_deref());
                let read = self.read_resource(caller(), &uri, manner);
                return self.answered(caller(), read.await);
            }
            Request::PromptsGet {
                name,
                arguments,
                input_responses,
                request_state,
            } => {
                let manner = manner(request_state.as_deref(), input_responses.as_deref());
                let filled_in = self.get_prompt(caller(), &name, arguments, manner);
                return self.answered(caller(), filled_in.await);
            }
            Request::Complete(completing) => {
                let proposed = self.complete(caller(), completing, manner(None, None));
                return self.answered(caller(), proposed.await);
            }
            Request::ToolsCall {
                name,
                arguments,
                input_responses,
                request_state,
            } => {
                let request = CallRequest {
                    tool: &name,
                    arguments,
                    deadline_ms: meta.deadline_ms,
                    state: request_state.as_deref(),
                    answers: input_responses.as_deref().unwrap_or_default(),
                    idempotency_key: meta.idempotency_key.as_deref(),
                    traceparent: meta.trace.traceparent.as_deref(),
                    becomes: Becomes::Either,
                    wishes: wishes(),
                    headers,
                    presence,
                };
                let caller = caller();
                return self.answered(caller.clone(), self.call(caller, request).await);
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
            Request::Listen(filter) => {
                if !can_stream {
                    return Err(DispatchError::Refused(RpcError::invalid_request(
                        "what is listened to comes as a stream: the Accept header must allow text/event-stream",
                    )));
                }
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

    fn list(&self, list: List, cursor: Option<&str>, meta: &Meta<'_>) -> Result<String, RpcError> {
        let revision = meta.revision;
        let kind = match list {
            List::Tools => Kind::Tool,
            List::Resources => Kind::Resource,
            List::Templates => Kind::Template,
            List::Prompts => Kind::Prompt,
        };
        let is_handed_off = self.settings.handoff && !meta.capabilities.tasks;
        let after = cursor.map(cursor::decode).transpose()?;
        let registry = self.registry();
        let page = registry.page(kind, after.as_deref(), self.settings.page);
        let next = page.next.map(cursor::encode);
        let places = page.places.iter();
        let descriptors = places.filter_map(|place| {
            let support = match kind {
                Kind::Tool => task_support(place.entry.component.tools[place.index].task_mode),
                Kind::Resource | Kind::Template | Kind::Prompt => TaskSupport::Forbidden,
            };
            Some((support, descriptor(kind, place, is_handed_off)?))
        });
        let has_own = kind == Kind::Tool && self.settings.handoff && next.is_none();
        let own = has_own
            .then_some(handoff::DESCRIPTORS)
            .into_iter()
            .flatten()
            .map(|descriptor| (TaskSupport::Forbidden, descriptor));
        let descriptors = descriptors.chain(own);
        let mut out = String::new();
        if revision.has_sessions() {
            let older: Vec<String> = descriptors
                .map(|(support, descriptor)| match kind {
                    Kind::Tool => tool::in_session(descriptor, revision, support),
                    Kind::Resource | Kind::Template | Kind::Prompt => {
                        resource::in_session(descriptor, revision)
                    }
                })
                .collect();
            let older = older.iter().map(String::as_str);
            write_page(&mut out, list, older, next.as_deref(), LISTS, &self.info);
        } else {
            let as_written = descriptors.map(|(_, descriptor)| descriptor);
            write_page(
                &mut out,
                list,
                as_written,
                next.as_deref(),
                LISTS,
                &self.info,
            );
        }
        Ok(out)
    }

    /// What comes of a call that was begun, or was not.
    fn answered(
        &self,
        caller: Caller,
        begun: Result<Answered, CallError>,
    ) -> Result<Answer, DispatchError> {
        let call = match begun {
            Ok(Answered::Result(result)) => return Ok(Answer::Result(result)),
            Ok(Answered::Task(task)) => {
                return Ok(Answer::Result(self.write(&task, TaskForm::Created)));
            }
            Ok(Answered::Held(call)) => Waits::Run(call),
            Ok(Answered::Joined(call)) => Waits::Joined(call),
            Ok(Answered::Following(call)) => Waits::Following(call),
            Err(CallError::Refused(error)) => return Err(DispatchError::Refused(error)),
            Err(CallError::NoRoom(reason)) => return Err(no_place(reason)),
        };
        Ok(Answer::Held(Held {
            server: self.clone(),
            caller,
            call,
        }))
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
        RunReason::QueueFull => {
            "too many calls wait for a place (queued), or too many tasks for an answer or a time (parked): try again later"
        }
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
