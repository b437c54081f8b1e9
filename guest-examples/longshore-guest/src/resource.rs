//! Resources: what a component lets clients read, and how a URI leads to the function that reads it.
//!
//! Only a component with a `#[resource]` exports `longshore:tool/resources`. The macro writes that export into the
//! author's own crate: here it would be part of every component.

use std::any::Any;
use std::fmt::Display;

use crate::ask::AskError;
use crate::bindings::longshore::tool::types::{Body, RpcError};
use crate::completion::Completer;
use crate::panic::install_hook;
use crate::result::{Cancelled, INTERNAL, why_unanswered};

pub use self::bindings::exports::longshore::tool::resources::{Contents, ReadError};
use self::bindings::exports::longshore::tool::resources::{Guest, ResourceInfo, Template};

/// What the macro's export names.
pub mod bindings {
    #![expect(missing_docs, reason = "what the generator adds has none")]

    wit_bindgen::generate!({
        inline: "
            package longshore:guest-resources;

            world reader {
                export longshore:tool/resources@0.1.0;
            }
        ",
        path: "../../wit",
        world: "longshore:guest-resources/reader",
        with: { "longshore:tool/types@0.1.0": crate::bindings::longshore::tool::types },
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
    });
}

/// What a read comes to.
pub type Read = Result<Vec<Contents>, ReadError>;

/// What a resource may return.
///
/// A text is sent as it is, bytes as base64, and `None` means that there is no such resource. An error of any type is
/// a JSON-RPC error with its text; [`ReadError`], [`Cancelled`] and [`AskError`] keep their meaning.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be what a resource holds",
    label = "not a text, bytes, `Contents`, nor an `Option` or `Result` of one",
    note = "an error needs to be `Display`"
)]
pub trait IntoRead {
    /// What was read at that URI. Contents that do not say of which media type they are, are of this one.
    ///
    /// # Errors
    /// Why there is nothing to read.
    fn into_read(self, uri: &str, mime_type: Option<&str>) -> Read;
}

fn one(uri: &str, mime_type: Option<&str>, body: Body) -> Read {
    Ok(vec![Contents {
        uri: uri.to_owned(),
        mime_type: mime_type.map(str::to_owned),
        body,
        meta: None,
    }])
}

impl IntoRead for String {
    fn into_read(self, uri: &str, mime_type: Option<&str>) -> Read {
        one(uri, mime_type, Body::Text(self))
    }
}

impl IntoRead for &str {
    fn into_read(self, uri: &str, mime_type: Option<&str>) -> Read {
        self.to_owned().into_read(uri, mime_type)
    }
}

impl IntoRead for Vec<u8> {
    fn into_read(self, uri: &str, mime_type: Option<&str>) -> Read {
        one(uri, mime_type, Body::Bytes(self))
    }
}

impl IntoRead for &[u8] {
    fn into_read(self, uri: &str, mime_type: Option<&str>) -> Read {
        self.to_vec().into_read(uri, mime_type)
    }
}

/// Several pieces, each with a URI at or below the one that was asked for.
impl IntoRead for Vec<Contents> {
    fn into_read(mut self, _uri: &str, mime_type: Option<&str>) -> Read {
        for part in self.iter_mut().filter(|part| part.mime_type.is_none()) {
            part.mime_type = mime_type.map(str::to_owned);
        }
        Ok(self)
    }
}

impl<T: IntoRead> IntoRead for Option<T> {
    fn into_read(self, uri: &str, mime_type: Option<&str>) -> Read {
        self.ok_or(ReadError::NotFound)?.into_read(uri, mime_type)
    }
}

impl<T: IntoRead, E: Display + 'static> IntoRead for Result<T, E> {
    fn into_read(self, uri: &str, mime_type: Option<&str>) -> Read {
        self.map_err(error_of)?.into_read(uri, mime_type)
    }
}

