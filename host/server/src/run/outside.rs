//! The far side of a guest's imports: it leaves things on the driver's desk and waits for answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longshore_journal::call::{Answer, AskError, AskKind, LogLevel, Question};
use longshore_journal::http::Outcome;
use longshore_journal::values;
use longshore_protocol::notification::Family;
use longshore_sandbox::outside::{Outgoing, Outside, OwnedChange, Said, Witness};
use longshore_tasks::artifacts::{Artifact, ArtifactStore};
use longshore_tasks::task::Progress;
use longshore_tasks::values::{Once, ValueStore};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use super::CallFacts;
use super::artifacts::leave;
use super::aside::Asides;
use super::desk::{Asking, Desk, Resting};
use super::values::{Leaving, operate, room, sorted};
use crate::again::Attending;
use crate::bus::Bus;
use crate::clock;
use crate::egress::Egress;
use crate::marks::Mark;
use crate::seal::Keys;
use crate::server::Server;

/// A guest that waits for less keeps its place: giving it up and taking one again would take as long.
const NEAR: Duration = Duration::from_secs(2);
/// What is waited for at once: some clocks cannot count to the end of time.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// One run's view of the server.
pub(crate) struct RunOutside {
    call: Arc<CallFacts>,
    desk: Arc<Desk>,
    log: Arc<Log>,
    asides: Option<Arc<Asides>>,
    bus: Arc<Bus>,
    attending: Arc<Attending>,
    egress: Arc<Egress>,
    /// When this process began with the run, and how old the call was then. The machine's clock may be set while
    /// it goes on.
    began: Instant,
    age_ms: u64,
    mark: Option<Arc<Mark>>,
    values: Arc<dyn ValueStore>,
    artifacts: Arc<dyn ArtifactStore>,
    keys: Keys,
    /// Which start of the call this is to what it keeps.
    start: u64,
}

impl RunOutside {
    pub(crate) fn new(
        call: Arc<CallFacts>,
        desk: Arc<Desk>,
        log: Arc<Log>,
        asides: Option<Arc<Asides>>,
        mark: Option<Arc<Mark>>,
        is_recorded: bool,
        server: &Server,
    ) -> Self {
        Self {
            mark,
            values: Arc::clone(&server.values),
            artifacts: Arc::clone(&server.artifacts),
            keys: server.keys.clone(),
            // What begins anew does everything anew: it must not take what came of its earlier life for its own.
            start: if is_recorded {
                0
            } else {
                Uuid::new_v4().as_u64_pair().0
            },
            desk,
            log,
            asides,
            bus: Arc::clone(&server.bus),
            attending: Arc::clone(&server.attending),
            egress: Arc::clone(&server.egress),
            began: Instant::now(),
            age_ms: clock::now().since(call.created_at),
            call,
        }
    }
}

#[async_trait]
impl Outside for RunOutside {
    fn call_id(&self) -> String {
        self.call.id.to_string()
    }

    fn deadline_ms(&self) -> Option<u64> {
        Some(self.call.deadline_at.since(self.call.created_at))
    }

    fn now_ms(&self) -> u64 {
        let here = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.age_ms.saturating_add(here)
    }

    async fn wait_until(&self, ms: u64) {
        let left = Duration::from_millis(ms.saturating_sub(self.now_ms()));
        if left < NEAR {
            tokio::time::sleep(left).await;
            return;
        }
        let (go, gone_on) = oneshot::channel();
        let until = Instant::now() + left.min(FAR);
        self.desk.leave(|inbox| {
            inbox.resting = Some(Resting {
                until_ms: ms,
                until,
                is_over: false,
                go,
            });
        });
        // The driver lets go of it when the run is being cancelled or stopped, which ends it elsewhere.
        if gone_on.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn witness(&self) -> Option<Arc<dyn Witness>> {
        let mark = self.mark.clone()?;
        Some(mark)
    }

    async fn settle(&self) {
        let (settled, is_kept) = oneshot::channel();
        self.desk.leave(|inbox| inbox.settling = Some(settled));
        // Without a driver the run is being stopped.
        let _kept_or_over = is_kept.await;
    }

    async fn send(&self, request: Outgoing) -> Outcome {
        self.egress.send(&self.call.id.to_string(), request).await
    }

    fn set_status(&self, message: String) {
        self.desk.leave(|inbox| inbox.message = Some(message));
    }

    fn report_progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        // Whoever waits for a run that is kept is told what its row shows.
        if let Some(asides) = &self.asides {
            asides.progress(done, total, message.as_deref());
        }
        self.desk.leave(|inbox| {
            inbox.progress = Some(Progress { done, total });
            if message.is_some() {
                inbox.message = message;
            }
        });
    }

    fn detach(&self) {
        self.desk.leave(|inbox| inbox.detach = true);
    }

    fn can_ask(&self, kind: AskKind) -> bool {
        self.call.can_ask()
            && self
                .call
                .caller
                .capabilities
                .has(super::capability_of(kind))
    }

    async fn ask(
        &self,
        questions: Vec<Question>,
        until: Option<u64>,
        before: bool,
    ) -> Result<Vec<Answer>, AskError> {
        let (reply, answers) = oneshot::channel();
        self.desk.leave(|inbox| {
            inbox.asking = Some(Asking {
                questions,
                until,
                before,
                reply,
            })
        });
        // The driver lets go of the question when the call is being cancelled.
        answers.await.unwrap_or(Err(AskError::CallCancelled))
    }

