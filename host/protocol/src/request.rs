//! The second stage: what a message asks or tells, as a closed set. A method that is added here is a variant in
//! [`Method`] and one in [`Request`].

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::capability::{Capability, ClientCapabilities};
use crate::completing::{Completing, Texts};
use crate::envelope::{NotificationEnvelope, RequestId};
use crate::error::RpcError;
use crate::json::{self, NotPicked, Picked, is_object, shown};
use crate::listening::Listen;

/// The methods that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `server/discover`
    Discover,
    /// `tools/list`
    ToolsList,
    /// `tools/call`
    ToolsCall,
    /// `resources/list`
    ResourcesList,
    /// `resources/templates/list`
    TemplatesList,
    /// `resources/read`
    ResourcesRead,
    /// `prompts/list`
    PromptsList,
    /// `prompts/get`
    PromptsGet,
    /// `completion/complete`
    Complete,
    /// `tasks/get`
    TasksGet,
    /// `tasks/update`
    TasksUpdate,
    /// `tasks/cancel`
    TasksCancel,
    /// `subscriptions/listen`
    Listen,
}

/// The parameter that `Mcp-Name` repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameSource {
    pub(crate) param: Param,
    /// Whether the header must be there. Known clients leave it out on `tasks/*`, where the text binds clients only.
    pub(crate) required: bool,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 13] = [
        Self::Discover,
        Self::ToolsList,
        Self::ToolsCall,
        Self::ResourcesList,
        Self::TemplatesList,
        Self::ResourcesRead,
        Self::PromptsList,
        Self::PromptsGet,
        Self::Complete,
        Self::TasksGet,
        Self::TasksUpdate,
        Self::TasksCancel,
        Self::Listen,
    ];

    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discover => "server/discover",
            Self::ToolsList => "tools/list",
            Self::ToolsCall => "tools/call",
            Self::ResourcesList => "resources/list",
            Self::TemplatesList => "resources/templates/list",
            Self::ResourcesRead => "resources/read",
            Self::PromptsList => "prompts/list",
            Self::PromptsGet => "prompts/get",
            Self::Complete => "completion/complete",
            Self::TasksGet => "tasks/get",
            Self::TasksUpdate => "tasks/update",
            Self::TasksCancel => "tasks/cancel",
            Self::Listen => "subscriptions/listen",
        }
    }

    /// The method of that name, if it is served.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }

    /// Whether it is asked in sessions as well, in the same form.
    pub(crate) fn is_in_sessions(self) -> bool {
        match self {
            Self::ToolsList
            | Self::ToolsCall
            | Self::ResourcesList
            | Self::TemplatesList
            | Self::ResourcesRead
            | Self::PromptsList
            | Self::PromptsGet
            | Self::Complete => true,
            Self::Discover
            | Self::TasksGet
            | Self::TasksUpdate
            | Self::TasksCancel
            | Self::Listen => false,
        }
    }

    pub(crate) fn name_source(self) -> Option<NameSource> {
        match self {
            Self::Discover
            | Self::ToolsList
            | Self::ResourcesList
            | Self::TemplatesList
            | Self::PromptsList
            | Self::Complete
            | Self::Listen => None,
            Self::ToolsCall | Self::PromptsGet => Some(NameSource {
                param: Param::Name,
                required: true,
            }),
            Self::ResourcesRead => Some(NameSource {
                param: Param::Uri,
                required: true,
            }),
            Self::TasksGet | Self::TasksUpdate | Self::TasksCancel => Some(NameSource {
                param: Param::TaskId,
                required: false,
            }),
        }
    }

    /// What the client must have declared for the method to exist for it at all. What it needs for one of its
    /// parameters is looked at with that.
    pub(crate) fn requires(self) -> &'static [Capability] {
        match self {
            Self::Discover
            | Self::ToolsList
            | Self::ToolsCall
            | Self::ResourcesList
            | Self::TemplatesList
            | Self::ResourcesRead
            | Self::PromptsList
            | Self::PromptsGet
            | Self::Complete
            | Self::Listen => &[],
            Self::TasksGet | Self::TasksUpdate | Self::TasksCancel => &[Capability::Tasks],
        }
    }
}

