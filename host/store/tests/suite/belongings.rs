//! Questions and journals, which live and die with their task.

use longshore_tasks::event::{Event, NewQuestion};
use longshore_tasks::id::Millis;
use longshore_tasks::store::{Segment, TaskStore};
use longshore_tasks::task::{State, Task};

use crate::kit::{Place, commit, completed, id, journalled, refusal, segment, task};

pub(crate) async fn questions_come_back(place: &Place) {
    let store = place.open().tasks;
    // A neighbour with questions of the same keys, whose rows must not be touched.
    let neighbour = task(2).apply(asked(&["b", "a"]), Millis(1)).unwrap().task;
    store.create(neighbour.clone(), None).await.unwrap();
    store.create(task(1), None).await.unwrap();
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
    store.create(asking.clone(), None).await.unwrap();
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

pub(crate) async fn segments_come_back_in_order(place: &Place) {
    let store = place.open().tasks;
    let mut row = task(1);
    let mut neighbour = task(2);
    store.create(row.clone(), None).await.unwrap();
    store.create(neighbour.clone(), None).await.unwrap();
    let mut written = Vec::new();
    for n in 0..40_u64 {
        // More than nine, of very different sizes, and of two owners.
        let frames = (0..n * n * 20).map(|at| (at % 251) as u8).collect();
        let epoch = 1 + n / 20;
        let next = Segment {
            epoch,
            first_call: n * 3,
            last_call: n * 3 + 2,
            frames,
        };
        let mut change = journalled(&row, next.clone());
        change.task.lease.epoch = epoch;
        row = change.task.clone();
        store.commit(change).await.unwrap();
        written.push(next);
        // Commits without a segment, and segments of others, between.
        let plain = commit(&row, |task| task.stalls += 1);
        row = plain.task.clone();
        store.commit(plain).await.unwrap();
        let theirs = journalled(&neighbour, segment(n));
        neighbour = theirs.task.clone();
        store.commit(theirs).await.unwrap();
    }
    drop(store);
    let store = place.open().tasks;
    assert!(store.segments(id(1)).await.unwrap() == written);
    assert_eq!(
        store.segments(id(2)).await.unwrap(),
        (0..40).map(segment).collect::<Vec<_>>()
    );
}

pub(crate) async fn a_journal_has_no_gaps(place: &Place) {
    let store = place.open().tasks;
    for (n, counted, with_segment) in [(1, 1, false), (2, 0, true), (3, 2, true)] {
        let mut row = task(n);
        row.journal.segments = counted;
        let segment = with_segment.then(|| segment(0));
        assert_eq!(refusal(store.create(row, segment).await), "conflict", "{n}");
        assert_eq!(store.get(id(n)).await.unwrap(), None);
    }
    let mut row = task(4);
    row.journal.segments = 1;
    store.create(row.clone(), Some(segment(0))).await.unwrap();
    for (counted, with_segment) in [(0, false), (2, false), (0, true), (1, true), (3, true)] {
        let mut change = commit(&row, |task| task.journal.segments = counted);
        change.segment = with_segment.then(|| segment(9));
        assert_eq!(
            refusal(store.commit(change).await),
            "conflict",
            "{counted} {with_segment}"
        );
    }
    assert_eq!(store.get(id(4)).await.unwrap(), Some(row));
    assert_eq!(store.segments(id(4)).await.unwrap(), [segment(0)]);
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
    Event::Asked(keys.iter().map(ask).collect())
}

fn answered(answers: &[(&str, &str)]) -> Event {
    Event::Answered(
        answers
            .iter()
            .map(|(key, answer)| ((*key).to_owned(), (*answer).into()))
            .collect(),
    )
}
