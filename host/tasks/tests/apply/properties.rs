//! What holds for every task after every sequence of events.

use longshore_tasks::event::{Effect, Event, Outcome};
use longshore_tasks::id::Millis;
use longshore_tasks::task::{State, Task, Trust};

use crate::outcome::outcome;
use crate::states::{NOW, living, over, set_aside, status, working};
use crate::table::events;

/// Calls `check` with each step of every sequence of up to `depth` events from every state.
fn every_step(depth: u32, check: &mut impl FnMut(&str, &Task, &Event, &Task, &[Effect])) {
    let mut starts = living();
    starts.push(("set aside", set_aside()));
    // One death before it is set aside.
    let suspect = |(name, task)| (name, Task { stalls: 3, ..task });
    starts.extend(living().into_iter().map(suspect));
    let events = events();
    for (name, task) in starts {
        walk(name, &task, &events, depth, check);
    }
}

fn walk(
    path: &str,
    before: &Task,
    events: &[(&'static str, Event)],
    depth: u32,
    check: &mut impl FnMut(&str, &Task, &Event, &Task, &[Effect]),
) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for (name, event) in events {
        let now = NOW.plus(before.version);
        if let Ok(step) = before.apply(event.clone(), now) {
            let path = format!("{path}, {name}");
            check(&path, before, event, &step.task, &step.effects);
            walk(&path, &step.task, events, depth, check);
        }
    }
}

#[test]
fn versions_and_epochs_only_grow() {
    every_step(3, &mut |path, before, event, after, effects| {
        assert!(!before.state.name().is_final(), "{path}");
        assert_eq!(after.version, before.version + 1, "{path}");
        let claims = matches!(event, Event::Claimed { .. });
        let epoch = before.lease.epoch + u64::from(claims);
        assert_eq!(after.lease.epoch, epoch, "{path}");
        let is_seen = effects.contains(&Effect::Notify);
        assert_eq!(after.updated_at > before.updated_at, is_seen, "{path}");
        // What no client can see shows none of it.
        if !is_seen {
            assert_eq!(
                (&after.status, &after.state, &after.questions),
                (&before.status, &before.state, &before.questions),
                "{path}"
            );
            assert_eq!(
                after.cancel_requested_at, before.cancel_requested_at,
                "{path}"
            );
        }
    });
}

#[test]
fn no_task_is_left_without_somebody_or_something_to_wait_for() {
    every_step(3, &mut |path, _, _, after, _| {
        let asks = after.open_questions().next().is_some();
        assert_eq!(after.state == State::InputRequired, asks, "{path}");
        match (&after.state, &after.lease.owner, after.trust()) {
            (State::Working, Some(_), _) => {
                assert_eq!(after.wake_at, None, "{path}: it runs");
                assert_ne!(after.trust(), Trust::Quarantined, "{path}");
            }
            (State::Working, None, Trust::Trusted | Trust::Suspect) => {
                assert!(
                    after.wake_at.is_some(),
                    "{path}: nobody ever goes on with it"
                );
                if after.cancel_requested_at.is_some() {
                    assert!(
                        after.wake_at < Some(Millis(7_000)),
                        "{path}: a cancel waits"
                    );
                }
            }
            (State::Working, None, Trust::Quarantined) => {
                let cancelled = after.cancel_requested_at.is_some();
                assert_eq!(after.wake_at.is_some(), cancelled, "{path}");
            }
            (State::InputRequired, _, trust) => {
                assert_ne!(trust, Trust::Quarantined, "{path}");
                assert_eq!(after.cancel_requested_at, None, "{path}");
            }
            (
                State::Completed { .. } | State::Failed { .. } | State::Cancelled { .. },
                owner,
                _,
            ) => {
                assert_eq!((owner, after.wake_at), (&None, None), "{path}");
                assert_eq!(after.questions, [], "{path}");
            }
        }
    });
}

#[test]
fn a_task_can_be_read_at_least_as_long_as_it_was_said_while_it_lives() {
    every_step(
        2,
        &mut |path, before, _, after, _| match after.state.ended_at() {
            None => {
                assert!(after.ttl_ms() >= before.ttl_ms(), "{path}");
                assert_eq!(after.expires_at(), Some(after.deadline_at), "{path}");
                assert_eq!(after.forget_at(), None, "{path}");
            }
            Some(at) => {
                let readable = at.since(after.created_at) + after.retention_ms;
                assert_eq!(after.ttl_ms(), readable, "{path}");
                let forgotten = Some(at.plus(after.retention_ms));
                assert_eq!(after.forget_at(), forgotten, "{path}");
                assert_eq!(after.expires_at(), None, "{path}");
            }
        },
    );
}

#[test]
fn progress_that_was_never_told_grows_from_any_number() {
    let mut task = working();
    task.status.progress = None;
    let told = status(None, Some((-3.0, None)));
    assert_eq!(outcome(&task, told), "progress=-3/? stalls=0 -> notify");
}

#[test]
fn a_clock_that_was_set_back_turns_nothing_back() {
    let early = Millis(500);
    let told = working()
        .apply(status(Some("more"), None), early)
        .unwrap()
        .task;
    assert_eq!(told.updated_at, working().updated_at);
    let over = working()
        .apply(over(Outcome::Cancelled(None)), early)
        .unwrap()
        .task;
    assert_eq!(
        over.state,
        State::Cancelled {
            at: working().created_at
        }
    );
    assert_eq!(over.ttl_ms(), working().retention_ms);
}
