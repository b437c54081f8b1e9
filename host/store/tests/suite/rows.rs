//! What every store does with the row of a task.

use longshore_tasks::id::{Millis, NodeId, Principal, Tenant};
use longshore_tasks::question::{Fate, Question};
use longshore_tasks::task::{Failure, State, Task};

use crate::kit::{Place, commit, completed, failed, full_task, id, output, refusal, segment, task};

pub(crate) async fn a_task_is_durable_when_create_returns(place: &Place) {
    let store = place.open().tasks;
    let mut task = full_task(1);
    task.journal.segments = 1;
    store
        .create(task.clone(), Some(segment(0)), Some(output(3)))
        .await
        .unwrap();
    drop(store);
    let store = place.open().tasks;
    assert_eq!(store.get(id(1)).await.unwrap(), Some(task));
    assert_eq!(store.segments(id(1)).await.unwrap(), [segment(0)]);
    assert_eq!(store.output(id(1)).await.unwrap(), Some(output(3)));
}

pub(crate) async fn an_id_is_taken_once(place: &Place) {
    let store = place.open().tasks;
    store.create(task(1), None, None).await.unwrap();
    let mut other = full_task(1);
    other.journal.segments = 1;
    let created = store.create(other, Some(segment(0)), Some(output(1)));
    assert_eq!(refusal(created.await), "exists");
    assert_eq!(store.get(id(1)).await.unwrap(), Some(task(1)));
    assert_eq!(store.segments(id(1)).await.unwrap(), []);
    assert_eq!(store.output(id(1)).await.unwrap(), None);
}

pub(crate) async fn a_key_of_a_caller_is_taken_once(place: &Place) {
    let store = place.open().tasks;
    let keyed = |n: u64, principal: &str, key: &str| {
        let mut task = task(n);
        task.pinned.principal = Principal(principal.into());
        task.pinned.idempotency_key = Some(key.to_owned());
        task
    };
    let first = keyed(1, "ann", "k");
    store.create(first.clone(), None, None).await.unwrap();
    let second = store.create(keyed(2, "ann", "k"), None, None).await;
    assert_eq!(refusal(second), "exists");
    // Another caller's key, and another key, are other keys.
    for other in [keyed(3, "bob", "k"), keyed(4, "ann", "K"), task(5), task(6)] {
        store.create(other, None, None).await.unwrap();
    }
    drop(store);
    let store = place.open().tasks;
    let (tenant, ann) = (first.pinned.tenant.clone(), first.pinned.principal.clone());
    let found = store.by_key(&tenant, &ann, "k").await.unwrap();
    assert_eq!(found.as_ref(), Some(&first));
    let unknown = [
        store.by_key(&tenant, &ann, "x").await,
        store.by_key(&Tenant("other".into()), &ann, "k").await,
    ];
    assert!(unknown.into_iter().all(|found| found.unwrap().is_none()));
    // It is free again once the task is forgotten.
    let done = commit(&first, |task| task.state = completed("{}"));
    store.commit(done).await.unwrap();
    assert_eq!(store.sweep(Millis(i64::MAX), 1).await.unwrap(), 1);
    store
        .create(keyed(7, "ann", "k"), None, None)
        .await
        .unwrap();
}

pub(crate) async fn what_is_unknown_is_absent(place: &Place) {
    let store = place.open().tasks;
    store.create(task(1), None, None).await.unwrap();
    assert_eq!(store.get(id(2)).await.unwrap(), None);
    assert_eq!(store.segments(id(2)).await.unwrap(), []);
    for unknown in [id(1), id(2)] {
        assert_eq!(store.segment(unknown, 0).await.unwrap(), None);
        assert_eq!(store.output(unknown).await.unwrap(), None);
    }
    assert_eq!(
        refusal(store.commit(commit(&task(2), |_| ())).await),
        "missing"
    );
    assert_eq!(store.get(id(2)).await.unwrap(), None);
}

