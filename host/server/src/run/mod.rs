//! One run, from admission to its end.
//!
//! A run has one [`driver`], which alone decides how the call is carried: held on the caller's
//! request, or as a task. The guest reaches it through [`outside`], clients through the store and a
//! knock at its [`desk`].

pub(crate) mod artifacts;
pub(crate) mod aside;
pub(crate) mod desk;
mod driver;
pub(crate) mod inquiry;
pub(crate) mod lookout;
pub(crate) mod output;
pub(crate) mod outside;
pub(crate) mod record;
mod resume;
pub(crate) mod target;
pub(crate) mod values;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longshore_catalog::registry;
use longshore_catalog::schema::Compiled;
use longshore_catalog::tool::TaskMode;
use longshore_journal::call::AskKind;
use longshore_journal::tape::{Tape, Total};
use longshore_journal::world::Origin;
use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use longshore_protocol::capability::{Capability, ClientCapabilities};
use longshore_protocol::error::RpcError;
use longshore_protocol::version::Revision;
use longshore_sandbox::control::Control;
use longshore_sandbox::ending::Ended;
use longshore_sandbox::journal::{Entry, Journal, Spent};
use longshore_sandbox::sandbox::{FirstTurn, Prepared, Run, Watch};
use longshore_sandbox::target::Target;
use longshore_tasks::id::{Json, Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::task::{JournalTail, Lease, Pinned, Reach, State, Status, Task, Usage};
use longshore_tasks::values::Shelf;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use self::aside::{Asides, Wishes};
use self::desk::Desk;
use self::driver::{Carrier, Charge, Driver, Seat};
use self::inquiry::{Answers, Inquiries, Inquiry};
pub(crate) use self::output::Output;
use self::outside::{Log, RunOutside};
use self::record::{Recorded, Recorder};
use crate::admission::Place;
use crate::clock;
use crate::loaded::Loaded;
use crate::server::Server;
use crate::settings::Settings;
use crate::wire;

/// The host's behaviour that a guest can observe; grows when that changes.
pub(crate) const HOST_ABI: u32 = 4;
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
    pub revision: Revision,
    /// What it can do.
    pub capabilities: ClientCapabilities,
    /// The same, as it said it.
    pub capabilities_json: String,
}

/// What is known of a call before it runs, and does not change.
pub(crate) struct CallFacts {
    pub(crate) id: TaskId,
    pub(crate) created_at: Millis,
    pub(crate) component: String,
    pub(crate) digest: String,
    /// Its component is there for as long as it runs.
    pub(crate) _component: Arc<registry::Entry<Loaded>>,
    pub(crate) target: Target,
    pub(crate) task_mode: TaskMode,
    pub(crate) output_schema: Option<Arc<Compiled>>,
    pub(crate) caller: Caller,
    pub(crate) policy: Arc<Policy>,
    pub(crate) deadline_at: Millis,
    pub(crate) retention_ms: u64,
    /// Answers that came with the call, before anything was asked.
    pub(crate) given: Vec<(String, Box<RawValue>)>,
    /// The caller's own key of this call.
    pub(crate) idempotency_key: Option<String>,
    /// Where the call belongs in its caller's trace.
    pub(crate) traceparent: Option<String>,
}

impl CallFacts {
    /// Whether what it sees is recorded, so that it goes on after the death of its process.
    pub(crate) fn is_recorded(&self, settings: &Settings) -> bool {
        settings.durable && self.policy.dirs.is_empty()
    }

    /// Where its component keeps what it keeps.
    pub(crate) fn shelf(&self) -> Shelf {
        Shelf {
            tenant: self.caller.tenant.clone(),
            component: self.component.clone(),
        }
    }

    /// Whether this caller can be given a task in place of a result.
    pub(crate) fn may_become_task(&self) -> bool {
        self.caller.capabilities.tasks && self.task_mode != TaskMode::Never
    }

    /// Whether a question can wait: it takes a task, which an `on-detach` tool becomes only when it
    /// says so itself.
    pub(crate) fn can_wait_for_answers(&self) -> bool {
        self.may_become_task() && self.task_mode != TaskMode::OnDetach
    }

    /// Whether a question can go to the client in place of a result.
    pub(crate) fn goes_in_rounds(&self) -> bool {
        self.asks() && self.caller.revision.has_rounds()
    }

