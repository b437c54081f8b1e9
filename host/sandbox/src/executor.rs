//! Shares a few threads out between guests that answer and guests that compute.
//!
//! Two queues, first in first out: one for what is new or was woken, one for what gave way in the
//! middle of computing. Threads take from both so that each gets half of the time while both have
//! work: a short call does not wait behind every long one, and a stream of short calls does not
//! starve the long ones. A runtime with one queue a thread does neither: with sixteen guests that
//! compute, short calls took a second and the shares of the sixteen differed by a factor of four.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use async_task::{Runnable, ScheduleInfo};
use parking_lot::{Condvar, Mutex};

/// How far one queue may run ahead of the other before it has to wait: a few slices, so that a queue
/// that was empty for long has no claim to catch up on.
const MOST_AHEAD: Duration = Duration::from_millis(20);
/// Shortest time between two requests that whoever computes give way.
const NUDGE_EVERY: Duration = Duration::from_micros(500);
/// Below the threads that answer callers, so that polls are answered while every guest computes. Not
/// so far below that other programs could stop guests altogether.
const NICENESS: i32 = 10;

/// Names a run, so that it can be found in a queue.
pub(crate) type RunKey = u64;

type Run = Runnable<RunKey>;

/// The threads and their queues.
pub(crate) struct Executor {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    queues: Mutex<Queues>,
    work: Condvar,
    threads: usize,
    /// Asks every guest that computes to give way soon.
    nudge: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Queues {
    fresh: VecDeque<Run>,
    yielded: VecDeque<Run>,
    /// How much longer fresh work was run than yielded work, in nanoseconds; negative the other way.
    fresh_ahead_ns: i64,
    /// Threads that run yielded work now.
    computing: usize,
    /// Threads that wait for work.
    idle: usize,
    nudged_at: Option<Instant>,
    closing: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    Fresh,
    Yielded,
}

impl Executor {
    /// Starts that many threads. Each does its work within `within`.
    pub(crate) fn new(
        threads: usize,
        within: impl Fn(&dyn Fn()) + Send + Clone + 'static,
        nudge: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queues: Mutex::default(),
            work: Condvar::new(),
            threads,
            nudge: Box::new(nudge),
        });
        let mut executor = Self {
            shared: Arc::clone(&shared),
            threads: Vec::with_capacity(threads),
        };
        for n in 0..threads {
            let shared = Arc::clone(&shared);
            let within = within.clone();
            let thread = std::thread::Builder::new()
                .name(format!("guest-{n}"))
                .spawn(move || {
                    lower_priority();
                    within(&|| shared.work());
                })?;
            executor.threads.push(thread);
        }
        Ok(executor)
    }

    /// A future made ready to run here, under that key. Whoever gets it polls it once by
    /// [`Start::here`], or hands it to the threads by [`Start::queued`].
    pub(crate) fn prepare(
        &self,
        key: RunKey,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Start {
        let shared = Arc::clone(&self.shared);
        let schedule = async_task::WithInfo(move |run: Run, info: ScheduleInfo| {
            // What wakes itself while it runs gives way; everything else was woken by somebody.
            let queue = if info.woken_while_running {
                Queue::Yielded
            } else {
                Queue::Fresh
            };
            shared.push(run, queue);
        });
        let (run, task) = async_task::Builder::new()
            .metadata(key)
            .spawn(|_| future, schedule);
        // It reports through what it was given, and ends by itself or with the threads.
        task.detach();
        Start(run)
    }

    /// Lets a run that waits its turn have it next.
    pub(crate) fn boost(&self, key: RunKey) {
        let mut queues = self.shared.queues.lock();
        let found = queues.yielded.iter().position(|run| *run.metadata() == key);
        if let Some(run) = found.and_then(|place| queues.yielded.remove(place)) {
            queues.fresh.push_front(run);
        }
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.shared.threads
    }
}

/// A run before its first poll.
pub(crate) struct Start(Run);

impl Start {
    /// Polls it once on this thread; whatever is left goes on on the executor's own.
    pub(crate) fn here(self) {
        self.0.run();
    }

    /// Leaves it to the executor's threads.
    pub(crate) fn queued(self) {
        self.0.schedule();
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        let (fresh, yielded) = {
            let mut queues = self.shared.queues.lock();
            queues.closing = true;
            (
                std::mem::take(&mut queues.fresh),
                std::mem::take(&mut queues.yielded),
            )
        };
        self.shared.work.notify_all();
        // A run that is dropped may schedule others, so the lock is not held here.
        drop((fresh, yielded));
        let this = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // The last handle may go on one of these threads, which cannot wait for itself.
            if thread.thread().id() != this {
                let _a_panic_was_reported_by_its_thread = thread.join();
            }
        }
    }
}

