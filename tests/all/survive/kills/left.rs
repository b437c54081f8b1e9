//! What lies on the disk when a server was killed, and in which window the kill fell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;
use uuid::Uuid;

/// The rows as the dead server left them.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) unfinished: BTreeSet<String>,
    /// That wait and are in no memory.
    pub(super) parked: usize,
    /// That the dead server had claimed, and under whose lease nothing was written: it still repeated what was
    /// recorded of them before, or had only just come to the end of that.
    pub(super) brought_back: usize,
    pub(super) ids: BTreeSet<String>,
    /// Questions that are answered, by task; only of tasks that have not ended.
    answered: BTreeMap<String, BTreeSet<String>>,
    ended: BTreeSet<String>,
}

impl Left {
    /// Reads a copy: whoever opens the files themselves repairs them, which is the next server's to do.
    pub(super) fn of(data: &Path) -> Self {
        let copy = tempfile::tempdir().expect("a temporary folder can be made");
        for entry in std::fs::read_dir(data).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.expect("its files have plain names");
            if path.is_file() && name.contains(".db") {
                std::fs::copy(&path, copy.path().join(name)).expect("it can be copied");
            }
        }
        let database = Connection::open(copy.path().join("longshore.db")).expect("it opens");
        Self::read(&database).expect("it has the tables that servers make")
    }

    fn read(database: &Connection) -> rusqlite::Result<Self> {
        let mut left = Self::default();
        let mut rows = database.prepare(
            "select id, state, owner is null, ended_at is null, segments > 0 and epoch > coalesce(
                 (select max(segment.epoch) from segment where segment.task = task.key), 0)
             from task",
        )?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let id = hyphenated(&row.get::<_, Vec<u8>>(0)?);
            let (state, is_unowned): (String, bool) = (row.get(1)?, row.get(2)?);
            let (is_unfinished, is_fresh): (bool, bool) = (row.get(3)?, row.get(4)?);
            if is_unfinished {
                left.unfinished.insert(id.clone());
                left.parked += usize::from(is_unowned && state == "input_required");
                left.brought_back += usize::from(!is_unowned && is_fresh);
            } else {
                left.ended.insert(id.clone());
            }
            left.ids.insert(id);
        }
        let mut rows = database.prepare(
            "select task.id, question.key from question join task on task.key = question.task
             where question.state = 'answered'",
        )?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let id = hyphenated(&row.get::<_, Vec<u8>>(0)?);
            left.answered.entry(id).or_default().insert(row.get(1)?);
        }
        Ok(left)
    }

    /// Whether that answer was taken. The questions of a task that has ended are gone, and it has not ended without.
    pub(super) fn is_answered(&self, id: &str, key: &str) -> bool {
        self.ended.contains(id) || self.answered.get(id).is_some_and(|keys| keys.contains(key))
    }
}

fn hyphenated(id: &[u8]) -> String {
    Uuid::from_slice(id)
        .expect("ids have 16 bytes")
        .hyphenated()
        .to_string()
}

/// A request that had reached the server when it was killed, and that nobody answered.
#[derive(Clone, Debug)]
pub(super) enum Cut {
    Start,
    Answer { id: String, key: String },
}

/// Kills by what they fell into; one can fall into several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Windows {
    /// A request was sent, and what it asks for was not done.
    pub(super) before_commit: u64,
    /// It was done, and the client was not told.
    pub(super) before_reply: u64,
    pub(super) while_brought_back: u64,
    pub(super) while_parked: u64,
}

impl Windows {
    /// Counts a kill. `untold` tasks were made of which no client knows, more than at the kill before.
    pub(super) fn count(&mut self, left: &Left, cuts: &[Cut], untold: usize) {
        let answers = cuts.iter().filter_map(|cut| match cut {
            Cut::Answer { id, key } => Some(left.is_answered(id, key)),
            Cut::Start => None,
        });
        let (taken, lost): (Vec<bool>, Vec<bool>) = answers.partition(|is_taken| *is_taken);
        let starts = cuts.len() - taken.len() - lost.len();
        self.before_reply += u64::from(!taken.is_empty() || untold > 0);
        self.before_commit += u64::from(!lost.is_empty() || starts > untold);
        self.while_brought_back += u64::from(left.brought_back > 0);
        self.while_parked += u64::from(left.parked > 0);
    }

    /// Those that only a kill at the right moment falls into.
    pub(super) fn narrow(self) -> u64 {
        self.before_commit + self.before_reply + self.while_brought_back
    }

    /// The one that was met least.
    pub(super) fn least(self) -> u64 {
        [
            self.before_commit,
            self.before_reply,
            self.while_brought_back,
            self.while_parked,
        ]
        .into_iter()
        .min()
        .unwrap_or_default()
    }
}
