//! The threads on which guests run, and nothing else does.

use tokio::runtime::{Builder, Runtime};

use crate::executor::{Executor, RunKey};

/// The guest threads. What runs on them gives way at each epoch; what answers callers runs elsewhere,
/// so that it answers while every guest computes.
pub(crate) struct Guests {
    executor: Executor,
    /// Clocks and files of WASI, which only wake guests and never run one.
    reactor: Option<Runtime>,
}

impl Guests {
    /// Starts that many threads, at least one. `nudge` asks every guest that computes to give way.
    pub(crate) fn new(
        threads: usize,
        nudge: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let reactor = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("guest-io")
            .enable_all()
            .build()?;
        let handle = reactor.handle().clone();
        let within = move |work: &dyn Fn()| {
            let _context = handle.enter();
            work();
        };
        Ok(Self {
            executor: Executor::new(threads.max(1), within, nudge)?,
            reactor: Some(reactor),
        })
    }

    /// Starts a run. The only way onto these threads.
    pub(crate) fn spawn(&self, key: RunKey, run: impl Future<Output = ()> + Send + 'static) {
        self.executor.prepare(key, run).queued();
    }

    /// Starts a run with its first turn on this thread, if that is a short one: it ends the turn at
    /// the next epoch, or when it has to wait, and goes on on the guest threads.
    pub(crate) fn spawn_here(&self, key: RunKey, run: impl Future<Output = ()> + Send + 'static) {
        let start = self.executor.prepare(key, run);
        let reactor = self
            .reactor
            .as_ref()
            .expect("it is taken only when the threads are dropped");
        let _context = reactor.enter();
        start.here();
    }

    /// Lets a run that waits for its turn have it next.
    pub(crate) fn boost(&self, key: RunKey) {
        self.executor.boost(key);
    }

    /// How many there are.
    pub(crate) fn threads(&self) -> usize {
        self.executor.threads()
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        if let Some(reactor) = self.reactor.take() {
            // The last handle may go within async code, where waiting for threads is forbidden.
            reactor.shutdown_background();
        }
    }
}
