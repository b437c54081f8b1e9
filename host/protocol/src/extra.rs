//! Further members of a descriptor, from the JSON that a guest adds to it.

use serde_json::value::RawValue;

use crate::content::write_guest_meta;
use crate::json::{self, JsonFault};
use crate::write::Object;

/// Whose descriptor it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Tool,
    Resource,
    Template,
    Prompt,
}

const KEYS: [&str; 5] = ["title", "size", "annotations", "icons", "_meta"];
const HINTS: [&str; 5] = [
    "title",
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];

/// Writes those members that this descriptor has and that are well formed: a client that checks its types would drop
/// the whole list for one that is not.
pub(crate) fn write_into(
    descriptor: &mut Object<'_>,
    extra: Option<&str>,
    of: Of,
) -> Result<(), JsonFault> {
    let Some(extra) = extra else { return Ok(()) };
    let in_extra = |fault: JsonFault| JsonFault(format!("extra {fault}"));
    json::strict_value(extra).map_err(in_extra)?;
    let picked =
        json::pick(extra, &KEYS).map_err(|_| JsonFault("extra is not a JSON object".to_owned()))?;
    let [title, size, annotations, icons, meta] = picked.values;
    // Tools and prompts have a field for it.
    let title = title.filter(|_| matches!(of, Of::Resource | Of::Template));
    if let Some(title) = title {
        if json::string(title).is_none() {
            return Err(JsonFault("extra.title is not a string".to_owned()));
        }
        descriptor.raw("title", title.get());
    }
    if let Some(size) = size.filter(|_| of == Of::Resource) {
        if json::unsigned(size).is_none() {
            return Err(JsonFault("extra.size is not a number of bytes".to_owned()));
        }
        descriptor.raw("size", size.get());
    }
    if let Some(annotations) = annotations.filter(|_| of != Of::Prompt) {
        match of {
            Of::Tool => check_hints(annotations)?,
            Of::Resource | Of::Template | Of::Prompt => check_annotations(annotations)?,
        }
        descriptor.raw("annotations", annotations.get());
    }
    if let Some(icons) = icons {
        check_icons(icons)?;
        descriptor.raw("icons", icons.get());
    }
    meta.map_or(Ok(()), |meta| {
        write_guest_meta(descriptor, meta).map_err(in_extra)
    })
}

/// The annotations of a tool.
fn check_hints(raw: &RawValue) -> Result<(), JsonFault> {
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

/// The annotations of what is read.
fn check_annotations(raw: &RawValue) -> Result<(), JsonFault> {
    let picked = json::pick(raw.get(), &["audience", "priority", "lastModified"])
        .map_err(|_| JsonFault("extra.annotations is not a JSON object".to_owned()))?;
    let [audience, priority, modified] = picked.values;
    let is_audience = |raw: &RawValue| {
        serde_json::from_str::<Vec<String>>(raw.get()).is_ok_and(|roles| {
            roles
                .iter()
                .all(|role| role == "user" || role == "assistant")
        })
    };
    if audience.is_some_and(|audience| !is_audience(audience)) {
        return Err(JsonFault(
            "extra.annotations.audience is not a list of `user` and `assistant`".to_owned(),
        ));
    }
    let is_priority =
        |raw: &RawValue| matches!(raw.get().parse::<f64>(), Ok(n) if (0.0..=1.0).contains(&n));
    if priority.is_some_and(|priority| !is_priority(priority)) {
        return Err(JsonFault(
            "extra.annotations.priority is not a number from 0 to 1".to_owned(),
        ));
    }
    if modified.is_some_and(|modified| json::string(modified).is_none()) {
        return Err(JsonFault(
            "extra.annotations.lastModified is not a string".to_owned(),
        ));
    }
    Ok(())
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
