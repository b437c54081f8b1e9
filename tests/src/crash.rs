//! Whole servers in this process, which die at the write that a test chooses, one after the other over one store; and
//! a client that remembers all that it was shown.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use longshore_sandbox::sandbox::Sandbox;
use longshore_server::egress::vault::Vault;
use longshore_server::http::{Admin, bind};
use longshore_server::marks::Marks;
use longshore_server::mutant::Mutant;
use longshore_server::seal::Keys;
use longshore_server::server::{Parts, Server};
use longshore_server::settings::Settings;
use longshore_store::memory::Memory;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::fault::{Fault, FaultStore, How, Kit, Pulse};
use crate::guests;
use crate::inside;
use crate::process::TOKEN;

/// How waiting and writing down are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Whatever waits keeps its memory, and only what can be seen makes anything be written.
    WarmLazy,
    /// Whatever waits is parked at once, and records are written all the time.
    ColdEager,
}

impl Policy {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::WarmLazy, Self::ColdEager];

    fn settings(self) -> Settings {
        const NEVER_MS: u64 = 3_600_000;
        let usual = Settings {
            // Whatever changes is seen.
            status_every_ms: 0,
            early_poll_ms: 0,
            ..Settings::default()
        };
        match self {
            Self::WarmLazy => Settings {
                warm_ms: NEVER_MS,
                journal_every_ms: NEVER_MS,
                ..usual
            },
            Self::ColdEager => Settings {
                warm: 0,
                journal_every_ms: 1,
                ..usual
            },
        }
    }
}

/// Where servers come and go: the machine, so to speak.
pub struct Machine {
    sandbox: Sandbox,
    keys: Keys,
    /// Holds the component and nothing else.
    installed: Memory,
    /// The name of its tool.
    pub guest: &'static str,
}

impl Machine {
    /// One with an example on its disk. Native code is kept in that folder.
    pub async fn with(guest: &'static str, artifacts: &Path) -> Result<Self> {
        let sandbox = inside::sandbox_in(artifacts, 2)?;
        let this = Self {
            sandbox,
            keys: Keys::of_this_process(),
            installed: Memory::default(),
            guest,
        };
        this.compile().await?;
        Ok(this)
    }

    async fn compile(&self) -> Result<()> {
        let server = Server::new(Parts {
            sandbox: self.sandbox.clone(),
            tasks: Arc::new(self.installed.clone()),
            components: Arc::new(self.installed.clone()),
            values: Arc::new(self.installed.clone()),
            artifacts: Arc::new(self.installed.clone()),
            settings: Settings::default(),
            keys: self.keys.clone(),
            marks: Marks::default(),
            vault: Vault::default(),
            version: "0",
        });
        let bytes = tokio::fs::read(guests::component(self.guest)).await?;
        server
            .install(self.guest.parse()?, bytes)
            .await
            .map_err(|error| anyhow!("{error}"))?;
        Ok(())
    }

    /// Starts a server over that store. It may be dead before it is there.
    pub async fn start(
        &self,
        kit: &Kit,
        policy: Policy,
        mutant: Option<Mutant>,
        fault: Option<Fault>,
    ) -> Result<Life> {
        let store = Arc::new(FaultStore::new(kit.clone(), fault));
        let parts = Parts {
            sandbox: self.sandbox.clone(),
            tasks: Arc::clone(&store) as Arc<_>,
            components: Arc::new(self.installed.clone()),
            values: Arc::clone(&store) as Arc<_>,
            artifacts: Arc::clone(&store) as Arc<_>,
            settings: policy.settings(),
            keys: self.keys.clone(),
            marks: Marks::default(),
            vault: Vault::default(),
            version: "0",
        };
        let server = Server::mutated(parts, mutant);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let (told, is_there) = oneshot::channel();
        runtime.spawn(serve(server.clone(), told));
        let address = tokio::select! {
            biased;
            address = is_there => Some(address.context("the server did not start")??),
            _ = store.troubled() => None,
        };
        Ok(Life {
            runtime: Some(runtime),
            server,
            store,
            address,
        })
    }
}

