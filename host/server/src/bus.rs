//! What happened to tasks and tools, told to those who listen on this node.
//!
//! Every listener has a mailbox of its own. Of each task only the newest state lies there, and of the tools only that
//! they changed, so whoever reads slowly, or not at all, holds no more than what it asked for.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use longshore_protocol::notification::TaskMembers;
use longshore_tasks::id::{Principal, TaskId};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// Shortest time between two notices of changed tools to one listener. Each makes a client read the whole list again,
/// and a guest may give as many as it likes.
const TOOLS_EVERY: Duration = Duration::from_millis(250);

/// Who listens to what.
pub(crate) struct Bus {
    most: usize,
    each: usize,
    audience: Mutex<Audience>,
}

#[derive(Default)]
struct Audience {
    everybody: Vec<Arc<Mailbox>>,
    /// How many of them each caller has.
    of_callers: HashMap<Principal, usize>,
    of_tasks: HashMap<TaskId, Vec<Arc<Mailbox>>>,
    of_tools: Vec<Arc<Mailbox>>,
    /// Those who wait for the next change of a task, and need not be told what it is.
    waits: HashMap<TaskId, Wait>,
    closed: bool,
}

struct Wait {
    count: usize,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Mailbox {
    post: Mutex<Post>,
    knock: Notify,
}

#[derive(Default)]
struct Post {
    tasks: VecDeque<Letter>,
    /// The newest version of each task that ever lay here. An older one may come late, and is not told.
    newest: HashMap<TaskId, u64>,
    tools: bool,
    closed: bool,
}

struct Letter {
    id: TaskId,
    members: Arc<TaskMembers>,
}

/// What a listener is told.
pub(crate) enum Told {
    /// A task as it is now.
    Task(Arc<TaskMembers>),
    /// The list of tools changed.
    Tools,
    /// Nothing more will come.
    Closed,
}

/// One listener; it is forgotten when this is dropped.
pub(crate) struct Listener {
    bus: Arc<Bus>,
    caller: Principal,
    mailbox: Arc<Mailbox>,
    tasks: Vec<TaskId>,
    tools_from: Instant,
}

/// There are as many listeners as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// On this node.
    Node,
    /// Of this caller.
    Caller,
}

impl Bus {
    /// With room for so many listeners, and so many of one caller.
    pub(crate) fn new(most: usize, each: usize) -> Self {
        Self {
            most,
            each,
            audience: Mutex::default(),
        }
    }

    /// A new listener: to these tasks from now on, and to the tools if it wants to.
    pub(crate) fn listen(
        self: &Arc<Self>,
        caller: &Principal,
        tasks: Vec<TaskId>,
        tools: bool,
    ) -> Result<Listener, Full> {
        let mailbox = Arc::new(Mailbox::default());
        {
            let mut audience = self.audience.lock();
            if audience.everybody.len() >= self.most {
                return Err(Full::Node);
            }
            let theirs = audience.of_callers.get(caller).copied().unwrap_or(0);
            if theirs >= self.each {
                return Err(Full::Caller);
            }
            audience.of_callers.insert(caller.clone(), theirs + 1);
            audience.everybody.push(Arc::clone(&mailbox));
            mailbox.post.lock().closed = audience.closed;
            for id in &tasks {
                let of_task = audience.of_tasks.entry(*id).or_default();
                of_task.push(Arc::clone(&mailbox));
            }
            if tools {
                audience.of_tools.push(Arc::clone(&mailbox));
            }
        }
        Ok(Listener {
            bus: Arc::clone(self),
            caller: caller.clone(),
            mailbox,
            tasks,
            tools_from: Instant::now(),
        })
    }

    /// A task is in this version now. It is written only if somebody wants to know what it says.
    pub(crate) fn task_changed(
        &self,
        id: TaskId,
        version: u64,
        write: impl FnOnce() -> TaskMembers,
    ) {
        let listeners = {
            let audience = self.audience.lock();
            if let Some(wait) = audience.waits.get(&id) {
                wait.changed.notify_waiters();
            }
            audience.of_tasks.get(&id).cloned()
        };
        if let Some(listeners) = listeners {
            let members = Arc::new(write());
            for mailbox in listeners {
                mailbox.put(id, version, &members);
            }
        }
    }

    /// The list of tools is another now.
    pub(crate) fn tools_changed(&self) {
        for mailbox in &self.audience.lock().of_tools {
            mailbox.post.lock().tools = true;
            mailbox.knock.notify_one();
        }
    }

    /// Tells everybody that nothing more will come.
    pub(crate) fn close(&self) {
        let mut audience = self.audience.lock();
        audience.closed = true;
        for mailbox in &audience.everybody {
            mailbox.post.lock().closed = true;
            mailbox.knock.notify_one();
        }
        for wait in audience.waits.values() {
            wait.changed.notify_waiters();
        }
    }

    /// Whether nothing more will come.
    pub(crate) fn is_closed(&self) -> bool {
        self.audience.lock().closed
    }

    /// How many listen.
    pub(crate) fn count(&self) -> usize {
        self.audience.lock().everybody.len()
    }
}

