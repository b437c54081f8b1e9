//! The pieces of one node, held together.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use longshore_catalog::component::Name;
use longshore_catalog::registry::{Entry, Registry};
use longshore_catalog::store::ComponentStore;
use longshore_protocol::result::ServerInfo;
use longshore_sandbox::sandbox::Sandbox;
use longshore_tasks::artifacts::ArtifactStore;
use longshore_tasks::id::NodeId;
use longshore_tasks::store::TaskStore;
use longshore_tasks::values::ValueStore;
use tokio::sync::{Mutex, Semaphore, watch};
use uuid::Uuid;

use crate::admission::{Admission, Bounds};
use crate::again::Attending;
use crate::alarms::Alarms;
use crate::bus::Bus;
use crate::components::Source;
use crate::egress::Egress;
use crate::egress::vault::Vault;
use crate::grants::Granted;
use crate::holds::Holds;
use crate::loaded::Loaded;
use crate::marks::Marks;
use crate::mutant::Mutant;
use crate::polls::Polls;
use crate::run::Runs;
use crate::run::lookout::Lookout;
use crate::seal::Keys;
use crate::sessions::Sessions;
use crate::settings::Settings;
use crate::waits::Waits;

/// What a node is made of.
pub struct Parts {
    /// Where guests run.
    pub sandbox: Sandbox,
    /// Where tasks are kept.
    pub tasks: Arc<dyn TaskStore>,
    /// Where components are kept.
    pub components: Arc<dyn ComponentStore>,
    /// Where what components keep beyond their calls is kept.
    pub values: Arc<dyn ValueStore>,
    /// Where what calls leave is kept.
    pub artifacts: Arc<dyn ArtifactStore>,
    /// What it was told.
    pub settings: Settings,
    /// The keys of its data directory.
    pub keys: Keys,
    /// Who was on a thread when the process before this one died.
    pub marks: Marks,
    /// The secrets that requests of tools may carry.
    pub vault: Vault,
    /// Its version, for clients.
    pub version: &'static str,
}

/// One node; cheap to clone.
#[derive(Clone)]
pub struct Server(Arc<Node>);

/// The pieces themselves.
pub struct Node {
    pub(crate) sandbox: Sandbox,
    pub(crate) tasks: Arc<dyn TaskStore>,
    pub(crate) components: Arc<dyn ComponentStore>,
    pub(crate) values: Arc<dyn ValueStore>,
    pub(crate) artifacts: Arc<dyn ArtifactStore>,
    pub(crate) settings: Settings,
    pub(crate) keys: Keys,
    pub(crate) marks: Marks,
    pub(crate) info: ServerInfo,
    pub(crate) version: &'static str,
    pub(crate) node: NodeId,
    pub(crate) started: Instant,
    pub(crate) runs: Runs,
    pub(crate) bus: Arc<Bus>,
    pub(crate) polls: Polls,
    pub(crate) attending: Arc<Attending>,
    /// The way out for requests of tools.
    pub(crate) egress: Arc<Egress>,
    /// What runs wait for without being there.
    pub(crate) waits: Waits,
    pub(crate) sessions: Sessions,
    pub(crate) admission: Admission,
    pub(crate) registry: ArcSwap<Registry<Loaded>>,
    /// Names that belong to files and not to uploads.
    pub(crate) of_files: parking_lot::Mutex<BTreeMap<Name, Source>>,
    /// Components of files that are still examined after the start.
    pub(crate) starting: watch::Sender<usize>,
    /// Uploads that may be in memory at once.
    pub(crate) uploads: Arc<Semaphore>,
    /// Uploads and removals, one at a time, so that store and registry say the same.
    pub(crate) changing: Mutex<()>,
    /// When tasks that nobody runs are to be looked after.
    pub(crate) alarms: Alarms,
    /// Tasks that are being looked after.
    pub(crate) lookout: Lookout,
    /// Runs that wait and keep their memory.
    pub(crate) warm: Arc<Semaphore>,
    /// Runs that may bring a process down: one at a time.
    pub(crate) suspects: Arc<Semaphore>,
    /// Components that this process needs.
    pub(crate) holds: Holds,
    /// Components that no name points at and a run needs.
    pub(crate) unnamed: parking_lot::Mutex<HashMap<String, Weak<Entry<Loaded>>>>,
    /// The process goes down.
    pub(crate) leaving: AtomicBool,
    /// The rule that it breaks, in the tests that are there to see that.
    pub(crate) mutant: Option<Mutant>,
    /// What components are granted, by their names.
    pub(crate) grants: parking_lot::Mutex<BTreeMap<Name, Granted>>,
    /// What the store holds and this node cannot load.
    pub(crate) broken: parking_lot::Mutex<Vec<crate::components::Broken>>,
}

