//! `subscriptions/listen`: what somebody wants to be told of.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::capability::{Capability, ClientCapabilities};
use crate::error::RpcError;
use crate::request::{Param, Params, members_of, must_be};

/// What a request to listen asks for.
#[derive(Debug)]
pub struct Listen<'a> {
    /// Which lists changed.
    pub lists: ListChanges,
    /// What happens to these tasks.
    pub task_ids: Option<Vec<Cow<'a, str>>>,
    /// That the contents of these resources changed.
    pub resources: Option<Vec<Cow<'a, str>>>,
}

/// Lists whose changes somebody is told of, or wants to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListChanges {
    /// The tools.
    pub tools: bool,
    /// The prompts.
    pub prompts: bool,
    /// The resources and their templates.
    pub resources: bool,
}

impl<'a> Listen<'a> {
    pub(crate) fn read(
        params: &Params<'a>,
        capabilities: &ClientCapabilities,
    ) -> Result<Self, RpcError> {
        const KEYS: [&str; 5] = [
            "toolsListChanged",
            "promptsListChanged",
            "resourcesListChanged",
            "resourceSubscriptions",
            "taskIds",
        ];
        let filter = params
            .optional_object(Param::Notifications)?
            .ok_or_else(|| must_be(Param::Notifications, "there, an object"))?;
        let fault = |what: String| {
            RpcError::invalid_params(format!("params.notifications must have {what}"))
        };
        let [tools, prompts, resources, subscriptions, task_ids] =
            members_of("params.notifications", filter, &KEYS)?;
        if task_ids.is_some() {
            // MCP 2026-07-28, Tasks, task status notifications.
            capabilities.require(&[Capability::Tasks])?;
        }
        let is_wanted = |key: &str, raw: Option<&RawValue>| match raw.map(RawValue::get) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(fault(format!("a boolean in `{key}`"))),
        };
        let strings = |key: &str, raw: Option<&'a RawValue>| {
            raw.map(|raw| {
                serde_json::from_str::<Vec<Cow<'a, str>>>(raw.get())
                    .map_err(|_| fault(format!("a list of strings in `{key}`")))
            })
            .transpose()
        };
        Ok(Self {
            lists: ListChanges {
                tools: is_wanted(KEYS[0], tools)?,
                prompts: is_wanted(KEYS[1], prompts)?,
                resources: is_wanted(KEYS[2], resources)?,
            },
            resources: strings(KEYS[3], subscriptions)?,
            task_ids: strings(KEYS[4], task_ids)?,
        })
    }
}
