//! Questions, which live and die with their task, and what else events leave in a row.

use longshore_tasks::event::{Event, NewQuestion};
use longshore_tasks::id::{Millis, NodeId};
use longshore_tasks::store::TaskStore;
use longshore_tasks::task::{Reach, State, Task, Trust, Usage};

use crate::kit::{Place, commit, completed, full_task, id, task};

pub(crate) async fn questions_come_back(place: &Place) {
    let store = place.open().tasks;
    // A neighbour with questions of the same keys, whose rows must not be touched.
    let neighbour = task(2).apply(asked(&["b", "a"]), Millis(1)).unwrap().task;
    store.create(neighbour.clone(), None, None).await.unwrap();
    store.create(task(1), None, None).await.unwrap();
    let store = store.as_ref();
    // Not in the order of the alphabet: the order is that in which they were asked.
    let asking = step(store, &task(1), asked(&["b", "größer", "a"])).await;
    let partly = step(store, &asking, answered(&[("a", "1")])).await;
    assert_eq!(partly.state, State::InputRequired);
    let going_on = step(store, &partly, answered(&[("b", "2"), ("größer", "null")])).await;
    assert_eq!(going_on.state, State::Working);
    let again = step(store, &going_on, asked(&["b-2"])).await;
    let withdrawn = step(store, &again, Event::Withdrawn).await;
    let more = step(store, &withdrawn, asked(&["c", "d"])).await;
    let cancelled = step(store, &more, Event::CancelRequested).await;
    assert_eq!(cancelled.questions.len(), 6);
    assert_eq!(store.get(id(2)).await.unwrap(), Some(neighbour));
}

pub(crate) async fn questions_end_with_their_task(place: &Place) {
    let store = place.open().tasks;
    let asking = task(1).apply(asked(&["a", "b"]), Millis(1)).unwrap().task;
    store.create(asking.clone(), None, None).await.unwrap();
    assert_eq!(store.get(id(1)).await.unwrap().as_ref(), Some(&asking));
    // Even if the successor still names them: they are of no use to anybody.
    let done = commit(&asking, |task| task.state = completed("{}"));
    store.commit(done.clone()).await.unwrap();
    drop(store);
    let store = place.open().tasks;
    let expected = Task {
        questions: Vec::new(),
        ..done.task
    };
    assert_eq!(store.get(id(1)).await.unwrap(), Some(expected));
}

pub(crate) async fn questions_of_a_call_that_can_be_made_again_stay(place: &Place) {
    let store = place.open().tasks;
    let hidden = Task {
        reach: Reach::Again,
        ..task(1)
    };
    let asking = hidden.apply(asked(&["a", "b"]), Millis(1)).unwrap().task;
    store.create(asking.clone(), None, None).await.unwrap();
    let done = commit(&asking, |task| task.state = completed("{}"));
    store.commit(done.clone()).await.unwrap();
    drop(store);
    let store = place.open().tasks;
    assert_eq!(store.get(id(1)).await.unwrap(), Some(done.task));
}

pub(crate) async fn owners_come_and_go(place: &Place) {
    let store = place.open().tasks;
    let mut row = full_task(1);
    row.cancel_requested_at = None;
    store.create(row.clone(), None, None).await.unwrap();
    let store = store.as_ref();
    let usage = |cpu_ms| Usage {
        active_ms: cpu_ms * 2,
        cpu_ms,
    };
    let claimed = |name: &str| Event::Claimed {
        owner: NodeId(name.into()),
    };
    let parked = |wake_at| Event::Parked {
        wake_at,
        usage: usage(7_002),
    };
    row = step(
        store,
        &row,
        Event::Journalled {
            usage: usage(7_001),
        },
    )
    .await;
    row = step(store, &row, parked(Some(Millis(8_000)))).await;
    assert_eq!(
        (row.lease.owner.as_ref(), row.wake_at),
        (None, Some(Millis(8_000)))
    );
    row = step(store, &row, claimed("second")).await;
    assert_eq!((row.lease.epoch, row.wake_at), (2, None));
    row = step(store, &row, asked(&["a"])).await;
    row = step(store, &row, parked(None)).await;
    assert_eq!(row.wake_at, None);
    row = step(store, &row, answered(&[("a", "1")])).await;
    assert_eq!(row.wake_at, Some(Millis(4_000)));
    row = step(store, &row, claimed("third")).await;
    row = step(
        store,
        &row,
        Event::Released {
            usage: usage(7_003),
        },
    )
    .await;
    for deaths in 1..=4 {
        row = step(store, &row, claimed("fourth")).await;
        row = step(store, &row, Event::Died).await;
        assert_eq!(row.stalls, deaths);
    }
    assert_eq!((row.trust(), row.lease.epoch), (Trust::Quarantined, 7));
    row = step(store, &row, Event::Readmitted).await;
    row = step(store, &row, claimed("fifth")).await;
    assert_eq!((row.trust(), row.lease.epoch), (Trust::Trusted, 8));
}

/// Applies an event as the server does, and checks that the store gives back exactly that.
async fn step(store: &dyn TaskStore, before: &Task, event: Event) -> Task {
    let after = before.apply(event, Millis(4_000)).unwrap().task;
    let change = commit(before, |task| *task = after.clone());
    store.commit(change).await.unwrap();
    assert_eq!(store.get(after.id).await.unwrap().as_ref(), Some(&after));
    after
}

fn asked(keys: &[&str]) -> Event {
    let ask = |key: &&str| NewQuestion {
        key: (*key).to_owned(),
        request: format!(r#"{{"asks":"{key}"}}"#).as_str().into(),
    };
    Event::Asked {
        questions: keys.iter().map(ask).collect(),
        wake_at: Some(Millis(4_500)),
    }
}

fn answered(answers: &[(&str, &str)]) -> Event {
    Event::Answered(
        answers
            .iter()
            .map(|(key, answer)| ((*key).to_owned(), (*answer).into()))
            .collect(),
    )
}
