//! What an event does, in words.

use longshore_tasks::event::{Effect, Event};
use longshore_tasks::id::Millis;
use longshore_tasks::question::Fate;
use longshore_tasks::task::{Failure, Progress, State, Task};

use crate::states::NOW;

/// What an event does: every field that differs, then the effects; or why it is refused.
pub(crate) fn outcome(before: &Task, event: Event) -> String {
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
        journal_key,
        usage,
        status,
        reach,
        cancel_requested_at,
        wake_at,
        stalls,
        questions,
        state,
    } = &step.task;
    assert_eq!(*version, before.version + 1);
    let is_seen = step.effects.contains(&Effect::Notify);
    assert_eq!(*updated_at, if is_seen { NOW } else { before.updated_at });
    // What no event may touch.
    assert_eq!(
        (id, pinned, created_at, deadline_at, journal, journal_key),
        (
            &before.id,
            &before.pinned,
            &before.created_at,
            &before.deadline_at,
            &before.journal,
            &before.journal_key,
        )
    );
    let mut words = Vec::new();
    let mut differs = |name: &str, differs: bool, now: String| {
        if differs {
            words.push(format!("{name}={now}"));
        }
    };
    differs(
        "retention",
        *retention_ms != before.retention_ms,
        retention_ms.to_string(),
    );
    differs("reach", *reach != before.reach, reach.as_str().to_owned());
    let owner = lease.owner.as_ref().map_or("-", |node| &node.0);
    differs("owner", lease.owner != before.lease.owner, owner.to_owned());
    differs(
        "epoch",
        lease.epoch != before.lease.epoch,
        lease.epoch.to_string(),
    );
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
    differs("stalls", *stalls != before.stalls, stalls.to_string());
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
