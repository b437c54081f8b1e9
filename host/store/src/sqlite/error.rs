//! What can go wrong with a database, by what can be done about it. No text of SQL leaves this file.

use std::path::{Path, PathBuf};

use longshore_catalog::store::StoreError as CatalogError;
use longshore_tasks::store::StoreError as TaskError;
use rusqlite::ErrorCode;

/// Why a database cannot be opened. Nothing was changed in a file that is not one of ours.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no place for the file.
    #[error("the directory {} for the database does not exist: create it, or name another", .0.display())]
    NoDirectory(PathBuf),
    /// The operating system refuses a file.
    #[error("the database needs to read and write {} and its directory: {source}", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Another process has it.
    #[error(
        "the database {} is in use by another longshore{holder}, which holds {}: stop it, or start this one with another data directory (--data DIR)",
        path.display(), lock.display()
    )]
    InUse {
        /// The database.
        path: PathBuf,
        /// The file whose lock says so.
        lock: PathBuf,
        /// Which process, if it left its number.
        holder: String,
    },
    /// The file holds something else.
    #[error("{} is not a database of longshore ({found}): it was left as it is; name another file", path.display())]
    NotOurs {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The file was a database.
    #[error("the database {} is damaged ({cause}): it was left as it is; restore it from a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it shows.
        cause: String,
    },
    /// A newer program made it.
    #[error(
        "the database {} has schema {found} and this longshore knows schemas up to {known}: \
         use the newer longshore that made it, or name another database",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema that this program knows.
        known: u32,
    },
    /// Nothing is wrong with the file; it may work later.
    #[error("the database {} cannot be opened now: {cause}", path.display())]
    Unavailable {
        /// The file.
        path: PathBuf,
        /// What is in the way.
        cause: String,
    },
}

impl OpenError {
    /// What an error of the driver while opening means for the file at `path`.
    pub(super) fn at(path: &Path, error: &rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotOurs {
                path,
                found: "no SQLite database",
            },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::Denied {
                    path,
                    source: std::io::Error::other(plain(error)),
                }
            }
            _ => match Trouble::from(error) {
                Trouble::Corrupt(cause) => Self::Damaged { path, cause },
                Trouble::Unavailable(cause) | Trouble::Disk(cause) => {
                    Self::Unavailable { path, cause }
                }
            },
        }
    }
}

/// Why a statement did not do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It may work later.
    Unavailable(String),
    /// The disk refused to read or write. What it holds of an unfinished transaction is unknown.
    Disk(String),
    /// The file holds what this program never writes.
    Corrupt(String),
}

impl From<&rusqlite::Error> for Trouble {
    fn from(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Unavailable("another program holds the database's lock".to_owned())
            }
            Some(ErrorCode::DiskFull) => {
                Self::Unavailable("the disk with the database is full: make room".to_owned())
            }
            Some(ErrorCode::SystemIoFailure) => {
                let code = error.sqlite_extended_error_code().unwrap_or_default();
                Self::Disk(format!(
                    "the disk with the database fails: {} ({code}): see whether it is full, and what the system's log says",
                    plain(error)
                ))
            }
            // A constraint holds by construction unless a row is not what this program writes.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation,
            ) => Self::Corrupt(plain(error)),
            Some(_) => Self::Unavailable(plain(error)),
            // Not from SQLite but from the conversion of a value that it gave.
            None => Self::Corrupt(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::from(&error)
    }
}

impl From<Trouble> for TaskError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Unavailable(cause) | Trouble::Disk(cause) => Self::Unavailable(cause),
            Trouble::Corrupt(what) => Self::Corrupt(what),
        }
    }
}

impl From<Trouble> for CatalogError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Unavailable(cause) | Trouble::Disk(cause) => Self::Unavailable(cause),
            Trouble::Corrupt(what) => Self::Corrupt(what),
        }
    }
}

/// The driver's words without the statement, which may hold what a client sent.
fn plain(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqliteFailure(code, None) => code.to_string(),
        rusqlite::Error::SqlInputError { error, msg, .. } => format!("{error}: {msg}"),
        other => other.to_string(),
    }
}
