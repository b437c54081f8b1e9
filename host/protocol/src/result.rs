//! Results of the methods that are about the server itself, and what all results share.

use crate::capability::TASKS_EXTENSION;
use crate::envelope::RequestId;
use crate::guest_meta::GuestMeta;
use crate::notification;
use crate::task::InputRequest;
use crate::version::Revision;
use crate::write::{Object, push_list, push_raw, push_string};

pub(crate) const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Who answers: goes into `_meta` of every result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    json: String,
}

impl ServerInfo {
    /// The server's name and version.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        let mut json = String::new();
        let mut object = Object::open(&mut json);
        object.text("name", name);
        object.text("version", version);
        object.close();
        Self { json }
    }

    /// Writes `_meta`: what the guest added, then who answers.
    pub(crate) fn write_meta(&self, result: &mut Object<'_>, guest: Option<&GuestMeta>) {
        let mut meta = result.object("_meta");
        if let Some(guest) = guest {
            guest.write_into(&mut meta);
        }
        self.write_into(&mut meta);
        meta.close();
    }

    fn write_into(&self, meta: &mut Object<'_>) {
        meta.ours(SERVER_INFO_KEY, &self.json);
    }
}

/// How long and for whom a result may be kept by a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHint {
    /// For how long, in milliseconds.
    pub ttl_ms: u64,
    /// For whom. It is no access control.
    pub scope: CacheScope,
}

/// For whom a result may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// Anybody.
    Public,
    /// The caller.
    Private,
}

impl CacheHint {
    pub(crate) fn write_into(self, result: &mut Object<'_>) {
        result.plain("ttlMs", self.ttl_ms);
        result.text(
            "cacheScope",
            match self.scope {
                CacheScope::Public => "public",
                CacheScope::Private => "private",
            },
        );
    }
}

/// Opens a result with its `resultType`.
pub(crate) fn open<'o>(out: &'o mut String, result_type: &str) -> Object<'o> {
    let mut object = Object::open(out);
    object.text("resultType", result_type);
    object
}

/// The result of `server/discover`. Tools, resources, prompts, completions, log messages and the tasks extension are
/// always there, and of every list it is told that it changed.
#[derive(Clone, Copy, Debug)]
pub struct Discover<'a> {
    /// How to use this server, for a model.
    pub instructions: Option<&'a str>,
    /// How long this may be kept.
    pub cache: CacheHint,
}

impl Discover<'_> {
    /// Writes the result.
    pub fn write_to(&self, out: &mut String, server: &ServerInfo) {
        let mut result = open(out, "complete");
        push_list(
            result.key("supportedVersions"),
            Revision::NAMES,
            push_string,
        );
        let mut capabilities = result.object("capabilities");
        self.write_capabilities(&mut capabilities);
        let mut extensions = capabilities.object("extensions");
        // Exactly `{}`: a known client refuses any other value.
        extensions.ours(TASKS_EXTENSION, "{}");
        extensions.close();
        capabilities.close();
        result.optional_text("instructions", self.instructions);
        self.cache.write_into(&mut result);
        server.write_meta(&mut result, None);
        result.close();
    }

    /// Writes the result of `initialize`, which says the same to a session of that revision.
    pub fn write_opened(&self, out: &mut String, revision: Revision, server: &ServerInfo) {
        let mut result = Object::open(out);
        result.text("protocolVersion", revision.as_str());
        let mut capabilities = result.object("capabilities");
        self.write_capabilities(&mut capabilities);
        if revision == Revision::R20251125 {
            capabilities.ours(
                "tasks",
                r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#,
            );
        }
        capabilities.close();
        result.ours("serverInfo", &server.json);
        result.optional_text("instructions", self.instructions);
        result.close();
    }

    /// What both eras call by the same names.
    fn write_capabilities(&self, capabilities: &mut Object<'_>) {
        capabilities.ours("tools", r#"{"listChanged":true}"#);
        capabilities.ours("resources", r#"{"subscribe":true,"listChanged":true}"#);
        capabilities.ours("prompts", r#"{"listChanged":true}"#);
        capabilities.ours("completions", "{}");
        // Sent on the stream of a call whose request, or session, names a level, and nowhere else.
        capabilities.ours("logging", "{}");
    }
}

/// What is listed in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
}

impl List {
    fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

/// Writes one page of a list. The descriptors come from [`crate::tool`], [`crate::resource`] and [`crate::prompt`], in
/// the order of their names.
pub fn write_page<'a>(
    out: &mut String,
    list: List,
    descriptors: impl IntoIterator<Item = &'a str>,
    next_cursor: Option<&str>,
    cache: CacheHint,
    server: &ServerInfo,
) {
    let mut result = open(out, "complete");
    push_list(result.key(list.member()), descriptors, push_raw);
    result.optional_text("nextCursor", next_cursor);
    cache.write_into(&mut result);
    server.write_meta(&mut result, None);
    result.close();
}

/// Writes the acknowledgement of `tasks/update` and `tasks/cancel`. It may hold nothing more: known clients refuse
/// other members.
pub fn write_acknowledgement(out: &mut String, server: &ServerInfo) {
    let mut result = open(out, "complete");
    server.write_meta(&mut result, None);
    result.close();
}

/// Writes what a call needs before it can go on (MCP 2026-07-28, multi round-trip requests): the client makes it again
/// with the answers and with `state`, which means nothing to it.
pub fn write_input_required(
    out: &mut String,
    questions: &[InputRequest<'_>],
    state: &str,
    server: &ServerInfo,
) {
    let mut result = open(out, "input_required");
    let mut requests = result.object("inputRequests");
    for question in questions {
        requests.raw(question.key, question.request);
    }
    requests.close();
    result.text("requestState", state);
    server.write_meta(&mut result, None);
    result.close();
}

/// Writes the result of `subscriptions/listen`, which tells that nothing more will be told.
pub fn write_listen_end(out: &mut String, subscription: &RequestId, server: &ServerInfo) {
    let mut result = open(out, "complete");
    let mut meta = result.object("_meta");
    notification::write_subscription_id(&mut meta, subscription);
    server.write_into(&mut meta);
    meta.close();
    result.close();
}
