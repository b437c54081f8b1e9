//! Tasks on the wire: one flat object, in `CreateTaskResult`, in `tasks/get`, and in what is told of a change.

use crate::error::RpcError;
use crate::result::{self, ServerInfo};
use crate::timestamp;
use crate::write::Object;

/// A task as a client sees it.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it says about itself, for people.
    pub status_message: Option<&'a str>,
    /// When it was made, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// When anything of it that shows last changed.
    pub updated_at_ms: i64,
    /// How long from its making it can be read; none is for ever.
    pub ttl_ms: Option<u64>,
    /// How often to ask.
    pub poll_interval_ms: Option<u64>,
    /// Where it stands.
    pub state: TaskState<'a>,
}

/// Where a task stands, with what belongs to it.
#[derive(Clone, Copy, Debug)]
pub enum TaskState<'a> {
    /// It works.
    Working,
    /// It waits for answers.
    InputRequired(&'a [InputRequest<'a>]),
    /// It has a result, as [`crate::content::ToolResult::to_json`] wrote it.
    Completed(&'a str),
    /// It has none, and this is why.
    Failed(&'a RpcError),
    /// It was cancelled.
    Cancelled,
}

/// A question that waits for its answer.
#[derive(Clone, Copy, Debug)]
pub struct InputRequest<'a> {
    /// Its key, unique in the life of the task.
    pub key: &'a str,
    /// The request: one that [`crate::elicitation`] wrote, or read.
    pub request: &'a str,
}

impl TaskState<'_> {
    /// Its word on the wire.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired(_) => "input_required",
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn write_into(&self, object: &mut Object<'_>) {
        match self {
            Self::Working | Self::Cancelled => {}
            Self::InputRequired(questions) => {
                let mut requests = object.object("inputRequests");
                for question in *questions {
                    requests.raw(question.key, question.request);
                }
                requests.close();
            }
            Self::Completed(result) => object.ours("result", result),
            Self::Failed(error) => error.write_to(object.key("error")),
        }
    }

    /// How many bytes of text it splices.
    fn size(&self) -> usize {
        match self {
            Self::Working | Self::Cancelled | Self::Failed(_) => 0,
            Self::InputRequired(questions) => questions
                .iter()
                .map(|q| q.key.len() + q.request.len() + 8)
                .sum(),
            Self::Completed(result) => result.len(),
        }
    }
}

impl Task<'_> {
    /// About how many bytes the task takes as a result.
    #[must_use]
    pub fn size(&self) -> usize {
        const MEMBERS: usize = 384;
        MEMBERS + self.id.len() + self.status_message.map_or(0, str::len) + self.state.size()
    }

    /// Writes the result of a call that became a task. It shows the status, never what belongs to it: the client
    /// asks for that with `tasks/get`.
    pub fn write_created(&self, out: &mut String, server: &ServerInfo) {
        let mut result = result::open(out, "task");
        self.write_members(&mut result);
        server.write_meta(&mut result, None);
        result.close();
    }

    /// Writes the result of `tasks/get`.
    pub fn write_detailed(&self, out: &mut String, server: &ServerInfo) {
        let mut result = result::open(out, "complete");
        self.write_detailed_members(&mut result);
        server.write_meta(&mut result, None);
        result.close();
    }

    /// All that `tasks/get` shows of the task itself.
    pub(crate) fn write_detailed_members(&self, object: &mut Object<'_>) {
        self.write_members(object);
        self.state.write_into(object);
    }

    fn write_members(&self, object: &mut Object<'_>) {
        object.text("taskId", self.id);
        object.text("status", self.state.status());
        object.optional_text("statusMessage", self.status_message);
        object.text("createdAt", &timestamp::iso8601(self.created_at_ms));
        object.text("lastUpdatedAt", &timestamp::iso8601(self.updated_at_ms));
        match self.ttl_ms {
            Some(ttl) => object.plain("ttlMs", ttl),
            // Absent is a fault; null is a value.
            None => object.ours("ttlMs", "null"),
        }
        if let Some(interval) = self.poll_interval_ms {
            object.plain("pollIntervalMs", interval);
        }
    }
}
