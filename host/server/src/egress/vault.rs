//! Secrets: read when they are sent, and known to nobody else.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use longshore_journal::http::Failure;
use longshore_policy::secrets::{Kind, Secret, SecretName};
use longshore_sandbox::regular;

/// The longest secret: it goes into a field.
pub const MOST_BYTES: u64 = 16 * 1024;
/// What a guest writes where a secret is to be.
const OPENS: &str = "{secret:";
const CLOSES: char = '}';

/// The secrets of a node: a file each, in a directory that only its owner can read.
#[derive(Default)]
pub struct Vault(Option<PathBuf>);

/// A secret itself. It is shown to nobody.
struct Value(Vec<u8>);

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

/// Why a secret cannot be had.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("there is no directory of secrets")]
    NoVault,
    #[error("its file is readable by others: make it 0600")]
    Open,
    #[error("its file cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it has characters that cannot stand in a field")]
    Malformed,
}

impl Vault {
    /// That directory, which need not be there.
    #[must_use]
    pub fn in_directory(path: PathBuf) -> Self {
        Self(Some(path))
    }

    fn read(&self, name: &SecretName) -> Result<Value, Unread> {
        let dir = self.0.as_ref().ok_or(Unread::NoVault)?;
        // The name is a plain one: that was checked when it was read.
        let path = dir.join(name.as_str());
        let others = regular::open(&path)?.metadata()?.mode() & 0o077;
        if others != 0 {
            return Err(Unread::Open);
        }
        let mut bytes = regular::read(&path, MOST_BYTES)?;
        // Files end with a line's end.
        while bytes
            .last()
            .is_some_and(|last| matches!(last, b'\n' | b'\r'))
        {
            bytes.pop();
        }
        Ok(Value(bytes))
    }

    fn value(&self, secret: &SecretName) -> Result<Value, Failure> {
        self.read(secret).map_err(|error| {
            tracing::warn!(%secret, %error, "a secret cannot be had");
            Failure::Secret(secret.to_string())
        })
    }

    /// Fills in the secrets that a request carries: where the guest names them, and where they always are unless the
    /// guest puts something else there.
    pub(super) fn fill(&self, fields: &mut HeaderMap, granted: &[Secret]) -> Result<(), Failure> {
        let named: Vec<HeaderName> = fields
            .iter()
            .filter(|(_, value)| contains(value.as_bytes(), OPENS.as_bytes()))
            .map(|(name, _)| name.clone())
            .collect();
        for name in named {
            let mut values = Vec::new();
            for value in fields.get_all(&name) {
                values.push(self.filled(value, granted)?);
            }
            fields.remove(&name);
            for value in values {
                fields.append(name.clone(), value);
            }
        }
        for secret in granted {
            let (field, before) = match &secret.kind {
                Kind::Bearer => (AUTHORIZATION, "Bearer "),
                Kind::Basic => (AUTHORIZATION, "Basic "),
                Kind::Header(header) => {
                    let name = HeaderName::from_bytes(header.as_bytes());
                    (
                        name.map_err(|_| Failure::Secret(secret.name.to_string()))?,
                        "",
                    )
                }
            };
            if fields.contains_key(&field) {
                continue;
            }
            let Value(bytes) = self.value(&secret.name)?;
            let mut whole = before.as_bytes().to_vec();
            match secret.kind {
                Kind::Basic => whole.extend(STANDARD.encode(bytes).into_bytes()),
                Kind::Bearer | Kind::Header(_) => whole.extend(bytes),
            }
            fields.insert(field, sensitive(&whole, &secret.name)?);
        }
        Ok(())
    }

    /// A value with secrets in place of their names.
    fn filled(&self, value: &HeaderValue, granted: &[Secret]) -> Result<HeaderValue, Failure> {
        let Ok(text) = value.to_str() else {
            return Ok(value.clone());
        };
        let mut whole = Vec::with_capacity(text.len());
        let mut rest = text;
        let mut last = None;
        while let Some((before, behind)) = rest.split_once(OPENS)
            && let Some((name, after)) = behind.split_once(CLOSES)
        {
            let secret = granted.iter().find(|secret| secret.name.as_str() == name);
            // One that this host may not see is as unknown as one that is not there.
            let secret = secret.ok_or_else(|| Failure::Secret(shown(name)))?;
            let Value(bytes) = self.value(&secret.name)?;
            whole.extend_from_slice(before.as_bytes());
            whole.extend(bytes);
            rest = after;
            last = Some(&secret.name);
        }
        whole.extend_from_slice(rest.as_bytes());
        match last {
            Some(name) => sensitive(&whole, name),
            None => Ok(value.clone()),
        }
    }
}

fn sensitive(bytes: &[u8], name: &SecretName) -> Result<HeaderValue, Failure> {
    let Ok(mut value) = HeaderValue::from_bytes(bytes) else {
        let error = Unread::Malformed;
        tracing::warn!(secret = %name, %error, "a secret cannot be had");
        return Err(Failure::Secret(name.to_string()));
    };
    value.set_sensitive(true);
    Ok(value)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Enough of what a guest wrote to know it by.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}