/// A request with its parameters.
#[derive(Debug)]
pub enum Request<'a> {
    /// What this server can do.
    Discover,
    /// The tools, from the start or from where a page ended.
    ToolsList {
        /// Where the last page ended.
        cursor: Option<Cow<'a, str>>,
    },
    /// Run a tool.
    ToolsCall {
        /// Which.
        name: Cow<'a, str>,
        /// With what: an object, unread. Absent is the same as empty.
        arguments: Option<&'a RawValue>,
        /// Answers to questions of an earlier round: an object, unread.
        input_responses: Option<Vec<(Cow<'a, str>, &'a RawValue)>>,
        /// What the earlier round gave the client to bring back, unread.
        request_state: Option<Cow<'a, str>>,
    },
    /// The resources, likewise.
    ResourcesList {
        /// Where the last page ended.
        cursor: Option<Cow<'a, str>>,
    },
    /// The templates of resources, likewise.
    TemplatesList {
        /// Where the last page ended.
        cursor: Option<Cow<'a, str>>,
    },
    /// What a resource holds.
    ResourcesRead {
        /// Which.
        uri: Cow<'a, str>,
        /// Answers to questions of an earlier round: an object, unread.
        input_responses: Option<Vec<(Cow<'a, str>, &'a RawValue)>>,
        /// What the earlier round gave the client to bring back, unread.
        request_state: Option<Cow<'a, str>>,
    },
    /// The prompts, likewise.
    PromptsList {
        /// Where the last page ended.
        cursor: Option<Cow<'a, str>>,
    },
    /// Fill in a prompt.
    PromptsGet {
        /// Which.
        name: Cow<'a, str>,
        /// With what.
        arguments: Texts<'a>,
        /// Answers to questions of an earlier round: an object, unread.
        input_responses: Option<Vec<(Cow<'a, str>, &'a RawValue)>>,
        /// What the earlier round gave the client to bring back, unread.
        request_state: Option<Cow<'a, str>>,
    },
    /// Propose how to go on with an argument.
    Complete(Completing<'a>),
    /// Where a task stands.
    TasksGet {
        /// Which.
        task_id: Cow<'a, str>,
    },
    /// Answers to a task's questions.
    TasksUpdate {
        /// Which.
        task_id: Cow<'a, str>,
        /// By the key of the question, unread: a malformed answer to no open question is not a fault.
        input_responses: Vec<(Cow<'a, str>, &'a RawValue)>,
    },
    /// Cancel a task.
    TasksCancel {
        /// Which.
        task_id: Cow<'a, str>,
    },
    /// Be told of what happens. Kinds that are not served are left out of the acknowledgement and are no fault.
    Listen(Listen<'a>),
}

/// The parameters of all methods, by name. Some client libraries send a `task` member from an earlier experiment:
/// like all that is not listed here it is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    Meta,
    Name,
    Arguments,
    InputResponses,
    RequestState,
    TaskId,
    Cursor,
    Notifications,
    Uri,
    Ref,
    Argument,
    Context,
}

/// How many there are.
const PARAMS: usize = 12;

impl Param {
    const NAMES: [&str; PARAMS] = [
        "_meta",
        "name",
        "arguments",
        "inputResponses",
        "requestState",
        "taskId",
        "cursor",
        "notifications",
        "uri",
        "ref",
        "argument",
        "context",
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// `params`, split once.
pub(crate) struct Params<'a>(Picked<'a, PARAMS>);

impl<'a> Params<'a> {
    /// Absent parameters are empty ones.
    pub(crate) fn read(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let Some(params) = params else {
            return Ok(Self(Picked {
                values: [None; PARAMS],
                repeated: [false; PARAMS],
            }));
        };
        json::pick(params.get(), &Param::NAMES)
            .map(Self)
            .map_err(|fault| {
                RpcError::invalid_params(match fault {
                    NotPicked::Array | NotPicked::Scalar => "params must be an object".to_owned(),
                    NotPicked::Malformed(error) => format!("params is not accepted: {error}"),
                })
            })
    }

    /// The parameter; refused if it stands twice.
    pub(crate) fn get(&self, param: Param) -> Result<Option<&'a RawValue>, RpcError> {
        if self.0.repeated[param as usize] {
            return Err(RpcError::invalid_params(format!(
                "params.{} stands twice",
                param.name()
            )));
        }
        Ok(self.0.values[param as usize])
    }

    pub(crate) fn optional_string(&self, param: Param) -> Result<Option<Cow<'a, str>>, RpcError> {
        self.get(param)?
            .map(|raw| json::string(raw).ok_or_else(|| must_be(param, "a string")))
            .transpose()
    }

    pub(crate) fn string(&self, param: Param) -> Result<Cow<'a, str>, RpcError> {
        self.optional_string(param)?
            .ok_or_else(|| must_be(param, "there, a string"))
    }

    pub(crate) fn optional_object(&self, param: Param) -> Result<Option<&'a RawValue>, RpcError> {
        let value = self.get(param)?;
        match value {
            Some(raw) if !is_object(raw) => Err(must_be(param, "an object")),
            _ => Ok(value),
        }
    }
}

pub(crate) fn must_be(param: Param, what: &str) -> RpcError {
    RpcError::invalid_params(format!("params.{} must be {what}", param.name()))
}

impl Request<'_> {
    /// The same without what belongs to rounds, for clients that know none.
    pub(crate) fn without_rounds(self) -> Self {
        match self {
            Self::ToolsCall {
                name, arguments, ..
            } => Self::ToolsCall {
                name,
                arguments,
                input_responses: None,
                request_state: None,
            },
            Self::ResourcesRead { uri, .. } => Self::ResourcesRead {
                uri,
                input_responses: None,
                request_state: None,
            },
            Self::PromptsGet {
                name, arguments, ..
            } => Self::PromptsGet {
                name,
                arguments,
                input_responses: None,
                request_state: None,
            },
            other => other,
        }
    }
}

