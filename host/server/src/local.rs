//! Calls of whoever holds the server in their own process: no transport, and a person beside it.
//!
//! The same way as a client's call, so that a tool behaves here as it will when it is served.

use std::time::Duration;

use longshore_catalog::component::Component;
use longshore_catalog::schema::Compiled;
use longshore_protocol::capability::ClientCapabilities;
use longshore_protocol::error::RpcError;
use longshore_protocol::meta::ProgressToken;
use longshore_protocol::version::Revision;
use longshore_tasks::id::TaskId;
use longshore_tasks::task::{Progress, State};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::{Answered, Becomes, CallError, CallRequest};
use crate::dispatch::Identity;
use crate::follow::FollowError;
use crate::http::admin;
use crate::presence::Presence;
use crate::reason::RunReason;
use crate::run::aside::Wishes;
use crate::run::{Caller, Heard, Reply};
use crate::server::Server;
use crate::wire;

/// Knows tasks, since somebody watches, and nothing else.
const WATCHES: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
/// Can also be shown a form, or a page to visit.
const ANSWERS: &str =
    r#"{"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
/// How often it is looked whether runs are over.
const LOOK: Duration = Duration::from_millis(5);

/// Whether anybody can answer questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    /// Forms and pages can be put to them.
    Answers,
    /// Nobody does.
    Absent,
}

/// What a call has come to when it is answered for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is over: its `CallToolResult`.
    Ended(String),
    /// It goes on under that id.
    Task(TaskId),
}

/// A call as it stands.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The word of its status.
    pub status: &'static str,
    /// The tool's newest line about it.
    pub message: Option<String>,
    /// How much is done, and of how much.
    pub progress: Option<(f64, Option<f64>)>,
    /// What it asks now: key and request, as a client would get it.
    pub questions: Vec<(String, String)>,
    /// How it ended, if it did.
    pub end: Option<End>,
}

impl Standing {
    /// Whether it asks that now.
    #[must_use]
    pub fn asks(&self, key: &str) -> bool {
        self.questions.iter().any(|(open, _)| open == key)
    }
}

/// How far a call is that did not become a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// How much is done, and of how much.
    pub progress: (f64, Option<f64>),
    /// The tool's line about it.
    pub message: Option<String>,
}

/// What a notification of progress says.
fn step(text: &str) -> Option<Step> {
    let notification: Value = serde_json::from_str(text).ok()?;
    let params = &notification["params"];
    Some(Step {
        progress: (params["progress"].as_f64()?, params["total"].as_f64()),
        message: params["message"].as_str().map(str::to_owned),
    })
}

/// How a call ended.
#[derive(Clone, Debug)]
pub enum End {
    /// With this `CallToolResult`, which may be that of a tool that failed.
    Result(String),
    /// With an error.
    Failed(Fault),
    /// It was cancelled.
    Cancelled,
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The error's number on the wire.
    pub code: i32,
    /// A word of the closed list, where it has one.
    pub reason: Option<String>,
    /// What happened.
    pub message: String,
}

impl From<RpcError> for Fault {
    fn from(error: RpcError) -> Self {
        let data: Value = error
            .data
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        Self {
            code: error.code,
            reason: data["reason"].as_str().map(str::to_owned),
            message: error.message,
        }
    }
}

