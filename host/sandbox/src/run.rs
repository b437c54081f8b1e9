//! One run: one instance, from its first instruction to its last.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use longshore_journal::tape::Tape;
use longshore_journal::world::World;
use longshore_policy::limits::Limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Store, UpdateDeadline};

use crate::command::{self, PRINTED_BYTES, Program};
use crate::control::{Control, StopReason};
use crate::cpu::{Meter, Metered};
use crate::ending::{Ended, Ending, Fault, FaultKind};
use crate::fault::{self, HOST_FAULT, Halt};
use crate::grants::Grants;
use crate::hash;
use crate::host::State;
use crate::journal::{Entry, Journal, Spent};
use crate::library;
use crate::link::{Asking, Entered, Fitted, Form, Returned};
use crate::offer::Offer;
use crate::output::{self, Answer};
use crate::outside::Outside;
use crate::pool::{Engines, Place};
use crate::refusal::Reason;
use crate::ring::Ring;
use crate::sandbox::WasiKind;
use crate::target::Target;
use crate::wasi;

/// What all runs of a process share.
#[derive(Clone)]
pub(crate) struct Room {
    pub(crate) engines: Engines,
    pub(crate) wasi: WasiKind,
    /// Instances that exist.
    pub(crate) live: Arc<AtomicU64>,
    /// What the server keeps for itself.
    pub(crate) own: Arc<[PathBuf]>,
    /// Places for runs that have directories of the host.
    pub(crate) with_dirs: Arc<Semaphore>,
}

/// What is left of a run when its instance is gone, however it went.
#[derive(Clone)]
pub(crate) struct Trail {
    pub(crate) stdout: Ring,
    pub(crate) stderr: Ring,
    pub(crate) tape: Tape,
    pub(crate) meter: Arc<Meter>,
}

impl Trail {
    pub(crate) fn new(limits: &Limits, journal: &Journal) -> Self {
        Self {
            stdout: Ring::new(limits.output_ring_bytes),
            stderr: Ring::new(limits.output_ring_bytes),
            tape: journal.tape.clone(),
            meter: Arc::new(Meter::new(!journal.begin.records.is_empty())),
        }
    }

    /// CPU time of all polls before this one.
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.meter.used_ns())
    }

    /// CPU time that the repetition of its past took before this poll.
    pub(crate) fn replay_cpu(&self) -> Duration {
        Duration::from_nanos(self.meter.replay_ns())
    }

    /// Time at work before this poll.
    pub(crate) fn active(&self) -> Duration {
        Duration::from_nanos(self.meter.active_ns())
    }

    /// The whole of a run that ended so.
    pub(crate) fn ended(&self, ending: Ending) -> Ended {
        Ended {
            ending,
            cpu_us: self.meter.used_ns() / 1_000,
            active_us: self.meter.active_ns() / 1_000,
            replay_cpu_us: self.meter.replay_ns() / 1_000,
            calls: self.tape.calls(),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        }
    }
}

/// What one run needs besides its component.
pub(crate) struct Terms {
    pub(crate) grants: Grants,
    pub(crate) outside: Arc<dyn Outside>,
    pub(crate) control: Control,
    pub(crate) trail: Trail,
    pub(crate) journal: Journal,
}

/// How far an instance came.
pub(crate) enum Phase {
    /// It was being made; its start functions run here.
    Starting,
    /// A function of it was called.
    Called,
}

/// Runs one target to its end. The instance is gone when this returns.
pub(crate) async fn call(
    room: &Room,
    component: &Fitted,
    mut terms: Terms,
    target: &Target,
) -> Ending {
    let limits = terms.grants.limits.clone();
    let _place = if terms.grants.mounts.is_empty() {
        None
    } else {
        tokio::select! {
            biased;
            reason = terms.control.until_stopped() => return Ending::Stopped(reason),
            place = Arc::clone(&room.with_dirs).acquire_owned() => place.ok(),
        }
    };
    let mut entry = std::mem::replace(&mut terms.journal.entry, Entry::Call);
    let (mut life, mut world) = Life::begin(terms);
    if let (true, Target::Tool { name, arguments }) = (component.own.is_command(), target) {
        match program(&life.grants, room.wasi, name, arguments) {
            Ok(program) => life.grants.program = Some(Arc::new(program)),
            Err(why) => return Answer::refused(why).ending(),
        }
    }
    loop {
        let instance = match Instance::new(room, component, life.clone(), world) {
            Ok(instance) => instance,
            Err(error) => return no_instance(&error),
        };
        let called = instance.enter(async |entered, store| {
            let returned = entered.call(&mut *store, target, &entry, &limits).await?;
            // What it returned counts only if it is what it returned before.
            store.data_mut().world.ended(hash::of(&returned))?;
            Ok(returned)
        });
        match called.await {
            Ok(returned) => return ending(target, returned, &limits),
            Err(Left::Ended(_, ending)) => return ending,
            Err(Left::Restarts { state, in_world }) => {
                if !matches!(target, Target::Tool { .. }) {
                    let message = "a restart point was saved outside a tool's call".to_owned();
                    let kind = FaultKind::Trap;
                    return Ending::Fault(Fault { kind, message });
                }
                entry = Entry::Resume(state);
                world = *in_world;
            }
        }
    }
}

