//! One run, from admission to its end.
//!
//! A run has one [`driver`], which alone decides how the call is carried: held on the caller's
//! request, or as a task. The guest reaches it through [`outside`], clients through the store and a
//! knock at its [`desk`].

pub(crate) mod aside;
pub(crate) mod desk;
mod driver;
pub(crate) mod outside;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longshore_catalog::schema::Compiled;
use longshore_catalog::tool::TaskMode;
use longshore_journal::call::AskKind;
use longshore_policy::limits::Limits;
use longshore_protocol::capability::{Capability, ClientCapabilities};
use longshore_protocol::error::RpcError;
use longshore_sandbox::control::Control;
use longshore_sandbox::ending::RingText;
use longshore_sandbox::sandbox::{FirstTurn, Prepared, Run, Watch};
use longshore_tasks::id::{Json, Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::task::{JournalTail, Lease, Pinned, State, Status, Task, Usage};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use self::aside::{Asides, Wishes};
use self::desk::Desk;
use self::driver::{Carrier, Charge, Driver};
use self::outside::{Log, LogLine, RunOutside};
use crate::admission::Place;
use crate::server::Server;

/// The host's behaviour that a guest can observe; grows when that changes.
const HOST_ABI: u32 = 1;
/// Ended runs whose output can still be read. What they printed is not kept by the store.
const OUTPUTS_KEPT: usize = 256;
/// What those may hold in all: a guest can print as much as its ring holds in every run.
const OUTPUT_BYTES_KEPT: usize = 16 * 1024 * 1024;

/// Who calls, and what it can do.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who pays and who is isolated.
    pub tenant: Tenant,
    /// Who it is.
    pub principal: Principal,
    /// The revision it speaks.
    pub revision: &'static str,
    /// What it can do.
    pub capabilities: ClientCapabilities,
    /// The same, as it said it.
    pub capabilities_json: String,
}

/// What is known of a call before it runs, and does not change.
pub(crate) struct CallFacts {
    pub(crate) id: TaskId,
    pub(crate) component: String,
    pub(crate) digest: String,
    pub(crate) tool: String,
    pub(crate) task_mode: TaskMode,
    pub(crate) arguments: String,
    pub(crate) output_schema: Option<Arc<Compiled>>,
    pub(crate) caller: Caller,
    pub(crate) limits: Limits,
    pub(crate) deadline_at: Millis,
    pub(crate) retention_ms: u64,
}

impl CallFacts {
    /// Whether this caller can be given a task in place of a result.
    pub(crate) fn may_become_task(&self) -> bool {
        self.caller.capabilities.tasks && self.task_mode != TaskMode::Never
    }

    /// Whether a question can wait: it takes a task, which an `on-detach` tool becomes only when it
    /// says so itself.
    pub(crate) fn can_wait_for_answers(&self) -> bool {
        self.may_become_task() && self.task_mode != TaskMode::OnDetach
    }

    /// The row of a call that becomes a task.
    pub(crate) fn new_row(&self, now: Millis, owner: NodeId, status: Status) -> Task {
        Task {
            id: self.id,
            pinned: Pinned {
                tenant: self.caller.tenant.clone(),
                principal: self.caller.principal.clone(),
                component: self.component.clone(),
                digest: self.digest.clone(),
                tool: self.tool.clone(),
                arguments: Json::from(self.arguments.as_str()),
                client: Json::from(self.caller.capabilities_json.as_str()),
                revision: self.caller.revision.to_owned(),
                policy: Json::from(
                    serde_json::to_string(&self.limits).expect("limits are numbers with names"),
                ),
                host_abi: HOST_ABI,
                idempotency_key: None,
            },
            created_at: now,
            updated_at: now,
            deadline_at: self.deadline_at,
            retention_ms: self.retention_ms,
            version: 1,
            lease: Lease {
                epoch: 1,
                owner: Some(owner),
            },
            journal: JournalTail::default(),
            usage: Usage::default(),
            status,
            cancel_requested_at: None,
            wake_at: None,
            stalls: 0,
            questions: Vec::new(),
            state: State::Working,
        }
    }
}

