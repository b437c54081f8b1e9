//! What a client says it can do, on each request anew.

use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::json::{self, is_object};
use crate::version::Revision;
use crate::write::Object;

/// The id of the tasks extension, in the capabilities of both sides.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The longest declaration accepted, in bytes. It is kept with every task that its request starts; a real one has a
/// few hundred.
pub const MAX_CAPABILITIES_BYTES: usize = 16 * 1024;

/// One thing that a request may need of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// The tasks extension.
    Tasks,
    /// Elicitation in either mode.
    Elicitation,
    /// Elicitation by form.
    ElicitationForm,
    /// Elicitation by URL.
    ElicitationUrl,
    /// Sampling.
    Sampling,
    /// Sampling with tools.
    SamplingTools,
    /// Sampling with the context of servers.
    SamplingContext,
    /// Roots.
    Roots,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Self; 8] = [
        Self::Tasks,
        Self::Elicitation,
        Self::ElicitationForm,
        Self::ElicitationUrl,
        Self::Sampling,
        Self::SamplingTools,
        Self::SamplingContext,
        Self::Roots,
    ];

    /// Its name for people, and in a tool's `requires`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Tasks => "tasks",
            Self::Elicitation => "elicitation",
            Self::ElicitationForm => "elicitation.form",
            Self::ElicitationUrl => "elicitation.url",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling.tools",
            Self::SamplingContext => "sampling.context",
            Self::Roots => "roots",
        }
    }

    /// The capability of that name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|capability| capability.word() == word)
    }
}

/// The declared capabilities that matter here. Others, and extensions unknown here, are nobody's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    /// Forms. An empty `elicitation` means this and nothing else.
    pub elicitation_form: bool,
    /// Pages to visit.
    pub elicitation_url: bool,
    /// Requests to the client's model.
    pub sampling: bool,
    /// Such requests with tools.
    pub sampling_tools: bool,
    /// Such requests with the context of servers.
    pub sampling_context: bool,
    /// The client's folders.
    pub roots: bool,
    /// The tasks extension of 2026-07-28. The experimental `tasks` capability of 2025-11-25 is not it.
    pub tasks: bool,
}

impl ClientCapabilities {
    /// Reads a `ClientCapabilities` object, from a request or from where it was kept. What is declared must be an
    /// object; a fault is the client's, -32602.
    pub fn parse(text: &str) -> Result<Self, RpcError> {
        if text.len() > MAX_CAPABILITIES_BYTES {
            return Err(RpcError::invalid_params(format!(
                "clientCapabilities has {} bytes; at most {MAX_CAPABILITIES_BYTES} are accepted",
                text.len()
            )));
        }
        let [elicitation, sampling, roots, extensions] = declared(
            text,
            "clientCapabilities",
            ["elicitation", "sampling", "roots", "extensions"],
        )?;
        let mut capabilities = Self {
            roots: roots.is_some(),
            sampling: sampling.is_some(),
            ..Self::default()
        };
        if let Some(elicitation) = elicitation {
            let [form, url] = declared(
                elicitation.get(),
                "clientCapabilities.elicitation",
                ["form", "url"],
            )?;
            capabilities.elicitation_url = url.is_some();
            capabilities.elicitation_form = form.is_some() || url.is_none();
        }
        if let Some(sampling) = sampling {
            let [tools, context] = declared(
                sampling.get(),
                "clientCapabilities.sampling",
                ["tools", "context"],
            )?;
            capabilities.sampling_tools = tools.is_some();
            capabilities.sampling_context = context.is_some();
        }
        if let Some(extensions) = extensions {
            let [tasks] = declared(
                extensions.get(),
                "clientCapabilities.extensions",
                [TASKS_EXTENSION],
            )?;
            capabilities.tasks = tasks.is_some();
        }
        Ok(capabilities)
    }

    /// Of these, what a session of that revision can make use of, whatever its client declared. The tasks extension is
    /// never part of one.
    #[must_use]
    pub fn in_session(self, revision: Revision) -> Self {
        let is_latest = revision == Revision::R20251125;
        Self {
            tasks: false,
            // MCP 2025-06-18 knows forms only, and an `elicitation` without words for modes.
            elicitation_form: self.elicitation_form || (self.elicitation_url && !is_latest),
            elicitation_url: self.elicitation_url && is_latest,
            sampling_tools: self.sampling_tools && is_latest,
            // There the context of servers needed no word of its own.
            sampling_context: self.sampling_context || (self.sampling && !is_latest),
            ..self
        }
    }