/// What a program is started with, if it can be.
fn program(
    grants: &Grants,
    wasi: WasiKind,
    name: &str,
    arguments: &str,
) -> Result<Program, String> {
    let program = command::read(name, arguments, wasi::most(&grants.limits))?;
    if !program.files.is_empty() && grants.wasi(wasi) == WasiKind::Host {
        return Err(
            "this program has directories of the host and no other one: leave `files` out, and put files there"
                .to_owned(),
        );
    }
    Ok(program)
}

/// What a run comes to that cannot begin: what it was granted is not there.
fn no_instance(error: &wasmtime::Error) -> Ending {
    tracing::error!(%error, "a run cannot begin: what its component is granted is not there");
    Ending::Fault(Fault {
        kind: FaultKind::Host,
        message: "a directory that the tool is granted cannot be opened".to_owned(),
    })
}

fn ending(target: &Target, returned: Returned, limits: &Limits) -> Ending {
    match returned {
        Returned::Tool(returned) => output::ending(returned, limits),
        Returned::Read(returned) => library::read(target.name(), returned, limits),
        Returned::Prompted(returned) => library::prompted(returned, limits),
        Returned::Completed(returned) => library::completed(returned, limits),
        Returned::Answered(returned) => returned.map_or_else(Ending::Fault, Answer::ending),
    }
}

/// Asks a component for all that it lists. What it was asked when it failed is told by the reason.
pub(crate) async fn list(
    room: &Room,
    component: &Fitted,
    terms: Terms,
    asking: Asking<'_>,
) -> Result<Offer, (Reason, Ending)> {
    let (mut life, world) = Life::begin(terms);
    if component.own.is_command() {
        life.grants.program = Some(Arc::new(command::usage(asking.name)));
    }
    let instance = Instance::new(room, component, life, world)
        .map_err(|error| (Reason::Init, no_instance(&error)))?;
    let mut asked = Reason::ListTools;
    let listed = instance
        .enter(async |entered, store| entered.list(store, &mut asked, asking).await)
        .await;
    match listed {
        Ok(offer) => Ok(offer),
        Err(Left::Ended(Phase::Starting, ending)) => Err((Reason::Init, ending)),
        Err(Left::Ended(Phase::Called, ending)) => Err((asked, ending)),
        Err(Left::Restarts { .. }) => {
            let message = "a restart point was saved while it was asked for its lists".to_owned();
            let kind = FaultKind::Trap;
            Err((asked, Ending::Fault(Fault { kind, message })))
        }
    }
}

/// Charges a run's polls to its trail, and turns a panic of ours into an ending.
pub(crate) fn guarded<T, Run, Panicked>(
    trail: &Trail,
    run: Run,
    panicked: Panicked,
) -> impl Future<Output = T> + use<T, Run, Panicked>
where
    Run: Future<Output = T>,
    Panicked: FnOnce(Ending) -> T,
{
    let metered = Metered::new(Arc::clone(&trail.meter), run);
    // Whatever the run shares with others is atomic or behind a lock that is not poisoned.
    AssertUnwindSafe(metered)
        .catch_unwind()
        .map(|outcome| match outcome {
            Ok(value) => value,
            Err(payload) => {
                let text = payload
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| payload.downcast_ref::<String>().cloned());
                tracing::error!(
                    panic = text.unwrap_or_default(),
                    "host code panicked in a run"
                );
                panicked(Ending::Fault(Fault {
                    kind: FaultKind::Host,
                    message: HOST_FAULT.into(),
                }))
            }
        })
}

/// What all instances of one run share: it may have several, one after the other.
#[derive(Clone)]
struct Life {
    grants: Grants,
    outside: Arc<dyn Outside>,
    control: Control,
    trail: Trail,
    tape: Tape,
    printed_through: u64,
    spent: Spent,
    replay_ms: u64,
}

impl Life {
    fn begin(terms: Terms) -> (Self, World) {
        let Terms {
            grants,
            outside,
            control,
            trail,
            journal,
        } = terms;
        let replay_ms = journal.replay_cpu_ms();
        let Journal {
            origin,
            begin,
            after,
            tape,
            is_recorded: _,
            entry: _,
            printed_through,
            spent,
        } = journal;
        let world = World::new(&origin, begin, after, tape.clone());
        let life = Self {
            grants,
            outside,
            control,
            trail,
            tape,
            printed_through,
            spent,
            replay_ms,
        };
        (life, world)
    }
}

