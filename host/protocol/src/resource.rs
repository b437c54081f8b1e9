//! Resources: their descriptors, and what is read.

use crate::content::Body;
use crate::error::{INVALID_PARAMS, RpcError};
use crate::extra::{self, Of};
use crate::guest_meta::GuestMeta;
use crate::json::{self, JsonFault, shown};
use crate::result::{self, CacheHint, ServerInfo};
use crate::version::Revision;
use crate::write::{Object, push_list};

/// There is no such resource, up to 2025-11-25.
const RESOURCE_NOT_FOUND: i32 = -32002;

/// The longest URI that is looked at, in bytes, as the guest contract has it.
pub const MAX_URI_BYTES: usize = 8 * 1024;

/// What is known of a resource.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// Where it is.
    pub uri: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its media type.
    pub mime_type: Option<&'a str>,
    /// What it is.
    pub description: Option<&'a str>,
    /// Further members, a JSON object from the guest. Of these `title`, `size`, `annotations`, `icons` and `_meta` are
    /// shown.
    pub extra: Option<&'a str>,
}

impl Resource<'_> {
    /// The descriptor as text, or what is wrong with the guest's JSON.
    pub fn descriptor(&self) -> Result<String, JsonFault> {
        describe("uri", self, Of::Resource)
    }
}

/// What is known of a family of resources.
#[derive(Clone, Copy, Debug)]
pub struct Template<'a> {
    /// Their URIs, with variables.
    pub uri_template: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The media type of all of them.
    pub mime_type: Option<&'a str>,
    /// What they are.
    pub description: Option<&'a str>,
    /// Further members, a JSON object from the guest. Of these `title`, `annotations`, `icons` and `_meta` are shown.
    pub extra: Option<&'a str>,
}

impl Template<'_> {
    /// The descriptor as text, or what is wrong with the guest's JSON.
    pub fn descriptor(&self) -> Result<String, JsonFault> {
        let Self {
            uri_template: uri,
            name,
            mime_type,
            description,
            extra,
        } = *self;
        let same = Resource {
            uri,
            name,
            mime_type,
            description,
            extra,
        };
        describe("uriTemplate", &same, Of::Template)
    }
}

fn describe(key: &str, what: &Resource<'_>, of: Of) -> Result<String, JsonFault> {
    let mut out = String::with_capacity(128 + what.uri.len());
    let mut object = Object::open(&mut out);
    object.text(key, what.uri);
    object.text("name", what.name);
    object.optional_text("mimeType", what.mime_type);
    object.optional_text("description", what.description);
    extra::write_into(&mut object, what.extra, of)?;
    object.close();
    Ok(out)
}

/// A descriptor of a resource, a template or a prompt as a session of that revision is shown it.
#[must_use]
pub fn in_session(descriptor: &str, revision: Revision) -> String {
    let mut out = String::with_capacity(descriptor.len());
    let mut object = Object::open(&mut out);
    for (key, value) in json::members(descriptor).unwrap_or_default() {
        // There were no icons yet.
        if key != "icons" || revision != Revision::R20250618 {
            object.ours(&key, value.get());
        }
    }
    object.close();
    out
}

/// One piece of what was read.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// The URI asked for, or one below it.
    pub uri: &'a str,
    /// Its media type.
    pub mime_type: Option<&'a str>,
    /// What it holds.
    pub body: Body<'a>,
    /// What the guest attaches.
    pub meta: Option<&'a GuestMeta>,
}

/// The result of `resources/read`.
#[must_use]
pub fn read_result(contents: &[Contents<'_>], cache: CacheHint, server: &ServerInfo) -> String {
    let size: usize = contents
        .iter()
        .map(|part| part.uri.len() + part.body.size() + 128)
        .sum();
    let mut out = String::with_capacity(size + 256);
    let mut result = result::open(&mut out, "complete");
    push_list(result.key("contents"), contents, |out, part| {
        let mut object = Object::open(out);
        object.text("uri", part.uri);
        object.optional_text("mimeType", part.mime_type);
        part.body.write_into(&mut object);
        if let Some(guest) = part.meta.filter(|meta| !meta.is_empty()) {
            let mut meta = object.object("_meta");
            guest.write_into(&mut meta);
            meta.close();
        }
        object.close();
    });
    cache.write_into(&mut result);
    server.write_meta(&mut result, None);
    result.close();
    out
}

/// There is no such resource. The code is that of the revision (MCP 2026-07-28, Resources, error handling).
#[must_use]
pub fn not_found(revision: Revision, uri: &str) -> RpcError {
    let code = match revision {
        Revision::R20260728 => INVALID_PARAMS,
        Revision::R20251125 | Revision::R20250618 => RESOURCE_NOT_FOUND,
    };
    let mut data = String::new();
    let mut object = Object::open(&mut data);
    object.text("uri", uri);
    object.close();
    let message = format!(
        "there is no resource {}: resources/list and resources/templates/list name what there is",
        shown(uri)
    );
    RpcError::new(code, message).with_data(data)
}
