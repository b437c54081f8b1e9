//! What every store does with components.

use longshore_catalog::component::{Component, Digest, Name};
use longshore_catalog::store::Installed;
use longshore_tasks::id::Millis;
use longshore_tasks::task::State;

use crate::kit::{Place, commit, component, task};

pub(crate) async fn an_install_is_durable_when_it_returns(place: &Place) {
    let store = place.open().components;
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
    let kept = component("text", &large);
    assert_eq!(
        store.install(kept.clone(), large.clone()).await.unwrap(),
        Installed::Created
    );
    drop(store);
    let store = place.open().components;
    assert_eq!(store.installed().await.unwrap(), [kept]);
    assert!(store.bytes(Digest::of(&large)).await.unwrap() == Some(large));
    assert_eq!(store.bytes(Digest::of(b"else")).await.unwrap(), None);
}

pub(crate) async fn installing_the_same_changes_nothing(place: &Place) {
    let stores = place.open();
    let first = component("text", b"one");
    stores
        .components
        .install(first.clone(), b"one".to_vec())
        .await
        .unwrap();
    let before = stores.tasks.figures().await.unwrap();
    let later = Component {
        installed_at_ms: 99,
        ..first.clone()
    };
    let again = stores
        .components
        .install(later, b"one".to_vec())
        .await
        .unwrap();
    assert_eq!(again, Installed::Unchanged);
    assert_eq!(stores.tasks.figures().await.unwrap(), before);
    assert_eq!(stores.components.installed().await.unwrap(), [first]);
}

pub(crate) async fn a_name_points_at_what_was_installed_last(place: &Place) {
    let store = place.open().components;
    let other = component("maps", b"other");
    let second = Component {
        installed_at_ms: 99,
        ..component("text", b"two")
    };
    store
        .install(component("text", b"one"), b"one".to_vec())
        .await
        .unwrap();
    store
        .install(other.clone(), b"other".to_vec())
        .await
        .unwrap();
    let replaced = store
        .install(second.clone(), b"two".to_vec())
        .await
        .unwrap();
    assert_eq!(replaced, Installed::Replaced(Digest::of(b"one")));
    // Sorted by name, not by when they came.
    assert_eq!(store.installed().await.unwrap(), [other, second]);
    // Somebody may still run the old bytes.
    assert_eq!(
        store.bytes(Digest::of(b"one")).await.unwrap().as_deref(),
        Some(&b"one"[..])
    );
    // And back again, with bytes that are here already.
    let back = store
        .install(component("text", b"one"), b"one".to_vec())
        .await
        .unwrap();
    assert_eq!(back, Installed::Replaced(Digest::of(b"two")));
}

pub(crate) async fn descriptors_belong_to_the_digest(place: &Place) {
    let store = place.open().components;
    let first = component("text", b"one");
    store.install(first.clone(), b"one".to_vec()).await.unwrap();
    // Another program finds other tools in the same bytes, under another name.
    let mut second = Component {
        name: "maps".parse().unwrap(),
        installed_at_ms: 99,
        ..first.clone()
    };
    second.tools.clear();
    second.volatile = Vec::new();
    assert_eq!(
        store
            .install(second.clone(), b"one".to_vec())
            .await
            .unwrap(),
        Installed::Created
    );
    let first_now = Component {
        name: first.name.clone(),
        installed_at_ms: first.installed_at_ms,
        ..second.clone()
    };
    assert_eq!(store.installed().await.unwrap(), [second, first_now]);
    // And under the same name: the bytes are the same, but not nothing has changed.
    let back = store.install(first.clone(), b"one".to_vec()).await.unwrap();
    assert_eq!(back, Installed::Replaced(first.digest.clone()));
    assert_eq!(store.installed().await.unwrap()[1], first);
}

pub(crate) async fn a_removed_name_is_gone(place: &Place) {
    let store = place.open().components;
    let kept = component("text", b"one");
    store.install(kept.clone(), b"one".to_vec()).await.unwrap();
    assert!(store.remove(kept.name.clone()).await.unwrap());
    assert!(!store.remove(kept.name.clone()).await.unwrap());
    assert_eq!(store.installed().await.unwrap(), []);
    assert!(store.bytes(kept.digest.clone()).await.unwrap().is_some());
    assert_eq!(
        store.install(kept.clone(), b"one".to_vec()).await.unwrap(),
        Installed::Created
    );
    assert_eq!(store.installed().await.unwrap(), [kept]);
}

