//! Ids that nobody can guess.

use std::cell::RefCell;

use longshore_tasks::id::TaskId;
use uuid::Builder;

/// The bytes of one id.
type Bytes = [u8; 16];
/// Ids whose randomness is asked of the system at once: a call is short enough for a system call to show.
const AT_ONCE: usize = 32;

thread_local! {
    static AHEAD: RefCell<Vec<Bytes>> = const { RefCell::new(Vec::new()) };
}

/// The id of a new task.
pub(crate) fn task_id() -> TaskId {
    let bytes = AHEAD.with_borrow_mut(|ahead| {
        ahead.pop().unwrap_or_else(|| {
            let mut fresh = [Bytes::default(); AT_ONCE];
            getrandom::fill(fresh.as_flattened_mut()).expect("the system has random numbers");
            let [first, rest @ ..] = fresh;
            ahead.extend(rest);
            first
        })
    });
    TaskId(Builder::from_random_bytes(bytes).into_uuid())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_random_and_none_comes_twice() {
        let made = || (0..3 * AT_ONCE).map(|_| task_id()).collect::<Vec<_>>();
        let elsewhere = std::thread::spawn(made).join().unwrap();
        let all: HashSet<TaskId> = made().into_iter().chain(elsewhere).collect();
        assert_eq!(all.len(), 6 * AT_ONCE);
        assert!(all.iter().all(|id| id.0.get_version_num() == 4));
    }
}
