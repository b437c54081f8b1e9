//! The clock by which guests give way: an OS thread, so that it ticks while every guest thread computes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::pool::Engines;

/// One turn of a guest on a thread, and the most that an unattended guest can be late.
const TICK: Duration = Duration::from_millis(10);
/// How long guests may take to leave their threads once the clock is dropped. A thread that is to end
/// sees it after 61 turns at most, each of one tick.
const LEAVING: Duration = Duration::from_secs(2);

/// Ticks until it is dropped, and then until the last guest has left or [`LEAVING`] is over.
pub(crate) struct Ticker {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Ticker {
    /// Starts the thread. `live` counts the instances that need ticks to end.
    pub(crate) fn start(engines: Engines, live: Arc<AtomicU64>) -> std::io::Result<Self> {
        let (dropped, is_dropped) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("epoch".into())
            .spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = is_dropped.recv_timeout(TICK) {
                    engines.increment_epoch();
                }
                let until = Instant::now() + LEAVING;
                while live.load(Ordering::Acquire) > 0 && Instant::now() < until {
                    engines.increment_epoch();
                    std::thread::sleep(TICK);
                }
            })?;
        Ok(Self {
            running: Some((dropped, thread)),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        if let Some((dropped, thread)) = self.running.take() {
            drop(dropped);
            // A panic there has been printed by its own thread.
            let _ended = thread.join();
        }
    }
}
