//! The one thread that writes. Callers hand it work over a bounded queue; it takes all that has
//! gathered, does it in one transaction, and answers after the commit: one flush of the disk for
//! many callers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot, watch};

use super::error::Trouble;

/// How much work may wait. Beyond it, callers wait to hand over: a store that cannot keep up slows
/// its callers down instead of filling the memory.
const QUEUE: usize = 1024;
/// The longest that the thread waits for a queue as long as the last one. Callers that answer each
/// other in step otherwise fall into two halves, each waiting for the other's flush.
const LINGER: Duration = Duration::from_micros(400);

/// The writing thread's handle. Dropping it waits until all that was handed over is done.
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    room: Semaphore,
    /// Why nothing is written any more, from the moment at which the disk failed.
    given_up: watch::Sender<Option<Arc<str>>>,
    commits: AtomicU64,
    changes: AtomicU64,
}

struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    /// How many jobs the thread waits for.
    wanted: usize,
    /// No more jobs will come, or be done.
    closed: bool,
}

/// One caller's part of a transaction.
trait Job: Send {
    /// Does it, wholly or not at all, and keeps the answer.
    fn run(&mut self, db: &Connection) -> Result<(), Trouble>;
    /// Whether it has changed anything.
    fn has_changed(&self) -> bool;
    /// Answers: what was kept if that is durable now, else why it is not.
    fn settle(self: Box<Self>, durable: Result<(), Trouble>);
}

impl Writer {
    pub(super) fn start(db: Connection) -> std::io::Result<Self> {
        let queue = Queue {
            jobs: VecDeque::new(),
            wanted: 1,
            closed: false,
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            ready: Condvar::new(),
            room: Semaphore::new(QUEUE),
            given_up: watch::Sender::new(None),
            commits: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("longshore-store".to_owned())
            .spawn(move || theirs.run(&db))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Does `work` in a transaction and returns its answer once that is durable. If it fails, none
    /// of its statements has had an effect. A caller that stops waiting does not take it back.
    pub(super) async fn write<T, W>(&self, work: W) -> Result<T, Trouble>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, Trouble> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let room = self.shared.room.acquire().await.map_err(|_| stopped())?;
        {
            let mut queue = self.shared.queue.lock();
            if queue.closed {
                return Err(stopped());
            }
            queue.jobs.push_back(Box::new(Write {
                work: Some(work),
                answer: None,
                changed: false,
                reply,
            }));
            room.forget();
            if queue.jobs.len() >= queue.wanted {
                self.shared.ready.notify_one();
            }
        }
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Waits until the store has given up writing, and says why.
    pub(super) async fn given_up(&self) -> String {
        let mut cause = self.shared.given_up.subscribe();
        match cause.wait_for(Option::is_some).await {
            Ok(cause) => cause.as_deref().unwrap_or_default().to_owned(),
            // The sender lives as long as `self`.
            Err(_) => std::future::pending().await,
        }
    }

    pub(super) fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    pub(super) fn changes(&self) -> u64 {
        self.shared.changes.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.shared.queue.lock().jobs.len()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.ready.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already, by its thread.
            let _panicked = thread.join();
        }
    }
}

fn stopped() -> Trouble {
    Trouble::Unavailable("its writing thread has stopped: restart the server".to_owned())
}

/// What the last transaction was like.
struct Pace {
    jobs: usize,
    /// How long making it durable took.
    took: Duration,
}

impl Shared {
    fn run(&self, db: &Connection) {
        // Nobody must wait for a thread that has panicked.
        struct Close<'a>(&'a Shared);
        impl Drop for Close<'_> {
            fn drop(&mut self) {
                let mut queue = self.0.queue.lock();
                queue.closed = true;
                queue.jobs.clear();
                self.0.room.close();
            }
        }
        let _close = Close(self);
        let mut pace = Pace {
            jobs: 0,
            took: Duration::ZERO,
        };
        while let Some(mut jobs) = self.take(&pace) {
            pace.jobs = jobs.len();
            while !jobs.is_empty() {
                pace.took = self.transact(db, &mut jobs);
            }
        }
    }

    /// All that has gathered; nothing once the handle is gone and the queue empty.
    fn take(&self, pace: &Pace) -> Option<VecDeque<Box<dyn Job>>> {
        let mut queue = self.queue.lock();
        while queue.jobs.is_empty() {
            if queue.closed {
                return None;
            }
            self.ready.wait(&mut queue);
        }
        // While the disk is quick, waiting costs more than it brings.
        if pace.took > LINGER && queue.jobs.len() < pace.jobs {
            queue.wanted = pace.jobs;
            let until = Instant::now() + LINGER;
            while queue.jobs.len() < queue.wanted && !queue.closed {
                if self.ready.wait_until(&mut queue, until).timed_out() {
                    break;
                }
            }
            queue.wanted = 1;
        }
        let jobs = std::mem::take(&mut queue.jobs);
        self.room.add_permits(jobs.len());
        Some(jobs)
    }

    /// Does jobs from the front in one transaction and settles them. All of them, unless one loses
    /// the transaction: then those behind it stay. Says how long the commit took.
    fn transact(&self, db: &Connection, jobs: &mut VecDeque<Box<dyn Job>>) -> Duration {
        let cause = self.given_up.borrow().clone();
        let begun = match cause {
            Some(cause) => Err(Trouble::Unavailable(cause.as_ref().to_owned())),
            None => execute(db, "begin immediate").map_err(|error| self.judge(error.into())),
        };
        if begun.is_err() {
            settle(jobs.drain(..), &begun);
            return Duration::ZERO;
        }
        let mut done = Vec::with_capacity(jobs.len());
        while let Some(mut job) = jobs.pop_front() {
            let ran = job.run(db);
            done.push(job);
            // Some errors, such as a full disk, take the whole transaction with them.
            if db.is_autocommit() {
                let cause = ran
                    .err()
                    .unwrap_or_else(|| Trouble::Unavailable("a transaction was lost".to_owned()));
                settle(done, &Err(self.judge(cause)));
                return Duration::ZERO;
            }
        }
        let begun = Instant::now();
        let changes = done.iter().filter(|job| job.has_changed()).count();
        let committed = execute(db, "commit").map_err(|error| {
            let trouble = self.judge(error.into());
            if !db.is_autocommit()
                && let Err(error) = execute(db, "rollback")
            {
                self.give_up(&Trouble::from(error));
            }
            trouble
        });
        if committed.is_ok() && changes > 0 {
            // Before the answers: whoever has one finds itself counted.
            self.commits.fetch_add(1, Ordering::Relaxed);
            self.changes.fetch_add(changes as u64, Ordering::Relaxed);
        }
        let took = begun.elapsed();
        settle(done, &committed);
        took
    }

    /// Gives up if the disk failed under a transaction. A flush that failed must not be tried again:
    /// the system may have dropped the pages that it could not write and report success for the
    /// rest, and what of the transaction reached the disk is unknown. A process that opens the file
    /// anew reads what is really there.
    fn judge(&self, trouble: Trouble) -> Trouble {
        if matches!(trouble, Trouble::Disk(_)) {
            self.give_up(&trouble);
        }
        trouble
    }

    fn give_up(&self, trouble: &Trouble) {
        let (Trouble::Unavailable(cause) | Trouble::Disk(cause) | Trouble::Corrupt(cause)) =
            trouble;
        tracing::error!(%cause, "nothing is written to the store any more");
        let cause = format!(
            "nothing is written any more since {cause}; restart the server when the disk is well"
        );
        self.given_up.send_replace(Some(cause.into()));
    }
}

