//! What is told without an answer to each: how far a call is and what it logs, and what somebody listens to.

use crate::envelope::RequestId;
use crate::listening::ListChanges;
use crate::meta::{LogLevel, ProgressToken};
use crate::task::Task;
use crate::write::{Object, push_list, push_plain, push_string};

/// Names the request to listen, in everything that is told because of it.
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// How far a call is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The token of the request that wants to know.
    pub token: &'a ProgressToken,
    /// Units done; larger each time. Not finite is a fault of whoever made it.
    pub done: f64,
    /// Units in all, if known; finite.
    pub total: Option<f64>,
    /// A word on it, for people.
    pub message: Option<&'a str>,
}

impl Progress<'_> {
    /// `notifications/progress`, one JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        notification("notifications/progress", |params| {
            params.ours("progressToken", self.token.as_json());
            push_number(params.key("progress"), self.done);
            if let Some(total) = self.total {
                push_number(params.key("total"), total);
            }
            params.optional_text("message", self.message);
        })
    }
}

/// `notifications/message`, one JSON text.
#[must_use]
pub fn log_message(level: LogLevel, logger: Option<&str>, message: &str) -> String {
    notification("notifications/message", |params| {
        params.text("level", level.as_str());
        params.optional_text("logger", logger);
        params.text("data", message);
    })
}

/// What a request to listen is told of, at most what it asked for.
#[derive(Clone, Copy, Debug)]
pub struct Honoured<'a> {
    /// That these lists changed.
    pub lists: ListChanges,
    /// That the contents of these resources changed, if it asked for any.
    pub resources: Option<&'a [String]>,
    /// What happens to these tasks, if it asked for any.
    pub task_ids: Option<&'a [String]>,
}

/// `notifications/subscriptions/acknowledged`, one JSON text: the first thing that a listener is told.
#[must_use]
pub fn acknowledged(subscription: &RequestId, honoured: &Honoured<'_>) -> String {
    notification("notifications/subscriptions/acknowledged", |params| {
        write_subscription(params, subscription);
        let mut kinds = params.object("notifications");
        let ListChanges {
            tools,
            prompts,
            resources,
        } = honoured.lists;
        for (key, is_told) in [
            ("toolsListChanged", tools),
            ("promptsListChanged", prompts),
            ("resourcesListChanged", resources),
        ] {
            if is_told {
                kinds.plain(key, true);
            }
        }
        for (key, names) in [
            ("resourceSubscriptions", honoured.resources),
            ("taskIds", honoured.task_ids),
        ] {
            if let Some(names) = names {
                push_list(kinds.key(key), names, |out, name| push_string(out, name));
            }
        }
        kinds.close();
    })
}

/// `notifications/…/list_changed` of that list, one JSON text.
#[must_use]
pub fn list_changed(subscription: &RequestId, family: Family) -> String {
    notification(family.method(), |params| {
        write_subscription(params, subscription);
    })
}

/// Whose list it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The tools'.
    Tools,
    /// The prompts'.
    Prompts,
    /// That of resources, and that of their templates: one notice tells of both.
    Resources,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// How it is called on the wire that its list changed.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
        }
    }
}

/// `notifications/resources/updated`, one JSON text.
#[must_use]
pub fn resource_updated(subscription: &RequestId, uri: &str) -> String {
    notification("notifications/resources/updated", |params| {
        write_subscription(params, subscription);
        params.text("uri", uri);
    })
}

/// What `notifications/tasks` says of a task: written once, and told to each who listens by [`task_changed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskMembers(Box<str>);

impl TaskMembers {
    /// Writes all that `tasks/get` shows of the task itself.
    #[must_use]
    pub fn of(task: &Task<'_>) -> Self {
        let mut out = String::with_capacity(task.size());
        let mut object = Object::open(&mut out);
        task.write_detailed_members(&mut object);
        // Without the braces, so that it can be put beside other members.
        out.remove(0);
        Self(out.into())
    }
}

/// `notifications/tasks`, one JSON text.
#[must_use]
pub fn task_changed(subscription: &RequestId, task: &TaskMembers) -> String {
    const AROUND: usize = 160;
    let capacity = AROUND + subscription.as_json().len() + task.0.len();
    notification_of(capacity, "notifications/tasks", |params| {
        write_subscription(params, subscription);
        params.splice(&task.0);
    })
}

/// The member `_meta` that says which request to listen this belongs to.
fn write_subscription(params: &mut Object<'_>, subscription: &RequestId) {
    let mut meta = params.object("_meta");
    write_subscription_id(&mut meta, subscription);
    meta.close();
}

pub(crate) fn write_subscription_id(meta: &mut Object<'_>, subscription: &RequestId) {
    meta.ours(SUBSCRIPTION_KEY, subscription.as_json());
}

/// Writes a finite number; without an exponent some would have hundreds of digits.
fn push_number(out: &mut String, number: f64) {
    let plain = number == 0.0 || (1e-5..1e15).contains(&number.abs());
    if plain {
        push_plain(out, number);
    } else {
        push_plain(out, format_args!("{number:e}"));
    }
}

fn notification(method: &str, write: impl FnOnce(&mut Object<'_>)) -> String {
    notification_of(0, method, write)
}

fn notification_of(capacity: usize, method: &str, write: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = String::with_capacity(capacity);
    let mut object = Object::open(&mut out);
    object.text("jsonrpc", "2.0");
    object.text("method", method);
    let mut params = object.object("params");
    write(&mut params);
    params.close();
    object.close();
    out
}
