//! What every store finds: pages, orphans, and what is over.

use std::collections::BTreeSet;

use longshore_tasks::id::{Millis, NodeId, Principal};
use longshore_tasks::question::{Fate, Question};
use longshore_tasks::store::{Query, Unfinished};
use longshore_tasks::task::{Reach, State, StateName, Task};

use crate::kit::{
    Place, all_pages, commit, completed, failed, first_segment, full_task, id, output, task,
    unfinished,
};

pub(crate) async fn pages_are_complete_under_inserts(place: &Place) {
    let store = place.open().tasks;
    for n in 0..25 {
        store.create(task(n), None, None).await.unwrap();
    }
    let mut seen = Vec::new();
    let mut query = Query {
        limit: 10,
        ..Query::default()
    };
    let mut newcomer = 100;
    loop {
        let page = store.list(query.clone()).await.unwrap();
        seen.extend(page.tasks.iter().map(|summary| summary.id));
        let Some(next) = page.next else { break };
        assert_eq!(page.tasks.len(), 10);
        query.after = Some(next);
        store.create(task(newcomer), None, None).await.unwrap();
        newcomer += 1;
    }
    assert_eq!(seen, (0..25).rev().map(id).collect::<Vec<_>>());

    // A last page that is just full has no next one.
    let exact = store
        .list(Query {
            limit: 27,
            ..Query::default()
        })
        .await
        .unwrap();
    assert_eq!((exact.tasks.len(), exact.next), (27, None));
    let none = store.list(Query::default()).await.unwrap();
    assert_eq!((none.tasks.len(), none.next), (0, None));

    let summary = &exact.tasks[0];
    let newest = task(newcomer - 1);
    assert_eq!(summary.id, newest.id);
    assert_eq!(summary.component, newest.pinned.component);
    assert_eq!(summary.tool, newest.pinned.tool);
    assert_eq!(summary.principal, newest.pinned.principal.0.as_ref());
    assert_eq!(summary.state, StateName::Working);
    assert_eq!(summary.status_message, None);
    assert_eq!(
        (summary.created_at, summary.updated_at),
        (newest.created_at, newest.updated_at)
    );
}

pub(crate) async fn lists_are_filtered(place: &Place) {
    let store = place.open().tasks;
    let states = [
        State::Working,
        State::InputRequired,
        completed("{}"),
        failed(),
        State::Cancelled { at: Millis(3) },
    ];
    let mut kept = Vec::new();
    for n in 0..30_usize {
        let mut row = full_task(n as u64);
        row.state = states[n % 5].clone();
        row.pinned.component = ["text", "maps"][n % 2].to_owned();
        row.pinned.principal = Principal(["ann", "bob"][n % 7 % 2].into());
        row.reach = Reach::ALL[n % 3 % 2];
        store.create(row.clone(), None, None).await.unwrap();
        kept.push(row);
    }
    let names = [None].into_iter().chain(StateName::ALL.map(Some));
    for state in names {
        for (component, of) in [None, Some("text"), Some("maps"), Some("absent")]
            .into_iter()
            .flat_map(|component| [None, Some("ann"), Some("bob")].map(|of| (component, of)))
        {
            let tenant = kept[0].pinned.tenant.clone();
            let query = Query {
                state,
                component: component.map(str::to_owned),
                of: of.map(|name| (tenant, Principal(name.into()))),
                ids: None,
                limit: 2,
                after: None,
            };
            let listed: Vec<_> = all_pages(store.as_ref(), query)
                .await
                .into_iter()
                .map(|summary| summary.id)
                .collect();
            let expected: Vec<_> = kept
                .iter()
                .rev()
                .filter(|row| state.is_none_or(|state| row.state.name() == state))
                .filter(|row| component.is_none_or(|name| row.pinned.component == name))
                .filter(|row| {
                    of.is_none_or(|name| {
                        row.pinned.principal.0.as_ref() == name && row.reach == Reach::Id
                    })
                })
                .map(|row| row.id)
                .collect();
            assert_eq!(listed, expected, "{state:?} {component:?} {of:?}");
        }
    }
}