pub(crate) async fn bytes_stay_while_they_are_needed(place: &Place) {
    let stores = place.open();
    let store = stores.components;
    let mut digests = Vec::new();
    for bytes in [&b"named"[..], b"run", b"ended", b"nobody"] {
        let kept = component("text", bytes);
        digests.push(kept.digest.clone());
        store.install(kept, bytes.to_vec()).await.unwrap();
    }
    store
        .install(component("text", b"named"), b"named".to_vec())
        .await
        .unwrap();
    let [named, run, ended, nobody] = &digests[..] else {
        panic!()
    };
    let mut running = task(1);
    running.pinned.digest = run.to_string();
    let mut over = task(2);
    over.pinned.digest = ended.to_string();
    over.state = State::Cancelled { at: Millis(1) };
    stores
        .tasks
        .create(running.clone(), None, None)
        .await
        .unwrap();
    stores.tasks.create(over, None, None).await.unwrap();

    // What came as a file has no name here; it stays while it is served.
    let file = component("text", b"file");
    let served = file.digest.clone();
    for _ in 0..2 {
        store.keep(file.clone(), b"file".to_vec()).await.unwrap();
    }
    let mut gone = vec![ended.clone(), nobody.clone()];
    gone.sort();
    assert_eq!(store.collect(vec![served.clone()]).await.unwrap(), gone);
    assert_eq!(store.bytes(served.clone()).await.unwrap().unwrap(), b"file");
    assert_eq!(store.installed().await.unwrap().len(), 1);
    assert_eq!(store.collect(Vec::new()).await.unwrap(), [served]);
    assert_eq!(store.collect(Vec::new()).await.unwrap(), []);
    for (digest, there) in [(named, true), (run, true), (ended, false), (nobody, false)] {
        assert_eq!(store.bytes(digest.clone()).await.unwrap().is_some(), there);
    }
    stores
        .tasks
        .commit(commit(&running, |task| {
            task.state = State::Cancelled { at: Millis(1) }
        }))
        .await
        .unwrap();
    store.remove("text".parse().unwrap()).await.unwrap();
    let mut gone = vec![named.clone(), run.clone()];
    gone.sort();
    assert_eq!(store.collect(Vec::new()).await.unwrap(), gone);
}

pub(crate) async fn tasks_and_components_share_a_store(place: &Place) {
    let stores = place.open();
    stores
        .components
        .install(component("text", b"one"), b"one".to_vec())
        .await
        .unwrap();
    stores.tasks.create(task(1), None, None).await.unwrap();
    assert_eq!(stores.tasks.figures().await.unwrap().changes, 2);
    drop(stores);
    let stores = place.open();
    assert_eq!(stores.components.installed().await.unwrap().len(), 1);
    assert!(stores.tasks.get(task(1).id).await.unwrap().is_some());
}

pub(crate) async fn a_grant_lasts_as_long_as_its_name(place: &Place) {
    let store = place.open().components;
    let kept = component("text", b"one");
    let name = kept.name.clone();
    store.install(kept, b"one".to_vec()).await.unwrap();
    assert_eq!(store.grants().await.unwrap(), []);
    // A file may bring the component of another.
    let other: Name = "maps".parse().unwrap();
    for (name, grant) in [(&name, "1"), (&other, "2"), (&name, "3")] {
        store
            .grant(name.clone(), Some(grant.to_owned()))
            .await
            .unwrap();
    }
    drop(store);
    let store = place.open().components;
    let both = [
        (other.clone(), "2".to_owned()),
        (name.clone(), "3".to_owned()),
    ];
    assert_eq!(store.grants().await.unwrap(), both);
    // Other bytes under the name have what the name was granted.
    store
        .install(component("text", b"two"), b"two".to_vec())
        .await
        .unwrap();
    assert_eq!(store.grants().await.unwrap(), both);
    assert!(!store.remove(other.clone()).await.unwrap());
    assert!(store.remove(name).await.unwrap());
    assert_eq!(store.grants().await.unwrap(), both[..1]);
    store.grant(other.clone(), None).await.unwrap();
    store.grant(other, None).await.unwrap();
    assert_eq!(store.grants().await.unwrap(), []);
}
