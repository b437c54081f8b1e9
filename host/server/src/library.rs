//! `resources/read`, `prompts/get` and `completion/complete`, from a name to a run. A run of theirs is one like a
//! tool's, which never becomes a task.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use longshore_catalog::library::Prompt;
use longshore_catalog::registry::{Entry, Kind, Place};
use longshore_catalog::uri::Pattern;
use longshore_protocol::completing::{Completing, Reference, Texts};
use longshore_protocol::error::RpcError;
use longshore_protocol::prompt::Completion;
use longshore_protocol::resource;
use longshore_sandbox::target::{self, Target};
use longshore_tasks::artifacts::{Artifact, ArtifactId};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::again::{SameCall, follow_error};
use crate::call::{Answered, Beginning, CallError};
use crate::clock;
use crate::loaded::Loaded;
use crate::presence::Presence;
use crate::run::artifacts;
use crate::run::aside::Wishes;
use crate::run::target::{NO_TOOLS_MODE, kept};
use crate::run::{Caller, NewRun, Start, Turns};
use crate::server::Server;

/// How a client wants to be answered.
pub(crate) struct Manner<'a> {
    /// The longest it wants the run to live, in milliseconds.
    pub(crate) deadline_ms: Option<u64>,
    /// What the client got instead of a result when it asked for the same before.
    pub(crate) state: Option<&'a str>,
    /// Its answers to what was asked then.
    pub(crate) answers: &'a [(Cow<'a, str>, &'a RawValue)],
    /// Where the request belongs in its trace.
    pub(crate) traceparent: Option<&'a str>,
    /// What it wants to be told while it waits.
    pub(crate) wishes: Wishes,
    /// Whether it is still there.
    pub(crate) presence: &'a Presence,
}

impl Server {
    /// Reads a resource from the component that lists it, or whose template it fits.
    pub(crate) async fn read_resource(
        &self,
        caller: Caller,
        uri: &str,
        manner: Manner<'_>,
    ) -> Result<Answered, CallError> {
        let revision = caller.revision;
        let missing = || CallError::Refused(resource::not_found(revision, uri));
        // Nothing longer is listed, or fits.
        if uri.len() > resource::MAX_URI_BYTES {
            return Err(missing());
        }
        // Before any component is asked: none can give out others for these.
        if let Some(named) = artifacts::named(uri) {
            let artifact = match named {
                Some(id) => self.artifact(&caller, id).await?,
                None => None,
            };
            let artifact = artifact.ok_or_else(missing)?;
            return Ok(Answered::Result(artifacts::read_result(
                &artifact, &self.info,
            )));
        }
        let target = Target::Resource {
            uri: uri.to_owned(),
        };
        if let Some(state) = manner.state {
            return self.go_on_reading(caller, &target, state, manner).await;
        }
        let registry = self
            .registry_where(manner.presence, |registry| {
                registry.holder_of(uri).is_some()
            })
            .await?;
        let entry = registry.holder_of(uri).ok_or_else(missing)?;
        let turns = &entry.payload.library.reads;
        self.start_untasked(caller, entry, target, turns, manner)
            .await
    }

    /// What a call of that caller left, as long as it is kept.
    async fn artifact(
        &self,
        caller: &Caller,
        id: ArtifactId,
    ) -> Result<Option<Artifact>, CallError> {
        self.artifacts
            .artifact(id, &caller.tenant, &caller.principal, clock::now())
            .await
            .map_err(|error| follow_error(error.into()))
    }

    /// Fills in a prompt.
    pub(crate) async fn get_prompt(
        &self,
        caller: Caller,
        name: &str,
        arguments: Texts<'_>,
        manner: Manner<'_>,
    ) -> Result<Answered, CallError> {
        let given = object(&arguments);
        let target = Target::Prompt {
            name: name.to_owned(),
            arguments: given.to_string(),
        };
        if let Some(state) = manner.state {
            return self.go_on_reading(caller, &target, state, manner).await;
        }
        let registry = self
            .registry_where(manner.presence, |registry| {
                registry.place(Kind::Prompt, name).is_some()
            })
            .await?;
        let Some(place) = registry.place(Kind::Prompt, name) else {
            return Err(refused(&format!(
                "unknown prompt {:?}: prompts/list names the prompts there are",
                cut(name)
            )));
        };
        let lacks = |name: &str| given.get(name).is_none();
        let missing: Vec<&str> = prompt(&place)
            .arguments
            .iter()
            .filter(|argument| argument.required && lacks(&argument.name))
            .map(|argument| argument.name.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(refused(&format!(
                "prompt {name:?} needs the arguments {}",
                missing.join(", ")
            )));
        }
        let turns = &place.entry.payload.library.fills;
        self.start_untasked(caller, place.entry, target, turns, manner)
            .await
    }

