//! One file for one process.
//!
//! Read in this order: `open` (who may open which file), `writer` (the one thread that writes, and
//! what it does when the disk fails), `readers` (the connections that read), `rows` (columns and
//! types), `tasks`, `journal`, `lists`, `components`, `values`, `artifacts` and `secret` (the statements), `schema` (the tables and their
//! history).

mod artifacts;
mod components;
mod error;
mod journal;
mod lists;
mod open;
mod readers;
mod rows;
mod schema;
mod secret;
mod tasks;
#[cfg(test)]
mod tests;
mod values;
mod writer;

use std::path::Path;
use std::sync::Arc;

pub use self::error::OpenError;
use self::open::Lock;
use self::readers::Readers;
pub use self::secret::Sealed;
use self::writer::Writer;

/// A database in one file. Clones share it; dropping the last one waits until everything that was
/// handed over is written, and lets another process have the file.
///
/// An acknowledged write is on the disk. A write that fails with `Unavailable` has no effect that
/// this process shows, except that after a failure of the disk it can be there when the file is
/// opened again: look before you repeat it.
#[derive(Clone)]
pub struct Sqlite(Arc<Inner>);

/// Dropped in this order: the writer is the last to close the file, and so empties its log.
struct Inner {
    readers: Arc<Readers>,
    writer: Writer,
    _lock: Lock,
}

impl Sqlite {
    /// Opens the database at `path`, or makes it if there is no such file; its directory must exist.
    /// Takes an older schema to today's. The file `path` + `.lock` keeps other processes away and
    /// stays when the database is closed.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        // Later connections must find the same file wherever the process then is.
        let path = std::path::absolute(path).map_err(|source| OpenError::Denied {
            path: path.to_owned(),
            source,
        })?;
        let (lock, db) = open::open_writer(&path)?;
        let readers = Readers::open(&path).map_err(|error| OpenError::at(&path, &error))?;
        let writer = Writer::start(db).map_err(|error| OpenError::Unavailable {
            path,
            cause: error.to_string(),
        })?;
        Ok(Self(Arc::new(Inner {
            readers: Arc::new(readers),
            writer,
            _lock: lock,
        })))
    }

    /// Waits until the disk has failed under a write, and says how. From then on every write is
    /// refused, since nobody knows what the disk holds; reading goes on. To write again, the process
    /// has to open the file anew: end it.
    pub async fn given_up(&self) -> String {
        self.0.writer.given_up().await
    }
}