impl<'a> Request<'a> {
    pub(crate) fn read(
        method: Method,
        params: &Params<'a>,
        capabilities: &ClientCapabilities,
    ) -> Result<Self, RpcError> {
        Ok(match method {
            Method::Discover => Self::Discover,
            Method::ToolsList => Self::ToolsList {
                cursor: params.optional_string(Param::Cursor)?,
            },
            Method::ToolsCall => Self::ToolsCall {
                name: params.string(Param::Name)?,
                arguments: params.optional_object(Param::Arguments)?,
                input_responses: input_responses(params)?,
                request_state: params.optional_string(Param::RequestState)?,
            },
            Method::ResourcesList => Self::ResourcesList {
                cursor: params.optional_string(Param::Cursor)?,
            },
            Method::TemplatesList => Self::TemplatesList {
                cursor: params.optional_string(Param::Cursor)?,
            },
            Method::ResourcesRead => Self::ResourcesRead {
                uri: params.string(Param::Uri)?,
                input_responses: input_responses(params)?,
                request_state: params.optional_string(Param::RequestState)?,
            },
            Method::PromptsList => Self::PromptsList {
                cursor: params.optional_string(Param::Cursor)?,
            },
            Method::PromptsGet => Self::PromptsGet {
                name: params.string(Param::Name)?,
                arguments: match params.optional_object(Param::Arguments)? {
                    Some(arguments) => texts("params.arguments", arguments)?,
                    None => Vec::new(),
                },
                input_responses: input_responses(params)?,
                request_state: params.optional_string(Param::RequestState)?,
            },
            Method::Complete => Self::Complete(Completing::read(params)?),
            Method::TasksGet => Self::TasksGet {
                task_id: params.string(Param::TaskId)?,
            },
            Method::TasksUpdate => Self::TasksUpdate {
                task_id: params.string(Param::TaskId)?,
                input_responses: match params.optional_object(Param::InputResponses)? {
                    None => return Err(must_be(Param::InputResponses, "there, an object")),
                    Some(raw) => json::members(raw.get()).map_err(|fault| {
                        RpcError::invalid_params(format!("params.inputResponses {fault}"))
                    })?,
                },
            },
            Method::TasksCancel => Self::TasksCancel {
                task_id: params.string(Param::TaskId)?,
            },
            Method::Listen => Self::Listen(Listen::read(params, capabilities)?),
        })
    }
}

fn input_responses<'a>(params: &Params<'a>) -> Result<Option<json::Members<'a>>, RpcError> {
    params
        .optional_object(Param::InputResponses)?
        .map(|raw| {
            json::members(raw.get())
                .map_err(|fault| RpcError::invalid_params(format!("params.inputResponses {fault}")))
        })
        .transpose()
}

/// An object whose values are all strings, as forms and prompts have them.
pub(crate) fn texts<'a>(path: &str, object: &'a RawValue) -> Result<Texts<'a>, RpcError> {
    let members = json::members(object.get())
        .map_err(|fault| RpcError::invalid_params(format!("{path} {fault}")))?;
    members
        .into_iter()
        .map(|(name, value)| match json::string(value) {
            Some(value) => Ok((name, value)),
            None => Err(RpcError::invalid_params(format!(
                "{path}.{} must be a string",
                shown(&name)
            ))),
        })
        .collect()
}

/// Picks members of an object in a parameter, each at most once.
pub(crate) fn members_of<'a, const N: usize>(
    path: &str,
    object: &'a RawValue,
    keys: &[&str; N],
) -> Result<[Option<&'a RawValue>; N], RpcError> {
    let fault = |what: &str| RpcError::invalid_params(format!("{path} {what}"));
    let picked = json::pick(object.get(), keys).map_err(|_| fault("is not accepted"))?;
    if picked.repeated.contains(&true) {
        return Err(fault("has a member twice"));
    }
    Ok(picked.values)
}

/// What a client tells. There is no reply to tell it that it made a mistake, so nothing here is one.
#[derive(Debug, PartialEq, Eq)]
pub enum Notification<'a> {
    /// A request need not be answered any more. Over HTTP closing the stream says this; on stdio this does.
    Cancelled {
        /// Which.
        request_id: RequestId,
        /// Why, for people.
        reason: Option<Cow<'a, str>>,
    },
    /// Anything else, and what is malformed.
    Other(Cow<'a, str>),
}

impl<'a> Notification<'a> {
    /// Reads what is told.
    #[must_use]
    pub fn read(envelope: NotificationEnvelope<'a>) -> Self {
        if envelope.method == "notifications/cancelled"
            && let Some(params) = envelope.params
            && let Ok(picked) = json::pick(params.get(), &["requestId", "reason"])
            && let [Some(id), reason] = picked.values
            && picked.repeated == [false; 2]
            && let Some(request_id) = RequestId::from_raw(id)
        {
            return Self::Cancelled {
                request_id,
                reason: reason.and_then(json::string),
            };
        }
        Self::Other(envelope.method)
    }
}
