//! What a run costs: CPU time of the thread that polls it, and nothing while nobody does; and how long
//! it was at work, which is also the time in which it waited for a thread, but not for anything else.
//!
//! What it takes to repeat a run's past is counted apart, so that none dies of its own history.
//!
//! To ask for CPU time is a system call, and most runs are over within their first turn, on a thread that seldom has to
//! share its core. So that turn is charged the time that passes, which is no less, until its first epoch.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// In place of the thread's CPU time when a poll began.
const NOT_ASKED: u64 = u64::MAX;

/// The time of one run. Written by whichever thread polls it, one at a time.
#[derive(Debug)]
pub(crate) struct Meter {
    used_ns: AtomicU64,
    /// The thread's own CPU time when the poll that is going on began, if it was asked for, and the time on the wall.
    poll_began_ns: AtomicU64,
    poll_began_wall_ns: AtomicU64,
    /// The next poll is charged the time that passes.
    by_wall: AtomicBool,
    active_ns: AtomicU64,
    /// Since when it has been at work, counted from `origin`.
    active_since_ns: AtomicU64,
    /// It gave way in the middle of its work: the time until it is polled again is not a wait.
    gave_way: AtomicBool,
    /// It repeats its past: all until now is the cost of that.
    replaying: AtomicBool,
    /// CPU time and time at work that the repetition took, once it is over.
    replay_used_ns: AtomicU64,
    replay_active_ns: AtomicU64,
    origin: Instant,
}

impl Meter {
    /// The meter of a run that has a past to repeat, or none.
    pub(crate) fn new(replaying: bool) -> Self {
        Self {
            used_ns: AtomicU64::new(0),
            poll_began_ns: AtomicU64::new(0),
            poll_began_wall_ns: AtomicU64::new(0),
            by_wall: AtomicBool::new(false),
            active_ns: AtomicU64::new(0),
            active_since_ns: AtomicU64::new(0),
            gave_way: AtomicBool::new(false),
            replaying: AtomicBool::new(replaying),
            replay_used_ns: AtomicU64::new(0),
            replay_active_ns: AtomicU64::new(0),
            origin: Instant::now(),
        }
    }

    /// The first turn is where a thread is seldom kept from running: what passes is near enough to what is used.
    pub(crate) fn charge_first_by_wall(&self) {
        self.by_wall.store(true, Ordering::Release);
    }

    /// Nanoseconds of CPU time used by all polls before, less those of the repetition.
    pub(crate) fn used_ns(&self) -> u64 {
        self.live(&self.used_ns, &self.replay_used_ns)
    }

    /// Nanoseconds of CPU time used until now, less those of the repetition; only from within a poll.
    pub(crate) fn used_until_now_ns(&self) -> u64 {
        let repeated = self.replay_used_ns.load(Ordering::Acquire);
        self.all_used_until_now_ns().saturating_sub(repeated)
    }

    /// Nanoseconds for which it was at work until now, less those of the repetition; only from within a
    /// poll.
    pub(crate) fn active_until_now_ns(&self) -> u64 {
        let repeated = self.replay_active_ns.load(Ordering::Acquire);
        self.all_active_until_now_ns().saturating_sub(repeated)
    }

    /// Nanoseconds for which it was at work before this poll, less those of the repetition.
    pub(crate) fn active_ns(&self) -> u64 {
        self.live(&self.active_ns, &self.replay_active_ns)
    }

    /// Nanoseconds of CPU time that the repetition took, before this poll if it goes on.
    pub(crate) fn replay_ns(&self) -> u64 {
        if self.replaying.load(Ordering::Acquire) {
            self.used_ns.load(Ordering::Acquire)
        } else {
            self.replay_used_ns.load(Ordering::Acquire)
        }
    }

    /// The past is repeated; what comes is the run's own. Only from within a poll.
    pub(crate) fn went_live(&self) {
        if self.replaying.load(Ordering::Acquire) && self.replaying.swap(false, Ordering::AcqRel) {
            self.replay_used_ns
                .store(self.all_used_until_now_ns(), Ordering::Release);
            self.replay_active_ns
                .store(self.all_active_until_now_ns(), Ordering::Release);
        }
    }

    fn live(&self, all: &AtomicU64, repeated: &AtomicU64) -> u64 {
        if self.replaying.load(Ordering::Acquire) {
            return 0;
        }
        let repeated = repeated.load(Ordering::Acquire);
        // Within the poll in which the repetition ended, not all of it is in the sum yet.
        all.load(Ordering::Acquire).saturating_sub(repeated)
    }

    fn all_used_until_now_ns(&self) -> u64 {
        let used = self.poll_used_ns();
        if self.poll_began_ns.load(Ordering::Acquire) == NOT_ASKED {
            // It takes long after all: from here on it is charged what its thread uses.
            let began = thread_cpu_ns().wrapping_sub(used);
            self.poll_began_ns.store(began, Ordering::Release);
        }
        self.used_ns.load(Ordering::Acquire) + used
    }

    fn poll_used_ns(&self) -> u64 {
        match self.poll_began_ns.load(Ordering::Acquire) {
            NOT_ASKED => {
                let began = self.poll_began_wall_ns.load(Ordering::Acquire);
                self.wall_ns().saturating_sub(began)
            }
            began => thread_cpu_ns().wrapping_sub(began),
        }
    }

    fn all_active_until_now_ns(&self) -> u64 {
        let since = self.active_since_ns.load(Ordering::Acquire);
        self.active_ns.load(Ordering::Acquire) + self.wall_ns().saturating_sub(since)
    }

