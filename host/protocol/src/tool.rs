//! The descriptor of a tool, as `tools/list` shows it.

use serde_json::value::RawValue;

use crate::extra::{self, Of};
use crate::json::{self, JsonFault, is_object};
use crate::session::task::TaskSupport;
use crate::version::Revision;
use crate::write::Object;

/// What is known of a tool. The schemas go out as their author wrote them: nothing that was read into a type and
/// written again keeps all of JSON Schema.
#[derive(Clone, Copy, Debug)]
pub struct Tool<'a> {
    /// Its name.
    pub name: &'a str,
    /// A name for people.
    pub title: Option<&'a str>,
    /// What it does.
    pub description: &'a str,
    /// The schema of its arguments, a JSON object.
    pub input_schema: &'a str,
    /// The schema of its structured answer, a JSON object.
    pub output_schema: Option<&'a str>,
    /// Further members, a JSON object from the guest. Of these `annotations`, `icons` and `_meta` are shown.
    pub extra: Option<&'a str>,
}

impl Tool<'_> {
    /// The descriptor as text, or what is wrong with the guest's JSON.
    pub fn descriptor(&self) -> Result<String, JsonFault> {
        let mut out = String::with_capacity(256 + self.description.len() + self.input_schema.len());
        let mut tool = Object::open(&mut out);
        tool.text("name", self.name);
        tool.optional_text("title", self.title);
        tool.text("description", self.description);
        tool.raw("inputSchema", schema("input schema", self.input_schema)?);
        if let Some(output) = self.output_schema {
            tool.raw("outputSchema", schema("output schema", output)?);
        }
        extra::write_into(&mut tool, self.extra, Of::Tool)?;
        tool.close();
        Ok(out)
    }
}

/// A descriptor as a session of that revision is shown it, from the text that [`Tool::descriptor`] wrote.
#[must_use]
pub fn in_session(descriptor: &str, revision: Revision, support: TaskSupport) -> String {
    let mut out = String::with_capacity(descriptor.len() + 48);
    let mut tool = Object::open(&mut out);
    for (key, value) in json::members(descriptor).unwrap_or_default() {
        match (key.as_ref(), revision) {
            ("icons", Revision::R20250618) => {}
            // Until then a structured answer is an object; others come as text only.
            ("outputSchema", _) if !is_of_object(value) => {}
            (key, _) => tool.ours(key, value.get()),
        }
    }
    if revision == Revision::R20251125 {
        let mut execution = tool.object("execution");
        execution.text("taskSupport", support.as_str());
        execution.close();
    }
    tool.close();
    out
}

fn is_of_object(schema: &RawValue) -> bool {
    json::pick(schema.get(), &["type"])
        .is_ok_and(|picked| picked.values[0].is_some_and(|kind| kind.get() == "\"object\""))
}

fn schema<'a>(what: &str, text: &'a str) -> Result<&'a str, JsonFault> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) if is_object(raw) => Ok(raw.get()),
        _ => Err(JsonFault(format!("{what} is not a JSON object"))),
    }
}
