//! The connections that read. Each read sees everything that was acknowledged before it began.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::error::Trouble;
use super::open::open_reader;

/// How many connections are kept for the next read, beside one for each core. So many are in use now and then on a busy
/// node, and soon; more would be kept only because the machine once had much else to do.
const SPARE: usize = 2;

/// A pool. The one used last is used next, since its cache and its statements are warm.
pub(super) struct Readers {
    path: PathBuf,
    most_idle: usize,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn open(path: &Path) -> rusqlite::Result<Self> {
        let first = open_reader(path)?;
        Ok(Self {
            path: path.to_owned(),
            most_idle: std::thread::available_parallelism().map_or(1, usize::from) + SPARE,
            idle: Mutex::new(vec![first]),
        })
    }

    /// Reads on this thread: for a row by its key, which takes microseconds. Handing over to another
    /// thread would take longer than the read.
    pub(super) fn here<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let idle = self.idle.lock().pop();
        let db = match idle {
            Some(db) => db,
            None => open_reader(&self.path)?,
        };
        let answer = read(&db);
        let mut idle = self.idle.lock();
        if idle.len() < self.most_idle {
            idle.push(db);
        }
        answer
    }

    /// Reads on a thread that may wait: for many rows or large ones.
    pub(super) async fn elsewhere<T, R>(self: &Arc<Self>, read: R) -> Result<T, Trouble>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> Result<T, Trouble> + Send + 'static,
    {
        let readers = Arc::clone(self);
        match tokio::task::spawn_blocking(move || readers.here(read)).await {
            Ok(answer) => answer,
            Err(_) => Err(Trouble::Unavailable("the server is stopping".to_owned())),
        }
    }
}
