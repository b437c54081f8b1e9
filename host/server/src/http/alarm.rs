//! One clock for all that a connection waits for.
//!
//! A timer of the runtime costs a lock, and often a system call to wake the thread that waits for the next one. A
//! connection sets one for the head of every request and has no use for it a moment later. So each has one timer
//! that is set again only when it has gone off or would go off too late, which is once in a while and not once a
//! request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;

/// The clock of one connection. Clones share it.
#[derive(Clone)]
pub(super) struct Alarm(Arc<Mutex<Pin<Box<tokio::time::Sleep>>>>);

impl Alarm {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Box::pin(tokio::time::sleep(
            Duration::ZERO,
        )))))
    }
}

impl Timer for Alarm {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Until {
            deadline,
            alarm: self.clone(),
        })
    }
}

/// Waits for one moment.
struct Until {
    deadline: Instant,
    alarm: Alarm,
}

impl Sleep for Until {}

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut alarm = self.alarm.0.lock();
        loop {
            if Instant::now() >= self.deadline {
                return Poll::Ready(());
            }
            if alarm.is_elapsed() || alarm.deadline().into_std() > self.deadline {
                alarm.as_mut().reset(self.deadline.into());
            }
            // If it was set for something earlier it goes off in vain, and is set anew.
            if alarm.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(3600);

    async fn took(alarm: &Alarm, time: Duration) -> Duration {
        let began = Instant::now();
        alarm.sleep(time).await;
        began.elapsed()
    }

    #[tokio::test]
    async fn each_waits_for_its_own_moment_whatever_the_one_before_waited_for() {
        let alarm = Alarm::new();
        for _ in 0..2 {
            // Given up in the middle, as the wait for a head is when the head comes.
            let mut given_up = alarm.sleep(LONG);
            assert!(futures_util::poll!(&mut given_up).is_pending());
            drop(given_up);
            let took_short = took(&alarm, SHORT).await;
            assert!(
                took_short >= SHORT && took_short < LONG / 2,
                "{took_short:?}"
            );
        }
        // One that waits for longer than what the timer is set for.
        let mut given_up = alarm.sleep(SHORT);
        assert!(futures_util::poll!(&mut given_up).is_pending());
        assert!(took(&alarm, 3 * SHORT).await >= 3 * SHORT);
    }
}