pub(crate) async fn lists_are_of_a_range_of_ids(place: &Place) {
    let store = place.open().tasks;
    for n in 0..40 {
        store.create(task(n), None, None).await.unwrap();
    }
    let mut ids: Vec<_> = (0..40).map(id).collect();
    ids.sort_unstable();
    for (first, last) in [(0, 39), (3, 3), (5, 20), (20, 5)] {
        let query = Query {
            ids: Some((ids[first], ids[last])),
            limit: 3,
            ..Query::default()
        };
        let mut listed: Vec<_> = all_pages(store.as_ref(), query)
            .await
            .into_iter()
            .map(|summary| summary.id)
            .collect();
        // In the order of all lists, the newest first.
        let newest_first: Vec<_> = (0..40)
            .rev()
            .map(id)
            .filter(|id| listed.contains(id))
            .collect();
        assert_eq!(listed, newest_first);
        listed.sort_unstable();
        let expected = ids.get(first..=last).unwrap_or_default();
        assert_eq!(listed, expected, "{first} to {last}");
    }
}

pub(crate) async fn orphans_are_what_others_left(place: &Place) {
    let store = place.open().tasks;
    let me = NodeId("me".into());
    let owners = [None, Some("me"), Some("other"), Some("Me"), Some("")];
    let mut expected = Vec::new();
    for (n, owner) in (0_u64..).zip(owners) {
        for (offset, state) in [
            (0, State::Working),
            (10, State::InputRequired),
            (20, completed("{}")),
        ] {
            let mut row = full_task(n + offset);
            row.lease.owner = owner.map(|owner| NodeId(owner.into()));
            if state == State::InputRequired {
                row = row_with_question(row);
            }
            row.state = state;
            store.create(row.clone(), None, None).await.unwrap();
            if owner != Some("me") && offset != 20 {
                expected.push(row);
            }
        }
    }
    assert_eq!(expected.len(), 8);
    assert_eq!(store.orphans(me.clone(), 100).await.unwrap(), expected);
    assert_eq!(store.orphans(me.clone(), 3).await.unwrap(), expected[..3]);
    assert_eq!(store.orphans(me.clone(), 0).await.unwrap(), []);

    // Whoever takes one has it.
    let taken = commit(&expected[0], |task| {
        task.lease.owner = Some(me.clone());
        task.lease.epoch += 1;
    });
    store.commit(taken).await.unwrap();
    assert_eq!(store.orphans(me, 100).await.unwrap(), expected[1..]);
}

fn row_with_question(mut row: Task) -> Task {
    for key in ["z", "y"] {
        row.questions.push(Question {
            key: key.to_owned(),
            request: "{}".into(),
            fate: Fate::Open,
        });
    }
    row
}

pub(crate) async fn what_is_unfinished_is_complete_and_in_order(place: &Place) {
    let store = place.open().tasks;
    let states = [
        State::Working,
        completed("{}"),
        State::InputRequired,
        failed(),
    ];
    let mut expected = Vec::new();
    for n in 0..600 {
        let mut row = if n % 2 == 0 { task(n) } else { full_task(n) };
        row.lease.owner = [None, Some(NodeId("other".into()))][n as usize % 3 % 2].clone();
        row.wake_at = (n % 7 == 0).then_some(Millis(n as i64));
        row.deadline_at = Millis(90_000 - n as i64);
        row.stalls = n as u32;
        row.state = states[n as usize / 2 % 4].clone();
        store.create(row.clone(), None, None).await.unwrap();
        if !row.state.name().is_final() {
            expected.push(Unfinished {
                id: row.id,
                state: row.state.name(),
                owner: row.lease.owner,
                wake_at: row.wake_at,
                deadline_at: row.deadline_at,
                cancel_requested: row.cancel_requested_at.is_some(),
                stalls: row.stalls,
            });
        }
    }
    assert_eq!(expected.len(), 300);
    for limit in [1, 7, 100, 299, 300, 301] {
        let seen = unfinished(store.as_ref(), limit).await;
        assert!(seen == expected, "in pages of {limit}");
    }
    // A last page that is just full has no next one.
    assert_eq!(store.unfinished(None, 300).await.unwrap().next, None);
    let none = store.unfinished(None, 0).await.unwrap();
    assert_eq!((none.tasks.len(), none.next), (0, None));

    // What ends between two pages, and what begins.
    let page = store.unfinished(None, 200).await.unwrap();
    let last = store.get(expected[299].id).await.unwrap().unwrap();
    let done = commit(&last, |task| task.state = completed("1"));
    store.commit(done).await.unwrap();
    store.create(task(1_000), None, None).await.unwrap();
    let rest = store.unfinished(page.next, 200).await.unwrap();
    let ids: Vec<_> = rest.tasks.iter().map(|task| task.id).collect();
    let still = expected[200..299].iter().map(|task| task.id);
    assert_eq!(ids, still.chain([id(1_000)]).collect::<Vec<_>>());
    assert_eq!(rest.next, None);
}

