//! Sessions: what MCP before 2026-07-28 lets a client say once for all its requests.
//!
//! A session belongs to whoever opened it, and ends when its client says so, or when nobody has used it for a while.
//! [`serve`] answers its requests, [`talk`] says what there is to say on the stream of one of them, [`kept`] holds that
//! stream for a client that lost its connection, [`tasks`] are its calls that do not wait.

pub(crate) mod kept;
pub(crate) mod news;
pub(crate) mod serve;
pub(crate) mod talk;
pub(crate) mod tasks;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use longshore_protocol::capability::ClientCapabilities;
use longshore_protocol::meta::{LogLevel, Opened};
use longshore_protocol::session::Initialize;
use longshore_protocol::version::Revision;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use self::kept::Streams;
use self::talk::{Asked, Questions};
use crate::bus::{Full, Subscription};
use crate::dispatch::Identity;
use crate::requests::Requests;

/// How long a session is unused before another one of its caller may take its place, if there is no other.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// The sessions of this node.
pub(crate) struct Sessions {
    most: usize,
    each: usize,
    idle: Duration,
    kept_bytes: usize,
    live: Mutex<HashMap<Box<str>, Arc<Session>>>,
}

/// One session.
pub(crate) struct Session {
    /// Its name, which only its client knows.
    pub(crate) id: Box<str>,
    pub(crate) identity: Identity,
    pub(crate) revision: Revision,
    pub(crate) capabilities: ClientCapabilities,
    capabilities_json: String,
    level: Mutex<Option<LogLevel>>,
    pub(crate) requests: Requests,
    questions: Mutex<Questions>,
    streams: Mutex<Streams>,
    /// Which stream hears what belongs to no request: the newest, by its number.
    listening: watch::Sender<Listens>,
    /// Resources of whose changes its client wants to hear.
    subscribed: watch::Sender<Vec<Subscription>>,
    /// Those of them that whoever listens hears of.
    heard_of: Arc<watch::Sender<Vec<Subscription>>>,
    used: Mutex<Used>,
}

/// Who hears what belongs to no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listens {
    /// So many have listened; the last of them does.
    Last(u64),
    /// The session is over.
    Nobody,
}

struct Used {
    /// Requests and streams of its client that are open.
    by: usize,
    /// When the last of them ended.
    until: Instant,
}

/// Held by whatever of a client is open. A session that somebody uses is not idle.
pub(crate) struct Use(Arc<Session>);

impl Drop for Use {
    fn drop(&mut self) {
        let mut used = self.0.used.lock();
        used.by -= 1;
        used.until = Instant::now();
    }
}

impl Sessions {
    /// With room for so many sessions, and so many of one caller.
    pub(crate) fn new(most: usize, each: usize, idle: Duration, kept_bytes: usize) -> Self {
        Self {
            most,
            each,
            idle,
            kept_bytes,
            live: Mutex::default(),
        }
    }

    /// Opens one.
    pub(crate) fn open(
        &self,
        identity: &Identity,
        initialize: &Initialize,
    ) -> Result<Arc<Session>, Full> {
        self.open_at(identity, initialize, Instant::now())
    }

    fn open_at(
        &self,
        identity: &Identity,
        initialize: &Initialize,
        now: Instant,
    ) -> Result<Arc<Session>, Full> {
        self.sweep(now);
        let mut live = self.live.lock();
        let theirs = live
            .values()
            .filter(|session| session.identity == *identity)
            .count();
        let full = match (live.len() >= self.most, theirs >= self.each) {
            (true, _) => Some(Full::Node),
            (false, true) => Some(Full::Caller),
            (false, false) => None,
        };
        let left = full
            .map(|full| forgotten(&live, identity, now).ok_or(full))
            .transpose()?
            .and_then(|id| live.remove(&id));
        let session = self.unlisted(identity, initialize);
        live.insert(session.id.clone(), Arc::clone(&session));
        drop(live);
        if let Some(left) = left {
            left.end();
        }
        Ok(session)
    }