impl Server {
    /// Calls a tool. Letting go of the call before it is answered cancels it.
    ///
    /// # Errors
    ///
    /// If it was refused, or failed before it became a task.
    pub async fn call_locally(
        &self,
        person: Person,
        tool: &str,
        arguments: &RawValue,
        mut told: impl FnMut(Step),
    ) -> Result<Begun, Fault> {
        let capabilities_json = match person {
            Person::Answers => ANSWERS,
            Person::Absent => WATCHES,
        };
        let Identity { tenant, principal } = Identity::local();
        let caller = Caller {
            tenant,
            principal,
            revision: Revision::R20260728,
            capabilities: ClientCapabilities::parse(capabilities_json)?,
            capabilities_json: capabilities_json.to_owned(),
        };
        let request = CallRequest {
            tool,
            arguments: Some(arguments),
            deadline_ms: None,
            state: None,
            answers: &[],
            idempotency_key: None,
            traceparent: None,
            becomes: Becomes::Either,
            // Of a task, its row shows the same.
            wishes: Wishes {
                progress: ProgressToken::parse("0"),
                log_level: None,
            },
            headers: None,
            presence: &Presence::ALWAYS,
        };
        match self.call(caller, request).await {
            Ok(Answered::Result(result)) => Ok(Begun::Ended(result)),
            Ok(Answered::Task(task)) => Ok(Begun::Task(task.id)),
            Ok(Answered::Held(mut held)) => loop {
                match held.next().await {
                    Heard::Aside(text) => {
                        if let Some(step) = step(&text) {
                            told(step);
                        }
                    }
                    // It asks in its task only.
                    Heard::Inquiry(_) => {}
                    Heard::Reply(Some(Reply::Ended(ended))) => {
                        return Ok(Begun::Ended(ended.map_err(Fault::from)?));
                    }
                    // Whoever sees every row answers there, whatever way a client would be asked.
                    Heard::Reply(Some(Reply::Task(task) | Reply::Asks(task))) => {
                        return Ok(Begun::Task(task.id));
                    }
                    Heard::Reply(None) => {
                        let failure = wire::failure(
                            RunReason::HostFault,
                            "the call failed by a fault of ours",
                        );
                        return Err(wire::rpc_error(&failure).into());
                    }
                }
            },
            Ok(Answered::Joined(_) | Answered::Following(_)) => Err(RpcError::invalid_params(
                "the tools that follow tasks are for clients of a server: see `longshore tasks`",
            )
            .into()),
            Err(CallError::Refused(error)) => Err(error.into()),
            Err(CallError::NoRoom(reason)) => Err(wire::rpc_error(&wire::failure(
                reason,
                "there is no room for a run: raise the setting `running`",
            ))
            .into()),
        }
    }

    /// How a call stands.
    ///
    /// # Errors
    ///
    /// If it is not kept any more.
    pub async fn standing(&self, id: TaskId) -> Result<Standing, FollowError> {
        let task = self.task(id, None).await?;
        let questions = task
            .open_questions()
            .map(|question| (question.key.clone(), question.request.0.to_string()))
            .collect();
        let end = match &task.state {
            State::Working | State::InputRequired => None,
            State::Completed { result, .. } => Some(End::Result(result.0.to_string())),
            State::Failed { failure, .. } => Some(End::Failed(wire::rpc_error(failure).into())),
            State::Cancelled { .. } => Some(End::Cancelled),
        };
        Ok(Standing {
            status: task.state.name().as_str(),
            message: task.status.message,
            progress: task
                .status
                .progress
                .map(|Progress { done, total }| (done, total)),
            questions,
            end,
        })
    }

    /// What the run that ended last has printed and logged, as the admin API shows it.
    #[must_use]
    pub fn last_output(&self) -> Option<Value> {
        self.runs
            .last_output()
            .map(|output| admin::show_output(&output))
    }

    /// Waits until no run is left, at most so long.
    pub async fn settle(&self, within: Duration) {
        let until = tokio::time::Instant::now() + within;
        while self.runs.count() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A component as the admin API shows it, with the schemas of its tools, and what a run of it may use.
    #[must_use]
    pub fn inspection(&self, component: &Component) -> Value {
        let registry = self.registry();
        let mut document = registry
            .component(&component.name)
            .map_or(Value::Null, |entry| admin::describe(self, entry));
        let schema = |text: &str| serde_json::from_str(text).unwrap_or(Value::Null);
        let tools = document["tools"].as_array_mut().into_iter().flatten();
        for (shown, tool) in tools.zip(&component.tools) {
            shown["inputSchema"] = schema(&tool.input_schema);
            shown["outputSchema"] = tool.output_schema.as_deref().map_or(Value::Null, schema);
        }
        document["limits"] = document["policy"]["inForce"]["limits"].take();
        document
    }
}

/// What is wrong with the value of one field of a form, if anything.
///
/// # Errors
///
/// The problems on one line.
pub fn check_field(schema: &Value, value: &Value) -> Result<(), String> {
    // A schema that cannot be read was refused before its question was put.
    let Ok(schema) = Compiled::compile(&schema.to_string()) else {
        return Ok(());
    };
    schema.check(value).map_err(|problems| {
        let list: Vec<&str> = problems
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        list.join("; ")
    })
}
