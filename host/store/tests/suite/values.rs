//! What components keep: each change takes place once, and every shelf is its own.

use longshore_tasks::id::Tenant;
use longshore_tasks::values::{Change, Changed, How, Keys, Once, Room, Shelf, Taken};

use crate::kit::{Place, Stores, commit, completed, id, refusal, task};

const ROOM: Room = Room {
    keys: 3,
    bytes: 100,
};

fn shelf(component: &str) -> Shelf {
    Shelf {
        tenant: Tenant("tenant".into()),
        component: component.to_owned(),
    }
}

fn once(call: u64, number: u64) -> Once {
    Once {
        call: id(call),
        start: 0,
        number,
    }
}

fn add(delta: i64) -> Change {
    Change {
        key: "n".to_owned(),
        how: How::Add(delta),
    }
}

fn set(key: &str, value: &str) -> Change {
    Change {
        key: key.to_owned(),
        how: How::Set(value.into()),
    }
}

impl Stores {
    async fn change(&self, whose: &str, once: Once, change: Change) -> Changed {
        let changed = self.values.change(&shelf(whose), once, change, ROOM).await;
        changed.unwrap()
    }

    async fn number(&self, whose: &str) -> Option<String> {
        let value = self.values.value(&shelf(whose), "n").await.unwrap();
        value.map(|value| String::from_utf8(value).unwrap())
    }
}

pub(crate) async fn a_change_is_durable_and_takes_place_once(place: &Place) {
    let store = place.open();
    store.tasks.create(task(1), None, None).await.unwrap();
    assert_eq!(store.change("a", once(1, 7), add(5)).await, Changed::Sum(5));
    drop(store);
    let store = place.open();
    // A process that begins forgets nothing of a task that goes on.
    store.values.forget_lost().await.unwrap();
    assert_eq!(store.change("a", once(1, 7), add(5)).await, Changed::Sum(5));
    assert_eq!(store.number("a").await.as_deref(), Some("5"));
    // Another host call, another start, or another call is another change.
    assert_eq!(store.change("a", once(1, 8), add(1)).await, Changed::Sum(6));
    let anew = Once {
        start: u64::MAX,
        ..once(1, 8)
    };
    assert_eq!(store.change("a", anew, add(1)).await, Changed::Sum(7));
    assert_eq!(store.change("a", once(2, 7), add(1)).await, Changed::Sum(8));
    // What was refused is refused again, also if it would fit by now.
    let word = set("n", "word");
    assert_eq!(store.change("a", once(1, 9), word).await, Changed::Done);
    let refused = store.change("a", once(1, 10), add(1)).await;
    assert_eq!(refused, Changed::NoNumber);
    let number = set("n", "1");
    assert_eq!(store.change("a", once(2, 8), number).await, Changed::Done);
    assert_eq!(store.change("a", once(1, 10), add(1)).await, refused);
    // Whoever is behind has lost the call to somebody who is further, and changes nothing.
    let behind = store
        .values
        .change(&shelf("a"), once(1, 9), add(1), ROOM)
        .await;
    assert_eq!(refusal(behind), "fenced");
    assert_eq!(store.number("a").await.as_deref(), Some("1"));
}

pub(crate) async fn every_component_of_every_tenant_has_values_of_its_own(place: &Place) {
    let store = place.open();
    let other = Shelf {
        tenant: Tenant("other".into()),
        ..shelf("a")
    };
    store.change("a", once(1, 1), add(1)).await;
    store.change("b", once(1, 2), add(2)).await;
    let changed = store.values.change(&other, once(1, 3), add(3), ROOM).await;
    assert_eq!(changed.unwrap(), Changed::Sum(3));
    store.values.clear(&shelf("b")).await.unwrap();
    drop(store);
    let store = place.open();
    assert_eq!(store.number("a").await.as_deref(), Some("1"));
    assert_eq!(store.number("b").await, None);
    let taken = |keys, bytes| Taken { keys, bytes };
    for (shelf, expected) in [
        (shelf("a"), taken(1, 2)),
        (shelf("b"), taken(0, 0)),
        (other, taken(1, 2)),
        (shelf("c"), taken(0, 0)),
    ] {
        assert_eq!(store.values.taken(&shelf).await.unwrap(), expected);
    }
}

