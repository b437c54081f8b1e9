//! What a run has journalled and printed: kept with its row, and only as the next of what is there.

use longshore_tasks::id::{Millis, NodeId};
use longshore_tasks::store::{Commit, Output, Segment};
use longshore_tasks::task::Task;

use crate::kit::{
    Place, commit, completed, first_segment, id, journalled, output, refusal, segment, task,
};

pub(crate) async fn segments_come_back_in_order(place: &Place) {
    let store = place.open().tasks;
    let mut row = task(1);
    let mut neighbour = task(2);
    store.create(row.clone(), None, None).await.unwrap();
    store.create(neighbour.clone(), None, None).await.unwrap();
    let mut written = Vec::new();
    for n in 0..40_u64 {
        // More than nine, of very different sizes, and of two owners.
        let next = Segment {
            number: n,
            epoch: row.lease.epoch,
            first_call: n * 3,
            last_call: n * 3 + 2,
            written_at: Millis(-3 + n as i64),
            frames: (0..n * n * 20).map(|at| (at % 251) as u8).collect(),
        };
        let change = journalled(&row, next.clone());
        row = change.task.clone();
        store.commit(change).await.unwrap();
        written.push(next);
        // Commits without a segment, and segments of others, between.
        let plain = commit(&row, |task| {
            task.stalls += 1;
            task.lease.epoch = 1 + n / 20;
        });
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
    assert_eq!(store.get(id(1)).await.unwrap(), Some(row));
}

pub(crate) async fn a_segment_is_read_back_after_a_lost_answer(place: &Place) {
    let store = place.open().tasks;
    let mut row = task(1);
    store.create(row.clone(), None, None).await.unwrap();
    for n in 0..3 {
        assert_eq!(store.segment(id(1), n).await.unwrap(), None);
        let change = journalled(&row, segment(n));
        row = change.task.clone();
        store.commit(change.clone()).await.unwrap();
        assert_eq!(store.segment(id(1), n).await.unwrap(), Some(segment(n)));
        // Whoever sends it again instead does no harm.
        assert_eq!(refusal(store.commit(change).await), "conflict");
        assert_eq!(store.segments(id(1)).await.unwrap().len() as u64, n + 1);
    }
    for n in 0..3 {
        assert_eq!(store.segment(id(1), n).await.unwrap(), Some(segment(n)));
    }
    assert_eq!(store.segment(id(1), u64::MAX).await.unwrap(), None);
}

pub(crate) async fn a_journal_has_no_gaps(place: &Place) {
    let store = place.open().tasks;
    for (n, counted, number) in [
        (1, 1, None),
        (2, 0, Some(0)),
        (3, 2, Some(0)),
        (5, 2, Some(1)),
        (6, 1, Some(1)),
    ] {
        let mut row = task(n);
        row.journal.segments = counted;
        let created = store.create(row, number.map(segment), Some(output(n)));
        assert_eq!(refusal(created.await), "conflict", "{n}");
        assert_eq!(store.get(id(n)).await.unwrap(), None);
        assert_eq!(store.output(id(n)).await.unwrap(), None);
    }
    let mut row = task(4);
    row.journal.segments = 1;
    store
        .create(row.clone(), Some(segment(0)), Some(output(1)))
        .await
        .unwrap();
    for (counted, number) in [
        (0, None),
        (2, None),
        (0, Some(0)),
        (1, Some(0)),
        (1, Some(1)),
        (2, Some(0)),
        (2, Some(2)),
        (3, Some(1)),
        (3, Some(2)),
        (0, Some(u64::MAX)),
    ] {
        let mut change = commit(&row, |task| task.journal.segments = counted);
        change.segment = number.map(segment_at);
        change.output = Some(output(2));
        let name = format!("{counted} {number:?}");
        assert_eq!(refusal(store.commit(change).await), "conflict", "{name}");
    }
    assert_eq!(store.get(id(4)).await.unwrap().as_ref(), Some(&row));
    assert_eq!(store.segments(id(4)).await.unwrap(), [segment(0)]);
    assert_eq!(store.output(id(4)).await.unwrap(), Some(output(1)));
    store.commit(journalled(&row, segment(1))).await.unwrap();
}

fn segment_at(number: u64) -> Segment {
    Segment {
        number,
        ..segment(0)
    }
}

pub(crate) async fn a_segment_of_another_lease_is_refused(place: &Place) {
    let store = place.open().tasks;
    let foreign = |epoch| Segment {
        epoch,
        ..segment(0)
    };
    let mut row = task(1);
    row.journal.segments = 1;
    for epoch in [0, 2] {
        let created = store.create(row.clone(), Some(foreign(epoch)), None);
        assert_eq!(refusal(created.await), "conflict");
    }
    let first = task(1);
    store.create(first.clone(), None, None).await.unwrap();
    let taken = commit(&first, |task| {
        task.lease.epoch = 2;
        task.lease.owner = Some(NodeId("other".into()));
    });
    store.commit(taken.clone()).await.unwrap();
    for epoch in [1, 3] {
        let mut change = journalled(&taken.task, foreign(epoch));
        change.output = Some(output(2));
        assert_eq!(refusal(store.commit(change).await), "fenced", "{epoch}");
    }
    // Not under the lease that the commit itself begins either.
    let mut change = journalled(&taken.task, foreign(3));
    change.task.lease.epoch = 3;
    assert_eq!(refusal(store.commit(change).await), "fenced");
    assert_eq!(store.get(id(1)).await.unwrap().as_ref(), Some(&taken.task));
    assert_eq!(store.segments(id(1)).await.unwrap(), []);
    assert_eq!(store.output(id(1)).await.unwrap(), None);
    let change = journalled(&taken.task, foreign(2));
    store.commit(change).await.unwrap();
    assert_eq!(store.segments(id(1)).await.unwrap(), [foreign(2)]);
}

/// The commit of a segment that begins with a restart point.
fn restarting(before: &Task, segment: Segment) -> Commit {
    let mut change = commit(before, |task| {
        task.append(segment.last_call, true, task.usage)
    });
    change.segment = Some(segment);
    change
}

pub(crate) async fn a_restart_point_deletes_what_lies_before(place: &Place) {
    let store = place.open().tasks;
    let mut row = task(1);
    let mut neighbour = task(2);
    store.create(row.clone(), None, None).await.unwrap();
    store.create(neighbour.clone(), None, None).await.unwrap();
    let kept: [&[u64]; 9] = [
        &[0],
        &[0, 1],
        &[2],
        &[2, 3],
        &[2, 3, 4],
        &[5],
        &[6],
        &[6, 7],
        &[6, 7, 8],
    ];
    for (n, kept) in (0..).zip(kept) {
        let change = if [2, 5, 6].contains(&n) {
            restarting(&row, segment(n))
        } else {
            journalled(&row, segment(n))
        };
        row = change.task.clone();
        store.commit(change).await.unwrap();
        let expected: Vec<_> = kept.iter().copied().map(segment).collect();
        assert_eq!(store.segments(id(1)).await.unwrap(), expected, "after {n}");
        for number in 0..=n {
            let is_there = store.segment(id(1), number).await.unwrap().is_some();
            assert_eq!(is_there, kept.contains(&number), "{number} after {n}");
        }
        let theirs = journalled(&neighbour, segment(n));
        neighbour = theirs.task.clone();
        store.commit(theirs).await.unwrap();
    }
    drop(store);
    let store = place.open().tasks;
    assert_eq!(store.get(id(1)).await.unwrap(), Some(row));
    assert_eq!(
        store.segments(id(1)).await.unwrap(),
        [segment(6), segment(7), segment(8)]
    );
    assert_eq!(store.segments(id(2)).await.unwrap().len(), 9);
}

pub(crate) async fn a_base_is_a_segment_and_only_grows(place: &Place) {
    let store = place.open().tasks;
    let mut nowhere = task(9);
    nowhere.journal.base = 1;
    assert_eq!(refusal(store.create(nowhere, None, None).await), "conflict");
    let mut row = task(1);
    store.create(row.clone(), None, None).await.unwrap();
    for n in 0..4 {
        let change = if n == 2 {
            restarting(&row, segment(n))
        } else {
            journalled(&row, segment(n))
        };
        row = change.task.clone();
        store.commit(change).await.unwrap();
    }
    for base in [0, 1, 4, 5, u64::MAX] {
        let change = commit(&row, |task| task.journal.base = base);
        assert_eq!(refusal(store.commit(change).await), "conflict", "{base}");
    }
    for base in [1, 5] {
        let mut change = journalled(&row, segment(4));
        change.task.journal.base = base;
        assert_eq!(refusal(store.commit(change).await), "conflict", "{base}");
    }
    assert_eq!(store.get(id(1)).await.unwrap(), Some(row));
    assert_eq!(
        store.segments(id(1)).await.unwrap(),
        [segment(2), segment(3)]
    );
}

pub(crate) async fn output_is_replaced_with_its_row(place: &Place) {
    let store = place.open().tasks;
    let mut row = task(1);
    store.create(row.clone(), None, None).await.unwrap();
    store.create(task(2), None, Some(output(77))).await.unwrap();
    assert_eq!(store.output(id(1)).await.unwrap(), None);
    let large = Output {
        calls: 3,
        body: (0..300_000_u32).map(|n| (n % 253) as u8).collect(),
    };
    let empty = Output {
        calls: 4,
        body: Vec::new(),
    };
    for next in [output(1), large, empty, output(5)] {
        let mut change = commit(&row, |_| ());
        change.output = Some(next.clone());
        row = change.task.clone();
        store.commit(change).await.unwrap();
        assert!(store.output(id(1)).await.unwrap().as_ref() == Some(&next));
        // A commit without any leaves it as it is.
        let plain = commit(&row, |_| ());
        row = plain.task.clone();
        store.commit(plain).await.unwrap();
        assert!(store.output(id(1)).await.unwrap() == Some(next));
    }
    let stale = Commit {
        output: Some(output(6)),
        ..commit(&task(1), |_| ())
    };
    assert_eq!(refusal(store.commit(stale).await), "conflict");
    let done = Commit {
        output: Some(output(7)),
        ..commit(&row, |task| task.state = completed("1"))
    };
    store.commit(done).await.unwrap();
    drop(store);
    let store = place.open().tasks;
    assert_eq!(store.output(id(1)).await.unwrap(), Some(output(7)));
    assert_eq!(store.output(id(2)).await.unwrap(), Some(output(77)));
    let row = store.get(id(1)).await.unwrap().unwrap();
    let late = Commit {
        output: Some(output(8)),
        ..commit(&row, |_| ())
    };
    assert_eq!(refusal(store.commit(late).await), "conflict");
    assert_eq!(store.output(id(1)).await.unwrap(), Some(output(7)));
}

pub(crate) async fn a_task_begins_with_a_restart_point(place: &Place) {
    let store = place.open().tasks;
    let mut row = task(1);
    row.append(9, true, row.usage);
    store
        .create(row.clone(), Some(first_segment(1)), None)
        .await
        .unwrap();
    assert_eq!(store.get(id(1)).await.unwrap(), Some(row));
    assert_eq!(store.segments(id(1)).await.unwrap(), [first_segment(1)]);
}