async fn serve(server: Server, told: oneshot::Sender<Result<SocketAddr>>) {
    let started = async {
        server.begin(Vec::new()).await?;
        // As whoever starts a server again that could not read its store.
        while server.recover().await.is_err() {}
        anyhow::Ok(bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?)
    };
    let bound = match started.await {
        Ok(bound) => bound,
        Err(error) => {
            let _whoever_asked = told.send(Err(error));
            return;
        }
    };
    let _whoever_asked = told.send(Ok(bound.address()));
    let _awake = tokio::spawn(server.clone().keep_awake());
    let admin = Admin {
        token: TOKEN,
        place: "this test",
    };
    bound.serve(server, admin, std::future::pending()).await;
}

/// One life of a server.
pub struct Life {
    runtime: Option<Runtime>,
    /// The server, for what has no door of its own.
    pub server: Server,
    /// The store as it has it.
    pub store: Arc<FaultStore>,
    /// Where it listens, if it came so far.
    pub address: Option<SocketAddr>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.store.die();
        if let Some(runtime) = self.runtime.take() {
            // Everything that it still did is dropped where it stands.
            runtime.shutdown_background();
        }
    }
}

/// How long a server that lives may take for whatever is next, on a machine that others use too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What is done while a life of a server lasts.
pub trait Watcher {
    /// Does the next thing. True if nothing is left to be done; an error if nobody answers.
    fn step(&mut self, address: SocketAddr) -> impl Future<Output = Result<bool>> + Send;
    /// Only looks.
    fn look(&mut self, address: SocketAddr) -> impl Future<Output = Result<()>> + Send;
}

/// What the lives of one trial came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lived {
    /// Servers that were started.
    pub lives: u64,
    /// Faults that struck.
    pub struck: u64,
    /// Writes of the first server.
    pub writes: u64,
    /// Whether everything was done in time.
    pub done: bool,
}

/// Steps of the watcher after which a server that stood still goes on.
const SHORT: u64 = 3;
/// For whatever a server still does that was released at the end.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Lets a watcher do its work with one server after the other, each with its fault, the last with none.
///
/// # Errors
/// If a server cannot be started.
pub async fn live_through(
    machine: &Machine,
    kit: &Kit,
    policy: Policy,
    mutant: Option<Mutant>,
    faults: &[Fault],
    watcher: &mut (impl Watcher + Send),
) -> Result<Lived> {
    let mut lived = Lived::default();
    let mut faults = faults.iter().copied();
    let mut standing: Option<Life> = None;
    let began = Instant::now();
    let mut life = machine.start(kit, policy, mutant, faults.next()).await?;
    let mut steps = 0;
    while began.elapsed() < PATIENCE {
        let pulse = match life.address {
            None => Pulse::Dead,
            Some(address) => {
                let stepped = tokio::select! {
                    biased;
                    pulse = life.store.troubled() => Err(pulse),
                    stepped = watcher.step(address) => Ok(stepped),
                };
                match stepped {
                    Ok(Ok(true)) => {
                        lived.done = true;
                        break;
                    }
                    // An error is a server that dies; somebody says so soon.
                    Ok(_) => {
                        steps += 1;
                        if let Some(last) = standing.as_ref().filter(|_| steps > SHORT)
                            && last.store.how() == Some(How::StandsStill)
                        {
                            last.store.release();
                        }
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        continue;
                    }
                    Err(pulse) => pulse,
                }
            }
        };
        let how = life.store.how();
        if let (Some(How::DiesAfter), Some(address)) = (how, life.address) {
            let _some_of_it = tokio::time::timeout(LAST_WORDS, watcher.look(address)).await;
        }
        if pulse == Pulse::Ends {
            life.server.leave(PATIENCE).await;
        }
        lived.end(&life);
        steps = 0;
        let next = machine.start(kit, policy, mutant, faults.next()).await?;
        let last = std::mem::replace(&mut life, next);
        if matches!(how, Some(How::StandsStill | How::StandsStillLong)) {
            standing = Some(last);
        }
    }
    lived.end(&life);
    if let Some(last) = &standing {
        last.store.release();
        last.store.quiet().await;
        last.server.settle(LAST_WORDS).await;
    }
    Ok(lived)
}

impl Lived {
    fn end(&mut self, life: &Life) {
        if self.lives == 0 {
            self.writes = life.store.writes();
        }
        self.lives += 1;
        self.struck += u64::from(life.store.is_struck());
    }
}
