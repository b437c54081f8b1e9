//! All of this room behind one handle. How a component is made ready to run is in [`ready`].

mod ready;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cap_std::fs::Dir;
use futures_util::future::WeakShared;
use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use self::ready::Flight;
pub use self::ready::Prepared;

use crate::artifact::{Artifacts, Digest};
use crate::compile::{ChildCommand, CompileLimits, Compiler};
use crate::control::{Control, StopReason};
use crate::dirs;
use crate::ending::{Ended, Ending, Fault, FaultKind, RingText};
use crate::epoch::Ticker;
use crate::executor::RunKey;
use crate::grants::Grants;
use crate::guests::Guests;
use crate::journal::Journal;
use crate::link::Links;
use crate::memory::Memory;
use crate::nobody::{Nobody, listing_origin};
use crate::offer::Offer;
use crate::outside::{self, Outside};
use crate::pool::Engines;
use crate::precheck::Bounds;
use crate::refusal::{Reason, Refusal};
use crate::run::{self, Room, Terms, Trail};
use crate::target::Target;

/// CPU time to be made and to list all that it has: an interpreter needs a third of it.
const LISTING_CPU_MS: u64 = 1_000;
/// Time for the same, should it wait for something.
const LISTING_WALL: Duration = Duration::from_secs(2);
/// A guest that used this much of [`LISTING_WALL`] did not wait: it had to share its thread, which is
/// not its fault. One that makes as if has ten such spans.
const LISTING_TURN: Duration = Duration::from_millis(10);
const LISTING_SPANS: u32 = 10;

/// The key of what is no run of anybody's.
const NO_RUN: RunKey = 0;

/// What a sandbox needs to know.
pub struct Settings {
    /// How to start a compile child.
    pub child: ChildCommand,
    /// Where native code is kept; nowhere if none.
    pub artifacts: Option<cap_std::fs::Dir>,
    /// The key of the seal on what is kept there.
    pub artifact_key: [u8; 32],
    /// Threads for guests.
    pub guest_threads: usize,
    /// Places for instances that are made beforehand, so that a call is not to wait for them. What finds none gets
    /// memory of its own.
    pub slots: usize,
    /// What an upload may hold.
    pub bounds: Bounds,
    /// What compiling it may take.
    pub compile_limits: CompileLimits,
    /// Which WASI guests get whose runs are not recorded.
    pub wasi: WasiKind,
    /// What the server keeps for itself: no directory that a guest has may hold any of it.
    pub own_dirs: Vec<PathBuf>,
}

/// Which WASI a guest gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WasiKind {
    /// Our own, which shows a run that is repeated the same again.
    #[default]
    Virtual,
    /// The engine's, which shows the machine's clocks and random numbers. Nothing can be repeated.
    Host,
}

/// The engine with its threads. Dropping the last clone ends every run that is left.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

// Fields are dropped in this order: first the guest threads are told to end, then the clock ticks
// until the last guest has given way and its thread has seen it.
struct Inner {
    guests: Guests,
    _ticker: Ticker,
    room: Room,
    links: Links,
    /// For runs that are recorded, where others get another WASI.
    recorded: Option<Links>,
    /// For runs that have directories of the host, made with the first of them.
    host_links: OnceLock<Links>,
    bounds: Bounds,
    compiler: Compiler,
    artifacts: Arc<Artifacts>,
    memory: Arc<Memory>,
    /// Components that are being made ready to be linked: whoever wants the same one waits with the first.
    flights: Mutex<HashMap<Digest, WeakShared<Flight>>>,
    started: AtomicU64,
    compiles: AtomicU64,
    /// Those that have not reported yet, so that they can be told to when all of this ends.
    running: Arc<Mutex<HashMap<RunKey, Control>>>,
}

/// How long runs may take to end when all of this does.
const LEAVING: Duration = Duration::from_secs(2);