/// What an error of any type means.
fn error_of<E: Display + 'static>(error: E) -> ReadError {
    let mut error = Some(error);
    let any: &mut dyn Any = &mut error;
    if let Some(known) = any.downcast_mut::<Option<ReadError>>() {
        return known.take().unwrap_or(ReadError::NotFound);
    }
    if any.is::<Option<Cancelled>>() {
        return ReadError::Cancelled;
    }
    if let Some(Some(asked)) = any.downcast_mut::<Option<AskError>>().map(Option::take) {
        return asked.into();
    }
    ReadError::Protocol(RpcError {
        code: INTERNAL,
        message: error.map(|error| format!("{error:#}")).unwrap_or_default(),
        data: None,
    })
}

impl From<AskError> for ReadError {
    /// A question that a cancel ended ends the read as cancelled; of any other trouble it is told.
    fn from(error: AskError) -> Self {
        match error {
            AskError::CallCancelled => Self::Cancelled,
            error => Self::Protocol(RpcError {
                code: INTERNAL,
                message: why_unanswered(&error),
                data: None,
            }),
        }
    }
}

impl From<Cancelled> for ReadError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// One row of a component's table of resources.
#[derive(Debug, Clone, Copy)]
pub struct ResourceEntry {
    /// Its URI, or a template with variables in braces.
    pub uri: &'static str,
    /// A name for programs.
    pub name: &'static str,
    /// A name for people.
    pub title: Option<&'static str>,
    /// The media type.
    pub mime_type: Option<&'static str>,
    /// What it is.
    pub description: &'static str,
    /// Who proposes what a variable could be.
    pub completers: &'static [(&'static str, Completer)],
    /// Reads it at a URI with these variables.
    pub read: fn(&str, &[(&'static str, String)]) -> Read,
}

inventory::collect!(ResourceEntry);

impl ResourceEntry {
    fn is_template(&self) -> bool {
        self.uri.contains('{')
    }

    fn extra(&self) -> Option<String> {
        self.title
            .map(|title| serde_json::json!({ "title": title }).to_string())
    }
}

/// The way to a component's resources.
#[derive(Debug, Clone, Copy)]
pub struct Resources;

impl Guest for Resources {
    fn list_resources() -> Vec<ResourceInfo> {
        install_hook();
        let listed = inventory::iter::<ResourceEntry>().filter(|entry| !entry.is_template());
        let mut listed: Vec<ResourceInfo> = listed
            .map(|entry| ResourceInfo {
                uri: entry.uri.to_owned(),
                name: entry.name.to_owned(),
                mime_type: entry.mime_type.map(str::to_owned),
                description: Some(entry.description.to_owned()),
                extra: entry.extra(),
            })
            .collect();
        listed.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
        listed
    }

    fn list_templates() -> Vec<Template> {
        install_hook();
        let listed = inventory::iter::<ResourceEntry>().filter(|entry| entry.is_template());
        let mut listed: Vec<Template> = listed
            .map(|entry| Template {
                uri_template: entry.uri.to_owned(),
                name: entry.name.to_owned(),
                mime_type: entry.mime_type.map(str::to_owned),
                description: Some(entry.description.to_owned()),
                extra: entry.extra(),
            })
            .collect();
        listed.sort_unstable_by(|a, b| a.uri_template.cmp(&b.uri_template));
        listed
    }

    fn read_resource(uri: String) -> Read {
        install_hook();
        read(inventory::iter::<ResourceEntry>(), &uri)
    }
}

/// From the one with that very URI, else from the first whose template it fits.
fn read<'e>(entries: impl IntoIterator<Item = &'e ResourceEntry>, uri: &str) -> Read {
    let mut entries: Vec<&ResourceEntry> = entries.into_iter().collect();
    // The linker has no order.
    entries.sort_unstable_by_key(|entry| (entry.is_template(), entry.uri));
    entries
        .into_iter()
        .find_map(|entry| Some((entry, variables(entry.uri, uri)?)))
        .ok_or(ReadError::NotFound)
        .and_then(|(entry, variables)| (entry.read)(uri, &variables))
}

/// What a URI has in place of the variables of a template, if it fits.
fn variables(template: &'static str, uri: &str) -> Option<Vec<(&'static str, String)>> {
    let Some((literal, rest)) = template.split_once('{') else {
        return (template == uri).then(Vec::new);
    };
    let (name, template) = rest.split_once('}')?;
    let uri = uri.strip_prefix(literal)?;
    // A variable is one segment at most, and not nothing.
    let most = uri.find(['/', '?', '#']).unwrap_or(uri.len());
    let next = template.split('{').next().unwrap_or_default();
    let ends = (1..=most).filter(|end| uri.is_char_boundary(*end));
    let mut fitting = ends
        .filter(|end| uri[*end..].starts_with(next))
        .filter_map(|end| Some((end, variables(template, &uri[end..])?)));
    let (end, mut behind) = fitting.next()?;
    behind.insert(0, (name, decoded(&uri[..end])?));
    Some(behind)
}

/// The text that percent-encoded text stands for.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &behind[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uri: &'static str) -> ResourceEntry {
        ResourceEntry {
            uri,
            name: "r",
            title: None,
            mime_type: Some("text/plain"),
            description: "A resource.",
            completers: &[],
            read: |uri, variables| format!("{uri} {variables:?}").into_read(uri, None),
        }
    }

    #[test]
    fn a_uri_leads_to_its_own_resource_and_else_to_a_template() {
        let entries = [entry("t:{x}"), entry("t:a"), entry("t:{x}/{y}")];
        let text = |uri: &str| match read(&entries, uri) {
            Ok(contents) => match &contents[0].body {
                Body::Text(text) => text.clone(),
                Body::Bytes(_) => panic!("bytes"),
            },
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(text("t:a"), "t:a []");
        assert_eq!(text("t:b"), r#"t:b [("x", "b")]"#);
        assert_eq!(text("t:b/c%2Fd"), r#"t:b/c%2Fd [("x", "b"), ("y", "c/d")]"#);
        for missing in ["t:", "u:a", "t:a/b/c", "t:a?b", "t:%zz", "t:%ff"] {
            assert_eq!(text(missing), "ReadError::NotFound", "{missing}");
        }
    }

    #[test]
    fn a_variable_takes_what_makes_the_rest_fit() {
        assert_eq!(
            variables("t:{a}-{b}.txt", "t:x-y-z.txt"),
            Some(vec![("a", "x".to_owned()), ("b", "y-z".to_owned())])
        );
        assert_eq!(
            variables("t:{a}.b", "t:x.b.b"),
            Some(vec![("a", "x.b".to_owned())])
        );
        assert_eq!(variables("t:{a}/b", "t:x/c"), None);
    }

    #[test]
    fn what_a_function_returns_is_what_was_read() {
        let read = "a".into_read("t:a", Some("text/plain")).unwrap();
        assert_eq!(read[0].body, Body::Text("a".to_owned()));
        assert_eq!(read[0].mime_type.as_deref(), Some("text/plain"));
        let read = vec![1_u8].into_read("t:a", None).unwrap();
        assert_eq!(read[0].body, Body::Bytes(vec![1]));
        assert!(matches!(
            None::<String>.into_read("t:a", None),
            Err(ReadError::NotFound)
        ));
        let failed = Err::<String, _>("no").into_read("t:a", None);
        assert!(matches!(failed, Err(ReadError::Protocol(error)) if error.message == "no"));
        let cancelled = Err::<String, _>(Cancelled).into_read("t:a", None);
        assert!(matches!(cancelled, Err(ReadError::Cancelled)));
        let missing = Err::<String, _>(ReadError::NotFound).into_read("t:a", None);
        assert!(matches!(missing, Err(ReadError::NotFound)));
    }
}
