//! Every state against every event: what changes, what follows, or why nothing does.

use std::collections::BTreeMap;

use longshore_tasks::event::{Effect, Event, NewQuestion, Outcome, Refused};
use longshore_tasks::id::{Json, Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::question::{Fate, Question};
use longshore_tasks::task::{
    Failure, JournalTail, Lease, Pinned, Progress, State, Status, Task, Usage,
};
use uuid::Uuid;

const NOW: Millis = Millis(5_000);

/// A task that has asked, been answered, and gone on: every field differs from its default.
fn working() -> Task {
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
        },
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
        cancel_requested_at: None,
        wake_at: Some(Millis(9_000)),
        stalls: 1,
        questions: vec![question("old", Fate::Answered("1".into()))],
        state: State::Working,
    }
}

fn question(key: &str, fate: Fate) -> Question {
    Question {
        key: key.to_owned(),
        request: "{}".into(),
        fate,
    }
}

fn cancelling() -> Task {
    Task {
        cancel_requested_at: Some(Millis(1_500)),
        ..working()
    }
}

fn waiting(keys: &[&str]) -> Task {
    let mut task = Task {
        state: State::InputRequired,
        ..working()
    };
    task.questions
        .extend(keys.iter().map(|key| question(key, Fate::Open)));
    task
}

fn ended(state: State) -> Task {
    let lease = Lease {
        owner: None,
        ..working().lease
    };
    Task {
        state,
        lease,
        wake_at: None,
        questions: Vec::new(),
        ..working()
    }
}

fn finals() -> [Task; 3] {
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

fn failure() -> Failure {
    Failure {
        code: 1003,
        message: "too slow".to_owned(),
        data: Some("{}".into()),
    }
}

fn status(message: Option<&str>, done: Option<(f64, Option<f64>)>) -> Event {
    Event::StatusChanged {
        message: message.map(str::to_owned),
        progress: done.map(|(done, total)| Progress { done, total }),
    }
}

fn asked(keys: &[&str]) -> Event {
    let new = |key: &&str| NewQuestion {
        key: (*key).to_owned(),
        request: "{}".into(),
    };
    Event::Asked(keys.iter().map(new).collect())
}

fn answered(keys: &[&str]) -> Event {
    let answers: BTreeMap<String, Json> = keys
        .iter()
        .map(|key| ((*key).to_owned(), "2".into()))
        .collect();
    Event::Answered(answers)
}

fn over(outcome: Outcome) -> Event {
    Event::Ended {
        outcome,
        usage: Usage {
            active_ms: 20,
            cpu_ms: 15,
        },
    }
}

/// Events by name, and what each does to a task that is working, being cancelled, waits for `a`, and
/// waits for `a` and `b`.
fn table() -> Vec<(&'static str, Event, [&'static str; 4])> {
    vec![
        (
            "a message",
            status(Some("more"), None),
            ["message=more -> notify"; 4],
        ),
        (
            "the same message",
            status(Some("begun"), None),
            ["nothing changes"; 4],
        ),
        (
            "progress grows",
            status(None, Some((2.0, None))),
            ["progress=2/? -> notify"; 4],
        ),
        (
            "progress stays",
            status(None, Some((1.0, Some(8.0)))),
            ["nothing changes"; 4],
        ),
        (
            "progress shrinks",
            status(None, Some((0.5, Some(4.0)))),
            ["nothing changes"; 4],
        ),
        (
            "progress is no number",
            status(None, Some((f64::NAN, None))),
            ["nothing changes"; 4],
        ),
        (
            "progress has no end",
            status(None, Some((f64::INFINITY, None))),
            ["nothing changes"; 4],
        ),
        (
            "a total without end",
            status(None, Some((2.0, Some(f64::INFINITY)))),
            ["nothing changes"; 4],
        ),
        (
            "a total that is no number",
            status(None, Some((2.0, Some(f64::NAN)))),
            ["nothing changes"; 4],
        ),
        (
            "a message with bad progress",
            status(Some("more"), Some((f64::NAN, None))),
            ["message=more -> notify"; 4],
        ),
        (
            "both",
            status(Some("more"), Some((4.0, Some(4.0)))),
            ["message=more progress=4/4 -> notify"; 4],
        ),
        ("neither", status(None, None), ["nothing changes"; 4]),
        (
            "asks one",
            asked(&["c"]),
            [
                "c=open state=input_required -> notify",
                "the task is being cancelled",
                "the questions cannot be asked now",
                "the questions cannot be asked now",
            ],
        ),
        (
            "asks two",
            asked(&["d", "c"]),
            [
                "d=open c=open state=input_required -> notify",
                "the task is being cancelled",
                "the questions cannot be asked now",
                "the questions cannot be asked now",
            ],
        ),
        (
            "asks under a used key",
            asked(&["c", "old"]),
            [
                "the questions cannot be asked now",
                "the task is being cancelled",
                "the questions cannot be asked now",
                "the questions cannot be asked now",
            ],
        ),
        (
            "asks twice under one key",
            asked(&["c", "c"]),
            [
                "the questions cannot be asked now",
                "the task is being cancelled",
                "the questions cannot be asked now",
                "the questions cannot be asked now",
            ],
        ),
        (
            "asks nothing",
            asked(&[]),
            [
                "the questions cannot be asked now",
                "the task is being cancelled",
                "the questions cannot be asked now",
                "the questions cannot be asked now",
            ],
        ),
        (
            "a is answered",
            answered(&["a"]),
            [
                "nothing changes",
                "nothing changes",
                "a=2 state=working -> resume notify",
                "a=2 -> notify",
            ],
        ),
        (
            "a and b are answered",
            answered(&["b", "a"]),
            [
                "nothing changes",
                "nothing changes",
                "a=2 state=working -> resume notify",
                "a=2 b=2 state=working -> resume notify",
            ],
        ),
        (
            "b and a stranger are answered",
            answered(&["b", "x"]),
            [
                "nothing changes",
                "nothing changes",
                "nothing changes",
                "b=2 -> notify",
            ],
        ),
        (
            "a stranger is answered",
            answered(&["x"]),
            ["nothing changes"; 4],
        ),
        (
            "a second answer",
            answered(&["old"]),
            ["nothing changes"; 4],
        ),
        ("no answer", answered(&[]), ["nothing changes"; 4]),
        (
            "withdrawn",
            Event::Withdrawn,
            [
                "nothing changes",
                "nothing changes",
                "a=withdrawn state=working -> notify",
                "a=withdrawn b=withdrawn state=working -> notify",
            ],
        ),
        (
            "cancel",
            Event::CancelRequested,
            [
                "cancel=5000 -> cancel notify",
                "nothing changes",
                "cancel=5000 a=withdrawn state=working -> cancel notify",
                "cancel=5000 a=withdrawn b=withdrawn state=working -> cancel notify",
            ],
        ),
        (
            "completed",
            over(Outcome::Completed("[1]".into())),
            ["owner=- usage=20/15 wake=- questions=- state=completed at 5000: [1] -> notify"; 4],
        ),
        (
            "failed",
            over(Outcome::Failed(failure())),
            ["owner=- usage=20/15 message=too slow wake=- questions=- state=failed at 5000: 1003 too slow {} -> notify";
                4],
        ),
        (
            "cancelled",
            over(Outcome::Cancelled(None)),
            ["owner=- usage=20/15 wake=- questions=- state=cancelled at 5000 -> notify"; 4],
        ),
        (
            "cancelled with a word",
            over(Outcome::Cancelled(Some("stopped".to_owned()))),
            ["owner=- usage=20/15 message=stopped wake=- questions=- state=cancelled at 5000 -> notify";
                4],
        ),
    ]
}