impl Drop for Inner {
    fn drop(&mut self) {
        let running: Vec<Control> = self.running.lock().values().cloned().collect();
        for control in running {
            // A run that waits is in no queue: it has to be woken to be ended.
            control.stop(StopReason::Shutdown);
        }
        self.room.engines.increment_epoch();
        let until = Instant::now() + LEAVING;
        while self.room.live.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// One call of one component.
pub struct Run {
    /// The component.
    pub prepared: Prepared,
    /// What it is to do.
    pub target: Target,
    /// What it may touch and use.
    pub policy: Policy,
    /// Whom its imports reach.
    pub outside: Arc<dyn Outside>,
    /// Its reins.
    pub control: Control,
    /// What it did before, and where it records what it does.
    pub journal: Journal,
    /// Where its first turn is.
    pub first_turn: FirstTurn,
}

/// Where the first turn of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstTurn {
    /// On the thread that starts it, which saves a hop where most runs need no second turn.
    Here,
    /// On the guest threads, like all others.
    Queued,
}

/// A run that was started.
pub struct Started {
    /// How it ended, once it has.
    pub ended: oneshot::Receiver<Ended>,
    /// What can be seen of it meanwhile.
    pub watch: Watch,
}

/// How much a run has printed, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    stdout: u64,
    stderr: u64,
}

/// What can be seen of a run from outside while it goes on.
#[derive(Clone)]
pub struct Watch(Trail);

impl Watch {
    /// What is left of its stdout.
    #[must_use]
    pub fn stdout(&self) -> RingText {
        self.0.stdout.text()
    }

    /// What is left of its stderr.
    #[must_use]
    pub fn stderr(&self) -> RingText {
        self.0.stderr.text()
    }

    /// How much it has printed.
    #[must_use]
    pub fn printed(&self) -> Printed {
        Printed {
            stdout: self.0.stdout.written(),
            stderr: self.0.stderr.written(),
        }
    }

    /// All records that lead to so much are kept, so that whoever repeats the run prints the same.
    pub fn note_sure(&self, printed: Printed) {
        self.0.stdout.note_sure(printed.stdout);
        self.0.stderr.note_sure(printed.stderr);
    }

    /// What is left of its stdout and its stderr, as far as that is sure.
    #[must_use]
    pub fn sure(&self) -> (RingText, RingText) {
        (self.0.stdout.sure_text(), self.0.stderr.sure_text())
    }

    /// CPU time that it has used in this process, less what it took to repeat its past.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.0.cpu()
    }

    /// CPU time that it took to repeat its past.
    #[must_use]
    pub fn replay_cpu(&self) -> Duration {
        self.0.replay_cpu()
    }

    /// Time for which it was at work.
    #[must_use]
    pub fn active(&self) -> Duration {
        self.0.active()
    }
}

/// Numbers for whoever operates the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Instances that exist now.
    pub live_stores: u64,
    /// Runs started so far.
    pub started: u64,
    /// Instances that were made in a slot so far.
    pub slotted: u64,
    /// Compilations begun so far.
    pub compiles: u64,
    /// Compilations that go on now.
    pub compiling: u64,
    /// Threads for guests.
    pub guest_threads: u64,
}

