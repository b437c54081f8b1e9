//! Tasks in every state, and events to put to them.

use std::collections::BTreeMap;

use longshore_tasks::event::{Event, NewQuestion, Outcome};
use longshore_tasks::id::{Json, Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::question::{Fate, Question};
use longshore_tasks::task::{
    Failure, JournalTail, Lease, Pinned, Progress, Reach, State, Status, Task, Usage,
};
use uuid::Uuid;

pub(crate) const NOW: Millis = Millis(5_000);
/// When a wait ends: later than now.
pub(crate) const LATER: Millis = Millis(9_000);

/// A task that has asked, been answered, and goes on in a run.
pub(crate) fn working() -> Task {
    Task {
        id: TaskId(Uuid::from_u128(7)),
        pinned: Pinned {
            tenant: Tenant("local".into()),
            principal: Principal("ann".into()),
            component: "text".to_owned(),
            digest: "sha256:00".to_owned(),
            tool: "count".to_owned(),
            arguments: r#"{"text":"a"}"#.into(),
            client: "{}".into(),
            revision: "2026-07-28".to_owned(),
            policy: "{}".into(),
            host_abi: 1,
            idempotency_key: Some("once".to_owned()),
        },
        created_at: Millis(1_000),
        updated_at: Millis(2_000),
        deadline_at: Millis(61_000),
        retention_ms: 10_000,
        version: 4,
        lease: Lease {
            epoch: 2,
            owner: Some(NodeId("n1".into())),
        },
        journal: JournalTail {
            segments: 3,
            calls: 9,
            base: 1,
            base_cpu_ms: 2,
            used: Usage {
                active_ms: 8,
                cpu_ms: 4,
            },
        },
        journal_key: Some(vec![7]),
        usage: Usage {
            active_ms: 10,
            cpu_ms: 5,
        },
        status: Status {
            message: Some("begun".to_owned()),
            progress: Some(Progress {
                done: 1.0,
                total: Some(4.0),
            }),
        },
        reach: Reach::Id,
        cancel_requested_at: None,
        wake_at: None,
        stalls: 1,
        questions: vec![question("old", Fate::Answered("1".into()))],
        state: State::Working,
    }
}

pub(crate) fn question(key: &str, fate: Fate) -> Question {
    Question {
        key: key.to_owned(),
        request: "{}".into(),
        fate,
    }
}

pub(crate) fn cancelling() -> Task {
    Task {
        cancel_requested_at: Some(Millis(1_500)),
        ..working()
    }
}

pub(crate) fn waiting(keys: &[&str]) -> Task {
    let mut task = Task {
        state: State::InputRequired,
        wake_at: Some(LATER),
        ..working()
    };
    task.questions
        .extend(keys.iter().map(|key| question(key, Fate::Open)));
    task
}

/// The same task with nobody who runs it.
pub(crate) fn unowned(mut task: Task, wake_at: Option<Millis>) -> Task {
    task.lease.owner = None;
    task.wake_at = wake_at;
    task
}

/// Sleeps until later.
pub(crate) fn parked() -> Task {
    unowned(working(), Some(LATER))
}

/// Was asked to stop, and nobody has told it yet.
pub(crate) fn parked_cancelling() -> Task {
    unowned(cancelling(), Some(Millis(1_500)))
}

/// Asks, and is in no process while it waits for the answers.
pub(crate) fn parked_waiting(keys: &[&str]) -> Task {
    unowned(waiting(keys), Some(LATER))
}

/// Its process died four times.
pub(crate) fn set_aside() -> Task {
    Task {
        stalls: 4,
        ..unowned(working(), None)
    }
}

/// Every state that is not final, by name: in a run, and in none.
pub(crate) fn living() -> Vec<(&'static str, Task)> {
    vec![
        ("working", working()),
        ("being cancelled", cancelling()),
        ("waiting for a", waiting(&["a"])),
        ("waiting for a and b", waiting(&["a", "b"])),
        ("parked", parked()),
        ("parked and being cancelled", parked_cancelling()),
        ("parked and waiting for a", parked_waiting(&["a"])),
        (
            "parked and waiting for a and b",
            parked_waiting(&["a", "b"]),
        ),
    ]
}

pub(crate) fn ended(state: State) -> Task {
    let lease = Lease {
        owner: None,
        ..working().lease
    };
    Task {
        state,
        lease,
        wake_at: None,
        stalls: 0,
        questions: Vec::new(),
        ..working()
    }
}

pub(crate) fn finals() -> [Task; 3] {
    let at = Millis(3_000);
    [
        ended(State::Completed {
            at,
            result: "{}".into(),
        }),
        ended(State::Failed {
            at,
            failure: failure(),
        }),
        ended(State::Cancelled { at }),
    ]
}

pub(crate) fn failure() -> Failure {
    Failure {
        code: 1003,
        message: "too slow".to_owned(),
        data: Some("{}".into()),
    }
}

pub(crate) fn status(message: Option<&str>, done: Option<(f64, Option<f64>)>) -> Event {
    Event::StatusChanged {
        message: message.map(str::to_owned),
        progress: done.map(|(done, total)| Progress { done, total }),
    }
}

pub(crate) fn asked(keys: &[&str]) -> Event {
    let new = |key: &&str| NewQuestion {
        key: (*key).to_owned(),
        request: "{}".into(),
    };
    Event::Asked {
        questions: keys.iter().map(new).collect(),
        wake_at: Some(LATER),
    }
}

pub(crate) fn answered(keys: &[&str]) -> Event {
    let answers: BTreeMap<String, Json> = keys
        .iter()
        .map(|key| ((*key).to_owned(), "2".into()))
        .collect();
    Event::Answered(answers)
}

pub(crate) fn over(outcome: Outcome) -> Event {
    Event::Ended {
        outcome,
        usage: MORE,
    }
}

/// What its runs have used by now.
pub(crate) const MORE: Usage = Usage {
    active_ms: 20,
    cpu_ms: 15,
};

pub(crate) fn claimed(by: &str) -> Event {
    Event::Claimed {
        owner: NodeId(by.into()),
    }
}
