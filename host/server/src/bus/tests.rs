use longshore_protocol::envelope::RequestId;
use longshore_protocol::notification;
use longshore_protocol::task::{Task, TaskState};
use uuid::Uuid;

use super::*;

fn members(message: &str) -> TaskMembers {
    TaskMembers::of(&Task {
        id: "task",
        status_message: Some(message),
        created_at_ms: 0,
        updated_at_ms: 0,
        ttl_ms: None,
        poll_interval_ms: None,
        state: TaskState::Working,
    })
}

const ALL_LISTS: ListChanges = ListChanges {
    tools: true,
    prompts: true,
    resources: true,
};

fn of_tasks(tasks: &[TaskId]) -> Wanted {
    Wanted {
        tasks: tasks.to_vec(),
        ..Wanted::default()
    }
}

fn of_resource(component: &str, uri: &str) -> Subscription {
    Subscription {
        component: component.to_owned(),
        uri: uri.into(),
    }
}

fn uri(told: &Told) -> &str {
    match told {
        Told::Resource(uri) => uri,
        _ => panic!("not of a resource"),
    }
}

#[tokio::test]
async fn a_resource_is_told_of_by_its_own_component_and_once_for_many_notices() {
    let bus = Arc::new(Bus::new(1, 1));
    let wanted = Wanted {
        resources: vec![of_resource("one", "t:a"), of_resource("one", "t:b")],
        ..Wanted::default()
    };
    let mut listener = bus.listen(&somebody(), wanted).ok().unwrap();
    bus.resource_updated("two", "t:a");
    bus.resource_updated("one", "t:c");
    bus.resource_updated("one", "t:b");
    assert_eq!(uri(&listener.next().await), "t:b");
    let began = Instant::now();
    for _ in 0..100 {
        bus.resource_updated("one", "t:b");
    }
    bus.resource_updated("one", "t:a");
    assert_eq!(uri(&listener.next().await), "t:a");
    assert_eq!(uri(&listener.next().await), "t:b");
    assert!(began.elapsed() >= SAME_EVERY / 2, "{:?}", began.elapsed());
    bus.contents_changed("two");
    bus.contents_changed("one");
    let mut both = [listener.next().await, listener.next().await];
    both.sort_by(|a, b| uri(a).cmp(uri(b)));
    assert_eq!(both.each_ref().map(uri), ["t:a", "t:b"]);
    bus.close();
    assert!(matches!(listener.next().await, Told::Closed));
}

fn somebody() -> Principal {
    Principal("somebody".into())
}

#[test]
fn one_caller_has_its_share_of_the_places_and_no_more() {
    let bus = Arc::new(Bus::new(3, 2));
    let other = Principal("other".into());
    let listen = |caller: &Principal| bus.listen(caller, Wanted::default());
    let first = listen(&somebody()).ok().unwrap();
    let _second = listen(&somebody()).ok().unwrap();
    assert_eq!(listen(&somebody()).err(), Some(Full::Caller));
    let _third = listen(&other).ok().unwrap();
    assert_eq!(listen(&other).err(), Some(Full::Node));
    drop(first);
    assert!(listen(&somebody()).is_ok());
}

fn message(told: &Told) -> String {
    let Told::Task(task) = told else {
        panic!("not of a task");
    };
    let text = notification::task_changed(&RequestId::parse("1").unwrap(), task);
    let event: serde_json::Value = serde_json::from_str(&text).unwrap();
    event["params"]["statusMessage"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn of_each_task_the_newest_waits_in_the_order_of_the_first_news() {
    let bus = Arc::new(Bus::new(1, 1));
    let [one, two] = [1, 2].map(|n| TaskId(Uuid::from_u128(n)));
    let mut listener = bus.listen(&somebody(), of_tasks(&[one, two])).ok().unwrap();
    bus.task_changed(one, 2, || members("one 2"));
    bus.task_changed(two, 5, || members("two 5"));
    bus.task_changed(one, 3, || members("one 3"));
    // What was read from the store before, and a commit that is told late.
    listener.begin(two, 4, members("two 4"));
    bus.task_changed(one, 1, || members("one 1"));
    assert_eq!(message(&listener.next().await), "one 3");
    assert_eq!(message(&listener.next().await), "two 5");
    bus.task_changed(one, 3, || members("one 3 again"));
    bus.close();
    assert!(matches!(listener.next().await, Told::Closed));
}

#[tokio::test]
async fn who_left_is_told_nothing_and_takes_no_place() {
    let bus = Arc::new(Bus::new(1, 1));
    let id = TaskId(Uuid::from_u128(1));
    let resource = of_resource("one", "t:a");
    let wanted = Wanted {
        lists: ALL_LISTS,
        resources: vec![resource.clone()],
        ..of_tasks(&[id])
    };
    let mut listener = bus.listen(&somebody(), wanted).ok().unwrap();
    assert!(bus.listen(&somebody(), Wanted::default()).is_err());
    bus.task_changed(id, 1, || members("seen"));
    listener.leave(id);
    bus.task_changed(id, 2, || panic!("nobody listens, so nothing is written"));
    bus.list_changed(Family::Tools);
    assert!(matches!(listener.next().await, Told::List(Family::Tools)));
    drop(listener);
    assert_eq!(bus.count(), 0);
    let audience = bus.audience.lock();
    assert!(audience.of_tasks.is_empty() && audience.of_resources.is_empty());
    assert!(audience.of_lists.iter().all(Vec::is_empty));
    drop(audience);
    assert!(bus.listen(&somebody(), Wanted::default()).is_ok());
}

#[tokio::test]
async fn notices_of_one_list_are_put_together() {
    let bus = Arc::new(Bus::new(1, 1));
    let wanted = Wanted {
        lists: ALL_LISTS,
        ..Wanted::default()
    };
    let mut listener = bus.listen(&somebody(), wanted).ok().unwrap();
    bus.list_changed(Family::Prompts);
    let told = listener.next().await;
    assert!(matches!(told, Told::List(Family::Prompts)));
    let began = Instant::now();
    for _ in 0..100 {
        bus.list_changed(Family::Prompts);
    }
    // Another list does not wait for it.
    bus.list_changed(Family::Resources);
    let told = listener.next().await;
    assert!(matches!(told, Told::List(Family::Resources)));
    let told = listener.next().await;
    assert!(matches!(told, Told::List(Family::Prompts)));
    assert!(began.elapsed() >= SAME_EVERY / 2, "{:?}", began.elapsed());
    bus.close();
    assert!(matches!(listener.next().await, Told::Closed));
}

#[tokio::test]
async fn a_watch_ends_at_a_change_and_leaves_nothing() {
    let bus = Bus::new(0, 0);
    let id = TaskId(Uuid::from_u128(1));
    let watch = bus.watch(id);
    let changed = watch.changed();
    bus.task_changed(id, 1, || panic!("nobody listens, so nothing is written"));
    changed.await;
    drop(watch);
    assert!(bus.audience.lock().waits.is_empty());
}