    fn log(&self, said: Said, level: LogLevel, logger: Option<String>, message: String) {
        let tell = |asides: &Asides| asides.log(level, logger.as_deref(), &message);
        if let Some(asides) = &self.asides {
            tell(asides);
        }
        self.attending.tell(self.call.id, tell);
        let line = LogLine {
            level,
            logger,
            message,
        };
        self.log.push(line, said.is_sure);
    }

    async fn values(&self, call: u64, operation: values::Operation) -> values::Outcome {
        if operation.is_change() {
            self.desk.note_change();
        }
        let once = Once {
            call: self.call.id,
            start: self.start,
            number: call,
        };
        let asked = match sorted(operation) {
            Ok(asked) => asked,
            Err(Leaving {
                name,
                mime_type,
                data,
            }) => {
                let artifact = Artifact {
                    id: self.keys.artifact_of(self.call.id, self.start, call),
                    call: self.call.id,
                    tenant: self.call.caller.tenant.clone(),
                    principal: self.call.caller.principal.clone(),
                    name,
                    mime_type,
                    data,
                };
                return leave(&*self.artifacts, artifact, &self.call.policy.limits).await;
            }
        };
        let room = room(&self.call.policy.limits);
        operate(&*self.values, &self.call.shelf(), once, room, asked).await
    }

    fn changed(&self, change: OwnedChange) {
        match change {
            // A list is the one of the upload: a client that reads it again may see what it saw.
            OwnedChange::Tools => self.bus.list_changed(Family::Tools),
            OwnedChange::Prompts => self.bus.list_changed(Family::Prompts),
            OwnedChange::Resources => self.bus.list_changed(Family::Resources),
            OwnedChange::Resource(uri) => {
                self.bus.resource_updated(&self.call.component, &uri);
            }
        }
    }
}

/// What a line takes beside its texts, rounded up: lines of nothing must not be free.
const LINE_BYTES: usize = 64;

/// The newest of what a guest logged.
pub(crate) struct Log {
    most_bytes: usize,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<LogLine>,
    bytes: usize,
    dropped: u64,
    /// So many lines from the beginning are sure to be logged again by whoever repeats the run.
    sure: u64,
}

impl Lines {
    fn written(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct LogLine {
    pub(crate) level: LogLevel,
    pub(crate) logger: Option<String>,
    pub(crate) message: String,
}

impl LogLine {
    pub(crate) fn bytes(&self) -> usize {
        self.message.len() + self.logger.as_ref().map_or(0, String::len) + LINE_BYTES
    }
}

impl Log {
    pub(crate) fn new(most_bytes: u64) -> Self {
        Self {
            most_bytes: usize::try_from(most_bytes).unwrap_or(usize::MAX),
            lines: Mutex::default(),
        }
    }

    fn push(&self, line: LogLine, is_sure: bool) {
        let mut lines = self.lines.lock();
        lines.bytes += line.bytes();
        lines.kept.push_back(line);
        while lines.bytes > self.most_bytes {
            let Some(oldest) = lines.kept.pop_front() else {
                break;
            };
            lines.bytes -= oldest.bytes();
            lines.dropped += 1;
        }
        if is_sure {
            lines.sure = lines.written();
        }
    }

    /// How many lines were logged.
    pub(crate) fn written(&self) -> u64 {
        self.lines.lock().written()
    }

    /// So many lines are sure from now on.
    pub(crate) fn note_sure(&self, count: u64) {
        let mut lines = self.lines.lock();
        lines.sure = lines.sure.max(count);
    }

    /// What is left of the lines that are sure, and how many came before them.
    pub(crate) fn sure(&self) -> (Vec<LogLine>, u64) {
        let lines = self.lines.lock();
        let count = usize::try_from(lines.sure.saturating_sub(lines.dropped));
        let sure = lines.kept.iter().take(count.unwrap_or(usize::MAX));
        (sure.cloned().collect(), lines.dropped)
    }

    /// The lines that are left, and how many came before them.
    pub(crate) fn read(&self) -> (Vec<LogLine>, u64) {
        let lines = self.lines.lock();
        (lines.kept.iter().cloned().collect(), lines.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_its_newest_lines() {
        let line = |message: &str| LogLine {
            level: LogLevel::Info,
            logger: None,
            message: message.to_owned(),
        };
        let one = line("0").bytes() as u64;
        let log = Log::new(3 * one);
        for n in 0..5 {
            log.push(line(&n.to_string()), n < 3);
        }
        let (lines, dropped) = log.read();
        let messages: Vec<&str> = lines.iter().map(|line| line.message.as_str()).collect();
        assert_eq!((messages, dropped), (vec!["2", "3", "4"], 2));
        let sure = || log.sure().0.len();
        assert_eq!(sure(), 1);
        log.note_sure(log.written());
        log.note_sure(4);
        assert_eq!(sure(), 3);
        // A line that is larger than the whole log leaves nothing behind.
        log.push(line(&"x".repeat(10_000)), false);
        assert_eq!(log.read().0.len(), 0);
    }
}
