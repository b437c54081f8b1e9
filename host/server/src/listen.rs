//! `subscriptions/listen`: one stream that tells what happens to tasks, lists and resources.

use std::borrow::Cow;
use std::collections::HashSet;

use longshore_protocol::envelope::RequestId;
use longshore_protocol::error::RpcError;
use longshore_protocol::listening::Listen;
use longshore_protocol::notification::{self, Honoured, TaskMembers};
use longshore_protocol::response;
use longshore_protocol::result::write_listen_end;
use longshore_tasks::id::TaskId;
use longshore_tasks::task::Task;
use tokio::time::Instant;

use crate::bus::{Full, Listener, Subscription, Told, Wanted};
use crate::dispatch::DispatchError;
use crate::follow::FollowError;
use crate::reason::{RequestReason, RunReason};
use crate::run::Caller;
use crate::server::Server;
use crate::wire;

/// What comes of a request to listen. Letting go of it ends it.
pub struct Listening {
    server: Server,
    id: RequestId,
    listener: Listener,
    next: Next,
}

/// What is to be told next.
enum Next {
    Acknowledgement(String),
    News,
    Nothing,
}

impl Server {
    /// Begins to listen. Tasks that are not there, or not the caller's, are left out without a word, and so are
    /// resources that nobody has.
    pub(crate) async fn listen(
        &self,
        caller: &Caller,
        id: &RequestId,
        filter: Listen<'_>,
    ) -> Result<Listening, DispatchError> {
        let Listen {
            lists,
            task_ids,
            resources,
        } = filter;
        let settings = &self.settings;
        at_most(
            "taskIds",
            task_ids.as_ref(),
            "listen_tasks",
            settings.listen_tasks,
        )?;
        let most = settings.listen_resources;
        at_most(
            "resourceSubscriptions",
            resources.as_ref(),
            "listen_resources",
            most,
        )?;
        let mut seen = HashSet::new();
        let wanted: Vec<TaskId> = task_ids
            .iter()
            .flatten()
            .filter_map(|id| id.parse().ok())
            .filter(|id| seen.insert(*id))
            .collect();
        let registry = self.registry();
        let mut seen = HashSet::new();
        let subscriptions: Vec<Subscription> = resources
            .iter()
            .flatten()
            .map(Cow::as_ref)
            .filter(|uri| seen.insert(*uri))
            .filter_map(|uri| {
                let holder = registry.holder_of(uri)?;
                Some(Subscription {
                    component: holder.component.name.to_string(),
                    uri: uri.into(),
                })
            })
            .collect();
        // Listening first and looking then, so that no change falls in between.
        let mut listener = self
            .bus
            .listen(
                &caller.principal,
                Wanted {
                    tasks: wanted.clone(),
                    lists,
                    resources: subscriptions.clone(),
                },
            )
            .map_err(no_listener)?;
        let mut accepted = Vec::new();
        for id in wanted {
            match self.task(id, Some(caller)).await {
                Ok(task) => {
                    listener.begin(id, task.version, self.members(&task));
                    accepted.push(id.to_string());
                }
                Err(FollowError::Unknown) => listener.leave(id),
                Err(error) => return Err(error.into()),
            }
        }
        let uris: Vec<String> = subscriptions
            .iter()
            .map(|resource| resource.uri.to_string())
            .collect();
        let honoured = Honoured {
            lists,
            resources: resources.is_some().then_some(uris.as_slice()),
            task_ids: task_ids.is_some().then_some(accepted.as_slice()),
        };
        Ok(Listening {
            server: self.clone(),
            id: id.clone(),
            listener,
            next: Next::Acknowledgement(notification::acknowledged(id, &honoured)),
        })
    }

    /// Tells those who listen that a task was changed, after the commit.
    pub(crate) fn tell_of(&self, task: &Task) {
        self.bus
            .task_changed(task.id, task.version, || self.members(task));
    }

    fn members(&self, task: &Task) -> TaskMembers {
        wire::task_members(task, self.settings.poll_interval_ms)
    }
}

/// What a client is told that cannot listen.
pub(crate) fn no_listener(full: Full) -> DispatchError {
    match full {
        Full::Node => DispatchError::NoRoom {
            reason: RunReason::Busy,
            message: "too many clients listen (listeners): try again later",
        },
        Full::Caller => DispatchError::NoRoom {
            reason: RunReason::QueueFull,
            message: "you listen too many times at once (listeners_each): end one of them first",
        },
    }
}

/// Each name is looked up when the listener begins, and is news that may wait for it.
fn at_most(
    member: &str,
    names: Option<&Vec<Cow<'_, str>>>,
    key: &str,
    most: usize,
) -> Result<(), DispatchError> {
    let Some(names) = names.filter(|names| names.len() > most) else {
        return Ok(());
    };
    let message = format!(
        "params.notifications.{member} has {} items; at most {most} are accepted ({key})",
        names.len()
    );
    Err(DispatchError::Refused(
        RpcError::invalid_params(message).with_data(RequestReason::TooMany.data()),
    ))
}

impl Listening {
    /// The next message, whole; none after the last.
    pub async fn next(&mut self) -> Option<String> {
        match std::mem::replace(&mut self.next, Next::News) {
            Next::Acknowledgement(text) => return Some(text),
            Next::News => {}
            Next::Nothing => {
                self.next = Next::Nothing;
                return None;
            }
        }
        Some(match self.listener.next().await {
            Told::Task(task) => notification::task_changed(&self.id, &task),
            Told::List(family) => notification::list_changed(&self.id, family),
            Told::Resource(uri) => notification::resource_updated(&self.id, &uri),
            Told::Closed => self.end(),
        })
    }

    /// The next message, or the last once that time has come; none after the last.
    pub(crate) async fn next_until(&mut self, time: Instant) -> Option<String> {
        if matches!(self.next, Next::Nothing) {
            return None;
        }
        tokio::select! {
            // However much there is to tell.
            biased;
            () = tokio::time::sleep_until(time) => Some(self.end()),
            told = self.next() => told,
        }
    }

    /// The last message.
    fn end(&mut self) -> String {
        self.next = Next::Nothing;
        response::result_with(&self.id, 0, |out| {
            write_listen_end(out, &self.id, &self.server.info);
        })
    }
}