impl Shared {
    fn push(&self, run: Run, queue: Queue) {
        let must_nudge = {
            let mut queues = self.queues.lock();
            if queues.closing {
                drop(queues);
                // Dropped outside the lock: a future may wake others as it goes.
                drop(run);
                return;
            }
            match queue {
                Queue::Fresh => queues.fresh.push_back(run),
                Queue::Yielded => queues.yielded.push_back(run),
            }
            queue == Queue::Fresh && queues.must_nudge(self.threads)
        };
        self.work.notify_one();
        if must_nudge {
            (self.nudge)();
        }
    }

    fn work(&self) {
        let mut ran: Option<(Queue, Duration)> = None;
        while let Some((run, queue)) = self.take(ran.take()) {
            let began = Instant::now();
            run.run();
            ran = Some((queue, began.elapsed()));
        }
    }

    /// Charges what this thread ran last and waits for what it is to run next.
    fn take(&self, ran: Option<(Queue, Duration)>) -> Option<(Run, Queue)> {
        let mut queues = self.queues.lock();
        if let Some((queue, time)) = ran {
            queues.charge(queue, time);
        }
        loop {
            if queues.closing {
                return None;
            }
            if let Some(next) = queues.next() {
                return Some(next);
            }
            queues.idle += 1;
            self.work.wait(&mut queues);
            queues.idle -= 1;
        }
    }
}

impl Queues {
    fn next(&mut self) -> Option<(Run, Queue)> {
        let fresh_first = self.yielded.is_empty() || self.fresh_ahead_ns <= 0;
        let queue = if !self.fresh.is_empty() && fresh_first {
            Queue::Fresh
        } else if !self.yielded.is_empty() {
            Queue::Yielded
        } else {
            return None;
        };
        let run = match queue {
            Queue::Fresh => self.fresh.pop_front(),
            Queue::Yielded => {
                self.computing += 1;
                self.yielded.pop_front()
            }
        };
        run.map(|run| (run, queue))
    }

    fn charge(&mut self, queue: Queue, time: Duration) {
        let time = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let most = i64::try_from(MOST_AHEAD.as_nanos()).unwrap_or(i64::MAX);
        let moved = match queue {
            Queue::Fresh => self.fresh_ahead_ns.saturating_add(time),
            Queue::Yielded => {
                self.computing -= 1;
                self.fresh_ahead_ns.saturating_sub(time)
            }
        };
        self.fresh_ahead_ns = moved.clamp(-most, most);
    }

    /// Whether somebody has to give way for what just arrived: every thread computes, and none was
    /// asked a moment ago.
    fn must_nudge(&mut self, threads: usize) -> bool {
        let now = Instant::now();
        let is_due = self
            .nudged_at
            .is_none_or(|at| now.duration_since(at) >= NUDGE_EVERY);
        let must = self.idle == 0 && self.computing >= threads && is_due;
        if must {
            self.nudged_at = Some(now);
        }
        must
    }
}