#[test]
fn every_event_does_to_every_state_what_the_table_says() {
    let states = [
        ("working", working()),
        ("being cancelled", cancelling()),
        ("waiting for a", waiting(&["a"])),
        ("waiting for a and b", waiting(&["a", "b"])),
    ];
    for (event_name, event, cells) in table() {
        for ((state_name, task), expected) in states.iter().zip(cells) {
            let got = outcome(task, event.clone());
            assert_eq!(got, expected, "{event_name}, {state_name}");
        }
    }
}

#[test]
fn what_has_ended_never_changes() {
    for task in finals() {
        for (name, event, _) in table() {
            assert_eq!(
                task.apply(event, NOW),
                Err(Refused::Ended),
                "{name}, {:?}",
                task.state
            );
        }
    }
}

#[test]
fn progress_that_was_never_told_grows_from_any_number() {
    let mut task = working();
    task.status.progress = None;
    let told = status(None, Some((-3.0, None)));
    assert_eq!(outcome(&task, told), "progress=-3/? -> notify");
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

#[test]
fn a_task_can_be_read_at_least_as_long_as_it_was_said_while_it_lives() {
    for start in [
        working(),
        cancelling(),
        waiting(&["a"]),
        waiting(&["a", "b"]),
    ] {
        for (first_name, first, _) in table() {
            let Ok(one) = start.apply(first, NOW) else {
                continue;
            };
            for (second_name, second, _) in table() {
                let Ok(two) = one.task.apply(second, NOW.plus(1)) else {
                    continue;
                };
                for (before, after) in [(&start, &one.task), (&one.task, &two.task)] {
                    let names = format!("{first_name}, then {second_name}");
                    match after.state.ended_at() {
                        None => {
                            assert!(after.ttl_ms() >= before.ttl_ms(), "{names}");
                            assert_eq!(after.expires_at(), Some(after.deadline_at), "{names}");
                            assert_eq!(after.forget_at(), None, "{names}");
                        }
                        Some(at) => {
                            let readable = at.since(after.created_at) + after.retention_ms;
                            assert_eq!(after.ttl_ms(), readable, "{names}");
                            assert_eq!(
                                after.forget_at(),
                                Some(at.plus(after.retention_ms)),
                                "{names}"
                            );
                            assert_eq!(after.expires_at(), None, "{names}");
                        }
                    }
                }
            }
        }
    }
}

/// What an event does: every field that differs, then the effects; or why it is refused.
fn outcome(before: &Task, event: Event) -> String {
    let step = match before.apply(event, NOW) {
        Ok(step) => step,
        Err(refused) => return refused.to_string(),
    };
    // Without `..`: a new field does not compile until somebody has said how it shows here.
    let Task {
        id,
        pinned,
        created_at,
        updated_at,
        deadline_at,
        retention_ms,
        version,
        lease,
        journal,
        usage,
        status,
        cancel_requested_at,
        wake_at,
        stalls,
        questions,
        state,
    } = &step.task;
    assert_eq!(*version, before.version + 1);
    assert_eq!(*updated_at, NOW);
    // What no event may touch.
    assert_eq!(
        (
            id,
            pinned,
            created_at,
            deadline_at,
            retention_ms,
            journal,
            stalls,
            lease.epoch
        ),
        (
            &before.id,
            &before.pinned,
            &before.created_at,
            &before.deadline_at,
            &before.retention_ms,
            &before.journal,
            &before.stalls,
            before.lease.epoch,
        )
    );
    let mut words = Vec::new();
    let mut differs = |name: &str, differs: bool, now: String| {
        if differs {
            words.push(format!("{name}={now}"));
        }
    };
    let owner = lease.owner.as_ref().map_or("-", |node| &node.0);
    differs("owner", lease.owner != before.lease.owner, owner.to_owned());
    differs(
        "usage",
        *usage != before.usage,
        format!("{}/{}", usage.active_ms, usage.cpu_ms),
    );
    let message = status.message.clone().unwrap_or_else(|| "-".to_owned());
    differs("message", status.message != before.status.message, message);
    let progress = status
        .progress
        .map_or("-".to_owned(), |Progress { done, total }| {
            format!(
                "{done}/{}",
                total.map_or("?".to_owned(), |total| total.to_string())
            )
        });
    differs(
        "progress",
        status.progress != before.status.progress,
        progress,
    );
    let instant = |at: &Option<Millis>| at.map_or("-".to_owned(), |at| at.0.to_string());
    differs(
        "cancel",
        *cancel_requested_at != before.cancel_requested_at,
        instant(cancel_requested_at),
    );
    differs("wake", *wake_at != before.wake_at, instant(wake_at));
    if questions.is_empty() {
        differs("questions", !before.questions.is_empty(), "-".to_owned());
    } else {
        // Questions keep their place, their key and their request.
        for (ordinal, now) in questions.iter().enumerate() {
            let was = before.questions.get(ordinal);
            if let Some(was) = was {
                assert_eq!((&was.key, &was.request), (&now.key, &now.request));
            }
            let fate = match &now.fate {
                Fate::Open => "open",
                Fate::Answered(answer) => &answer.0,
                Fate::Withdrawn => "withdrawn",
            };
            differs(&now.key, was != Some(now), fate.to_owned());
        }
        assert!(questions.len() >= before.questions.len());
    }
    let name = state.name().as_str();
    let now = match state {
        State::Working | State::InputRequired => name.to_owned(),
        State::Completed { at, result } => format!("{name} at {}: {}", at.0, result.0),
        State::Failed {
            at,
            failure:
                Failure {
                    code,
                    message,
                    data,
                },
        } => {
            let data = data.as_ref().map_or("-", |data| &data.0);
            format!("{name} at {}: {code} {message} {data}", at.0)
        }
        State::Cancelled { at } => format!("{name} at {}", at.0),
    };
    differs("state", *state != before.state, now);
    words.push("->".to_owned());
    words.extend(step.effects.iter().map(|effect| {
        match effect {
            Effect::Resume => "resume",
            Effect::Cancel => "cancel",
            Effect::Notify => "notify",
        }
        .to_owned()
    }));
    words.join(" ")
}