/// The capability that a client needs to be asked in that way.
pub(crate) fn capability_of(kind: AskKind) -> Capability {
    match kind {
        AskKind::Form => Capability::ElicitationForm,
        AskKind::Url => Capability::ElicitationUrl,
        AskKind::Sample => Capability::Sampling,
        AskKind::SampleTools => Capability::SamplingTools,
        AskKind::Roots => Capability::Roots,
    }
}

/// What the caller of a held call gets.
pub(crate) enum Reply {
    /// The call is over: its result as a whole JSON text, or an error of the protocol.
    Ended(Result<String, RpcError>),
    /// It goes on as a task, which is durable now.
    Task(Box<Task>),
}

/// What is to be run.
pub(crate) struct NewRun {
    pub(crate) call: CallFacts,
    pub(crate) prepared: Prepared,
    pub(crate) place: Place,
    /// The row, if the call is a task from the start.
    pub(crate) row: Option<Task>,
    /// How long the tool's calls take.
    pub(crate) turns: Turns,
    /// What the caller wants to be told while it waits.
    pub(crate) wishes: Wishes,
}

/// Whether a tool's last call took a whole turn on its thread. The next one then has no turn on a
/// thread that answers callers.
#[derive(Clone, Default)]
pub(crate) struct Turns(Arc<AtomicBool>);

impl Turns {
    /// One turn of a guest that computes.
    const WHOLE: Duration = Duration::from_millis(10);

    fn are_long(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, cpu: Duration) {
        self.0.store(cpu >= Self::WHOLE, Ordering::Relaxed);
    }
}

/// A call that somebody waits for. Letting go of it before the reply cancels the call.
pub(crate) struct HeldCall {
    reply: oneshot::Receiver<Reply>,
    /// The reply, once it has come.
    replied: Option<Option<Reply>>,
    asides: Option<Arc<Asides>>,
    desk: Arc<Desk>,
    waits: bool,
}

/// What the caller of a held call hears next.
pub(crate) enum Heard {
    /// A notification, one JSON text.
    Aside(String),
    /// The reply, or none if the run's driver is gone. Nothing comes after it.
    Reply(Option<Reply>),
}

impl Drop for HeldCall {
    fn drop(&mut self) {
        if self.waits {
            self.desk.leave(|inbox| inbox.gone = true);
        }
    }
}

impl HeldCall {
    /// What comes next: notifications, and then the reply.
    pub(crate) async fn next(&mut self) -> Heard {
        let Some(asides) = &self.asides else {
            let reply = self.until_replied().await;
            self.waits = false;
            return Heard::Reply(reply);
        };
        if self.replied.is_none() {
            let asides = Arc::clone(asides);
            tokio::select! {
                biased;
                aside = asides.next() => return Heard::Aside(aside),
                reply = self.until_replied() => self.replied = Some(reply),
            }
        }
        // What was said before the end is heard before it.
        if let Some(aside) = self.asides.as_ref().and_then(|asides| asides.last()) {
            return Heard::Aside(aside);
        }
        self.waits = false;
        Heard::Reply(self.replied.take().flatten())
    }

    async fn until_replied(&mut self) -> Option<Reply> {
        (&mut self.reply).await.ok()
    }
}

/// The runs of this node.
#[derive(Default)]
pub(crate) struct Runs {
    live: Mutex<HashMap<TaskId, RunHandle>>,
    outputs: Mutex<VecDeque<(TaskId, Output)>>,
}

/// How to reach a run.
#[derive(Clone)]
struct RunHandle {
    desk: Arc<Desk>,
    log: Arc<Log>,
    watch: Watch,
}

/// What a run printed and logged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) stdout: RingText,
    pub(crate) stderr: RingText,
    pub(crate) log: Vec<LogLine>,
    pub(crate) log_dropped: u64,
    /// CPU time of a run that goes on; an ended one has it in its row.
    pub(crate) cpu_ms: Option<u64>,
}

impl Output {
    fn bytes(&self) -> usize {
        let log: usize = self.log.iter().map(LogLine::bytes).sum();
        self.stdout.text.len() + self.stderr.text.len() + log
    }
}