    /// Proposes how to go on with an argument of a prompt, or a variable of a template. A component that makes no
    /// proposals has none to make.
    pub(crate) async fn complete(
        &self,
        caller: Caller,
        completing: Completing<'_>,
        manner: Manner<'_>,
    ) -> Result<Answered, CallError> {
        let Completing {
            of,
            argument,
            value,
            context,
        } = completing;
        let (kind, name) = match &of {
            Reference::Prompt(name) => (Kind::Prompt, name.as_ref()),
            Reference::Template(text) => (Kind::Template, text.as_ref()),
        };
        let registry = self
            .registry_where(manner.presence, |registry| {
                registry.place(kind, name).is_some()
            })
            .await?;
        let Some(place) = registry.place(kind, name) else {
            return Err(refused(&format!("unknown {kind} {:?}", cut(name))));
        };
        let is_known = match kind {
            Kind::Prompt => {
                let mut known = prompt(&place).arguments.iter();
                known.any(|known| known.name == argument)
            }
            _ => Pattern::parse(name).is_ok_and(|pattern| pattern.has_variable(&argument)),
        };
        if !is_known {
            return Err(refused(&format!(
                "{kind} {:?} has no argument {:?}",
                cut(name),
                cut(&argument)
            )));
        }
        let entry = place.entry;
        if !entry.component.library.completes {
            let nothing = Completion {
                values: &[],
                total: Some(0),
                has_more: false,
            };
            return Ok(Answered::Result(nothing.to_json(&self.info)));
        }
        let mut whole = Map::new();
        if !context.is_empty() {
            whole.insert("arguments".to_owned(), object(&context));
        }
        let target = Target::Completion {
            of: match of {
                Reference::Prompt(name) => target::Reference::Prompt(name.into_owned()),
                Reference::Template(text) => target::Reference::Template(text.into_owned()),
            },
            argument: argument.into_owned(),
            value: value.into_owned(),
            context: Value::Object(whole).to_string(),
        };
        let turns = &entry.payload.library.completions;
        self.start_untasked(caller, entry, target, turns, manner)
            .await
    }

    /// Goes on with a request whose client was asked something.
    async fn go_on_reading(
        &self,
        caller: Caller,
        target: &Target,
        state: &str,
        manner: Manner<'_>,
    ) -> Result<Answered, CallError> {
        let (method, params) = kept(target);
        let params = serde_json::from_str(&params).unwrap_or_default();
        let call = SameCall {
            tool: &method,
            arguments: &params,
        };
        let joined = self
            .join_round(&caller, &call, state, manner.answers)
            .await?;
        Ok(self.joined(caller, joined, manner.wishes, NO_TOOLS_MODE))
    }

    /// Starts a run of what was found.
    async fn start_untasked(
        &self,
        caller: Caller,
        entry: &Arc<Entry<Loaded>>,
        target: Target,
        turns: &Turns,
        manner: Manner<'_>,
    ) -> Result<Answered, CallError> {
        let Manner {
            deadline_ms,
            state: _,
            answers,
            traceparent,
            wishes,
            presence,
        } = manner;
        let beginning = Beginning {
            entry,
            target,
            task_mode: NO_TOOLS_MODE,
            output_schema: None,
            deadline_ms,
            retention_ms: None,
            answers,
            // Nothing here is done to anybody, so that it may as well be done twice.
            idempotency_key: None,
            traceparent,
        };
        let (call, prepared, place) = self.admit(caller, beginning, presence).await?;
        Ok(Answered::Held(self.start_run(NewRun {
            call,
            prepared,
            place,
            turns: turns.clone(),
            alone: None,
            start: Start::Held(wishes),
        })))
    }
}

fn prompt<'r>(place: &Place<'r, Loaded>) -> &'r Prompt {
    &place.entry.component.library.prompts[place.index]
}

fn refused(message: &str) -> CallError {
    CallError::Refused(RpcError::invalid_params(message))
}

/// A name of somebody else's in a message.
fn cut(name: &str) -> String {
    const MOST: usize = 128;
    let mut shown: String = name.chars().take(MOST).collect();
    if shown.len() < name.len() {
        let _infallible = write!(shown, "…");
    }
    shown
}

fn object(members: &Texts<'_>) -> Value {
    let members = members
        .iter()
        .map(|(name, value)| (name.to_string(), Value::String(value.to_string())));
    Value::Object(members.collect())
}