pub(crate) async fn sweeping_is_bounded_and_takes_all(place: &Place) {
    let store = place.open().tasks;
    // Over at 110, 109 ... 101: those made first are the last to be over.
    for n in 0..10 {
        let mut row = task(n);
        row.retention_ms = 100;
        row.journal.segments = 1;
        row.state = State::Cancelled {
            at: Millis(10 - n as i64),
        };
        store
            .create(row, Some(first_segment(n)), Some(output(n)))
            .await
            .unwrap();
    }
    // Long over, if it had ended.
    let living = Task {
        deadline_at: Millis(1),
        retention_ms: 0,
        ..task(20)
    };
    store.create(living.clone(), None, None).await.unwrap();
    // Never over.
    let forever = Task {
        retention_ms: u64::MAX,
        state: completed("1"),
        ..task(21)
    };
    store.create(forever.clone(), None, None).await.unwrap();

    assert_eq!(
        store.sweep(Millis(101), 100).await.unwrap(),
        0,
        "at the last instant it is still there"
    );
    assert_eq!(store.sweep(Millis(102), 100).await.unwrap(), 1);
    assert_eq!(store.get(id(9)).await.unwrap(), None);
    assert_eq!(store.segments(id(9)).await.unwrap(), []);
    assert_eq!(store.output(id(9)).await.unwrap(), None);
    assert_eq!(store.sweep(Millis(1_000), 0).await.unwrap(), 0);
    assert_eq!(store.sweep(Millis(1_000), 4).await.unwrap(), 4);
    let left: BTreeSet<_> = all_pages(
        store.as_ref(),
        Query {
            limit: 100,
            ..Query::default()
        },
    )
    .await
    .into_iter()
    .map(|summary| summary.id)
    .collect();
    assert_eq!(left, [0, 1, 2, 3, 4, 20, 21].map(id).into());
    assert_eq!(store.segments(id(4)).await.unwrap(), [first_segment(4)]);
    assert_eq!(store.output(id(4)).await.unwrap(), Some(output(4)));
    assert_eq!(store.sweep(Millis(1_000), 100).await.unwrap(), 5);
    assert_eq!(store.sweep(Millis(i64::MAX), 100).await.unwrap(), 0);
    assert_eq!(store.get(id(20)).await.unwrap(), Some(living));
    let kept = store.get(id(21)).await.unwrap().unwrap();
    assert_eq!(kept.forget_at(), forever.forget_at());
    // An id that is forgotten is free, and finds nothing of the past.
    store.create(task(9), None, None).await.unwrap();
    assert_eq!(store.get(id(9)).await.unwrap(), Some(task(9)));
    assert_eq!(store.segments(id(9)).await.unwrap(), []);
    assert_eq!(store.segment(id(9), 0).await.unwrap(), None);
    assert_eq!(store.output(id(9)).await.unwrap(), None);
}
