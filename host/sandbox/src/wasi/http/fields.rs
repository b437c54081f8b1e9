//! Lists of HTTP fields.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use longshore_journal::http::Blob;
use longshore_journal::import::Import;
use wasmtime::component::{Resource, ResourceTableError};
use wasmtime::{Error, Result};

use crate::bindings::wasi_world::wasi::http::types::{self, HeaderError};
use crate::fault::Halt;
use crate::host::State;

/// One list. A guest may hold as many lists as handles, and each stands in host memory.
const LIST_BYTES: usize = 8 * 1024;
/// What a field costs besides its bytes, so that empty ones are bounded too.
const EACH_BYTES: usize = 64;

/// What says how the bytes of a message travel is for whoever sends it (RFC 9110, section 7.6.1).
pub(crate) const FORBIDDEN: [&str; 9] = [
    "connection",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// Fields in the order in which they were added; names are in lower case.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// Guests copy lists, and few of the copies are changed.
    list: Arc<Vec<(String, Vec<u8>)>>,
    bytes: usize,
    is_fixed: bool,
}

/// What is wrong with a field, or the end of the guest.
#[derive(Debug)]
pub enum FieldsError {
    Header(HeaderError),
    Trap(Error),
}

impl From<HeaderError> for FieldsError {
    fn from(error: HeaderError) -> Self {
        Self::Header(error)
    }
}

impl From<Error> for FieldsError {
    fn from(error: Error) -> Self {
        Self::Trap(error)
    }
}

impl From<ResourceTableError> for FieldsError {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

type FieldsResult<T> = std::result::Result<T, FieldsError>;

fn parse_name(name: &str) -> std::result::Result<String, HeaderError> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| HeaderError::InvalidSyntax)?;
    Ok(name.as_str().to_owned())
}

fn parse_own(name: &str) -> std::result::Result<String, HeaderError> {
    let name = parse_name(name)?;
    if FORBIDDEN.contains(&name.as_str()) {
        return Err(HeaderError::Forbidden);
    }
    Ok(name)
}

fn check_value(value: &[u8]) -> std::result::Result<(), HeaderError> {
    HeaderValue::from_bytes(value)
        .map(drop)
        .map_err(|_| HeaderError::InvalidSyntax)
}

impl Fields {
    /// The list of a response.
    pub(super) fn received(fields: &[(String, Blob)]) -> Self {
        let entries = fields.iter();
        let list: Vec<_> = entries
            .map(|(name, value)| (name.clone(), value.to_vec()))
            .collect();
        Self {
            bytes: list.iter().map(cost).sum(),
            list: Arc::new(list),
            is_fixed: true,
        }
    }

    /// All of them.
    pub(super) fn entries(&self) -> &[(String, Vec<u8>)] {
        &self.list
    }

