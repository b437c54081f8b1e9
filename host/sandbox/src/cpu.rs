//! What a run costs: CPU time of the thread that polls it, and nothing while nobody does; and how long
//! it was at work, which is also the time in which it waited for a thread, but not for anything else.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// The time of one run. Written by whichever thread polls it, one at a time.
#[derive(Debug)]
pub(crate) struct Meter {
    used_ns: AtomicU64,
    /// The thread's own CPU time when the poll that is going on began.
    poll_began_ns: AtomicU64,
    active_ns: AtomicU64,
    /// Since when it has been at work, counted from `origin`.
    active_since_ns: AtomicU64,
    /// It gave way in the middle of its work: the time until it is polled again is not a wait.
    gave_way: AtomicBool,
    origin: Instant,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            used_ns: AtomicU64::new(0),
            poll_began_ns: AtomicU64::new(0),
            active_ns: AtomicU64::new(0),
            active_since_ns: AtomicU64::new(0),
            gave_way: AtomicBool::new(false),
            origin: Instant::now(),
        }
    }
}

impl Meter {
    /// Nanoseconds of CPU time used by all polls before.
    pub(crate) fn used_ns(&self) -> u64 {
        self.used_ns.load(Ordering::Acquire)
    }

    /// Nanoseconds of CPU time used until now; only from within a poll.
    pub(crate) fn used_until_now_ns(&self) -> u64 {
        let now = thread_cpu_ns();
        self.used_ns() + now.saturating_sub(self.poll_began_ns.load(Ordering::Acquire))
    }

    /// Nanoseconds for which it was at work until now; only from within a poll.
    pub(crate) fn active_until_now_ns(&self) -> u64 {
        let since = self.active_since_ns.load(Ordering::Acquire);
        self.active_ns() + self.wall_ns().saturating_sub(since)
    }

    /// Nanoseconds for which it was at work before this poll.
    pub(crate) fn active_ns(&self) -> u64 {
        self.active_ns.load(Ordering::Acquire)
    }

    /// It gives way at the end of this poll, and goes on as soon as it may.
    pub(crate) fn give_way(&self) {
        self.gave_way.store(true, Ordering::Release);
    }

    fn wall_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn begin(&self) {
        self.poll_began_ns.store(thread_cpu_ns(), Ordering::Release);
        if !self.gave_way.swap(false, Ordering::AcqRel) {
            self.active_since_ns
                .store(self.wall_ns(), Ordering::Release);
        }
    }

    fn end(&self) {
        self.used_ns
            .store(self.used_until_now_ns(), Ordering::Release);
        if !self.gave_way.load(Ordering::Acquire) {
            self.active_ns
                .store(self.active_until_now_ns(), Ordering::Release);
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
        let meter = Arc::new(Meter::default());
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
    fn giving_way_is_work_and_waiting_is_none() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let meter = Arc::new(Meter::default());
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
