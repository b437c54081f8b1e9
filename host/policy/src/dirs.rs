//! Directories of the host that a guest may use. Paths are texts here; whoever opens them looks at what is there.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// What may be done in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Looking.
    #[default]
    ReadOnly,
    /// Looking and changing.
    ReadWrite,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
        })
    }
}

/// A path that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} {fault}")]
pub struct BadPath {
    path: String,
    fault: &'static str,
}

/// The longest path that a guest may be shown, and that a system opens.
const PATH_BYTES: usize = 4096;

/// An absolute path without anything that has to be resolved.
fn plain(path: &str) -> Result<(), &'static str> {
    let Some(inside) = path.strip_prefix('/') else {
        return Err("is no absolute path");
    };
    if path.len() > PATH_BYTES {
        return Err("is too long for a path");
    }
    if path.contains('\0') {
        return Err("has a zero byte in it");
    }
    if inside
        .split('/')
        .any(|part| matches!(part, "" | "." | ".."))
    {
        return Err("is to be written without `.`, `..`, `//` and a slash at its end");
    }
    Ok(())
}

macro_rules! path {
    ($(#[$about:meta])* $name:ident, $also:expr) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The path as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadPath;

            fn from_str(path: &str) -> Result<Self, BadPath> {
                let also: fn(&str) -> Result<(), &'static str> = $also;
                plain(path)
                    .and_then(|()| also(path))
                    .map(|()| Self(path.to_owned()))
                    .map_err(|fault| BadPath { path: path.chars().take(200).collect(), fault })
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadPath;

            fn try_from(path: String) -> Result<Self, BadPath> {
                path.parse()
            }
        }

        impl From<$name> for String {
            fn from(path: $name) -> Self {
                path.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

path!(
    /// Where a guest finds a directory.
    GuestPath,
    |path| if lies_in(path, SCRATCH) {
        Err("is the guest's own place for files: choose another path")
    } else {
        Ok(())
    }
);
path!(
    /// Where the host has it.
    HostPath,
    |path| if KERNELS.iter().any(|kernels| lies_in(path, kernels)) {
        Err("is the kernel's, where a file is no file")
    } else {
        Ok(())
    }
);

/// What every guest has anyhow.
const SCRATCH: &str = "/scratch";
/// Trees of things that only look like files.
const KERNELS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Whether the path is that directory or lies in it.
fn lies_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A directory that a component asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Where it looks for it.
    pub guest: GuestPath,
    /// What it does there.
    #[serde(default)]
    pub access: Access,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.guest, self.access)
    }
}

/// A directory of the host that a guest may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Where the guest finds it.
    pub guest: GuestPath,
    /// Where the host has it.
    pub host: HostPath,
    /// What the guest may do there.
    #[serde(default)]
    pub access: Access,
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {} ({})", self.guest, self.host, self.access)
    }
}

impl Mount {
    /// What of it was asked for.
    #[must_use]
    pub fn meet(&self, asked: &[Asked]) -> Option<Self> {
        let asked = asked.iter().find(|asked| asked.guest == self.guest)?;
        Some(Self {
            access: self.access.min(asked.access),
            ..self.clone()
        })
    }
}

/// Two directories that a guest could not tell apart, if there are any.
pub(crate) fn clash<'p>(
    paths: impl Iterator<Item = &'p GuestPath> + Clone,
) -> Option<(&'p str, &'p str)> {
    let mut rest = paths;
    while let Some(one) = rest.next() {
        let (one, mut others) = (one.as_str(), rest.clone().map(GuestPath::as_str));
        if let Some(other) = others.find(|other| lies_in(other, one) || lies_in(one, other)) {
            return Some((one, other));
        }
    }
    None
}
