//! The descriptor of a tool, as `tools/list` shows it.

use serde_json::value::RawValue;

use crate::content::write_guest_meta;
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

const EXTRA: [&str; 3] = ["annotations", "icons", "_meta"];
const HINTS: [&str; 5] = [
    "title",
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];

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
        if let Some(extra) = self.extra {
            write_extra(&mut tool, extra)?;
        }
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

fn write_extra(tool: &mut Object<'_>, extra: &str) -> Result<(), JsonFault> {
    let in_extra = |fault: JsonFault| JsonFault(format!("extra {fault}"));
    json::strict_value(extra).map_err(in_extra)?;
    let picked = json::pick(extra, &EXTRA)
        .map_err(|_| JsonFault("extra is not a JSON object".to_owned()))?;
    let [annotations, icons, meta] = picked.values;
    if let Some(annotations) = annotations {
        check_annotations(annotations)?;
        tool.raw("annotations", annotations.get());
    }
    if let Some(icons) = icons {
        check_icons(icons)?;
        tool.raw("icons", icons.get());
    }
    meta.map_or(Ok(()), |meta| {
        write_guest_meta(tool, meta).map_err(in_extra)
    })
}

/// A client that checks its types would drop the whole list for one wrong hint.
fn check_annotations(raw: &RawValue) -> Result<(), JsonFault> {
    let picked = json::pick(raw.get(), &HINTS)
        .map_err(|_| JsonFault("extra.annotations is not a JSON object".to_owned()))?;
    let [title, hints @ ..] = picked.values;
    if title.is_some_and(|title| json::string(title).is_none()) {
        return Err(JsonFault(
            "extra.annotations.title is not a string".to_owned(),
        ));
    }
    match hints
        .iter()
        .position(|hint| hint.is_some_and(|hint| !matches!(hint.get(), "true" | "false")))
    {
        Some(index) => Err(JsonFault(format!(
            "extra.annotations.{} is not true or false",
            HINTS[index + 1]
        ))),
        None => Ok(()),
    }
}

/// Clients must drop icons from elsewhere than https and data URIs, and some follow whatever they are given.
fn check_icons(raw: &RawValue) -> Result<(), JsonFault> {
    let icons: Vec<&RawValue> = serde_json::from_str(raw.get())
        .map_err(|_| JsonFault("extra.icons is not a list".to_owned()))?;
    let is_icon = |icon: &&RawValue| {
        let src = json::pick(icon.get(), &["src"])
            .ok()
            .and_then(|picked| picked.values[0])
            .and_then(json::string);
        src.is_some_and(|src| src.starts_with("https://") || src.starts_with("data:"))
    };
    if icons.iter().all(is_icon) {
        return Ok(());
    }
    Err(JsonFault(
        "extra.icons holds what has no `src` with an https or data URI".to_owned(),
    ))
}
