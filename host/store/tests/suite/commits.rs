//! Which successor every store takes, and which it refuses.

use longshore_tasks::event::Event;
use longshore_tasks::id::{Millis, NodeId};
use longshore_tasks::question::{Fate, Question};
use longshore_tasks::store::Segment;
use longshore_tasks::task::{State, Task};

use crate::kit::{
    Place, commit, completed, failed, first_segment, full_task, id, journalled, output, refusal,
    segment, task,
};

pub(crate) async fn a_commit_is_durable_when_it_returns(place: &Place) {
    let store = place.open().tasks;
    store.create(task(1), None, None).await.unwrap();
    let mut change = journalled(&task(1), segment(0));
    change.task.state = completed("{}");
    store.commit(change.clone()).await.unwrap();
    drop(store);
    let store = place.open().tasks;
    assert_eq!(store.get(id(1)).await.unwrap(), Some(change.task));
    assert_eq!(store.segments(id(1)).await.unwrap(), [segment(0)]);
}

pub(crate) async fn what_was_fixed_stays_fixed(place: &Place) {
    let store = place.open().tasks;
    let first = Task {
        journal_key: Some(vec![2, 0, 3]),
        ..task(1)
    };
    store.create(first.clone(), None, None).await.unwrap();
    let change = commit(&first, |task| {
        task.pinned.tool = "another".to_owned();
        task.pinned.arguments = "[]".into();
        task.created_at = Millis(9);
        task.journal_key = Some(vec![1]);
        task.stalls = 99;
    });
    store.commit(change).await.unwrap();
    let expected = Task {
        version: 2,
        stalls: 99,
        ..first
    };
    assert_eq!(store.get(id(1)).await.unwrap(), Some(expected));
}

pub(crate) async fn what_is_final_is_never_replaced(place: &Place) {
    let store = place.open().tasks;
    for (n, state) in (0_u64..).zip([
        completed("{}"),
        failed(),
        State::Cancelled { at: Millis(5) },
    ]) {
        let done = Task {
            state,
            ..full_task(n)
        };
        store.create(done.clone(), None, None).await.unwrap();
        for next in [
            State::Working,
            State::InputRequired,
            completed("1"),
            failed(),
        ] {
            let change = commit(&done, |task| task.state = next.clone());
            assert_eq!(refusal(store.commit(change).await), "conflict", "{next:?}");
        }
        assert_eq!(
            refusal(store.commit(journalled(&done, segment(0))).await),
            "conflict"
        );
        assert_eq!(store.get(id(n)).await.unwrap(), Some(done));
        assert_eq!(store.segments(id(n)).await.unwrap(), []);
    }
}

pub(crate) async fn versions_only_grow(place: &Place) {
    let store = place.open().tasks;
    let first = Task {
        version: 5,
        ..task(1)
    };
    store.create(first.clone(), None, None).await.unwrap();
    for version in [0, 4, 5] {
        let change = commit(&first, |task| task.version = version);
        assert_eq!(refusal(store.commit(change).await), "conflict", "{version}");
    }
    // A later version than the row's is as stale as an earlier one.
    let ahead = Task {
        version: 6,
        ..first.clone()
    };
    assert_eq!(
        refusal(store.commit(commit(&ahead, |_| ())).await),
        "conflict"
    );
    assert_eq!(store.get(id(1)).await.unwrap(), Some(first.clone()));
    store.commit(commit(&first, |_| ())).await.unwrap();
    assert_eq!(store.get(id(1)).await.unwrap().unwrap().version, 6);
}

pub(crate) async fn a_stale_commit_leaves_nothing(place: &Place) {
    let store = place.open().tasks;
    let first = task(1);
    store.create(first.clone(), None, None).await.unwrap();
    let second = commit(&first, |task| task.lease.epoch = 2);
    store.commit(second.clone()).await.unwrap();
    let second = second.task;

    let old_version = Task {
        version: 1,
        ..second.clone()
    };
    let mut old_epoch = second.clone();
    old_epoch.lease.epoch = 1;
    for (stale, expected) in [
        (&old_version, "conflict"),
        (&old_epoch, "fenced"),
        (&first, "fenced"),
    ] {
        let mut change = journalled(stale, segment(0));
        change.task.questions = vec![Question {
            key: "k".to_owned(),
            request: "{}".into(),
            fate: Fate::Open,
        }];
        change.task.state = State::InputRequired;
        change.output = Some(output(9));
        if let Some(segment) = &mut change.segment {
            segment.epoch = stale.lease.epoch;
        }
        assert_eq!(refusal(store.commit(change).await), expected);
        assert_eq!(store.get(id(1)).await.unwrap().as_ref(), Some(&second));
        assert_eq!(store.segments(id(1)).await.unwrap(), []);
        assert_eq!(store.output(id(1)).await.unwrap(), None);
    }
}

pub(crate) async fn a_former_owner_is_fenced_off(place: &Place) {
    let store = place.open().tasks;
    let mine = task(1);
    store.create(mine.clone(), None, None).await.unwrap();
    let taken = commit(&mine, |task| {
        task.lease.epoch += 1;
        task.lease.owner = Some(NodeId("other".into()));
    });
    store.commit(taken.clone()).await.unwrap();
    assert_eq!(refusal(store.commit(commit(&mine, |_| ())).await), "fenced");
    // Not by giving the epoch back either.
    let back = commit(&taken.task, |task| task.lease.epoch -= 1);
    assert_eq!(refusal(store.commit(back).await), "conflict");
    // The fence stands when the new owner has brought the task to its end.
    let done = commit(&taken.task, |task| task.state = completed("{}"));
    store.commit(done.clone()).await.unwrap();
    assert_eq!(refusal(store.commit(commit(&mine, |_| ())).await), "fenced");
    assert_eq!(store.get(id(1)).await.unwrap(), Some(done.task));
}

