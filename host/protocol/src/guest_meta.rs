//! `_meta` that a guest attaches to what it answers.

use crate::json::{self, JsonFault};
use crate::write::{Object, push_raw};

/// Keys with this prefix are the host's own words; a guest that could write them could speak as the host.
const OURS: &str = "longshore";

/// Members for a `_meta` that go on to the client: JSON that was read strictly, without reserved keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestMeta {
    members: String,
}

impl GuestMeta {
    /// Reads an object from a guest. Reserved keys are left out, silently: a guest that copies the `_meta` of some
    /// other server does no harm.
    pub fn parse(text: &str) -> Result<Self, JsonFault> {
        json::strict_value(text)?;
        let mut members = String::with_capacity(text.len());
        for (key, value) in json::members(text)?
            .iter()
            .filter(|(key, _)| !is_reserved(key))
        {
            if !members.is_empty() {
                members.push(',');
            }
            crate::write::push_string(&mut members, key);
            members.push(':');
            push_raw(&mut members, value.get());
        }
        Ok(Self { members })
    }

    /// What the host itself says under one of its keys, a JSON text.
    #[must_use]
    pub fn of_host(name: &str, value: &str) -> Self {
        let mut members = String::new();
        crate::write::push_string(&mut members, &format!("{OURS}/{name}"));
        members.push(':');
        push_raw(&mut members, value);
        Self { members }
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn write_into(&self, object: &mut Object<'_>) {
        object.splice(&self.members);
    }
}

/// A prefix is reserved if its second label is `modelcontextprotocol` or `mcp` (MCP 2026-07-28, `_meta`), or if it is
/// the host's.
fn is_reserved(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    prefix == OURS
        || matches!(
            prefix.split('.').nth(1),
            Some("modelcontextprotocol" | "mcp")
        )
}
