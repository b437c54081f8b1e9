//! What a tool can do while it runs.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::longshore::tool::{restart_points, task as host};
use crate::result::Cancelled;

pub use host::{Level, call_id, detach, is_cancelled, report_progress, set_status};

/// Time until the deadline of the call, zero once it has passed, `None` if it has none.
#[must_use]
pub fn time_left() -> Option<Duration> {
    host::time_left().map(Duration::from_millis)
}

/// Goes on, or ends the call if it was cancelled: `task::check_cancelled()?`.
///
/// # Errors
/// [`Cancelled`] if it was.
pub fn check_cancelled() -> Result<(), Cancelled> {
    if is_cancelled() {
        Err(Cancelled)
    } else {
        Ok(())
    }
}

/// Waits without using up CPU. A part of a millisecond counts as a whole one.
///
/// Prefer it to `std::thread::sleep`, which a cancel does not wake.
///
/// # Errors
/// [`Cancelled`] if a cancel woke it.
pub fn sleep(time: Duration) -> Result<(), Cancelled> {
    if host::sleep(whole_millis(time)) {
        Ok(())
    } else {
        Err(Cancelled)
    }
}

/// Writes to the log of the call: the operator's, and the client's if it asked for this level.
pub fn log(level: Level, message: &str) {
    host::log(level, None, message);
}

/// Does a piece of work once, even if the process dies in between: what it gives is recorded, and given again when
/// the call comes here a second time. A `Result` will do, and then a failure is recorded too.
///
/// The work asks nothing, leaves no request open and writes no file; steps do not nest.
///
/// # Panics
/// When the value has no JSON form, or a form that does not give the value back.
pub fn step<T: Serialize + DeserializeOwned>(name: &str, work: impl FnOnce() -> T) -> T {
    // The first hash map takes the keys of all of them from the host. If that were within a step, a call that leaves
    // the step out would take them later, and differ.
    let _keys_are_there = std::hash::RandomState::new();
    if let Some(recorded) = host::step_begin(name) {
        return serde_json::from_slice(&recorded)
            .expect("a step's value reads back from its own JSON form");
    }
    let value = work();
    host::step_end(
        name,
        &serde_json::to_vec(&value).expect("a step's value has a JSON form"),
    );
    value
}

/// Saves a point to start from, in place of an earlier one, and goes on there: the function that the tool named with
/// `#[tool(restart = ...)]` is entered with this state in a fresh instance, now and after every later death of the
/// process, and all before it is forgotten. The component of a tool that names none is refused at upload.
///
/// # Panics
/// When the state has no JSON form.
pub fn checkpoint<T: Serialize>(state: &T) -> ! {
    restart_points::checkpoint(
        &serde_json::to_vec(state).expect("a restart point has a JSON form"),
    );
    unreachable!("the call goes on in another instance");
}

/// Rounded up, so that a wait is never shorter than asked for.
pub(crate) fn whole_millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_rounded_up_and_never_overflows() {
        assert_eq!(whole_millis(Duration::ZERO), 0);
        assert_eq!(whole_millis(Duration::from_nanos(1)), 1);
        assert_eq!(whole_millis(Duration::from_millis(20)), 20);
        assert_eq!(whole_millis(Duration::from_micros(20_001)), 21);
        assert_eq!(whole_millis(Duration::MAX), u64::MAX);
    }
}
