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
const CLOSES: &str = "}";

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
        // What is judged is what is read, whatever stands at its path by then.
        let file = regular::open_itself(&path)?;
        if file.metadata()?.mode() & 0o077 != 0 {
            return Err(Unread::Open);
        }
        let mut bytes = regular::read_all(file, MOST_BYTES)?;
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
    /// guest puts something else there. One of those that are not to be read by anybody on the way is returned.
    pub(super) fn fill(
        &self,
        fields: &mut HeaderMap,
        granted: &[Secret],
    ) -> Result<Option<SecretName>, Failure> {
        let mut guarded = None;
        let named: Vec<HeaderName> = fields
            .iter()
            .filter(|(_, value)| split(value.as_bytes(), OPENS).is_some())
            .map(|(name, _)| name.clone())
            .collect();
        for name in named {
            let mut values = Vec::new();
            for value in fields.get_all(&name) {
                values.push(self.filled(value, granted, &mut guarded)?);
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
            guard(secret, &mut guarded);
            let mut whole = before.as_bytes().to_vec();
            match secret.kind {
                Kind::Basic => whole.extend(STANDARD.encode(bytes).into_bytes()),
                Kind::Bearer | Kind::Header(_) => whole.extend(bytes),
            }
            fields.insert(field, sensitive(&whole, &secret.name)?);
        }
        Ok(guarded)
    }

    /// A value with secrets in place of their names.
    fn filled(
        &self,
        value: &HeaderValue,
        granted: &[Secret],
        guarded: &mut Option<SecretName>,
    ) -> Result<HeaderValue, Failure> {
        // A field is bytes: what stands around a name need be no text.
        let mut rest = value.as_bytes();
        let mut whole = Vec::with_capacity(rest.len());
        let mut last = None;
        while let Some((before, behind)) = split(rest, OPENS)
            && let Some((name, after)) = split(behind, CLOSES)
        {
            let is_meant = |secret: &&Secret| secret.name.as_str().as_bytes() == name;
            // One that this host may not see is as unknown as one that is not there.
            let secret = granted.iter().find(is_meant);
            let secret = secret.ok_or_else(|| Failure::Secret(shown(name)))?;
            let Value(bytes) = self.value(&secret.name)?;
            guard(secret, guarded);
            whole.extend_from_slice(before);
            whole.extend(bytes);
            rest = after;
            last = Some(&secret.name);
        }
        whole.extend_from_slice(rest);
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

/// What is before the first of those, and what is behind it.
fn split<'b>(bytes: &'b [u8], at: &str) -> Option<(&'b [u8], &'b [u8])> {
    let mut places = bytes.windows(at.len());
    let place = places.position(|window| window == at.as_bytes())?;
    Some((&bytes[..place], &bytes[place + at.len()..]))
}

fn guard(secret: &Secret, guarded: &mut Option<SecretName>) {
    if !secret.plain {
        guarded.get_or_insert_with(|| secret.name.clone());
    }
}

/// Enough of what a guest wrote to know it by.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(64).collect()
}