pub(crate) async fn every_field_comes_back(place: &Place) {
    let store = place.open().tasks;
    let plain_failure = Failure {
        code: 0,
        message: String::new(),
        data: None,
    };
    let states = [
        State::Working,
        State::InputRequired,
        completed("[]"),
        failed(),
        State::Failed {
            at: Millis(-1),
            failure: plain_failure,
        },
        State::Cancelled { at: Millis(0) },
    ];
    let mut kept = Vec::new();
    for (n, state) in (0_u64..).step_by(3).zip(states) {
        // In each state with nothing optional, with everything, and as the successor of both.
        let sparse = Task {
            state: state.clone(),
            ..task(n)
        };
        let full = Task {
            state: state.clone(),
            ..full_task(n + 1)
        };
        store.create(sparse.clone(), None, None).await.unwrap();
        store.create(full.clone(), None, None).await.unwrap();
        store.create(task(n + 2), None, None).await.unwrap();
        let change = commit(&task(n + 2), |task| {
            let full = full_task(n + 2);
            task.updated_at = Millis(3_001);
            task.deadline_at = Millis(3_002);
            task.retention_ms = 3_003;
            task.lease.epoch = 3_004;
            task.lease.owner = Some(NodeId("other".into()));
            task.journal.calls = 3_005;
            task.journal.base_cpu_ms = 3_006;
            task.journal.used.active_ms = 3_011;
            task.journal.used.cpu_ms = 3_012;
            task.usage.active_ms = 3_007;
            task.usage.cpu_ms = 3_008;
            task.status = full.status;
            task.cancel_requested_at = Some(Millis(3_009));
            task.wake_at = Some(Millis(3_010));
            task.stalls = 31;
            task.state = state;
        });
        store.commit(change.clone()).await.unwrap();
        kept.extend([sparse, full, change.task]);
    }
    for task in &kept {
        assert_eq!(store.get(task.id).await.unwrap().as_ref(), Some(task));
    }
    drop(store);
    let store = place.open().tasks;
    for task in &kept {
        assert_eq!(store.get(task.id).await.unwrap().as_ref(), Some(task));
    }
}

pub(crate) async fn texts_come_back_byte_for_byte(place: &Place) {
    let store = place.open().tasks;
    let long = format!("\"{}\"", "ü\\u0000 \u{1F6A2}\t".repeat(80_000));
    assert!(long.len() > 1 << 20);
    let texts = [
        "",
        "\"größer\"",
        "{ \"b\":1,\n\"a\":\t2.50 }",
        "\"a\0b\"",
        &long,
    ];
    for (n, text) in (0_u64..).zip(texts) {
        let mut before = task(n);
        before.pinned.arguments = text.into();
        before.pinned.client = text.into();
        before.pinned.policy = text.into();
        before.questions = vec![Question {
            key: text.chars().take(100).collect(),
            request: text.into(),
            fate: Fate::Answered(text.into()),
        }];
        store.create(before.clone(), None, None).await.unwrap();
        let read = store.get(id(n)).await.unwrap().unwrap();
        // Not by `assert_eq`, which would print a MiB.
        assert!(read == before, "text {n} changed on its way in");
        let after = commit(&before, |task| {
            task.questions.clear();
            task.state = completed(text);
        });
        store.commit(after.clone()).await.unwrap();
        let read = store.get(id(n)).await.unwrap().unwrap();
        assert!(read == after.task, "text {n} changed as a result");
    }
}

pub(crate) async fn figures_count_what_changed(place: &Place) {
    let store = place.open().tasks;
    assert_eq!(store.figures().await.unwrap().changes, 0);
    for n in 0..3 {
        store.create(task(n), None, None).await.unwrap();
    }
    store
        .commit(commit(&task(0), |task| task.state = completed("{}")))
        .await
        .unwrap();
    // None of these changes anything.
    assert_eq!(refusal(store.create(task(0), None, None).await), "exists");
    assert_eq!(
        refusal(store.commit(commit(&task(0), |_| ())).await),
        "conflict"
    );
    assert_eq!(
        refusal(store.commit(commit(&task(9), |_| ())).await),
        "missing"
    );
    assert_eq!(store.sweep(Millis(0), 10).await.unwrap(), 0);
    store.get(id(1)).await.unwrap();
    let figures = store.figures().await.unwrap();
    // One after the other, none could share a transaction.
    assert_eq!(
        (figures.changes, figures.commits, figures.unfinished),
        (4, 4, 2)
    );
}