impl std::ops::Deref for Server {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.0
    }
}

impl Node {
    /// Uploads that are taken in or examined now.
    pub(crate) fn uploading(&self) -> usize {
        self.settings.uploads - self.uploads.available_permits()
    }
}

impl Server {
    /// A node of these parts. It serves nothing until it has loaded and recovered.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self::mutated(parts, Mutant::BUILT_IN)
    }

    /// The same, with one rule broken.
    #[doc(hidden)]
    #[must_use]
    pub fn mutated(parts: Parts, mutant: Option<Mutant>) -> Self {
        let Parts {
            sandbox,
            tasks,
            components,
            values,
            artifacts,
            settings,
            keys,
            marks,
            vault,
            version,
        } = parts;
        // Whoever waits for its interval is never late.
        let early_poll_ms = settings.early_poll_ms.min(settings.poll_interval_ms);
        let queue_wait = Duration::from_millis(settings.queue_wait_ms);
        Self(Arc::new(Node {
            sandbox,
            tasks,
            components,
            values,
            artifacts,
            info: ServerInfo::new("longshore", version),
            version,
            // A restart is another node: what the process before it owned belongs to nobody.
            node: NodeId(Uuid::new_v4().to_string().into()),
            started: Instant::now(),
            runs: Runs::default(),
            bus: Arc::new(Bus::new(settings.listeners, settings.listeners_each)),
            attending: Arc::default(),
            egress: Arc::new(Egress::new(vault, settings.http_connections)),
            sessions: Sessions::new(
                settings.sessions,
                settings.sessions_each,
                Duration::from_secs(settings.session_idle_s),
                settings.session_kept_bytes,
            ),
            waits: Waits::default(),
            polls: Polls::new(Duration::from_millis(early_poll_ms), settings.early_polls),
            admission: Admission::new(
                Bounds {
                    running: settings.running,
                    running_each: settings.running_each,
                    queued: settings.queued,
                    queued_each: settings.queued_each,
                },
                queue_wait,
            ),
            registry: ArcSwap::default(),
            of_files: parking_lot::Mutex::default(),
            starting: watch::Sender::new(0),
            uploads: Arc::new(Semaphore::new(settings.uploads)),
            changing: Mutex::default(),
            alarms: Alarms::default(),
            lookout: Lookout::default(),
            warm: Arc::new(Semaphore::new(settings.warm.min(Semaphore::MAX_PERMITS))),
            suspects: Arc::new(Semaphore::new(1)),
            holds: Holds::default(),
            unnamed: parking_lot::Mutex::default(),
            leaving: AtomicBool::new(false),
            mutant,
            grants: parking_lot::Mutex::default(),
            broken: parking_lot::Mutex::default(),
            keys,
            marks,
            settings,
        }))
    }

    /// Nobody's requests are sent to where it listens itself.
    pub fn listens_at(&self, address: SocketAddr) {
        self.egress.is_ours(address);
    }

    /// Whether the process goes down.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    /// Lets go of every run, so that another process can go on with those that are recorded. Returns when
    /// they are gone, or after that time.
    pub async fn leave(&self, most: Duration) {
        self.leaving.store(true, Ordering::Release);
        self.runs.tell_leaving();
        let gone = async {
            while self.runs.to_let_go() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _whoever_is_left_dies_with_the_process = tokio::time::timeout(most, gone).await;
    }

    /// What can be called now.
    pub(crate) fn registry(&self) -> Arc<Registry<Loaded>> {
        self.0.registry.load_full()
    }
}
