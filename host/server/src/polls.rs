//! Clients that ask for a task more often than they were told to. They are answered late and not refused: an answer
//! that says nothing new waits for something new, or until it is time.

use std::collections::HashMap;
use std::time::Duration;

use longshore_tasks::id::{Principal, TaskId};
use longshore_tasks::task::Task;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::dispatch::DispatchError;
use crate::reason::RunReason;
use crate::run::Caller;
use crate::server::Server;

/// Tasks whose last answer is remembered; those that are not are answered at once.
const REMEMBERED: usize = 64 * 1024;

/// What was answered not long ago, and who waits.
pub(crate) struct Polls {
    /// How long an answer may be held back.
    window: Duration,
    /// Answers that one caller may have waiting.
    most: usize,
    answered: Mutex<HashMap<TaskId, Answered>>,
    waiting: Mutex<HashMap<Principal, usize>>,
}

#[derive(Clone, Copy)]
struct Answered {
    version: u64,
    at: Instant,
}

impl Polls {
    /// With no window, nothing is held back.
    pub(crate) fn new(window: Duration, most: usize) -> Self {
        Self {
            window,
            most,
            answered: Mutex::default(),
            waiting: Mutex::default(),
        }
    }

    /// Until when there is nothing new to say of that task.
    fn early(&self, task: &Task, now: Instant) -> Option<Instant> {
        if task.state.name().is_final() {
            return None;
        }
        let answered = *self.answered.lock().get(&task.id)?;
        let until = answered.at + self.window;
        (answered.version == task.version && now < until).then_some(until)
    }

    /// This is what a caller is told now.
    fn answer(&self, task: &Task, now: Instant) {
        if self.window.is_zero() {
            return;
        }
        let mut answered = self.answered.lock();
        if task.state.name().is_final() {
            answered.remove(&task.id);
            return;
        }
        if answered.len() >= REMEMBERED {
            answered.retain(|_, last| now < last.at + self.window);
        }
        if answered.len() < REMEMBERED {
            let last = Answered {
                version: task.version,
                at: now,
            };
            answered.insert(task.id, last);
        }
    }

    /// Answers that wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().values().sum()
    }

    /// Takes a place among those that wait, if that caller may have one more.
    fn enter(&self, principal: &Principal) -> bool {
        let mut waiting = self.waiting.lock();
        let before = waiting.get(principal).copied().unwrap_or(0);
        let may = before < self.most;
        if may {
            waiting.insert(principal.clone(), before + 1);
        }
        may
    }

    fn leave(&self, principal: &Principal) {
        let mut waiting = self.waiting.lock();
        if let Some(count) = waiting.get_mut(principal) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(principal);
            }
        }
    }
}

/// What a poll is answered with.
pub(crate) enum Polled {
    /// The task, now.
    Now(Box<Task>),
    /// The task, once there is something to say.
    Late(Late),
}

/// An answer that is held back. Letting go of it takes the poll back.
pub struct Late {
    server: Server,
    id: TaskId,
    caller: Caller,
    /// When it is given in any case.
    until: Instant,
}

impl Drop for Late {
    fn drop(&mut self) {
        self.server.polls.leave(&self.caller.principal);
    }
}

impl Server {
    /// The task for a client that polls.
    pub(crate) async fn poll(&self, id: TaskId, caller: Caller) -> Result<Polled, DispatchError> {
        let task = self.task(id, Some(&caller)).await?;
        let now = Instant::now();
        let Some(until) = self.polls.early(&task, now) else {
            self.polls.answer(&task, now);
            return Ok(Polled::Now(Box::new(task)));
        };
        if !self.polls.enter(&caller.principal) {
            return Err(DispatchError::NoRoom {
                reason: RunReason::QueueFull,
                message: "too many polls of yours wait for news (early_polls): ask again after pollIntervalMs",
            });
        }
        Ok(Polled::Late(Late {
            server: self.clone(),
            id,
            caller,
            until,
        }))
    }
}

impl Late {
    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// The task, once it changed or it is time.
    pub(crate) async fn task(&self) -> Result<Task, DispatchError> {
        let (polls, bus) = (&self.server.polls, &self.server.bus);
        let watch = bus.watch(self.id);
        loop {
            // Watching first and looking then, so that no change falls in between.
            let changed = watch.changed();
            let task = self.server.task(self.id, Some(&self.caller)).await?;
            let now = Instant::now();
            // Others who ask meanwhile put nothing off.
            if self.until <= now || polls.early(&task, now).is_none() || bus.is_closed() {
                polls.answer(&task, now);
                return Ok(task);
            }
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(self.until) => {}
            }
        }
    }
}