/// Why an instance has returned nothing.
enum Left {
    /// The run is over.
    Ended(Phase, Ending),
    /// The run goes on in another instance.
    Restarts {
        /// What that one begins with.
        state: Vec<u8>,
        /// What it sees of the outside.
        in_world: Box<World>,
    },
}

/// A Store and who may stop it.
struct Instance<'a> {
    form: &'a Form,
    store: Store<State>,
    control: Control,
    trail: Trail,
    // These go after the Store is gone: fields are dropped in this order.
    _slot: Option<OwnedSemaphorePermit>,
    _live: Live,
}

impl<'a> Instance<'a> {
    fn new(
        room: &'a Room,
        component: &'a Fitted,
        life: Life,
        world: World,
    ) -> wasmtime::Result<Self> {
        let live = Live::new(Arc::clone(&room.live));
        let Life {
            grants,
            outside,
            control,
            trail,
            tape,
            printed_through,
            spent,
            replay_ms,
        } = life;
        if grants.program.is_some() {
            trail.stdout.keep_head(PRINTED_BYTES);
            trail.stderr.keep_head(PRINTED_BYTES);
        }
        let state = State::new(
            grants.wasi(room.wasi),
            &grants,
            &trail,
            world,
            printed_through,
            outside,
            control.clone(),
        )?;
        let limits = grants.limits;
        let Place {
            engine,
            of: form,
            slot,
        } = room.engines.place(component, &limits);
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.limiter);
        let carried = form.hostcall_bytes(&limits);
        store.set_hostcall_fuel(usize::try_from(carried).unwrap_or(usize::MAX));
        store.set_max_component_handles(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        // Relative to now and by one: a bump of the epoch reaches every guest that computes.
        store.set_epoch_deadline(1);
        let meter = Arc::clone(&trail.meter);
        let limit_ms = limits.cpu_ms;
        let wall_ms = limits.active_wall_ms;
        store.epoch_deadline_callback(move |store| {
            if let Some(reason) = store.data().control().stopped() {
                return Err(Halt::Stopped(reason).into());
            }
            if tape.is_replaying() {
                if meter.used_until_now_ns() / 1_000_000 >= replay_ms {
                    let limit_ms = replay_ms;
                    return Err(Halt::ReplayCpu { limit_ms }.into());
                }
            } else {
                meter.went_live();
                let used_ms = spent.cpu_ms + meter.used_until_now_ns() / 1_000_000;
                if used_ms >= limit_ms {
                    return Err(Halt::Cpu { limit_ms }.into());
                }
                let active_ms = spent.active_ms + meter.active_until_now_ns() / 1_000_000;
                if active_ms >= wall_ms {
                    return Err(Halt::Stopped(StopReason::WallLimit).into());
                }
            }
            meter.give_way();
            // The engine's own yield wakes itself into a slot that is polled next, so that two guests
            // that compute would starve a third; this one goes to the end of the queue.
            Ok(UpdateDeadline::YieldCustom(
                1,
                Box::pin(tokio::task::yield_now()),
            ))
        });
        Ok(Self {
            form,
            store,
            control,
            trail,
            _slot: slot,
            _live: live,
        })
    }

    /// Makes the instance and calls into it, until it returns, fails, or is stopped where it waits.
    async fn enter<T>(
        mut self,
        call: impl AsyncFnOnce(&Entered<'_>, &mut Store<State>) -> wasmtime::Result<T>,
    ) -> Result<T, Left> {
        let mut phase = Phase::Starting;
        if let Some(reason) = self.control.stopped() {
            return Err(Left::Ended(phase, Ending::Stopped(reason)));
        }
        let store = &mut self.store;
        let guest = async {
            let entered = self.form.instantiate(store).await?;
            phase = Phase::Called;
            call(&entered, store).await
        };
        let outcome = tokio::select! {
            // A result that is there when the stop comes is still a result.
            biased;
            outcome = guest => outcome,
            reason = self.control.until_stopped() => Err(Halt::Stopped(reason).into()),
        };
        let error = match outcome {
            Ok(returned) => return Ok(returned),
            Err(error) => error,
        };
        if let Some(Halt::Restart(state)) = error.downcast_ref() {
            return Err(Left::Restarts {
                state: state.clone(),
                in_world: Box::new(self.store.into_data().world),
            });
        }
        let ending = fault::ending(&error, &self.trail.stderr.text());
        Err(Left::Ended(
            phase,
            if self.store.data().world.is_replaying() {
                fault::repeated(ending)
            } else {
                ending
            },
        ))
    }
}

/// Counts one instance for as long as it exists.
struct Live(Arc<AtomicU64>);

impl Live {
    fn new(count: Arc<AtomicU64>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
