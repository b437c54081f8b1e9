//! When a kill fell: told from what clients had sent without an answer, and from what the dead server left in its
//! database.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

/// A request whose answer nobody got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// A call under a key of the client's own.
    Start { key: String, tool: usize },
    /// The answer to a question.
    Answer { id: String, key: String },
}

/// Kills that fell there. One may fall into several: each task is somewhere else.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Windows {
    /// A request was sent and not answered, and the database holds nothing of it.
    pub(super) before_commit: usize,
    /// A request was sent and not answered, and the database holds what it asked for.
    pub(super) before_reply: usize,
    /// A moment before it, a run repeated its past, and a run that had been claimed again has added nothing.
    pub(super) during_replay: usize,
    /// A task waited, and nobody ran it.
    pub(super) while_parked: usize,
}

impl Windows {
    /// Whether each was hit so often.
    pub(super) fn each(&self, least: usize) -> bool {
        let all = [
            self.before_commit,
            self.before_reply,
            self.during_replay,
            self.while_parked,
        ];
        all.iter().all(|kills| *kills >= least)
    }

    pub(super) fn note(&mut self, left: &Left, unanswered: &[Unanswered], replaying: &Value) {
        let kept = unanswered.iter().filter(|sent| left.holds(sent)).count();
        self.before_reply += usize::from(kept > 0);
        self.before_commit += usize::from(kept < unanswered.len());
        let repeats = replaying.as_u64().is_some_and(|runs| runs > 0);
        self.during_replay += usize::from(repeats && left.claimed_again() > 0);
        self.while_parked += usize::from(left.parked() > 0);
    }
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} before a commit, {} between commit and reply, {} during replay, {} while parked",
            self.before_commit, self.before_reply, self.during_replay, self.while_parked
        )
    }
}

/// What a dead server left. A copy: whoever opens the database itself would tidy up before the next server does.
pub(super) struct Left {
    db: Connection,
    _copy: TempDir,
}

impl Left {
    pub(super) fn in_folder(data: &Path) -> Self {
        let copy = tempfile::tempdir().expect("a temporary folder can be made");
        for name in ["longshore.db", "longshore.db-wal"] {
            let from = data.join(name);
            if from.exists() {
                std::fs::copy(from, copy.path().join(name)).expect("it can be copied");
            }
        }
        let db = Connection::open(copy.path().join("longshore.db")).expect("it can be opened");
        Self { db, _copy: copy }
    }

    /// The task of a call under that key.
    pub(super) fn task_of(&self, key: &str) -> Option<String> {
        let select = "select id from task where idempotency_key = ?1";
        let found = self
            .db
            .query_row(select, [key], |row| row.get::<_, [u8; 16]>(0));
        let id = found.optional().expect("it can be read")?;
        Some(Uuid::from_bytes(id).to_string())
    }

    fn holds(&self, sent: &Unanswered) -> bool {
        match sent {
            Unanswered::Start { key, .. } => self.task_of(key).is_some(),
            Unanswered::Answer { id, key } => {
                let id: Uuid = id.parse().expect("ids of tasks are those of the server");
                // The questions of a task that has ended are gone; it needed its answers to end.
                let select = "select t.ended_at is not null or q.answer is not null from task t \
                     left join question q on q.task = t.key and q.key = ?2 where t.id = ?1";
                self.db
                    .query_row(select, params![id.as_bytes(), key], |row| row.get(0))
                    .expect("a task that was shown is there")
            }
        }
    }

    /// Tasks that have not ended.
    pub(super) fn unfinished(&self) -> BTreeSet<String> {
        let mut select = self
            .db
            .prepare("select id from task where ended_at is null")
            .expect("there are tasks");
        let rows = select.query_map([], |row| row.get::<_, [u8; 16]>(0));
        rows.expect("they can be read")
            .map(|id| Uuid::from_bytes(id.expect("it can be read")).to_string())
            .collect()
    }

    fn count(&self, what: &str) -> i64 {
        let select = format!("select count(*) from task t where t.ended_at is null and {what}");
        self.db
            .query_row(&select, [], |row| row.get(0))
            .expect("it can be read")
    }

    /// Tasks that nobody ran, and that wait for somebody or for a time.
    fn parked(&self) -> i64 {
        self.count("t.owner is null and (t.state = 'input_required' or t.wake_at is not null)")
    }

    /// Tasks that the dead server went on with, and of which it has kept nothing since.
    fn claimed_again(&self) -> i64 {
        self.count(
            "t.owner is not null and t.segments > 0 and not exists \
             (select 1 from segment s where s.task = t.key and s.epoch = t.epoch)",
        )
    }
}

/// Watches the log of the database, and returns when it was written to so many times, or after a while.
pub(super) fn until_written(data: &Path, times: usize) {
    const PATIENCE: Duration = Duration::from_millis(300);
    let log = data.join("longshore.db-wal");
    let state = || -> Option<(u64, SystemTime)> {
        let found = std::fs::metadata(&log).ok()?;
        Some((found.len(), found.modified().ok()?))
    };
    let began = Instant::now();
    for _ in 0..times {
        let before = state();
        while state() == before {
            if began.elapsed() > PATIENCE {
                return;
            }
            std::thread::yield_now();
        }
    }
}