    /// It gives way at the end of this poll, and goes on as soon as it may.
    pub(crate) fn give_way(&self) {
        self.gave_way.store(true, Ordering::Release);
    }

    fn wall_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn begin(&self) {
        let wall = self.wall_ns();
        let used = if self.by_wall.swap(false, Ordering::AcqRel) {
            NOT_ASKED
        } else {
            thread_cpu_ns()
        };
        self.poll_began_ns.store(used, Ordering::Release);
        self.poll_began_wall_ns.store(wall, Ordering::Release);
        if !self.gave_way.swap(false, Ordering::AcqRel) {
            self.active_since_ns.store(wall, Ordering::Release);
        }
    }

    fn end(&self) {
        let used = self.used_ns.load(Ordering::Acquire) + self.poll_used_ns();
        self.used_ns.store(used, Ordering::Release);
        if !self.gave_way.load(Ordering::Acquire) {
            self.active_ns
                .store(self.all_active_until_now_ns(), Ordering::Release);
        }
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    seconds * 1_000_000_000 + nanos
}

/// A future whose polls are metered.
pub(crate) struct Metered<F> {
    inner: Pin<Box<F>>,
    meter: Arc<Meter>,
}

impl<F: Future> Metered<F> {
    /// Charges every poll of `inner` to `meter`.
    pub(crate) fn new(meter: Arc<Meter>, inner: F) -> Self {
        Self {
            inner: Box::pin(inner),
            meter,
        }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let meter = Arc::clone(&self.meter);
        meter.begin();
        let _charged = Charge(&meter);
        self.inner.as_mut().poll(context)
    }
}

/// Charges the poll when it ends, by a panic too.
struct Charge<'a>(&'a Meter);

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn waiting_costs_nothing_and_computing_costs_its_time() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let meter = Arc::new(Meter::new(false));
        let waited = Metered::new(Arc::clone(&meter), async {
            tokio::time::sleep(Duration::from_millis(60)).await
        });
        runtime.block_on(waited);
        assert!(meter.used_ns() < 20_000_000, "{}", meter.used_ns());

        let computed = Metered::new(Arc::clone(&meter), async {
            let began = thread_cpu_ns();
            let deadline = Instant::now() + Duration::from_secs(10);
            while thread_cpu_ns() - began < 30_000_000 && Instant::now() < deadline {
                std::hint::spin_loop();
            }
        });
        runtime.block_on(computed);
        assert!(meter.used_ns() >= 30_000_000, "{}", meter.used_ns());
    }

    #[test]
    fn a_first_turn_is_charged_the_time_that_passes_until_it_is_asked() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let meter = Arc::new(Meter::new(false));
        meter.charge_first_by_wall();
        let inner = Arc::clone(&meter);
        let run = Metered::new(Arc::clone(&meter), async move {
            std::thread::sleep(Duration::from_millis(30));
            assert!(inner.used_until_now_ns() >= 30_000_000);
            std::thread::sleep(Duration::from_millis(600));
            inner.used_until_now_ns()
        });
        let used = runtime.block_on(run);
        assert!(used < 600_000_000, "a sleep was charged twice: {used}");
        assert!((used..600_000_000).contains(&meter.used_ns()));
        // The next turn is charged what its thread uses from the beginning.
        let next = Metered::new(Arc::clone(&meter), async {
            std::thread::sleep(Duration::from_millis(600));
        });
        runtime.block_on(next);
        assert!(meter.used_ns() < 600_000_000);
    }

    #[test]
    fn what_repeats_the_past_is_counted_apart() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let meter = Arc::new(Meter::new(true));
        let spin = |ms: u64| {
            let began = thread_cpu_ns();
            while thread_cpu_ns() - began < ms * 1_000_000 {
                std::hint::spin_loop();
            }
        };
        let inner = Arc::clone(&meter);
        let run = Metered::new(Arc::clone(&meter), async move {
            spin(30);
            assert_eq!(inner.used_ns(), 0);
            assert!(inner.replay_ns() == 0, "a poll counts when it ends");
            inner.went_live();
            spin(10);
            // Only the first time says when.
            inner.went_live();
            spin(10);
            assert!((20_000_000..30_000_000).contains(&inner.used_until_now_ns()));
        });
        runtime.block_on(run);
        assert!(meter.replay_ns() >= 30_000_000);
        let live = meter.used_ns();
        assert!((20_000_000..30_000_000).contains(&live), "{live}");
        assert!((20_000_000..).contains(&meter.active_ns()));
    }

    #[test]
    fn giving_way_is_work_and_waiting_is_none() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let meter = Arc::new(Meter::new(false));
        let waited = Metered::new(Arc::clone(&meter), async {
            tokio::time::sleep(Duration::from_millis(60)).await
        });
        runtime.block_on(waited);
        assert!(
            meter.active_ns() < 50_000_000,
            "a wait was counted: {}",
            meter.active_ns()
        );

        let inner = Arc::clone(&meter);
        let run = Metered::new(Arc::clone(&meter), async move {
            let before = inner.active_until_now_ns();
            inner.give_way();
            tokio::task::yield_now().await;
            inner.active_until_now_ns() - before
        });
        // Has its turn after the other gave way, and keeps the thread for a while.
        let hog = async {
            let until = Instant::now() + Duration::from_millis(40);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        };
        let (queued, ()) = runtime.block_on(async { tokio::join!(run, hog) });
        assert!(
            queued >= 30_000_000,
            "standing in a queue was not counted: {queued}"
        );
    }
}