    /// The same list, which nobody changes any more.
    pub(super) fn fixed(mut self) -> Self {
        self.is_fixed = true;
        self
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Vec<u8>> {
        let same = move |entry: &&(String, Vec<u8>)| entry.0 == name;
        self.list.iter().filter(same).map(|(_, value)| value)
    }

    /// What the message says of its own length. None if it says nothing, an error if nonsense.
    pub(super) fn content_length(&self) -> std::result::Result<Option<u64>, ()> {
        let Some(value) = self.of("content-length").next() else {
            return Ok(None);
        };
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(value).map_err(drop)?;
        if !digits {
            return Err(());
        }
        text.parse().map(Some).map_err(drop)
    }

    fn change(&mut self) -> FieldsResult<()> {
        if self.is_fixed {
            return Err(HeaderError::Immutable.into());
        }
        // What came from elsewhere may be longer than what a guest may make.
        self.check_size(self.bytes)
    }

    fn check_size(&self, bytes: usize) -> FieldsResult<()> {
        if bytes > LIST_BYTES {
            let message = format!("a list of HTTP fields takes more than {LIST_BYTES} bytes");
            return Err(FieldsError::Trap(Halt::Hostcall(message).into()));
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        Arc::make_mut(&mut self.list).retain(|entry| entry.0 != name);
        self.bytes = self.list.iter().map(cost).sum();
    }

    fn append(&mut self, name: &str, value: Vec<u8>) -> FieldsResult<()> {
        check_value(&value)?;
        // Two lengths would leave it to each reader where the message ends.
        if name == "content-length" && self.of(name).next().is_some() {
            return Err(HeaderError::InvalidSyntax.into());
        }
        let entry = (name.to_owned(), value);
        let bytes = self.bytes + cost(&entry);
        self.check_size(bytes)?;
        self.bytes = bytes;
        Arc::make_mut(&mut self.list).push(entry);
        Ok(())
    }
}

fn cost((name, value): &(String, Vec<u8>)) -> usize {
    name.len() + value.len() + EACH_BYTES
}

impl State {
    fn passes_field(
        &mut self,
        import: Import,
        fields: &Resource<Fields>,
        name: &str,
        values: &[Vec<u8>],
    ) -> Result<()> {
        self.passes_on(import, fields, values.len() as u64)?;
        self.world.passed(name.as_bytes());
        for value in values {
            self.world.passed(value);
        }
        Ok(())
    }

    /// The list of what is sent. It belongs to a message from then on.
    pub(super) fn take_fields(&mut self, fields: Resource<Fields>) -> Result<Fields> {
        Ok(self.wasi.table.delete(fields)?.fixed())
    }
}

impl types::HostFields for State {
    fn new(&mut self) -> Result<Resource<Fields>> {
        self.passes(import!("wasi:http/types.fields.new"), 0, 0)?;
        Ok(self.wasi.table.push(Fields::default())?)
    }

    fn from_list(&mut self, entries: Vec<(String, Vec<u8>)>) -> FieldsResult<Resource<Fields>> {
        let import = import!("wasi:http/types.fields.from-list");
        self.passes(import, entries.len() as u64, 0)?;
        let mut fields = Fields::default();
        for (name, value) in entries {
            self.world.passed(name.as_bytes());
            self.world.passed(&value);
            fields.append(&parse_own(&name)?, value)?;
        }
        Ok(self.wasi.table.push(fields)?)
    }

    fn get(&mut self, fields: Resource<Fields>, name: String) -> Result<Vec<Vec<u8>>> {
        self.passes_field(import!("wasi:http/types.fields.get"), &fields, &name, &[])?;
        let fields = self.wasi.table.get(&fields)?;
        Ok(match parse_name(&name) {
            Ok(name) => fields.of(&name).cloned().collect(),
            // Nothing can be of a name that is none.
            Err(_) => Vec::new(),
        })
    }

    fn has(&mut self, fields: Resource<Fields>, name: String) -> Result<bool> {
        self.passes_field(import!("wasi:http/types.fields.has"), &fields, &name, &[])?;
        let fields = self.wasi.table.get(&fields)?;
        Ok(parse_name(&name).is_ok_and(|name| fields.of(&name).next().is_some()))
    }

    fn set(
        &mut self,
        fields: Resource<Fields>,
        name: String,
        values: Vec<Vec<u8>>,
    ) -> FieldsResult<()> {
        let import = import!("wasi:http/types.fields.set");
        self.passes_field(import, &fields, &name, &values)?;
        let fields = self.wasi.table.get_mut(&fields)?;
        let name = parse_own(&name)?;
        fields.change()?;
        // All of it or nothing.
        let mut changed = fields.clone();
        changed.remove(&name);
        for value in values {
            changed.append(&name, value)?;
        }
        *fields = changed;
        Ok(())
    }

    fn delete(&mut self, fields: Resource<Fields>, name: String) -> FieldsResult<()> {
        let import = import!("wasi:http/types.fields.delete");
        self.passes_field(import, &fields, &name, &[])?;
        let fields = self.wasi.table.get_mut(&fields)?;
        let name = parse_own(&name)?;
        fields.change()?;
        fields.remove(&name);
        Ok(())
    }

    fn append(
        &mut self,
        fields: Resource<Fields>,
        name: String,
        value: Vec<u8>,
    ) -> FieldsResult<()> {
        let import = import!("wasi:http/types.fields.append");
        self.passes_field(import, &fields, &name, std::slice::from_ref(&value))?;
        let fields = self.wasi.table.get_mut(&fields)?;
        let name = parse_own(&name)?;
        fields.change()?;
        fields.append(&name, value)
    }

    fn entries(&mut self, fields: Resource<Fields>) -> Result<Vec<(String, Vec<u8>)>> {
        self.passes_on(import!("wasi:http/types.fields.entries"), &fields, 0)?;
        Ok(Vec::clone(&self.wasi.table.get(&fields)?.list))
    }

    fn clone(&mut self, fields: Resource<Fields>) -> Result<Resource<Fields>> {
        self.passes_on(import!("wasi:http/types.fields.clone"), &fields, 0)?;
        let mut copy = self.wasi.table.get(&fields)?.clone();
        copy.is_fixed = false;
        Ok(self.wasi.table.push(copy)?)
    }

    fn drop(&mut self, fields: Resource<Fields>) -> Result<()> {
        self.passes_drop(import!("wasi:http/types.fields.drop"), fields)
            .map(drop)
    }
}
