//! Who was on a thread when the process died. What a death leaves behind has to be written before it, so that a run
//! under which processes have died is marked for each of its turns; the others cost nothing.
//!
//! The marks are only for the next process on the same machine: they are not made durable, since a machine that loses
//! its power was not brought down by a guest.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longshore_sandbox::outside::Witness;
use longshore_tasks::id::TaskId;
use parking_lot::Mutex;
use uuid::Uuid;

/// The bytes of a mark: an id, or nothing.
const MARK: usize = 16;
const NONE: [u8; MARK] = [0; MARK];
/// More bytes than all marks of a process.
const MOST_BYTES: u64 = 1024 * 1024;

/// The marks of a process, and those of the one before it.
#[derive(Clone, Default)]
pub struct Marks(Option<Arc<Kept>>);

struct Kept {
    file: File,
    found: HashSet<TaskId>,
    /// Places in the file that nobody has, and the first that nobody ever had.
    free: Mutex<(Vec<u64>, u64)>,
}

impl Marks {
    /// Those in that file, which nobody else has open.
    ///
    /// # Errors
    ///
    /// If it cannot be read and written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let mut bytes = Vec::new();
        (&file).take(MOST_BYTES).read_to_end(&mut bytes)?;
        let (marks, _) = bytes.as_chunks::<MARK>();
        let found = marks
            .iter()
            .filter(|mark| **mark != NONE)
            .map(|mark| TaskId(Uuid::from_bytes(*mark)))
            .collect();
        file.set_len(0)?;
        Ok(Self(Some(Arc::new(Kept {
            file,
            found,
            free: Mutex::default(),
        }))))
    }

    /// Whether the process before this one may have died with that run on a thread. Who keeps no marks cannot tell.
    pub(crate) fn may_have_run(&self, id: TaskId) -> bool {
        self.0.as_ref().is_none_or(|kept| kept.found.contains(&id))
    }

    /// The mark of a run, which is set for each of its turns.
    pub(crate) fn of(&self, id: TaskId) -> Option<Arc<Mark>> {
        let kept = Arc::clone(self.0.as_ref()?);
        let at = {
            let (free, next) = &mut *kept.free.lock();
            free.pop().unwrap_or_else(|| {
                let at = *next;
                *next += MARK as u64;
                at
            })
        };
        Some(Arc::new(Mark {
            kept,
            at,
            id: *id.0.as_bytes(),
            is_over: AtomicBool::new(false),
            is_set: AtomicBool::new(false),
        }))
    }
}

/// The mark of one run.
pub(crate) struct Mark {
    kept: Arc<Kept>,
    at: u64,
    id: [u8; MARK],
    is_over: AtomicBool,
    is_set: AtomicBool,
}

impl Mark {
    /// It came further: nobody need know any more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn write(&self, mark: &[u8; MARK]) {
        // Without a mark the run is not suspected, which harms nobody but who looks for a culprit.
        let _full_or_broken = self.kept.file.write_all_at(mark, self.at);
    }
}

impl Witness for Mark {
    fn enters(&self) {
        if !self.is_over.load(Ordering::Acquire) {
            self.is_set.store(true, Ordering::Release);
            self.write(&self.id);
        }
    }

    fn leaves(&self) {
        if self.is_set.swap(false, Ordering::AcqRel) {
            self.write(&NONE);
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.leaves();
        self.kept.free.lock().0.push(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_on_a_thread_at_a_death_is_known_and_nothing_else() {
        let path = std::env::temp_dir().join(Uuid::new_v4().to_string());
        let id = |n| TaskId(Uuid::from_u128(n));
        let marks = Marks::open(&path).unwrap();
        assert!(!marks.may_have_run(id(1)));
        let [one, two, three] = [1, 2, 3].map(|n| marks.of(id(n)).unwrap());
        for mark in [&one, &two, &three] {
            mark.enters();
        }
        two.leaves();
        drop(three);
        // One takes the place of another that is gone.
        let four = marks.of(id(4)).unwrap();
        four.enters();
        // It came further, so that its next turn is not marked.
        let five = marks.of(id(5)).unwrap();
        five.end();
        five.enters();

        let next = Marks::open(&path).unwrap();
        let known: Vec<bool> = (1..=5).map(|n| next.may_have_run(id(n))).collect();
        assert_eq!(known, [true, false, false, true, false]);
        // Each death is one of its own.
        assert!(!Marks::open(&path).unwrap().may_have_run(id(1)));
        // Who cannot tell suspects all.
        assert!(Marks::default().may_have_run(id(9)));
        std::fs::remove_file(path).unwrap();
    }
}