    /// Whether a question reaches somebody. This depends on nothing that a run which goes on later would not find again.
    pub(crate) fn can_ask(&self) -> bool {
        let has_a_way = self.can_wait_for_answers()
            || self.goes_in_rounds()
            || self.caller.revision.has_sessions();
        self.asks() && has_a_way
    }

    /// Whether it may ask at all: a completion is answered while somebody types.
    fn asks(&self) -> bool {
        !matches!(self.target, Target::Completion { .. })
    }

    /// Whether the call goes on as a task when it takes longer than its client waits.
    pub(crate) fn may_be_handed_off(&self) -> bool {
        !self.caller.capabilities.tasks && self.task_mode != TaskMode::Never
    }

    /// The row of a call that is kept.
    pub(crate) fn new_row(&self, owner: NodeId, status: Status, reach: Reach) -> Task {
        let (tool, arguments) = target::kept(&self.target);
        Task {
            id: self.id,
            pinned: Pinned {
                tenant: self.caller.tenant.clone(),
                principal: self.caller.principal.clone(),
                component: self.component.clone(),
                digest: self.digest.clone(),
                tool,
                arguments: Json::from(arguments),
                client: Json::from(self.caller.capabilities_json.as_str()),
                revision: self.caller.revision.as_str().to_owned(),
                policy: Json::from(self.policy.kept()),
                host_abi: HOST_ABI,
                idempotency_key: self.idempotency_key.clone(),
            },
            created_at: self.created_at,
            updated_at: self.created_at.max(clock::now()),
            deadline_at: self.deadline_at,
            retention_ms: self.retention_ms,
            version: 1,
            lease: Lease {
                epoch: 1,
                owner: Some(owner),
            },
            journal: JournalTail::default(),
            journal_key: None,
            usage: Usage::default(),
            status,
            reach,
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
    /// It asks something first; the run waits for the same call with the answers.
    Asks(Box<Task>),
}

/// What is to be run.
pub(crate) struct NewRun {
    pub(crate) call: CallFacts,
    pub(crate) prepared: Prepared,
    pub(crate) place: Place,
    /// How long the tool's calls take.
    pub(crate) turns: Turns,
    /// Held if nothing like it may run beside it.
    pub(crate) alone: Option<OwnedSemaphorePermit>,
    pub(crate) start: Start,
}

/// How a run begins.
pub(crate) enum Start {
    /// Somebody waits for its result, and wants to be told this meanwhile.
    Held(Wishes),
    /// As a task, whose row is kept already.
    Task(Box<Task>, Option<Recorder>),
    /// Where it stood when it was let go of.
    Resumed(Box<Resumed>),
}

/// A run that goes on.
pub(crate) struct Resumed {
    pub(crate) row: Task,
    pub(crate) recorded: Recorded,
    pub(crate) earlier: Option<Arc<Output>>,
    pub(crate) printed_through: u64,
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
    inquiries: Option<Arc<Inquiries>>,
    desk: Arc<Desk>,
    waits: bool,
}

/// What the caller of a held call hears next.
pub(crate) enum Heard {
    /// A notification, one JSON text.
    Aside(String),
    /// Questions, of a caller that can be reached with them.
    Inquiry(Inquiry),
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
    /// What comes next: notifications and questions, and then the reply.
    pub(crate) async fn next(&mut self) -> Heard {
        if self.asides.is_none() && self.inquiries.is_none() {
            let reply = self.until_replied().await;
            self.waits = false;
            return Heard::Reply(reply);
        }
        if self.replied.is_none() {
            let (asides, inquiries) = (self.asides.clone(), self.inquiries.clone());
            let aside = async {
                match &asides {
                    Some(asides) => asides.next().await,
                    None => std::future::pending().await,
                }
            };
            let inquiry = async {
                match &inquiries {
                    Some(inquiries) => inquiries.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                aside = aside => return Heard::Aside(aside),
                inquiry = inquiry => return Heard::Inquiry(inquiry),
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

    /// Where answers to its questions are handed in.
    pub(crate) fn answers(&self) -> Answers {
        Answers(Arc::clone(&self.desk))
    }

    async fn until_replied(&mut self) -> Option<Reply> {
        (&mut self.reply).await.ok()
    }
}

/// The runs of this node.
#[derive(Default)]
pub(crate) struct Runs {
    live: Mutex<HashMap<TaskId, RunHandle>>,
    outputs: Mutex<Outputs>,
}

/// What ended runs have put out, the newest last.
#[derive(Default)]
struct Outputs {
    kept: VecDeque<(TaskId, Output)>,
    bytes: usize,
}

impl Outputs {
    fn keep(&mut self, id: TaskId, output: Output) {
        self.bytes += output.bytes();
        self.kept.push_back((id, output));
        while self.kept.len() > OUTPUTS_KEPT || self.bytes > OUTPUT_BYTES_KEPT {
            let Some((_, oldest)) = self.kept.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes();
        }
    }
}

/// How to reach a run.
#[derive(Clone)]
struct RunHandle {
    desk: Arc<Desk>,
    log: Arc<Log>,
    watch: Watch,
    tape: Tape,
    limits: Limits,
    /// It has a journal, or will have one as soon as it has a row.
    is_recorded: bool,
    earlier: Option<Arc<Output>>,
    /// It cannot be let go of: nobody could go on with it.
    stays: Arc<AtomicBool>,
}

impl RunHandle {
    /// What is seen of it. Of a run that others may go on with, only what they will have to say as well.
    fn output(&self) -> Output {
        let (log, log_dropped, stdout, stderr) = if self.is_recorded {
            let (log, dropped) = self.log.sure();
            let (stdout, stderr) = self.watch.sure();
            (log, dropped, stdout, stderr)
        } else {
            let (log, dropped) = self.log.read();
            (log, dropped, self.watch.stdout(), self.watch.stderr())
        };
        let now = Output {
            stdout,
            stderr,
            log,
            log_dropped,
        };
        match &self.earlier {
            Some(earlier) => earlier.followed_by(now, &self.limits),
            None => now,
        }
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

    /// Runs that still repeat what they did in an earlier process.
    pub(crate) fn replaying(&self) -> usize {
        let live = self.live.lock();
        live.values()
            .filter(|handle| handle.tape.is_replaying())
            .count()
    }

    /// What a run has put out so far, if it is here or ended not long ago.
    pub(crate) fn output(&self, id: TaskId) -> Option<Output> {
        let handle = self.live.lock().get(&id).cloned();
        if let Some(handle) = handle {
            return Some(handle.output());
        }
        self.outputs
            .lock()
            .kept
            .iter()
            .find(|(kept, _)| *kept == id)
            .map(|(_, output)| output.clone())
    }

    /// What the run that ended last has put out.
    pub(crate) fn last_output(&self) -> Option<Output> {
        self.outputs
            .lock()
            .kept
            .back()
            .map(|(_, output)| output.clone())
    }

    /// Tells every run that the process goes down.
    pub(crate) fn tell_leaving(&self) {
        let handles: Vec<RunHandle> = self.live.lock().values().cloned().collect();
        for handle in handles {
            handle.desk.leave(|inbox| inbox.leaving = true);
        }
    }

    /// A run cannot be let go of.
    fn stays(&self, id: TaskId) {
        if let Some(handle) = self.live.lock().get(&id) {
            handle.stays.store(true, Ordering::Release);
        }
    }

    /// Runs that are still to be let go of.
    pub(crate) fn to_let_go(&self) -> usize {
        let live = self.live.lock();
        live.values()
            .filter(|handle| !handle.stays.load(Ordering::Acquire))
            .count()
    }

    /// A run was let go of, to go on later.
    fn gone(&self, id: TaskId) {
        self.live.lock().remove(&id);
    }

    fn ended(&self, id: TaskId, output: Output) {
        self.outputs.lock().keep(id, output);
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
            turns,
            alone,
            start,
        } = new;
        let call = Arc::new(call);
        let desk = Arc::new(Desk::default());
        let log = Arc::new(Log::new(call.policy.limits.log_ring_bytes));
        let control = Control::default();
        let (mut asides, mut journal) = (None, new_journal(self, &call));
        let (row, recorder, earlier) = match start {
            Start::Held(wishes) => {
                // Of a task is told what its row shows, to whoever asks for that.
                asides = (!wishes.are_none()).then(|| {
                    let most = call.policy.limits.log_ring_bytes;
                    Arc::new(Asides::new(wishes, &self.settings, most))
                });
                (None, None, None)
            }
            Start::Task(row, recorder) => {
                if let Some(recorder) = &recorder {
                    journal.tape = recorder.tape();
                }
                (Some(row), recorder, None)
            }
            Start::Resumed(resumed) => {
                let Resumed {
                    row,
                    mut recorded,
                    earlier,
                    printed_through,
                } = *resumed;
                goes_on(
                    &mut journal,
                    &mut recorded,
                    row.journal.used,
                    printed_through,
                );
                let recorder = Recorder::resumed(recorded, self.node.clone(), journal.tape.clone())
                    .mutated(self.mutant);
                (Some(Box::new(row)), Some(recorder), earlier)
            }
        };
        let tape = journal.tape.clone();
        let is_recorded = recorder.is_some() || call.is_recorded(&self.settings);
        // Processes have died under it: whether the next one does with it on a thread is to be known.
        let is_suspected = row.as_ref().is_some_and(|row| row.stalls > 0);
        let mark = is_suspected.then(|| self.marks.of(call.id)).flatten();
        let mut started = self.sandbox.start(Run {
            prepared,
            target: call.target.clone(),
            policy: Policy::clone(&call.policy),
            outside: Arc::new(RunOutside::new(
                Arc::clone(&call),
                Arc::clone(&desk),
                Arc::clone(&log),
                asides.clone(),
                mark.clone(),
                is_recorded,
                self,
            )),
            control: control.clone(),
            first_turn: if row.is_none() && !turns.are_long() {
                FirstTurn::Here
            } else {
                FirstTurn::Queued
            },
            journal,
        });
        let (answer, reply) = oneshot::channel();
        // Most calls are over after their first turn: nothing has to be driven then.
        if row.is_none()
            && let Ok(ended) = started.ended.try_recv()
        {
            let over = self.over_at_once(&call, &log, &turns, ended);
            let _the_other_end_is_here = answer.send(over);
            return HeldCall {
                reply,
                replied: None,
                asides,
                inquiries: None,
                desk,
                waits: false,
            };
        }
        let handle = RunHandle {
            desk: Arc::clone(&desk),
            log: Arc::clone(&log),
            watch: started.watch.clone(),
            tape: tape.clone(),
            limits: call.policy.limits.clone(),
            is_recorded,
            earlier: earlier.clone(),
            stays: Arc::default(),
        };
        self.runs.live.lock().insert(call.id, handle);
        let inquiries =
            (row.is_none() && call.caller.revision.has_sessions()).then(Arc::<Inquiries>::default);
        let held = HeldCall {
            reply,
            replied: None,
            asides: asides.clone(),
            inquiries: inquiries.clone(),
            desk: Arc::clone(&desk),
            waits: row.is_none(),
        };
        let carrier = match row {
            Some(row) => Carrier::Task(row),
            None => Carrier::Held {
                answer,
                asides,
                inquiries,
                status: Status::default(),
            },
        };
        let driver = Driver::new(Charge {
            server: self.clone(),
            call,
            desk,
            log,
            control,
            watch: started.watch,
            carrier,
            tape,
            recorder,
            earlier,
            seat: Seat::taken(place, alone),
            turns,
            mark,
        });
        driver::spawn(driver, started.ended);
        if self.is_leaving() {
            held.desk.leave(|inbox| inbox.leaving = true);
        }
        held
    }
    /// The reply to a call that nobody had to wait for.
    fn over_at_once(&self, call: &CallFacts, log: &Log, turns: &Turns, ended: Ended) -> Reply {
        turns.note(Duration::from_micros(ended.cpu_us));
        let (outcome, output) = driver::came_of(self, call, log, None, ended);
        // A run of its own has a span that says all this, which would cost more here than the call.
        tracing::debug!(call = %call.id, component = call.component, target = call.target.name(), traceparent = call.traceparent, "the call has ended");
        self.runs.outputs.lock().keep(call.id, output);
        Reply::Ended(wire::held_result(outcome))
    }
}

/// The journal of a call that is new.
fn new_journal(server: &Server, call: &CallFacts) -> Journal {
    Journal::fresh(Origin {
        created_at_ms: call.created_at.unsigned(),
        random_key: server.keys.random_of(call.id),
        most: Total {
            records: call.policy.limits.journal_records,
            bytes: call.policy.limits.journal_bytes,
        },
    })
}

/// The same, of a call that goes on where it stood.
fn goes_on(journal: &mut Journal, recorded: &mut Recorded, spent: Usage, printed_through: u64) {
    journal.tape = Tape::behind(&recorded.begin.records);
    // Also where new runs are not recorded any more.
    journal.is_recorded = true;
    journal.begin = std::mem::take(&mut recorded.begin);
    journal.entry = std::mem::replace(&mut recorded.entry, Entry::Call);
    journal.spent = Spent {
        cpu_ms: spent.cpu_ms,
        active_ms: spent.active_ms,
    };
    journal.printed_through = printed_through;
}