fn settle(jobs: impl IntoIterator<Item = Box<dyn Job>>, durable: &Result<(), Trouble>) {
    for job in jobs {
        job.settle(durable.clone());
    }
}

fn execute(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([])?;
    Ok(())
}

struct Write<T, W> {
    work: Option<W>,
    answer: Option<Result<T, Trouble>>,
    changed: bool,
    reply: oneshot::Sender<Result<T, Trouble>>,
}

impl<T, W> Job for Write<T, W>
where
    T: Send,
    W: FnOnce(&Connection) -> Result<T, Trouble> + Send,
{
    fn run(&mut self, db: &Connection) -> Result<(), Trouble> {
        let work = self.work.take().expect("a job is run once");
        let before = db.total_changes();
        let answer = all_or_nothing(db, work);
        self.changed = answer.is_ok() && db.total_changes() != before;
        let ran = answer.as_ref().map(|_| ()).map_err(Trouble::clone);
        self.answer = Some(answer);
        ran
    }

    fn has_changed(&self) -> bool {
        self.changed
    }

    fn settle(self: Box<Self>, durable: Result<(), Trouble>) {
        let answer = match (durable, self.answer) {
            // Its own error says more than that of the transaction.
            (_, Some(Err(own))) => Err(own),
            (Err(lost), _) => Err(lost),
            (Ok(()), Some(Ok(answer))) => Ok(answer),
            (Ok(()), None) => Err(stopped()),
        };
        // A caller may have stopped waiting.
        let _gone = self.reply.send(answer);
    }
}

/// One job that fails must not leave half of its work in the transaction of the others.
fn all_or_nothing<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    execute(db, "savepoint job")?;
    let answer = work(db);
    if db.is_autocommit() {
        return answer;
    }
    let undone = if answer.is_err() {
        execute(db, "rollback to job")
    } else {
        Ok(())
    };
    if let Err(error) = undone.and_then(|()| execute(db, "release job")) {
        // Rather lose the transaction, of which nobody has an answer yet.
        execute(db, "rollback")?;
        return Err(error.into());
    }
    answer
}
