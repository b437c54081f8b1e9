//! When tasks that nobody runs are to be looked after.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use longshore_tasks::id::{Millis, TaskId};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock;

/// The machine's clock may be set: nothing is slept for longer than this.
const LOOK: Duration = Duration::from_secs(60);

/// One time for each task that waits for one.
#[derive(Default)]
pub(crate) struct Alarms {
    set: Mutex<Set>,
    knock: Notify,
}

#[derive(Default)]
struct Set {
    by_time: BTreeSet<(Millis, TaskId)>,
    by_task: HashMap<TaskId, Millis>,
}

impl Alarms {
    /// Rings for that task then, and not at any time set before.
    pub(crate) fn set(&self, id: TaskId, at: Millis) {
        let mut set = self.set.lock();
        set.clear(id);
        let is_first = set.by_time.first().is_none_or(|(first, _)| at < *first);
        set.by_time.insert((at, id));
        set.by_task.insert(id, at);
        drop(set);
        if is_first {
            self.knock.notify_one();
        }
    }

    /// Does not ring for that task.
    pub(crate) fn clear(&self, id: TaskId) {
        self.set.lock().clear(id);
    }

    /// How many are set.
    pub(crate) fn count(&self) -> usize {
        self.set.lock().by_task.len()
    }

    /// The next task whose time has come.
    pub(crate) async fn next(&self) -> TaskId {
        loop {
            let knocked = self.knock.notified();
            let pause = {
                let mut set = self.set.lock();
                match set.by_time.first().copied() {
                    Some((at, id)) => {
                        let left = at.since(clock::now());
                        if left == 0 {
                            set.clear(id);
                            return id;
                        }
                        Duration::from_millis(left).min(LOOK)
                    }
                    None => LOOK,
                }
            };
            tokio::select! {
                () = knocked => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

impl Set {
    fn clear(&mut self, id: TaskId) {
        if let Some(at) = self.by_task.remove(&id) {
            self.by_time.remove(&(at, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn the_earliest_rings_first_and_one_that_was_set_again_only_then() {
        let alarms = Alarms::default();
        let id = |n| TaskId(Uuid::from_u128(n));
        let now = clock::now();
        alarms.set(id(1), now.plus(3_600_000));
        alarms.set(id(2), now);
        alarms.set(id(3), now);
        alarms.clear(id(3));
        assert_eq!(alarms.next().await, id(2));
        assert_eq!(alarms.count(), 1);
        // Whoever sleeps hears of an earlier one.
        let (rung, ()) = tokio::join!(alarms.next(), async { alarms.set(id(1), now) });
        assert_eq!(rung, id(1));
        assert_eq!(alarms.count(), 0);
    }
}