impl Runs {
    /// Whether a run is here.
    pub(crate) fn has(&self, id: TaskId) -> bool {
        self.live.lock().contains_key(&id)
    }

    /// Shows a run its row after somebody else's commit. False if it is not here.
    pub(crate) fn show_row(&self, row: &Task) -> bool {
        let handle = self.live.lock().get(&row.id).cloned();
        let Some(handle) = handle else { return false };
        handle.desk.leave_row(row.clone());
        true
    }

    /// Runs that have not ended.
    pub(crate) fn count(&self) -> usize {
        self.live.lock().len()
    }

    /// What a run has put out so far, if it is here or ended not long ago.
    pub(crate) fn output(&self, id: TaskId) -> Option<Output> {
        if let Some(handle) = self.live.lock().get(&id) {
            let (log, log_dropped) = handle.log.read();
            return Some(Output {
                stdout: handle.watch.stdout(),
                stderr: handle.watch.stderr(),
                log,
                log_dropped,
                cpu_ms: Some(u64::try_from(handle.watch.cpu().as_millis()).unwrap_or(u64::MAX)),
            });
        }
        self.outputs
            .lock()
            .iter()
            .find(|(kept, _)| *kept == id)
            .map(|(_, output)| output.clone())
    }

    /// What the run that ended last has put out.
    pub(crate) fn last_output(&self) -> Option<Output> {
        self.outputs.lock().back().map(|(_, output)| output.clone())
    }

    fn ended(&self, id: TaskId, output: Output) {
        {
            let mut outputs = self.outputs.lock();
            outputs.push_back((id, output));
            let bytes = |outputs: &VecDeque<(TaskId, Output)>| -> usize {
                outputs.iter().map(|(_, output)| output.bytes()).sum()
            };
            while outputs.len() > OUTPUTS_KEPT || bytes(&outputs) > OUTPUT_BYTES_KEPT {
                outputs.pop_front();
            }
        }
        // Last, so that the output can be read at every moment.
        self.live.lock().remove(&id);
    }
}

impl Server {
    /// Starts a run and its driver.
    pub(crate) fn start_run(&self, new: NewRun) -> HeldCall {
        let NewRun {
            call,
            prepared,
            place,
            row,
            turns,
            wishes,
        } = new;
        let call = Arc::new(call);
        let desk = Arc::new(Desk::default());
        let log = Arc::new(Log::new(call.limits.log_ring_bytes));
        let control = Control::default();
        // Of a task is told what its row shows, to whoever asks for that.
        let asides = (row.is_none() && !wishes.are_none()).then(|| {
            let every = Duration::from_millis(self.settings.progress_every_ms);
            Arc::new(Asides::new(wishes, every, call.limits.log_ring_bytes))
        });
        let started = self.sandbox.start(Run {
            prepared,
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            limits: call.limits.clone(),
            outside: Arc::new(RunOutside::new(
                Arc::clone(&call),
                Arc::clone(&desk),
                Arc::clone(&log),
                asides.clone(),
                Arc::clone(&self.bus),
            )),
            control: control.clone(),
            first_turn: if row.is_none() && !turns.are_long() {
                FirstTurn::Here
            } else {
                FirstTurn::Queued
            },
        });
        let handle = RunHandle {
            desk: Arc::clone(&desk),
            log: Arc::clone(&log),
            watch: started.watch,
        };
        self.runs.live.lock().insert(call.id, handle);
        let (answer, reply) = oneshot::channel();
        let held = HeldCall {
            reply,
            replied: None,
            asides: asides.clone(),
            desk: Arc::clone(&desk),
            waits: row.is_none(),
        };
        let carrier = match row {
            Some(row) => Carrier::Task(Box::new(row)),
            None => Carrier::Held {
                answer,
                asides,
                status: Status::default(),
            },
        };
        let driver = Driver::new(Charge {
            server: self.clone(),
            call,
            desk,
            log,
            control,
            carrier,
            place,
            turns,
        });
        driver::spawn(driver, started.ended);
        held
    }
}