pub(crate) async fn values_have_room_for_so_much(place: &Place) {
    let store = place.open();
    let value = |bytes: usize| "x".repeat(bytes);
    let rows = [
        ("a", value(99), Changed::Done),
        ("b", value(0), Changed::TooManyBytes(100)),
        ("a", value(100), Changed::TooManyBytes(100)),
        ("a", value(1), Changed::Done),
        ("b", value(1), Changed::Done),
        ("c", value(1), Changed::Done),
        ("d", value(0), Changed::TooManyKeys(3)),
        ("c", value(95), Changed::Done),
    ];
    for (number, (key, value, expected)) in (1..).zip(rows) {
        let changed = store.change("a", once(1, number), set(key, &value)).await;
        assert_eq!(changed, expected, "row {number}");
    }
    let taken = store.values.taken(&shelf("a")).await.unwrap();
    assert_eq!(
        taken,
        Taken {
            keys: 3,
            bytes: 100
        }
    );
}

/// What the keys begin with, behind which they come, at most how many; which come, and behind which there are more.
type Listed<'a> = (
    &'a str,
    Option<&'a str>,
    usize,
    &'a [&'a str],
    Option<&'a str>,
);

pub(crate) async fn keys_come_in_the_order_of_their_bytes(place: &Place) {
    let store = place.open();
    let room = Room { keys: 9, bytes: 99 };
    for (number, key) in (1..).zip(["größer", "a/2", "b", "a/1", "a", "a\0"]) {
        let change = set(key, "");
        let changed = store
            .values
            .change(&shelf("a"), once(1, number), change, room)
            .await;
        assert_eq!(changed.unwrap(), Changed::Done);
    }
    store.change("b", once(1, 9), set("a/3", "")).await;
    let rows: [Listed<'_>; 4] = [
        (
            "",
            None,
            9,
            &["a", "a\0", "a/1", "a/2", "b", "größer"],
            None,
        ),
        ("a", None, 2, &["a", "a\0"], Some("a\0")),
        ("a", Some("a\0"), 2, &["a/1", "a/2"], None),
        ("a/", Some("a/2"), 2, &[], None),
    ];
    for (prefix, after, limit, keys, next) in rows {
        let which = Keys {
            prefix: prefix.to_owned(),
            after: after.map(str::to_owned),
            limit,
        };
        let page = store.values.keys(&shelf("a"), which).await.unwrap();
        assert_eq!(
            (page.keys, page.next.as_deref()),
            (keys.iter().map(|key| (*key).to_owned()).collect(), next)
        );
    }
}

pub(crate) async fn what_came_of_changes_goes_with_their_call(place: &Place) {
    let store = place.open();
    for n in [1, 2] {
        store.tasks.create(task(n), None, None).await.unwrap();
    }
    for call in 1..=4 {
        store.change("a", once(call, 1), add(1)).await;
    }
    let done = commit(&task(1), |task| task.state = completed("{}"));
    store.tasks.commit(done).await.unwrap();
    // A task that has ended changes nothing any more, even if it asks for what it had asked before.
    let late = store
        .values
        .change(&shelf("a"), once(1, 1), add(1), ROOM)
        .await;
    assert_eq!(refusal(late), "fenced");
    store.values.forget(id(3)).await.unwrap();
    assert_eq!(store.change("a", once(4, 1), add(1)).await, Changed::Sum(4));
    assert_eq!(store.change("a", once(3, 1), add(1)).await, Changed::Sum(5));
    // Whoever begins forgets those that died with the process before, and nobody else.
    store.values.forget_lost().await.unwrap();
    assert_eq!(store.change("a", once(4, 1), add(1)).await, Changed::Sum(6));
    assert_eq!(store.change("a", once(2, 1), add(1)).await, Changed::Sum(2));
    assert_eq!(store.number("a").await.as_deref(), Some("6"));
}
