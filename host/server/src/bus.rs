//! What happened to tasks, lists and resources, told to those who listen on this node.
//!
//! Every listener has a mailbox of its own. Of each task only the newest state lies there, and of a list or a resource
//! only that it changed, so whoever reads slowly, or not at all, holds no more than what it asked for.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use longshore_protocol::listening::ListChanges;
use longshore_protocol::notification::{Family, TaskMembers};
use longshore_tasks::id::{Principal, TaskId};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// Shortest time between two notices of one list or one resource to one listener. Each makes a client read it again,
/// and a guest may give as many as it likes.
const SAME_EVERY: Duration = Duration::from_millis(250);

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
    /// One for each family, in its order.
    of_lists: [Vec<Arc<Mailbox>>; Family::ALL.len()],
    of_resources: HashMap<Subscription, Vec<Arc<Mailbox>>>,
    /// Those who wait for the next change of a task, and need not be told what it is.
    waits: HashMap<TaskId, Wait>,
    closed: bool,
}

/// A resource that somebody listens to. It is of the component from which it was read then: no other one can say that
/// it changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subscription {
    /// The name of the component.
    pub(crate) component: String,
    /// The resource.
    pub(crate) uri: Arc<str>,
}

/// What somebody wants to hear of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) tasks: Vec<TaskId>,
    pub(crate) lists: ListChanges,
    pub(crate) resources: Vec<Subscription>,
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
    lists: [bool; Family::ALL.len()],
    /// Resources that changed, each once, in the order of the first news.
    resources: VecDeque<Arc<str>>,
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
    /// The list changed.
    List(Family),
    /// The contents of that resource changed.
    Resource(Arc<str>),
    /// Nothing more will come.
    Closed,
}

/// One listener; it is forgotten when this is dropped.
pub(crate) struct Listener {
    bus: Arc<Bus>,
    caller: Principal,
    mailbox: Arc<Mailbox>,
    tasks: Vec<TaskId>,
    resources: Vec<Subscription>,
    rests: Rests,
}

/// From when on something that was told of may be told of again.
struct Rests {
    lists: [Instant; Family::ALL.len()],
    resources: HashMap<Arc<str>, Instant>,
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

    /// A new listener, from now on.
    pub(crate) fn listen(
        self: &Arc<Self>,
        caller: &Principal,
        wanted: Wanted,
    ) -> Result<Listener, Full> {
        let Wanted {
            tasks,
            lists,
            resources,
        } = wanted;
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
            for family in Family::ALL {
                if wants(lists, family) {
                    audience.of_lists[family as usize].push(Arc::clone(&mailbox));
                }
            }
            for resource in &resources {
                let of_resource = audience.of_resources.entry(resource.clone()).or_default();
                of_resource.push(Arc::clone(&mailbox));
            }
        }
        Ok(Listener {
            bus: Arc::clone(self),
            caller: caller.clone(),
            mailbox,
            tasks,
            resources,
            rests: Rests {
                lists: [Instant::now(); Family::ALL.len()],
                resources: HashMap::new(),
            },
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

    /// A list is another now.
    pub(crate) fn list_changed(&self, family: Family) {
        for mailbox in &self.audience.lock().of_lists[family as usize] {
            mailbox.post.lock().lists[family as usize] = true;
            mailbox.knock.notify_one();
        }
    }

    /// A component says that one of its resources holds something else now.
    pub(crate) fn resource_updated(&self, component: &str, uri: &str) {
        let resource = Subscription {
            component: component.to_owned(),
            uri: uri.into(),
        };
        let audience = self.audience.lock();
        for mailbox in audience.of_resources.get(&resource).into_iter().flatten() {
            mailbox.put_resource(&resource.uri);
        }
    }

    /// All resources of a component may hold something else now.
    pub(crate) fn contents_changed(&self, component: &str) {
        let audience = self.audience.lock();
        let theirs = audience.of_resources.iter();
        for (resource, mailboxes) in theirs.filter(|(it, _)| it.component == component) {
            for mailbox in mailboxes {
                mailbox.put_resource(&resource.uri);
            }
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

fn wants(lists: ListChanges, family: Family) -> bool {
    match family {
        Family::Tools => lists.tools,
        Family::Prompts => lists.prompts,
        Family::Resources => lists.resources,
    }
}

impl Mailbox {
    fn put_resource(&self, uri: &Arc<str>) {
        let mut post = self.post.lock();
        if !post.resources.contains(uri) {
            post.resources.push_back(Arc::clone(uri));
        }
        drop(post);
        self.knock.notify_one();
    }

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

    /// It listens to these resources from now on, and to no others.
    pub(crate) fn listen_to(&mut self, resources: Vec<Subscription>) {
        let mut audience = self.bus.audience.lock();
        audience.leave_resources(&self.resources, &self.mailbox);
        for resource in &resources {
            let of_resource = audience.of_resources.entry(resource.clone()).or_default();
            of_resource.push(Arc::clone(&self.mailbox));
        }
        drop(audience);
        let is_left = |uri: &Arc<str>| resources.iter().any(|resource| resource.uri == *uri);
        self.mailbox.post.lock().resources.retain(is_left);
        self.rests.resources.retain(|uri, _| is_left(uri));
        self.resources = resources;
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
            let next_at = {
                let mut post = self.mailbox.post.lock();
                if let Some(letter) = post.tasks.pop_front() {
                    return Told::Task(letter.members);
                }
                if post.closed {
                    return Told::Closed;
                }
                let now = Instant::now();
                if let Some(told) = self.rests.due(&mut post, now) {
                    return told;
                }
                self.rests.next_due(&post)
            };
            let knocked = self.mailbox.knock.notified();
            match next_at {
                None => knocked.await,
                Some(at) => tokio::select! {
                    () = knocked => {}
                    () = tokio::time::sleep_until(at) => {}
                },
            }
        }
    }
}

impl Rests {
    /// What may be told of lists and resources now.
    fn due(&mut self, post: &mut Post, now: Instant) -> Option<Told> {
        for family in Family::ALL {
            let from = &mut self.lists[family as usize];
            if post.lists[family as usize] && *from <= now {
                post.lists[family as usize] = false;
                *from = now + SAME_EVERY;
                return Some(Told::List(family));
            }
        }
        let is_due = |uri: &Arc<str>| self.resources.get(uri).is_none_or(|from| *from <= now);
        let at = post.resources.iter().position(is_due)?;
        let uri = post.resources.remove(at)?;
        self.resources.insert(Arc::clone(&uri), now + SAME_EVERY);
        Some(Told::Resource(uri))
    }

    /// When something that waits may be told.
    fn next_due(&self, post: &Post) -> Option<Instant> {
        let lists = self.lists.iter().zip(&post.lists);
        let lists = lists.filter(|(_, waits)| **waits).map(|(from, _)| *from);
        let resources = post
            .resources
            .iter()
            .filter_map(|uri| self.resources.get(uri).copied());
        lists.chain(resources).min()
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
        for of_list in &mut audience.of_lists {
            of_list.retain(is_other);
        }
        audience.leave_resources(&self.resources, &self.mailbox);
        if let Some(count) = audience.of_callers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                audience.of_callers.remove(&self.caller);
            }
        }
    }
}

impl Audience {
    fn leave_resources(&mut self, resources: &[Subscription], mailbox: &Arc<Mailbox>) {
        for resource in resources {
            if let Some(there) = self.of_resources.get_mut(resource) {
                there.retain(|other| !Arc::ptr_eq(other, mailbox));
                if there.is_empty() {
                    self.of_resources.remove(resource);
                }
            }
        }
    }

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
mod tests;