    /// As a `ClientCapabilities` object, for keeping.
    #[must_use]
    pub fn to_json(&self) -> String {
        let declared: Vec<Capability> = Capability::ALL
            .into_iter()
            .filter(|capability| self.has(*capability))
            .collect();
        let mut out = String::new();
        write_required(&mut out, &declared);
        out
    }

    /// Whether this was declared.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Tasks => self.tasks,
            Capability::Elicitation => self.elicitation_form || self.elicitation_url,
            Capability::ElicitationForm => self.elicitation_form,
            Capability::ElicitationUrl => self.elicitation_url,
            Capability::Sampling => self.sampling,
            Capability::SamplingTools => self.sampling_tools,
            Capability::SamplingContext => self.sampling_context,
            Capability::Roots => self.roots,
        }
    }

    /// Refuses with -32021, naming what of `required` was not declared.
    pub fn require(&self, required: &[Capability]) -> Result<(), RpcError> {
        let missing: Vec<Capability> = required
            .iter()
            .copied()
            .filter(|need| !self.has(*need))
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(RpcError::missing_capability(&missing))
        }
    }
}

/// Picks members that, where they are, must be objects.
fn declared<'a, const N: usize>(
    text: &'a str,
    path: &str,
    keys: [&str; N],
) -> Result<[Option<&'a RawValue>; N], RpcError> {
    let picked = json::pick(text, &keys)
        .map_err(|_| RpcError::invalid_params(format!("{path} must be an object")))?;
    for (index, key) in keys.iter().enumerate() {
        if picked.repeated[index] {
            return Err(RpcError::invalid_params(format!(
                "{path}.{key} stands twice"
            )));
        }
        if picked.values[index].is_some_and(|value| !is_object(value)) {
            return Err(RpcError::invalid_params(format!(
                "{path}.{key} must be an object"
            )));
        }
    }
    Ok(picked.values)
}

/// Writes capabilities in the shape of a `ClientCapabilities` object, as -32021 shows them.
pub(crate) fn write_required(out: &mut String, required: &[Capability]) {
    let has = |capability| required.contains(&capability);
    let mut object = Object::open(out);
    let (form, url) = (
        has(Capability::ElicitationForm),
        has(Capability::ElicitationUrl),
    );
    if form || url || has(Capability::Elicitation) {
        write_modes(
            object.object("elicitation"),
            &[("form", form), ("url", url)],
        );
    }
    let (tools, context) = (
        has(Capability::SamplingTools),
        has(Capability::SamplingContext),
    );
    if tools || context || has(Capability::Sampling) {
        write_modes(
            object.object("sampling"),
            &[("tools", tools), ("context", context)],
        );
    }
    write_modes_into(&mut object, &[("roots", has(Capability::Roots))]);
    if has(Capability::Tasks) {
        write_modes(object.object("extensions"), &[(TASKS_EXTENSION, true)]);
    }
    object.close();
}

fn write_modes(mut object: Object<'_>, modes: &[(&str, bool)]) {
    write_modes_into(&mut object, modes);
    object.close();
}

fn write_modes_into(object: &mut Object<'_>, modes: &[(&str, bool)]) {
    for (key, _) in modes.iter().filter(|(_, wanted)| *wanted) {
        object.ours(key, "{}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_session_can_make_use_of_and_what_is_kept_of_it() {
        let all = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true},"tasks":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        let rows = [
            (
                Revision::R20251125,
                all,
                r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{}}"#,
            ),
            (
                Revision::R20250618,
                all,
                r#"{"elicitation":{"form":{}},"sampling":{"context":{}},"roots":{}}"#,
            ),
            (
                Revision::R20250618,
                r#"{"elicitation":{"url":{}},"sampling":{}}"#,
                r#"{"elicitation":{"form":{}},"sampling":{"context":{}}}"#,
            ),
            (
                Revision::R20251125,
                r#"{"elicitation":{"url":{}}}"#,
                r#"{"elicitation":{"url":{}}}"#,
            ),
            (
                Revision::R20251125,
                r#"{"elicitation":{}}"#,
                r#"{"elicitation":{"form":{}}}"#,
            ),
            (Revision::R20251125, "{}", "{}"),
        ];
        for (revision, declared, expected) in rows {
            let usable = ClientCapabilities::parse(declared)
                .unwrap()
                .in_session(revision);
            let kept = usable.to_json();
            assert_eq!(kept, expected, "{revision:?} {declared}");
            assert_eq!(ClientCapabilities::parse(&kept).unwrap(), usable, "{kept}");
        }
    }
}