fn lower_priority() {
    // On Linux the id of a thread names its own priority.
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), NICENESS) {
        tracing::debug!(%error, "guest threads run at the priority of all others");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    fn executor(threads: usize) -> Executor {
        Executor::new(threads, |work| work(), || ()).unwrap()
    }

    /// Gives way once.
    async fn give_way() {
        let mut gave = false;
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut gave, true) {
                return std::task::Poll::Ready(());
            }
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        })
        .await;
    }

    /// Computes for slices of about a millisecond, giving way between them.
    async fn compute(slices: Arc<AtomicUsize>, stop: Arc<AtomicUsize>) {
        while stop.load(Ordering::Acquire) == 0 {
            let until = Instant::now() + Duration::from_millis(1);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            slices.fetch_add(1, Ordering::AcqRel);
            give_way().await;
        }
    }

    #[test]
    fn what_computes_shares_and_what_is_new_overtakes() {
        let executor = executor(1);
        let stop = Arc::new(AtomicUsize::new(0));
        let slices: Vec<Arc<AtomicUsize>> = (0..8).map(|_| Arc::default()).collect();
        for (key, slices) in slices.iter().enumerate() {
            let computing = compute(Arc::clone(slices), Arc::clone(&stop));
            executor.prepare(key as u64, computing).queued();
        }
        // Every one of them has had some turns before the rest begins.
        while slices
            .iter()
            .any(|slices| slices.load(Ordering::Acquire) < 5)
        {
            std::thread::yield_now();
        }
        let counts = || -> Vec<usize> {
            slices
                .iter()
                .map(|slices| slices.load(Ordering::Acquire))
                .collect()
        };
        let before = counts();
        let (done, is_done) = mpsc::channel();
        executor
            .prepare(99, async move { done.send(()).unwrap() })
            .queued();
        is_done.recv_timeout(Duration::from_secs(10)).unwrap();
        let turns: usize = counts().iter().sum::<usize>() - before.iter().sum::<usize>();
        // Not one round of the eight went by: it waited for the slice that ran, and perhaps one more.
        assert!(turns < 8, "{turns}");

        while counts().iter().sum::<usize>() - before.iter().sum::<usize>() < 80 {
            std::thread::yield_now();
        }
        let turns: Vec<usize> = counts()
            .iter()
            .zip(&before)
            .map(|(now, then)| now - then)
            .collect();
        let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
        // They were counted while they ran, so one turn more or less at either end.
        assert!(most - least <= 2, "first in, first out: {turns:?}");
        stop.store(1, Ordering::Release);
    }

    #[test]
    fn a_stream_of_new_work_does_not_starve_what_computes() {
        let executor = Arc::new(executor(1));
        let stop = Arc::new(AtomicUsize::new(0));
        let slices: Arc<AtomicUsize> = Arc::default();
        executor
            .prepare(0, compute(Arc::clone(&slices), Arc::clone(&stop)))
            .queued();
        // Each piece of new work brings the next before it ends: the queue is never empty.
        fn flood(executor: &Arc<Executor>, stop: Arc<AtomicUsize>) {
            let next = Arc::clone(executor);
            let work = async move {
                let until = Instant::now() + Duration::from_micros(200);
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                if stop.load(Ordering::Acquire) == 0 {
                    flood(&next, stop);
                }
            };
            executor.prepare(1, work).queued();
        }
        flood(&executor, Arc::clone(&stop));
        let deadline = Instant::now() + Duration::from_secs(10);
        while slices.load(Ordering::Acquire) < 20 {
            assert!(Instant::now() < deadline, "starved");
            std::thread::yield_now();
        }
        stop.store(1, Ordering::Release);
    }

    #[test]
    fn a_boost_is_next_and_an_arrival_nudges() {
        let nudges = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&nudges);
        let executor = Executor::new(
            1,
            |work| work(),
            move || {
                counted.fetch_add(1, Ordering::AcqRel);
            },
        )
        .unwrap();
        let stop = Arc::new(AtomicUsize::new(0));
        let slices: Vec<Arc<AtomicUsize>> = (0..4).map(|_| Arc::default()).collect();
        for (key, slices) in slices.iter().enumerate() {
            let computing = compute(Arc::clone(slices), Arc::clone(&stop));
            executor.prepare(key as u64, computing).queued();
        }
        while slices
            .iter()
            .any(|slices| slices.load(Ordering::Acquire) < 2)
        {
            std::thread::yield_now();
        }
        // The boosted one runs as often as all others together while it is boosted again and again.
        let before = slices[2].load(Ordering::Acquire);
        while slices[2].load(Ordering::Acquire) < before + 10 {
            executor.boost(2);
            std::thread::yield_now();
        }
        let nudged = nudges.load(Ordering::Acquire);
        while nudges.load(Ordering::Acquire) == nudged {
            executor.prepare(9, async {}).queued();
            std::thread::yield_now();
        }
        stop.store(1, Ordering::Release);
    }

    #[test]
    fn the_first_poll_can_be_here_and_the_rest_goes_there() {
        let executor = executor(1);
        let (tell, told) = mpsc::channel();
        let start = executor.prepare(1, async move {
            tell.send(std::thread::current().id()).unwrap();
            give_way().await;
            tell.send(std::thread::current().id()).unwrap();
        });
        start.here();
        let here = told.try_recv().unwrap();
        assert_eq!(here, std::thread::current().id());
        let there = told.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_ne!(here, there);
    }

    #[test]
    fn dropping_it_drops_what_waits_and_joins_the_threads() {
        struct Gone(mpsc::Sender<()>);
        impl Drop for Gone {
            fn drop(&mut self) {
                let _nobody_need_listen = self.0.send(());
            }
        }
        let (gone, is_gone) = mpsc::channel();
        let executor = executor(2);
        let guard = Gone(gone);
        executor
            .prepare(1, async move {
                let _guard = guard;
                loop {
                    give_way().await;
                }
            })
            .queued();
        drop(executor);
        is_gone.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
