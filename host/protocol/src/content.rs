//! What a tool answers: `CallToolResult` and its blocks.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::guest_meta::GuestMeta;
use crate::json::{self, JsonFault};
use crate::result::{self, ServerInfo};
use crate::write::{Object, push_list};

/// One block of an answer.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// Plain text.
    Text(&'a str),
    /// An image.
    Image(Media<'a>),
    /// A sound.
    Audio(Media<'a>),
    /// A pointer to a resource.
    ResourceLink {
        /// Where it is.
        uri: &'a str,
        /// Its name.
        name: &'a str,
        /// Its media type.
        mime_type: Option<&'a str>,
        /// What it is.
        description: Option<&'a str>,
    },
    /// A resource in full.
    Resource {
        /// The name it goes by.
        uri: &'a str,
        /// Its media type.
        mime_type: Option<&'a str>,
        /// What it holds.
        body: Body<'a>,
    },
    /// A block that the guest wrote as JSON.
    Raw(RawBlock),
}

/// Bytes that are written as base64.
#[derive(Clone, Copy, Debug)]
pub struct Media<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// Their media type.
    pub mime_type: &'a str,
}

/// What a resource holds.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// Text.
    Text(&'a str),
    /// Bytes, written as base64.
    Blob(&'a [u8]),
}

/// A content block in JSON, checked, with the reserved keys of its `_meta` left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawBlock {
    json: String,
}

/// The members without which a client cannot read a block of a known type. A type that is not here is newer than
/// this file, and goes through.
const REQUIRED: [(&str, &[&str]); 4] = [
    ("text", &["text"]),
    ("image", &["data", "mimeType"]),
    ("audio", &["data", "mimeType"]),
    ("resource_link", &["uri", "name"]),
];

impl RawBlock {
    /// Reads a block from a guest: an object with a string `type` and with what that type needs.
    pub fn parse(text: &str) -> Result<Self, JsonFault> {
        let value = json::strict_value(text)?;
        let Some(kind) = value.get("type").and_then(Value::as_str) else {
            return Err(JsonFault(
                "is not an object with a string `type`".to_owned(),
            ));
        };
        let strings = REQUIRED
            .iter()
            .find(|(name, _)| *name == kind)
            .map_or(&[][..], |(_, strings)| strings);
        if let Some(key) = strings.iter().find(|key| !value[**key].is_string()) {
            return Err(JsonFault(format!(
                "of type `{kind}` lacks the string `{key}`"
            )));
        }
        let resource = &value["resource"];
        let holds = resource["text"].is_string() || resource["blob"].is_string();
        if kind == "resource" && !(resource["uri"].is_string() && holds) {
            return Err(JsonFault(
                "of type `resource` lacks a `resource` with `uri` and `text` or `blob`".to_owned(),
            ));
        }
        let mut json = String::with_capacity(text.len());
        let mut block = Object::open(&mut json);
        for (key, value) in json::members(text)? {
            if key == "_meta" {
                write_guest_meta(&mut block, value)?;
            } else {
                block.raw(&key, value.get());
            }
        }
        block.close();
        Ok(Self { json })
    }

    /// The object without its braces.
    fn members(&self) -> &str {
        &self.json[1..self.json.len() - 1]
    }
}

/// Writes `_meta` as a guest gave it, less the reserved keys.
pub(crate) fn write_guest_meta(object: &mut Object<'_>, meta: &RawValue) -> Result<(), JsonFault> {
    let guest = GuestMeta::parse(meta.get())
        .map_err(|fault| JsonFault(format!("has a `_meta` that {fault}")))?;
    let mut meta = object.object("_meta");
    guest.write_into(&mut meta);
    meta.close();
    Ok(())
}

impl Content<'_> {
    pub(crate) fn write_to(&self, out: &mut String) {
        let mut block = Object::open(out);
        match self {
            Self::Text(text) => {
                block.text("type", "text");
                block.text("text", text);
            }
            Self::Image(media) => write_media(&mut block, "image", *media),
            Self::Audio(media) => write_media(&mut block, "audio", *media),
            Self::ResourceLink {
                uri,
                name,
                mime_type,
                description,
            } => {
                block.text("type", "resource_link");
                block.text("uri", uri);
                block.text("name", name);
                block.optional_text("mimeType", *mime_type);
                block.optional_text("description", *description);
            }
            Self::Resource {
                uri,
                mime_type,
                body,
            } => {
                block.text("type", "resource");
                let mut resource = block.object("resource");
                resource.text("uri", uri);
                resource.optional_text("mimeType", *mime_type);
                body.write_into(&mut resource);
                resource.close();
            }
            Self::Raw(raw) => block.splice(raw.members()),
        }
        block.close();
    }

    /// About how many bytes it takes once written.
    pub(crate) fn size(&self) -> usize {
        const MEMBERS: usize = 128;
        MEMBERS
            + match self {
                Self::Text(text) => text.len(),
                Self::Image(media) | Self::Audio(media) => media.data.len() / 3 * 4,
                Self::ResourceLink {
                    uri, description, ..
                } => uri.len() + description.map_or(0, str::len),
                Self::Resource { body, .. } => body.size(),
                Self::Raw(block) => block.json.len(),
            }
    }
}

impl Body<'_> {
    pub(crate) fn write_into(self, resource: &mut Object<'_>) {
        match self {
            Self::Text(text) => resource.text("text", text),
            Self::Blob(bytes) => push_base64(resource.key("blob"), bytes),
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len() / 3 * 4,
        }
    }
}

fn write_media(block: &mut Object<'_>, kind: &str, media: Media<'_>) {
    block.text("type", kind);
    push_base64(block.key("data"), media.data);
    block.text("mimeType", media.mime_type);
}

fn push_base64(out: &mut String, bytes: &[u8]) {
    out.push('"');
    BASE64_STANDARD.encode_string(bytes, out);
    out.push('"');
}

/// What a tool answers.
#[derive(Clone, Copy, Debug)]
pub struct ToolResult<'a> {
    /// What a model reads.
    pub content: &'a [Content<'a>],
    /// The answer as data. Read strictly before it came here.
    pub structured: Option<&'a RawValue>,
    /// What the guest attaches.
    pub meta: Option<&'a GuestMeta>,
    /// Whether the tool did not manage.
    pub is_error: bool,
}

impl ToolResult<'_> {
    /// The result as the text to store and to send. It names the server, so that the one text is both the answer of a
    /// held `tools/call` and the `result` inside `tasks/get`, spliced without being read.
    #[must_use]
    pub fn to_json(&self, server: &ServerInfo) -> String {
        let structured = self.structured.map_or(0, |raw| raw.get().len());
        let content: usize = self.content.iter().map(Content::size).sum();
        let mut out = String::with_capacity(content + structured + 256);
        let mut result = result::open(&mut out, "complete");
        push_list(result.key("content"), self.content, |out, block| {
            block.write_to(out)
        });
        if let Some(structured) = self.structured {
            result.raw("structuredContent", structured.get());
        }
        if self.is_error {
            result.plain("isError", true);
        }
        server.write_meta(&mut result, self.meta);
        result.close();
        out
    }

    /// A result that says in one text why the tool did not manage.
    #[must_use]
    pub fn error_text(text: &str, server: &ServerInfo) -> String {
        ToolResult {
            content: &[Content::Text(text)],
            structured: None,
            meta: None,
            is_error: true,
        }
        .to_json(server)
    }
}