pub(crate) async fn of_two_commits_one_wins(place: &Place) {
    let store = place.open().tasks;
    for n in 0..50 {
        store.create(task(n), None, None).await.unwrap();
        let contenders = ["one", "two"].map(|winner| {
            let store = store.clone();
            let mut change = journalled(
                &task(n),
                Segment {
                    frames: winner.into(),
                    ..segment(0)
                },
            );
            change.task.status.message = Some(winner.to_owned());
            tokio::spawn(async move { store.commit(change).await })
        });
        let mut won = Vec::new();
        for (contender, winner) in contenders.into_iter().zip(["one", "two"]) {
            match contender.await.unwrap() {
                Ok(()) => won.push(winner),
                refused => assert_eq!(refusal(refused), "conflict"),
            }
        }
        let [winner] = won[..] else {
            panic!("{won:?} won")
        };
        let kept = store.get(id(n)).await.unwrap().unwrap();
        assert_eq!(kept.status.message.as_deref(), Some(winner));
        assert_eq!(
            store.segments(id(n)).await.unwrap()[0].frames,
            winner.as_bytes()
        );
    }
}

pub(crate) async fn of_several_claims_one_wins(place: &Place) {
    let store = place.open().tasks;
    let names = ["one", "two", "three", "four"];
    for n in 0..25 {
        let mut free = task(n);
        free.lease.owner = None;
        free.wake_at = Some(Millis(1));
        store.create(free, None, None).await.unwrap();
        let claims = names.map(|name| {
            let store = store.clone();
            tokio::spawn(async move {
                let row = store.get(id(n)).await.unwrap().unwrap();
                let owner = NodeId(name.into());
                // Whoever is late finds that it has an owner, who is not dead.
                if row.lease.owner.is_some() {
                    return None;
                }
                let claimed = row.apply(Event::Claimed { owner }, Millis(2)).unwrap();
                let change = commit(&row, |task| *task = claimed.task);
                match store.commit(change).await {
                    Ok(()) => Some(name),
                    refused => {
                        assert_eq!(refusal(refused), "fenced");
                        None
                    }
                }
            })
        });
        let mut won = Vec::new();
        for claim in claims {
            won.extend(claim.await.unwrap());
        }
        let [winner] = won[..] else {
            panic!("{won:?} won")
        };
        let row = store.get(id(n)).await.unwrap().unwrap();
        assert_eq!(row.lease.owner, Some(NodeId(winner.into())));
        assert_eq!(
            (row.lease.epoch, row.version, row.wake_at),
            (2, 2, None),
            "of the losers there is no trace"
        );
    }
}

pub(crate) async fn fenced_commits_spoil_no_others(place: &Place) {
    let store = place.open().tasks;
    let mut written = Vec::new();
    for n in 0..64 {
        store.create(task(n), None, None).await.unwrap();
        written.push(journalled(&task(n), first_segment(n)));
    }
    let fenced = [7, 21, 63];
    for n in fenced {
        let owner = NodeId("other".into());
        let taken = task(n).apply(Event::Claimed { owner }, Millis(1)).unwrap();
        let change = commit(&task(n), |task| *task = taken.task);
        store.commit(change).await.unwrap();
    }
    let commits: Vec<_> = written
        .into_iter()
        .map(|change| {
            let store = store.clone();
            tokio::spawn(async move { store.commit(change).await })
        })
        .collect();
    let mut stood = 0;
    for (n, commit) in (0_u64..).zip(commits) {
        let answer = commit.await.unwrap();
        let segments = if fenced.contains(&n) {
            assert_eq!(refusal(answer), "fenced");
            vec![]
        } else {
            answer.unwrap();
            stood += 1;
            vec![first_segment(n)]
        };
        assert_eq!(store.get(id(n)).await.unwrap().unwrap().version, 2);
        assert_eq!(store.segments(id(n)).await.unwrap(), segments);
    }
    assert_eq!(stood, 61);
}

pub(crate) async fn stale_commits_spoil_no_others(place: &Place) {
    let store = place.open().tasks;
    for n in 0..64 {
        store.create(task(n), None, None).await.unwrap();
    }
    let commits: Vec<_> = (0..64)
        .map(|n| {
            let store = store.clone();
            let mut from = task(n);
            match n {
                7 => from.version = 9,
                21 => from.lease.epoch = 9,
                63 => from.journal.segments = 9,
                _ => {}
            }
            let mut change = journalled(&from, first_segment(n));
            if let Some(segment) = &mut change.segment {
                segment.epoch = from.lease.epoch;
                segment.number = from.journal.segments;
            }
            tokio::spawn(async move { store.commit(change).await })
        })
        .collect();
    let mut stood = 0;
    for (n, commit) in commits.into_iter().enumerate() {
        let answer = commit.await.unwrap();
        let n = n as u64;
        let (version, segments) = match n {
            7 | 63 => {
                assert_eq!(refusal(answer), "conflict");
                (1, vec![])
            }
            21 => {
                assert_eq!(refusal(answer), "fenced");
                (1, vec![])
            }
            _ => {
                answer.unwrap();
                stood += 1;
                (2, vec![first_segment(n)])
            }
        };
        assert_eq!(store.get(id(n)).await.unwrap().unwrap().version, version);
        assert_eq!(store.segments(id(n)).await.unwrap(), segments);
    }
    assert_eq!(stood, 61);
}
