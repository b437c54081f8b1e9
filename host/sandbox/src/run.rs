//! One run: one instance, from its first instruction to its last.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use longshore_policy::limits::Limits;
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::bindings::{Guest, GuestPre};
use crate::control::{Control, StopReason};
use crate::cpu::{Meter, Metered};
use crate::ending::{Ended, Ending, Fault, FaultKind};
use crate::fault::{self, HOST_FAULT, Halt};
use crate::host::State;
use crate::output;
use crate::outside::Outside;
use crate::ring::Ring;

/// What all runs of a process share.
#[derive(Clone)]
pub(crate) struct Room {
    pub(crate) engine: Engine,
    /// Instances that exist.
    pub(crate) live: Arc<AtomicU64>,
}

/// What is left of a run when its instance is gone, however it went.
#[derive(Clone)]
pub(crate) struct Trail {
    pub(crate) stdout: Ring,
    pub(crate) stderr: Ring,
    pub(crate) calls: Arc<AtomicU64>,
    meter: Arc<Meter>,
}

impl Trail {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            stdout: Ring::new(limits.output_ring_bytes),
            stderr: Ring::new(limits.output_ring_bytes),
            calls: Arc::default(),
            meter: Arc::default(),
        }
    }

    /// CPU time of all polls before this one.
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.meter.used_ns())
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
            calls: self.calls.load(Ordering::Acquire),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        }
    }
}

/// What one run needs besides its component.
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    pub(crate) outside: Arc<dyn Outside>,
    pub(crate) control: Control,
    pub(crate) trail: Trail,
}

/// How far an instance came.
pub(crate) enum Phase {
    /// It was being made; its start functions run here.
    Starting,
    /// A function of it was called.
    Called,
}

/// Runs one tool to its end. The instance is gone when this returns.
pub(crate) async fn call_tool(
    room: &Room,
    component: &GuestPre<State>,
    terms: Terms,
    tool: &str,
    arguments: &String,
) -> Ending {
    let limits = terms.limits.clone();
    let instance = Instance::new(room, terms);
    let called = instance.enter(component, async |guest, store| {
        guest
            .longshore_tool_tools()
            .call_call_tool(store, tool, arguments)
            .await
    });
    match called.await {
        Ok(returned) => output::ending(returned, &limits),
        Err((_, ending)) => ending,
    }
}

/// Asks a component for its tools.
pub(crate) async fn list_tools(
    room: &Room,
    component: &GuestPre<State>,
    terms: Terms,
) -> Result<Vec<crate::sandbox::OfferedTool>, (Phase, Ending)> {
    let instance = Instance::new(room, terms);
    let listed = instance
        .enter(component, async |guest, store| {
            guest.longshore_tool_tools().call_list_tools(store).await
        })
        .await?;
    Ok(listed.into_iter().map(output::offered).collect())
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

/// A Store and who may stop it.
struct Instance {
    store: Store<State>,
    control: Control,
    trail: Trail,
    // Counted down after the Store is gone: fields are dropped in this order.
    _live: Live,
}

impl Instance {
    fn new(room: &Room, terms: Terms) -> Self {
        let live = Live::new(Arc::clone(&room.live));
        let Terms {
            limits,
            outside,
            control,
            trail,
        } = terms;
        let state = State::new(&limits, &trail, outside, control.clone());
        let mut store = Store::new(&room.engine, state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(usize::try_from(limits.hostcall_bytes).unwrap_or(usize::MAX));
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
            if meter.used_until_now_ns() / 1_000_000 >= limit_ms {
                return Err(Halt::Cpu { limit_ms }.into());
            }
            if meter.active_until_now_ns() / 1_000_000 >= wall_ms {
                return Err(Halt::Stopped(StopReason::WallLimit).into());
            }
            meter.give_way();
            // The engine's own yield wakes itself into a slot that is polled next, so that two guests
            // that compute would starve a third; this one goes to the end of the queue.
            Ok(UpdateDeadline::YieldCustom(
                1,
                Box::pin(tokio::task::yield_now()),
            ))
        });
        Self {
            store,
            control,
            trail,
            _live: live,
        }
    }

    /// Makes the instance and calls into it, until it returns, fails, or is stopped where it waits.
    async fn enter<T>(
        mut self,
        component: &GuestPre<State>,
        call: impl AsyncFnOnce(&Guest, &mut Store<State>) -> wasmtime::Result<T>,
    ) -> Result<T, (Phase, Ending)> {
        let mut phase = Phase::Starting;
        if let Some(reason) = self.control.stopped() {
            return Err((phase, Ending::Stopped(reason)));
        }
        let store = &mut self.store;
        let guest = async {
            let guest = component.instantiate_async(&mut *store).await?;
            phase = Phase::Called;
            call(&guest, store).await
        };
        let outcome = tokio::select! {
            // A result that is there when the stop comes is still a result.
            biased;
            outcome = guest => outcome.map_err(|error| fault::ending(&error, &self.trail.stderr.text())),
            reason = self.control.until_stopped() => Err(Ending::Stopped(reason)),
        };
        outcome.map_err(|ending| (phase, ending))
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
