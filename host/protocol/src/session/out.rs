//! What a session is told otherwise: results without what is newer, and requests to its client.

use serde_json::Value;

use crate::elicitation::{self, InputKind};
use crate::envelope::RequestId;
use crate::json::{self, is_object};
use crate::notification::Family;
use crate::result::SERVER_INFO_KEY;
use crate::version::Revision;
use crate::write::Object;

/// The key under which a message says which task it belongs to.
pub(super) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Members of results that only 2026-07-28 knows.
const NEWER: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// A result as a session is told it, from the text for 2026-07-28 that this crate wrote. What has no place in it is
/// left out: the kind of the result, hints for caches, who answers, and data that is no object.
#[must_use]
pub fn plain(result: &str) -> String {
    written(result, None)
}

/// The same, with the task that it is of.
pub(super) fn written(result: &str, task: Option<&str>) -> String {
    let Ok(members) = json::members(result) else {
        return result.to_owned();
    };
    let mut out = String::with_capacity(result.len());
    let mut object = Object::open(&mut out);
    let mut meta = None;
    for (key, value) in members {
        match key.as_ref() {
            "_meta" => meta = Some(value),
            // Until 2025-11-25 it is an object; the text beside it says the same.
            "structuredContent" if !is_object(value) => {}
            key if NEWER.contains(&key) => {}
            key => object.ours(key, value.get()),
        }
    }
    let meta = meta
        .and_then(|meta| json::members(meta.get()).ok())
        .unwrap_or_default();
    let mut kept = meta
        .iter()
        .filter(|(key, _)| key != SERVER_INFO_KEY)
        .peekable();
    if kept.peek().is_some() || task.is_some() {
        let mut meta = object.object("_meta");
        for (key, value) in kept {
            meta.ours(key, value.get());
        }
        if let Some(task) = task {
            write_related(&mut meta, task);
        }
        meta.close();
    }
    object.close();
    out
}

fn write_related(meta: &mut Object<'_>, task: &str) {
    let mut related = meta.object(RELATED_TASK);
    related.text("taskId", task);
    related.close();
}

/// A question to the client of a session, and what it is put under.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The number of the request, new in its session.
    pub id: u64,
    /// The question as it was written for 2026-07-28.
    pub request: &'a str,
    /// Names a page to visit, so that its end can be told.
    pub elicitation_id: &'a str,
    /// The task that asks, if it is one.
    pub task: Option<&'a str>,
}

impl Question<'_> {
    /// The whole request, one JSON text.
    #[must_use]
    pub fn to_json(&self, revision: Revision) -> String {
        let mut out = String::with_capacity(self.request.len() + 128);
        let mut request = Object::open(&mut out);
        request.text("jsonrpc", "2.0");
        request.plain("id", self.id);
        let kind = elicitation::read_question(self.request)
            .ok()
            .map(|question| question.kind);
        for (key, value) in json::members(self.request).unwrap_or_default() {
            match key.as_ref() {
                "method" => request.ours("method", value.get()),
                "params" => {
                    let mut params = request.object("params");
                    self.write_params(&mut params, value.get(), kind, revision);
                    params.close();
                }
                _ => {}
            }
        }
        request.close();
        out
    }

    fn write_params(
        &self,
        params: &mut Object<'_>,
        text: &str,
        kind: Option<InputKind>,
        revision: Revision,
    ) {
        let mut meta = Vec::new();
        for (key, value) in json::members(text).unwrap_or_default() {
            match (key.as_ref(), revision) {
                ("_meta", _) => meta = json::members(value.get()).unwrap_or_default(),
                // There is no other mode than the form, and no word for it.
                ("mode", Revision::R20250618) => {}
                ("requestedSchema", Revision::R20250618) => {
                    params.raw("requestedSchema", &older_schema(value.get()));
                }
                (key, _) => params.raw(key, value.get()),
            }
        }
        if kind == Some(InputKind::Url) {
            params.text("elicitationId", self.elicitation_id);
        }
        if meta.is_empty() && self.task.is_none() {
            return;
        }
        let mut written = params.object("_meta");
        for (key, value) in meta {
            written.raw(&key, value.get());
        }
        if let Some(task) = self.task {
            write_related(&mut written, task);
        }
        written.close();
    }
}

/// The schema of a form as 2025-06-18 has it: choices with titles are an `enum` with `enumNames`.
fn older_schema(schema: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(schema) else {
        return schema.to_owned();
    };
    let fields = value.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        let Some(field) = field.as_object_mut() else {
            continue;
        };
        let Some(Value::Array(choices)) = field.remove("oneOf") else {
            continue;
        };
        let of = |key: &str| -> Vec<Value> {
            choices.iter().map(|choice| choice[key].clone()).collect()
        };
        field.insert("enum".to_owned(), Value::Array(of("const")));
        field.insert("enumNames".to_owned(), Value::Array(of("title")));
    }
    value.to_string()
}

/// `notifications/cancelled`, one JSON text: that request to the client need not be answered any more.
#[must_use]
pub fn cancelled(id: u64, reason: &str) -> String {
    notification("notifications/cancelled", |params| {
        params.plain("requestId", id);
        params.text("reason", reason);
    })
}

/// `notifications/…/list_changed` of that list, one JSON text.
#[must_use]
pub fn list_changed(family: Family) -> String {
    notification(family.method(), |_| {})
}

/// `notifications/resources/updated`, one JSON text.
#[must_use]
pub fn resource_updated(uri: &str) -> String {
    notification("notifications/resources/updated", |params| {
        params.text("uri", uri);
    })
}

fn notification(method: &str, write: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.text("jsonrpc", "2.0");
    object.text("method", method);
    let mut params = object.object("params");
    write(&mut params);
    params.close();
    object.close();
    out
}

/// The result of `ping` and `logging/setLevel`: nothing at all, since known clients refuse more.
pub const NOTHING: &str = "{}";

/// The number of the request that a response answers, if it is one that this server gives.
#[must_use]
pub fn number_of(id: &RequestId) -> Option<u64> {
    id.as_json().parse().ok()
}
