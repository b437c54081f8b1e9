//! The headers of Streamable HTTP that repeat the body, for whoever stands between and reads no bodies (MCP
//! 2026-07-28, Streamable HTTP, server validation).

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Number, Value};

use crate::error::RpcError;
use crate::json::shown;

/// The values of one header field: collect them all, so that a doubled header is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Field<'h> {
    /// The header is not there.
    #[default]
    Absent,
    /// It is there once.
    Once(&'h [u8]),
    /// It is there more than once. Who reads the first and who reads the last would disagree.
    Doubled,
}

impl<'h> FromIterator<&'h [u8]> for Field<'h> {
    fn from_iter<I: IntoIterator<Item = &'h [u8]>>(values: I) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => Self::Once(value),
            (Some(_), Some(_)) => Self::Doubled,
        }
    }
}

/// The headers that are compared with the body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headers<'h> {
    /// `MCP-Protocol-Version`
    pub protocol_version: Field<'h>,
    /// `Mcp-Method`
    pub method: Field<'h>,
    /// `Mcp-Name`
    pub name: Field<'h>,
}

impl Headers<'_> {
    pub(crate) fn check_version(&self, body: &str) -> Result<(), RpcError> {
        let header = required(self.protocol_version, "MCP-Protocol-Version")?;
        same("MCP-Protocol-Version", header, body)
    }

    pub(crate) fn check_method(&self, body: &str) -> Result<(), RpcError> {
        let header = required(self.method, "Mcp-Method")?;
        same("Mcp-Method", header, body)
    }

    /// Without a body value there is nothing to compare with; the parameters are refused later.
    pub(crate) fn check_name(&self, body: Option<&str>, is_required: bool) -> Result<(), RpcError> {
        let header = match self.name {
            Field::Absent if !is_required => return Ok(()),
            field => required(field, "Mcp-Name")?,
        };
        let header = decode_value(header)
            .map_err(|fault| RpcError::header_mismatch(format!("Mcp-Name {fault}")))?;
        body.map_or(Ok(()), |body| same("Mcp-Name", &header, body))
    }
}

/// The headers that repeat arguments: `Mcp-Param-` and the name that a tool's schema gives.
#[derive(Clone, Debug, Default)]
pub struct ParameterHeaders<'h>(Vec<(&'h str, &'h [u8])>);

/// What the names of those headers begin with; case does not count.
pub const PARAMETER_PREFIX: &str = "mcp-param-";

impl<'h> ParameterHeaders<'h> {
    /// Picks them from all headers of a request.
    pub fn among(headers: impl IntoIterator<Item = (&'h str, &'h [u8])>) -> Self {
        let rest = |name: &'h str| {
            let (prefix, rest) = name.split_at_checked(PARAMETER_PREFIX.len())?;
            prefix
                .eq_ignore_ascii_case(PARAMETER_PREFIX)
                .then_some(rest)
        };
        Self(
            headers
                .into_iter()
                .filter_map(|(name, value)| Some((rest(name)?, value)))
                .collect(),
        )
    }

    /// Compares one with the argument that it repeats. Headers that no schema names are nobody's business.
    pub fn check(&self, name: &str, argument: Option<&Value>) -> Result<(), RpcError> {
        let field: Field<'_> = self
            .0
            .iter()
            .filter(|(there, _)| there.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
            .collect();
        let name = format!("Mcp-Param-{}", shown(name));
        let decoded = || {
            decode_value(required(field, &name)?)
                .map_err(|fault| RpcError::header_mismatch(format!("{name} {fault}")))
        };
        match argument {
            None | Some(Value::Null) => match field {
                Field::Absent => Ok(()),
                Field::Once(_) | Field::Doubled => Err(RpcError::header_mismatch(format!(
                    "header {name} is there but the body has no value for it"
                ))),
            },
            Some(Value::String(text)) => same(&name, &decoded()?, text),
            Some(Value::Bool(flag)) => {
                same(&name, &decoded()?, if *flag { "true" } else { "false" })
            }
            Some(Value::Number(number)) => {
                let header = decoded()?;
                if is_number(&header, number) {
                    Ok(())
                } else {
                    same(&name, &header, &number.to_string())
                }
            }
            // The schema allows neither, and says so in its own words.
            Some(Value::Array(_) | Value::Object(_)) => Ok(()),
        }
    }
}

/// Whether a text is that number, however it is written. Beyond these bounds numbers that differ may compare equal.
fn is_number(text: &str, number: &Number) -> bool {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    let written = serde_json::from_str::<Number>(text)
        .ok()
        .and_then(|written| written.as_f64());
    written == number.as_f64() && written.is_some_and(|number| number.abs() <= EXACT)
}

fn required<'h>(field: Field<'h>, name: &str) -> Result<&'h str, RpcError> {
    match field {
        Field::Absent => Err(RpcError::header_mismatch(format!(
            "header {name} is missing"
        ))),
        Field::Doubled => Err(RpcError::header_mismatch(format!(
            "header {name} stands more than once"
        ))),
        Field::Once(value) => trimmed(value).ok_or_else(|| {
            RpcError::header_mismatch(format!("header {name} has characters that are not allowed"))
        }),
    }
}

/// The value without surrounding white space, if all of it is printable ASCII or a tab (RFC 9110, field values).
fn trimmed(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    text.bytes()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        .then(|| text.trim_matches([' ', '\t']))
}

/// Decodes a value in the form `=?base64?…?=`; any other stands for itself. Strict: the standard alphabet, whole
/// padding, no stray bits, UTF-8. The error is a fragment that can follow the header's name.
pub fn decode_value(value: &str) -> Result<Cow<'_, str>, &'static str> {
    let Some(encoded) = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(Cow::Borrowed(value));
    };
    let bytes = BASE64_STANDARD
        .decode(encoded)
        .map_err(|_| "is not valid base64 between its markers")?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| "is not UTF-8 under its base64")
}

fn same(name: &str, header: &str, body: &str) -> Result<(), RpcError> {
    if header == body {
        return Ok(());
    }
    Err(RpcError::header_mismatch(format!(
        "header {name} says `{}` but the body says `{}`",
        shown(header),
        shown(body)
    )))
}
