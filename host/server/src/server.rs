//! The pieces of one node, held together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use longshore_catalog::registry::Registry;
use longshore_catalog::store::ComponentStore;
use longshore_protocol::result::ServerInfo;
use longshore_sandbox::sandbox::Sandbox;
use longshore_tasks::id::NodeId;
use longshore_tasks::store::TaskStore;
use tokio::sync::{Mutex, Semaphore};
use uuid::Uuid;

use crate::admission::Admission;
use crate::bus::Bus;
use crate::components::Loaded;
use crate::polls::Polls;
use crate::run::Runs;
use crate::settings::Settings;

/// Uploads at once: each is in memory until it is compiled, and one is compiled at a time on two cores.
const UPLOADS: usize = 8;

/// What a node is made of.
pub struct Parts {
    /// Where guests run.
    pub sandbox: Sandbox,
    /// Where tasks are kept.
    pub tasks: Arc<dyn TaskStore>,
    /// Where components are kept.
    pub components: Arc<dyn ComponentStore>,
    /// What it was told.
    pub settings: Settings,
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
    pub(crate) settings: Settings,
    pub(crate) info: ServerInfo,
    pub(crate) version: &'static str,
    pub(crate) node: NodeId,
    pub(crate) started: Instant,
    pub(crate) runs: Runs,
    pub(crate) bus: Arc<Bus>,
    pub(crate) polls: Polls,
    pub(crate) admission: Admission,
    pub(crate) registry: ArcSwap<Registry<Loaded>>,
    /// Uploads that may be in memory at once.
    pub(crate) uploads: Arc<Semaphore>,
    /// Uploads and removals, one at a time, so that store and registry say the same.
    pub(crate) changing: Mutex<()>,
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
        UPLOADS - self.uploads.available_permits()
    }
}

impl Server {
    /// A node of these parts. It serves nothing until it has loaded and recovered.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts {
            sandbox,
            tasks,
            components,
            settings,
            version,
        } = parts;
        // Whoever waits for its interval is never late.
        let early_poll_ms = settings.early_poll_ms.min(settings.poll_interval_ms);
        let queue_wait = Duration::from_millis(settings.queue_wait_ms);
        Self(Arc::new(Node {
            sandbox,
            tasks,
            components,
            info: ServerInfo::new("longshore", version),
            version,
            // A restart is another node: what the process before it owned belongs to nobody.
            node: NodeId(Uuid::new_v4().to_string().into()),
            started: Instant::now(),
            runs: Runs::default(),
            bus: Arc::new(Bus::new(settings.listeners)),
            polls: Polls::new(Duration::from_millis(early_poll_ms)),
            admission: Admission::new(settings.running, settings.queued, queue_wait),
            registry: ArcSwap::default(),
            uploads: Arc::new(Semaphore::new(UPLOADS)),
            changing: Mutex::default(),
            broken: parking_lot::Mutex::default(),
            settings,
        }))
    }

    /// What can be called now.
    pub(crate) fn registry(&self) -> Arc<Registry<Loaded>> {
        self.0.registry.load_full()
    }
}