    /// One that lasts as long as its transport, and is found by nobody else.
    pub(crate) fn unlisted(&self, identity: &Identity, initialize: &Initialize) -> Arc<Session> {
        Arc::new(Session {
            id: Uuid::new_v4().to_string().into(),
            identity: identity.clone(),
            revision: initialize.revision,
            capabilities: initialize.capabilities,
            capabilities_json: initialize.capabilities.to_json(),
            level: Mutex::default(),
            requests: Requests::default(),
            questions: Mutex::default(),
            streams: Mutex::new(Streams::new(self.kept_bytes)),
            listening: watch::Sender::new(Listens::Last(0)),
            subscribed: watch::Sender::default(),
            heard_of: Arc::default(),
            used: Mutex::new(Used {
                by: 0,
                until: Instant::now(),
            }),
        })
    }

    /// The session of that name, if it is this caller's and has not ended. Somebody else's looks like none.
    pub(crate) fn find(&self, id: &str, identity: &Identity) -> Option<Arc<Session>> {
        self.find_at(id, identity, Instant::now())
    }

    fn find_at(&self, id: &str, identity: &Identity, now: Instant) -> Option<Arc<Session>> {
        let mut live = self.live.lock();
        let session = live
            .get(id)
            .filter(|session| session.identity == *identity)?;
        if session.is_idle(self.idle, now) {
            let session = live.remove(id)?;
            drop(live);
            session.end();
            return None;
        }
        Some(Arc::clone(session))
    }

    /// Ends one. False if there is none of that name for this caller.
    pub(crate) fn end(&self, id: &str, identity: &Identity) -> bool {
        let Some(session) = self.find(id, identity) else {
            return false;
        };
        self.live.lock().remove(&session.id);
        session.end();
        true
    }

    /// Ends those that nobody has used for too long.
    pub(crate) fn sweep(&self, now: Instant) {
        let over: Vec<Arc<Session>> = {
            let mut live = self.live.lock();
            let over: Vec<Arc<Session>> = live
                .values()
                .filter(|session| session.is_idle(self.idle, now))
                .cloned()
                .collect();
            for session in &over {
                live.remove(&session.id);
            }
            for session in live.values() {
                session.streams().sweep(now);
            }
            over
        };
        for session in over {
            session.end();
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.live.lock().len()
    }
}

/// The session of that caller which has been unused for the longest, and long enough to have been left by a client that
/// went without a word. One that comes back to it is told to open another.
fn forgotten(
    live: &HashMap<Box<str>, Arc<Session>>,
    identity: &Identity,
    now: Instant,
) -> Option<Box<str>> {
    live.values()
        .filter(|session| session.identity == *identity && session.is_idle(FORGOTTEN, now))
        .min_by_key(|session| session.used.lock().until)
        .map(|session| session.id.clone())
}

impl Session {
    /// What its requests need not say again.
    pub(crate) fn opened(&self) -> Opened<'_> {
        Opened {
            revision: self.revision,
            capabilities: self.capabilities,
            capabilities_json: &self.capabilities_json,
            log_level: *self.level.lock(),
        }
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        *self.level.lock() = Some(level);
    }

    /// Something of its client is open from now on.
    pub(crate) fn enter(self: &Arc<Self>) -> Use {
        self.used.lock().by += 1;
        Use(Arc::clone(self))
    }

    fn is_idle(&self, idle: Duration, now: Instant) -> bool {
        let used = self.used.lock();
        used.by == 0 && now.saturating_duration_since(used.until) >= idle
    }

    /// Puts a question to the client, and gives back its number.
    fn put(&self, asked: Asked) -> u64 {
        self.questions.lock().put(asked)
    }

    /// Takes a question back. None if it was answered or taken back before.
    pub(crate) fn take(&self, number: u64) -> Option<Asked> {
        self.questions.lock().take(number)
    }

    fn put_back(&self, number: u64, asked: Asked) {
        self.questions.lock().put_back(number, asked);
    }

    pub(crate) fn streams(&self) -> parking_lot::MutexGuard<'_, Streams> {
        self.streams.lock()
    }

    /// Listens from now on to what belongs to no request, in place of whoever did before: a client that comes again has
    /// lost the stream that it had.
    pub(crate) fn listen(self: &Arc<Self>) -> Listening {
        let mut mine = 0;
        self.listening.send_modify(|listens| {
            if let Listens::Last(last) = listens {
                *last += 1;
                mine = *last;
            }
        });
        Listening {
            mine,
            listens: self.listening.subscribe(),
            _use: self.enter(),
        }
    }

    /// Nothing of it goes on: what it called and waits for is cancelled.
    pub(crate) fn end(&self) {
        self.requests.end();
        self.questions.lock().clear();
        self.streams.lock().clear();
        self.listening.send_replace(Listens::Nobody);
    }
}