impl Sandbox {
    /// Starts the engine's threads. One per process: stores of two engines are not to be mixed up.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let Settings {
            child,
            artifacts,
            artifact_key,
            guest_threads,
            slots,
            bounds,
            compile_limits,
            wasi,
            own_dirs,
        } = settings;
        let engines = Engines::new(slots)?;
        let remembers = artifacts.as_ref().map(Dir::try_clone).transpose()?;
        let live = Arc::<AtomicU64>::default();
        let links = Links::new(&engines, wasi)?;
        let recorded = (wasi != WasiKind::Virtual)
            .then(|| Links::new(&engines, WasiKind::Virtual))
            .transpose()?;
        let nudged = engines.clone();
        let guests = Guests::new(guest_threads, move || nudged.increment_epoch())
            .context("starting the guest threads")?;
        let ticker = Ticker::start(engines.clone(), Arc::clone(&live))
            .context("starting the epoch thread")?;
        Ok(Self(Arc::new(Inner {
            guests,
            _ticker: ticker,
            room: Room {
                engines,
                wasi,
                live,
                own: own_dirs.into(),
                with_dirs: Arc::new(Semaphore::new(dirs::runs_at_once())),
            },
            links,
            recorded,
            host_links: OnceLock::new(),
            bounds,
            compiler: Compiler::new(child, compile_limits),
            artifacts: Arc::new(Artifacts::new(artifacts, artifact_key)),
            memory: Arc::new(Memory::new(remembers, &compile_limits)),
            flights: Mutex::default(),
            started: AtomicU64::new(0),
            compiles: AtomicU64::new(0),
            running: Arc::default(),
        })))
    }

    /// Asks a component for all that it lists: in one instance as large as a run's, with nobody to reach and
    /// little time for all of it. The one tool that a program is gets that name. What it could never be started with is refused here and not at every call.
    ///
    /// # Errors
    ///
    /// `init` if it cannot be instantiated so, `list-tools` or the like if it does not answer so.
    pub async fn list(
        &self,
        prepared: &Prepared,
        name: &str,
        of_runs: &Limits,
    ) -> Result<Offer, Refusal> {
        let limits = Limits {
            memory_bytes: of_runs.memory_bytes,
            table_elements: of_runs.table_elements,
            instances: of_runs.instances,
            handles: of_runs.handles,
            cpu_ms: LISTING_CPU_MS,
            // What is listed is bounded by what the registry takes, whatever calls may carry.
            ..Limits::default()
        };
        let journal = Journal::fresh(listing_origin());
        let trail = Trail::new(&limits, &journal);
        let control = Control::default();
        let terms = Terms {
            grants: Grants::of(Policy::nothing(limits), &self.0.room.own),
            outside: Arc::new(Nobody::default()),
            control: control.clone(),
            trail: trail.clone(),
            journal,
        };
        let room = self.0.room.clone();
        let ready = Arc::clone(&prepared.0);
        let (reply, listed) = oneshot::channel();
        let spent = trail.clone();
        let name = name.to_owned();
        let listing = async move {
            let listing = run::list(&room, &ready.component, terms, ready.asking(&name));
            tokio::pin!(listing);
            for _ in 0..LISTING_SPANS {
                let before = spent.cpu();
                if let Ok(listed) = tokio::time::timeout(LISTING_WALL, &mut listing).await {
                    return listed;
                }
                if spent.cpu() - before < LISTING_TURN {
                    break;
                }
            }
            control.stop(StopReason::WallLimit);
            listing.await
        };
        let listing = run::guarded(&trail, listing, |ending| Err((Reason::ListTools, ending)));
        self.0.guests.spawn(NO_RUN, async move {
            // Whoever asked may be gone.
            let _unheard = reply.send(listing.await);
        });
        match listed.await {
            Ok(listed) => listed.map_err(|(reason, ending)| unlisted(reason, &ending)),
            Err(_dropped) => Err(host("the process is going down".into())),
        }
    }

    /// Starts a run. Dropping what it returns does not stop it; the instance is gone when it reports.
    #[must_use]
    pub fn start(&self, run: Run) -> Started {
        let key: RunKey = self.0.started.fetch_add(1, Ordering::Relaxed) + 1;
        let Run {
            prepared,
            target,
            policy,
            outside,
            control,
            journal,
            first_turn,
        } = run;
        let grants = Grants::of(policy, &self.0.room.own);
        let trail = Trail::new(&grants.limits, &journal);
        let is_recorded = journal.is_recorded;
        let witness = outside.witness();
        let (reply, ended) = oneshot::channel();
        control.tie(key);
        self.0.running.lock().insert(key, control.clone());
        let report = Report {
            trail: trail.clone(),
            reply: Some(reply),
            running: Arc::clone(&self.0.running),
            key,
        };
        let terms = Terms {
            grants,
            outside,
            control,
            trail: trail.clone(),
            journal,
        };
        let mut room = self.0.room.clone();
        if is_recorded {
            room.wasi = WasiKind::Virtual;
        }
        let wasi = terms.grants.wasi(room.wasi);
        let is_usual = wasi == room.wasi;
        let linked = if is_usual {
            Ok(())
        } else {
            self.link(&prepared, wasi)
        };
        // Nothing in it holds this handle: a run must not keep the threads alive that it runs on.
        let called = async move {
            let ready = &prepared.0;
            let recorded = ready.recorded.as_ref().filter(|_| is_recorded);
            let fitted = linked.and_then(|()| recorded.map_or_else(|| ready.fitted(is_usual), Ok));
            let run = async {
                match fitted {
                    Ok(fitted) => run::call(&room, fitted, terms, &target).await,
                    Err(refusal) => Ending::Fault(Fault {
                        kind: FaultKind::Host,
                        message: refusal.message,
                    }),
                }
            };
            outside::witnessed(witness, run).await
        };
        let called = run::guarded(&trail, called, |ending| ending);
        let whole = async move { report.send(called.await) };
        match first_turn {
            FirstTurn::Here => {
                trail.meter.charge_first_by_wall();
                self.0.guests.spawn_here(key, whole);
            }
            FirstTurn::Queued => self.0.guests.spawn(key, whole),
        }
        Started {
            ended,
            watch: Watch(trail),
        }
    }

    /// Ends a run wherever it is: within a tick if it computes, at once if it waits.
    pub fn stop(&self, control: &Control, reason: StopReason) {
        control.stop(reason);
        // A guest that computes looks at its next epoch: now. One that stands in the queue of those that
        // compute would look when its turn comes, behind all others.
        self.0.guests.boost(control.run());
        self.0.room.engines.increment_epoch();
    }

    /// Tells a run that it is cancelled. It ends when it wants to.
    pub fn cancel(&self, control: &Control) {
        control.cancel();
    }

    /// The numbers now.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            live_stores: self.0.room.live.load(Ordering::Acquire),
            started: self.0.started.load(Ordering::Relaxed),
            slotted: self.0.room.engines.slotted(),
            compiles: self.0.compiles.load(Ordering::Relaxed),
            compiling: self.0.compiler.busy() as u64,
            guest_threads: self.0.guests.threads() as u64,
        }
    }
}

