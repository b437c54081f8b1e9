//! What runs leave: kept once, for those who called, and for so long.

use longshore_tasks::artifacts::{Artifact, ArtifactId, Put, Room};
use longshore_tasks::id::{Millis, Principal, Tenant};
use longshore_tasks::task::State;

use crate::kit::{Place, Stores, commit, completed, id, refusal, task};

const ROOM: Room = Room {
    count: 2,
    bytes: 10,
};
const EARLY: Millis = Millis(1);
const END: Millis = Millis(5_000);

fn name(n: u64) -> ArtifactId {
    ArtifactId(id(100 + n).0)
}

/// One of five bytes.
fn artifact(n: u64, call: u64) -> Artifact {
    Artifact {
        id: name(n),
        call: id(call),
        tenant: Tenant("tenant".into()),
        principal: Principal("principal".into()),
        name: format!("größer {n}"),
        mime_type: "text/plain".to_owned(),
        data: vec![0, 255, 1, 2, n as u8],
    }
}

impl Stores {
    async fn put(&self, artifact: Artifact) -> Put {
        self.artifacts.put(artifact, ROOM).await.unwrap()
    }

    async fn read(&self, n: u64, now: Millis) -> Option<Artifact> {
        let (tenant, principal) = (Tenant("tenant".into()), Principal("principal".into()));
        let read = self.artifacts.artifact(name(n), &tenant, &principal, now);
        read.await.unwrap()
    }

    async fn are_there(&self, now: Millis) -> Vec<u64> {
        let mut there = Vec::new();
        for n in 1..=5 {
            if self.read(n, now).await.is_some() {
                there.push(n);
            }
        }
        there
    }
}

pub(crate) async fn an_artifact_is_durable_and_kept_once(place: &Place) {
    let store = place.open();
    store.tasks.create(task(1), None, None).await.unwrap();
    assert_eq!(store.put(artifact(1, 1)).await, Put::Kept);
    drop(store);
    let store = place.open();
    store.artifacts.left_by_lost(EARLY).await.unwrap();
    assert_eq!(store.put(artifact(1, 1)).await, Put::Kept);
    assert_eq!(store.read(1, END).await, Some(artifact(1, 1)));
    // That it is there twice would be seen here: there is room for one more, and for no third.
    assert_eq!(store.put(artifact(2, 1)).await, Put::Kept);
    assert_eq!(store.put(artifact(3, 1)).await, Put::TooMany(2));
}

pub(crate) async fn an_artifact_is_its_callers_alone(place: &Place) {
    let store = place.open();
    store.put(artifact(1, 1)).await;
    for (tenant, principal, is_there) in [
        ("tenant", "principal", true),
        ("tenant", "other", false),
        ("other", "principal", false),
    ] {
        let (tenant, principal) = (Tenant(tenant.into()), Principal(principal.into()));
        let read = store
            .artifacts
            .artifact(name(1), &tenant, &principal, EARLY);
        assert_eq!(read.await.unwrap().is_some(), is_there);
    }
}

pub(crate) async fn a_call_leaves_so_much(place: &Place) {
    let store = place.open();
    let sized = |n, size: usize| Artifact {
        data: vec![0; size],
        ..artifact(n, 1)
    };
    assert_eq!(store.put(sized(1, 11)).await, Put::TooManyBytes(10));
    assert_eq!(store.put(sized(1, 8)).await, Put::Kept);
    assert_eq!(store.put(sized(2, 3)).await, Put::TooManyBytes(10));
    assert_eq!(store.put(sized(2, 2)).await, Put::Kept);
    assert_eq!(store.put(sized(3, 0)).await, Put::TooMany(2));
    // Another call has room of its own.
    assert_eq!(store.put(artifact(4, 2)).await, Put::Kept);
    assert_eq!(store.are_there(EARLY).await, [1, 2, 4]);
}

pub(crate) async fn what_a_task_left_goes_with_its_row(place: &Place) {
    let store = place.open();
    for n in [1, 2] {
        store.tasks.create(task(n), None, None).await.unwrap();
        store.put(artifact(n, n)).await;
    }
    let done = commit(&task(1), |task| task.state = completed("{}"));
    let State::Completed { at, .. } = done.task.state else {
        unreachable!("it is completed");
    };
    let over = at.plus(done.task.retention_ms);
    store.tasks.commit(done).await.unwrap();
    // Nobody would see what came now.
    let late = store.artifacts.put(artifact(3, 1), ROOM).await;
    assert_eq!(refusal(late), "fenced");
    let behind = over.plus(1);
    assert_eq!(store.are_there(over).await, [1, 2]);
    // Its time is over, also if nobody has swept yet.
    assert_eq!(store.are_there(behind).await, [2]);
    assert_eq!(store.tasks.sweep(behind, 9).await.unwrap(), 1);
    assert_eq!(store.are_there(EARLY).await, [2]);
}

pub(crate) async fn what_other_calls_left_goes_at_its_time(place: &Place) {
    let store = place.open();
    store.tasks.create(task(4), None, None).await.unwrap();
    for n in 1..=4 {
        store.put(artifact(n, n)).await;
    }
    store.artifacts.left_until(id(1), Millis(10)).await.unwrap();
    store.artifacts.left_until(id(2), Millis(20)).await.unwrap();
    // The third was lost with its process; the fourth is a task.
    store.artifacts.left_by_lost(Millis(15)).await.unwrap();
    for (now, expected) in [
        (10, &[1, 2, 3, 4][..]),
        (11, &[2, 3, 4]),
        (16, &[2, 4]),
        (21, &[4]),
    ] {
        assert_eq!(store.are_there(Millis(now)).await, expected, "at {now}");
    }
    let sweep = async |now, limit| {
        let swept = store.artifacts.sweep_artifacts(Millis(now), limit).await;
        swept.unwrap()
    };
    assert_eq!(sweep(16, 1).await, 1);
    assert_eq!(sweep(16, 9).await, 1);
    assert_eq!(sweep(16, 9).await, 0);
    assert_eq!(store.are_there(EARLY).await, [2, 4]);
}