/// Whoever hears what belongs to no request.
pub(crate) struct Listening {
    mine: u64,
    listens: watch::Receiver<Listens>,
    _use: Use,
}

impl Listening {
    /// Returns once somebody else listens, or the session is over.
    pub(crate) async fn over(&mut self) {
        let mine = Listens::Last(self.mine);
        let _the_session_is_gone = self.listens.wait_for(|listens| *listens != mine).await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use longshore_protocol::envelope::RequestId;
    use longshore_tasks::id::{Principal, Tenant};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn somebody(name: &str) -> Identity {
        Identity {
            tenant: Tenant("t".into()),
            principal: Principal(name.into()),
        }
    }

    fn initialize() -> Initialize {
        Initialize {
            revision: Revision::R20251125,
            capabilities: ClientCapabilities::default(),
        }
    }

    #[test]
    fn there_are_so_many_and_so_many_of_one_caller() {
        let sessions = Sessions::new(3, 2, HOUR, 0);
        let open = |name: &str| sessions.open(&somebody(name), &initialize());
        let first = open("a").unwrap();
        open("a").unwrap();
        assert_eq!(open("a").err(), Some(Full::Caller));
        open("b").unwrap();
        assert_eq!(open("c").err(), Some(Full::Node));
        // Somebody else's is as good as none.
        assert!(!sessions.end(&first.id, &somebody("b")));
        assert!(sessions.find(&first.id, &somebody("b")).is_none());
        assert!(sessions.end(&first.id, &somebody("a")));
        assert!(!sessions.end(&first.id, &somebody("a")));
        assert!(open("c").is_ok());
        assert_eq!(sessions.count(), 3);
    }

    #[test]
    fn a_forgotten_one_gives_its_place_to_its_caller() {
        for (most, each) in [(2, 9), (9, 2)] {
            let sessions = Sessions::new(most, each, HOUR, 0);
            let open = |name: &str, now| sessions.open_at(&somebody(name), &initialize(), now);
            let [used, left] = [(); 2].map(|()| open("a", Instant::now()).unwrap());
            let using = used.enter();
            let soon = Instant::now() + FORGOTTEN / 2;
            assert!(open("a", soon).is_err());
            let later = Instant::now() + FORGOTTEN;
            // Nobody gets the place of somebody else.
            if most == 2 {
                assert_eq!(open("b", later).err(), Some(Full::Node));
            }
            assert!(open("a", later).is_ok());
            assert!(sessions.find(&left.id, &somebody("a")).is_none());
            assert!(sessions.find(&used.id, &somebody("a")).is_some());
            drop(using);
        }
    }

    #[tokio::test]
    async fn what_nobody_uses_ends() {
        let sessions = Sessions::new(10, 10, HOUR, 0);
        let me = somebody("a");
        let used = sessions.open(&me, &initialize()).unwrap();
        let left = sessions.open(&me, &initialize()).unwrap();
        let (_ticket, presence) = left
            .requests
            .begin(&RequestId::parse("1").unwrap())
            .unwrap();
        let using = used.enter();
        sessions.sweep(Instant::now() + HOUR);
        assert_eq!(sessions.count(), 1);
        presence.gone().await;
        let long_after = Instant::now() + 10 * HOUR;
        assert!(sessions.find_at(&used.id, &me, long_after).is_some());
        drop(using);
        let later = Instant::now() + HOUR;
        // A look is no use.
        assert!(sessions.find_at(&used.id, &me, later - HOUR / 2).is_some());
        assert!(sessions.find_at(&used.id, &me, later).is_none());
        assert_eq!(sessions.count(), 0);
    }

    #[tokio::test]
    async fn the_newest_listener_hears() {
        let sessions = Sessions::new(1, 1, HOUR, 0);
        let session = sessions.open(&somebody("a"), &initialize()).unwrap();
        let mut first = session.listen();
        assert!(first.over().now_or_never().is_none());
        let mut second = session.listen();
        first.over().await;
        assert!(second.over().now_or_never().is_none());
        session.end();
        second.over().await;
        session.listen().over().await;
    }
}