/// Tells whoever waits how a run ended, once and in any case.
struct Report {
    trail: Trail,
    reply: Option<oneshot::Sender<Ended>>,
    running: Arc<Mutex<HashMap<RunKey, Control>>>,
    key: RunKey,
}

impl Report {
    fn send(mut self, ending: Ending) {
        self.tell(ending);
    }

    fn tell(&mut self, ending: Ending) {
        if let Some(reply) = self.reply.take() {
            self.running.lock().remove(&self.key);
            // Whoever started it may be gone.
            let _unheard = reply.send(self.trail.ended(ending));
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        // The guest threads drop what they have not finished when they end.
        self.tell(Ending::Stopped(StopReason::Shutdown));
    }
}

fn unlisted(reason: Reason, ending: &Ending) -> Refusal {
    let doing = match reason {
        Reason::ListTools => "listing its tools",
        Reason::ListResources => "listing its resources",
        Reason::ListTemplates => "listing its templates",
        Reason::ListPrompts => "listing its prompts",
        _ => "starting the component",
    };
    match ending {
        Ending::Fault(fault) if fault.kind == FaultKind::Host => {
            host(format!("{doing}: {}", fault.message))
        }
        Ending::Fault(fault) => Refusal::new(reason, format!("{doing}: {}", fault.message)),
        Ending::Stopped(StopReason::WallLimit) => {
            let limit = LISTING_WALL.as_secs();
            Refusal::new(reason, format!("{doing}: it takes more than {limit} s"))
        }
        Ending::Stopped(_) => host("the process is going down".into()),
        Ending::Returned(_)
        | Ending::ToolFailed(_)
        | Ending::Read(_)
        | Ending::NotFound
        | Ending::Prompted(_)
        | Ending::BadArgument(_)
        | Ending::Completed(_)
        | Ending::Protocol(_)
        | Ending::Cancelled
        | Ending::RecordsEnd { .. } => host(format!("{doing}: it ended like a call")),
    }
}

fn host(message: String) -> Refusal {
    Refusal::new(Reason::Host, message)
}