impl Mailbox {
    fn put(&self, id: TaskId, version: u64, members: &Arc<TaskMembers>) {
        let mut post = self.post.lock();
        let newest = post.newest.entry(id).or_default();
        if version <= *newest {
            return;
        }
        *newest = version;
        let members = Arc::clone(members);
        match post.tasks.iter_mut().find(|letter| letter.id == id) {
            Some(letter) => letter.members = members,
            None => post.tasks.push_back(Letter { id, members }),
        }
        drop(post);
        self.knock.notify_one();
    }
}

impl Listener {
    /// Tells it where a task stands when it begins to listen, unless something newer was told meanwhile.
    pub(crate) fn begin(&self, id: TaskId, version: u64, members: TaskMembers) {
        self.mailbox.put(id, version, &Arc::new(members));
    }

    /// It does not listen to this task after all.
    pub(crate) fn leave(&mut self, id: TaskId) {
        self.tasks.retain(|there| *there != id);
        self.bus.audience.lock().leave(id, &self.mailbox);
        let mut post = self.mailbox.post.lock();
        post.tasks.retain(|letter| letter.id != id);
    }

    /// What comes next.
    pub(crate) async fn next(&mut self) -> Told {
        loop {
            let tools_at = {
                let mut post = self.mailbox.post.lock();
                if let Some(letter) = post.tasks.pop_front() {
                    return Told::Task(letter.members);
                }
                if post.closed {
                    return Told::Closed;
                }
                let now = Instant::now();
                if post.tools && self.tools_from <= now {
                    post.tools = false;
                    self.tools_from = now + TOOLS_EVERY;
                    return Told::Tools;
                }
                post.tools.then_some(self.tools_from)
            };
            let knocked = self.mailbox.knock.notified();
            match tools_at {
                None => knocked.await,
                Some(at) => tokio::select! {
                    () = knocked => {}
                    () = tokio::time::sleep_until(at) => {}
                },
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut audience = self.bus.audience.lock();
        for id in &self.tasks {
            audience.leave(*id, &self.mailbox);
        }
        let is_other = |there: &Arc<Mailbox>| !Arc::ptr_eq(there, &self.mailbox);
        audience.everybody.retain(is_other);
        audience.of_tools.retain(is_other);
        if let Some(count) = audience.of_callers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                audience.of_callers.remove(&self.caller);
            }
        }
    }
}

impl Audience {
    fn leave(&mut self, id: TaskId, mailbox: &Arc<Mailbox>) {
        if let Some(there) = self.of_tasks.get_mut(&id) {
            there.retain(|other| !Arc::ptr_eq(other, mailbox));
            if there.is_empty() {
                self.of_tasks.remove(&id);
            }
        }
    }
}

/// Somebody who waits for the next change of a task.
pub(crate) struct Watch<'b> {
    bus: &'b Bus,
    id: TaskId,
    changed: Arc<Notify>,
}

impl Bus {
    /// Waits for changes of a task from now on.
    pub(crate) fn watch(&self, id: TaskId) -> Watch<'_> {
        let mut audience = self.audience.lock();
        let wait = audience.waits.entry(id).or_insert_with(|| Wait {
            count: 0,
            changed: Arc::default(),
        });
        wait.count += 1;
        let changed = Arc::clone(&wait.changed);
        drop(audience);
        Watch {
            bus: self,
            id,
            changed,
        }
    }
}

impl Watch<'_> {
    /// Ends at the next change after this call, whenever it is awaited.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut audience = self.bus.audience.lock();
        if let Some(wait) = audience.waits.get_mut(&self.id) {
            wait.count -= 1;
            if wait.count == 0 {
                audience.waits.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
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

    fn somebody() -> Principal {
        Principal("somebody".into())
    }

    #[test]
    fn one_caller_has_its_share_of_the_places_and_no_more() {
        let bus = Arc::new(Bus::new(3, 2));
        let other = Principal("other".into());
        let listen = |caller: &Principal| bus.listen(caller, Vec::new(), false);
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
        let mut listener = bus.listen(&somebody(), vec![one, two], false).ok().unwrap();
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
        let mut listener = bus.listen(&somebody(), vec![id], true).ok().unwrap();
        assert!(bus.listen(&somebody(), Vec::new(), false).is_err());
        bus.task_changed(id, 1, || members("seen"));
        listener.leave(id);
        bus.task_changed(id, 2, || panic!("nobody listens, so nothing is written"));
        bus.tools_changed();
        assert!(matches!(listener.next().await, Told::Tools));
        drop(listener);
        assert_eq!(bus.count(), 0);
        let audience = bus.audience.lock();
        assert!(audience.of_tasks.is_empty() && audience.of_tools.is_empty());
        drop(audience);
        assert!(bus.listen(&somebody(), Vec::new(), false).is_ok());
    }

    #[tokio::test]
    async fn notices_of_tools_are_put_together() {
        let bus = Arc::new(Bus::new(1, 1));
        let mut listener = bus.listen(&somebody(), Vec::new(), true).ok().unwrap();
        bus.tools_changed();
        assert!(matches!(listener.next().await, Told::Tools));
        let began = Instant::now();
        for _ in 0..100 {
            bus.tools_changed();
        }
        assert!(matches!(listener.next().await, Told::Tools));
        assert!(began.elapsed() >= TOOLS_EVERY / 2, "{:?}", began.elapsed());
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
}
