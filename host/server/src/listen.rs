//! `subscriptions/listen`: one stream that tells what happens to tasks and tools.

use std::borrow::Cow;
use std::collections::HashSet;

use longshore_protocol::envelope::RequestId;
use longshore_protocol::error::RpcError;
use longshore_protocol::notification::{self, Honoured, TaskMembers};
use longshore_protocol::response;
use longshore_protocol::result::write_listen_end;
use longshore_tasks::id::TaskId;
use longshore_tasks::task::Task;

use crate::bus::{Full, Listener, Told};
use crate::dispatch::DispatchError;
use crate::follow::FollowError;
use crate::reason::{RequestReason, RunReason};
use crate::run::Caller;
use crate::server::Server;
use crate::wire;

/// What a client wants to hear of.
pub(crate) struct Filter<'a> {
    pub(crate) tools_list_changed: bool,
    pub(crate) task_ids: Option<Vec<Cow<'a, str>>>,
}

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
    /// Begins to listen. Tasks that are not there, or not the caller's, are left out without a word.
    pub(crate) async fn listen(
        &self,
        caller: &Caller,
        id: &RequestId,
        filter: Filter<'_>,
    ) -> Result<Listening, DispatchError> {
        let Filter {
            tools_list_changed,
            task_ids,
        } = filter;
        let most = self.settings.listen_tasks;
        if let Some(ids) = task_ids.as_ref().filter(|ids| ids.len() > most) {
            return Err(DispatchError::Refused(RpcError::invalid_params(format!(
                "params.notifications.taskIds has {} ids; at most {most} are accepted (listen_tasks)",
                ids.len()
            ))
            .with_data(RequestReason::TooMany.data())));
        }
        let mut seen = HashSet::new();
        let wanted: Vec<TaskId> = task_ids
            .iter()
            .flatten()
            .filter_map(|id| id.parse().ok())
            .filter(|id| seen.insert(*id))
            .collect();
        // Listening first and looking then, so that no change falls in between.
        let mut listener = self
            .bus
            .listen(&caller.principal, wanted.clone(), tools_list_changed)
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
        let honoured = Honoured {
            tools_list_changed,
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
            Told::Tools => notification::tools_list_changed(&self.id),
            Told::Closed => {
                self.next = Next::Nothing;
                response::result_with(&self.id, 0, |out| {
                    write_listen_end(out, &self.id, &self.server.info);
                })
            }
        })
    }
}
