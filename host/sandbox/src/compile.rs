//! The server's side of compiling: a child process for each component, never this one.
//!
//! The compiler's time and memory cannot be bounded from within, and its authors do not count such
//! uploads as faults. So it runs where the kernel bounds it, and where its death is an answer.

pub(crate) mod wire;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use self::wire::{Reply, Request, Status};
use crate::artifact::Artifact;
use crate::child;
use crate::refusal::{Reason, Refusal};

/// How to start a compile child: a program whose `main` calls [`crate::child::main`] when it is
/// started with these arguments. It must be this very build, or its code does not load.
#[derive(Clone, Debug)]
pub struct ChildCommand {
    /// An absolute path, since the child starts in the root directory.
    pub program: PathBuf,
    /// All its arguments.
    pub args: Vec<OsString>,
}

/// What one compilation may take.
#[derive(Clone, Copy, Debug)]
pub struct CompileLimits {
    /// CPU time. A Python interpreter takes 8 s of it.
    pub cpu_s: u64,
    /// Time, which ends a child that waits instead of computing.
    pub wall_s: u64,
    /// Address space, the program's own included. A Python interpreter takes 400 MiB of memory.
    pub memory_bytes: u64,
    /// Native code that comes out. A Python interpreter's has 35 MiB.
    pub artifact_bytes: u64,
    /// Compilations at the same time: one core is left to serve, however many uploads wait. One more may go on that takes
    /// long.
    pub at_once: usize,
    /// How long a compilation keeps others waiting, in seconds: longer than most take, short enough to be waited for.
    pub quick_s: u64,
    /// How long it is remembered that a component was beyond these limits or crashed the compiler, in seconds: each
    /// further attempt would burn as much.
    pub remember_s: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            cpu_s: 60,
            wall_s: 300,
            memory_bytes: 3 << 29,
            artifact_bytes: 256 << 20,
            at_once: std::thread::available_parallelism()
                .map_or(1, NonZeroUsize::get)
                .saturating_sub(1)
                .max(1),
            quick_s: 10,
            remember_s: 3_600,
        }
    }
}

/// The end of what a child may leave on stderr: enough for the line that says why it died.
const LAST_WORDS: usize = 4096;

/// Compiles components, a few at a time.
#[derive(Debug)]
pub struct Compiler {
    command: ChildCommand,
    limits: CompileLimits,
    permits: Semaphore,
    /// The place of a compilation that takes long. There is one, since each may have as much memory as all.
    slow: Semaphore,
    /// Those that wait for their turn.
    waiting: watch::Sender<usize>,
}

impl Compiler {
    /// A compiler that starts its children so.
    #[must_use]
    pub fn new(command: ChildCommand, limits: CompileLimits) -> Self {
        Self {
            command,
            permits: Semaphore::new(limits.at_once.max(1)),
            slow: Semaphore::new(1),
            waiting: watch::Sender::new(0),
            limits,
        }
    }

    /// Compilations that go on now.
    pub(crate) fn busy(&self) -> usize {
        self.limits.at_once.max(1) + 1
            - self.permits.available_permits()
            - self.slow.available_permits()
    }

    /// Compiles a component that the pre-check has let through; its turn may have to be waited for. What takes long goes on
    /// in a place of its own, so that others do not wait for it; if another has that place, it begins again there later.
    /// Dropping the future kills the child.
    ///
    /// # Errors
    ///
    /// What the validator or the compiler refuses, what goes beyond a limit, what the compiler dies
    /// of, and `host` if the child cannot be started at all.
    pub async fn compile(&self, bytes: Arc<[u8]>) -> Result<Artifact, Refusal> {
        let mut turn = self.turn().await;
        let mut quick = Duration::from_secs(self.limits.quick_s);
        loop {
            let mut attempt = Box::pin(self.attempt(&bytes));
            tokio::select! {
                outcome = &mut attempt => return outcome,
                () = tokio::time::sleep(quick) => {}
            }
            tokio::select! {
                // In this order: nothing is thrown away while there is a place to go on.
                biased;
                outcome = &mut attempt => return outcome,
                slow = place(&self.slow) => {
                    drop(turn);
                    return finish(attempt, slow).await;
                }
                () = self.until_somebody_waits() => {}
            }
            drop(attempt);
            drop(turn);
            // It begins again in the other place, or where nobody waits who has not had a turn.
            quick = Duration::ZERO;
            turn = tokio::select! {
                biased;
                slow = place(&self.slow) => return finish(self.attempt(&bytes), slow).await,
                turn = place(&self.permits) => turn,
            };
        }
    }

    /// Returns once somebody waits who has not had a turn.
    async fn until_somebody_waits(&self) {
        let mut waiting = self.waiting.subscribe();
        drop(waiting.wait_for(|waiting| *waiting > 0).await);
    }

    /// A place among those that are quick.
    async fn turn(&self) -> SemaphorePermit<'_> {
        if let Ok(turn) = self.permits.try_acquire() {
            return turn;
        }
        let _seen = Waiting::among(&self.waiting);
        place(&self.permits).await
    }

    /// Compiles it in a child of its own.
    async fn attempt(&self, bytes: &[u8]) -> Result<Artifact, Refusal> {
        let mut child = self.spawn()?;
        let wall = Duration::from_secs(self.limits.wall_s);
        let outcome = tokio::time::timeout(wall, self.converse(&mut child, bytes)).await;
        // Whatever it still does, nobody waits for it; a child that has ended is not harmed.
        if let Err(error) = child.kill().await {
            tracing::warn!(%error, "cannot end a compile child");
        }
        outcome.unwrap_or_else(|_elapsed| {
            Err(Refusal::new(
                Reason::CompileLimit,
                format!(
                    "compiling took longer than {} s; make the component smaller",
                    self.limits.wall_s
                ),
            ))
        })
    }

    fn spawn(&self) -> Result<Child, Refusal> {
        Command::new(&self.command.program)
            .args(&self.command.args)
            // Nothing that this process was told is the child's business.
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                host(format!(
                    "cannot start `{}` to compile: {error}",
                    self.command.program.display()
                ))
            })
    }

    /// Sends the component, takes the reply, and sees the child end.
    async fn converse(&self, child: &mut Child, bytes: &[u8]) -> Result<Artifact, Refusal> {
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let mut stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        let request = Request {
            cpu_s: self.limits.cpu_s,
            memory_bytes: self.limits.memory_bytes,
            artifact_bytes: self.limits.artifact_bytes,
            component_bytes: bytes.len() as u64,
        };
        let send = async move {
            // A child that stops reading has its reasons, which its reply or its end will tell.
            let _broken_pipe = async {
                stdin.write_all(&request.encode()).await?;
                stdin.write_all(bytes).await?;
                stdin.shutdown().await
            }
            .await;
        };
        let receive = async move {
            let reply = receive(&mut stdout, self.limits.artifact_bytes).await;
            // Closed here, so that a child with more to say does not wait for a reader.
            drop(stdout);
            reply
        };
        let ((), reply, last_words) = tokio::join!(send, receive, last_words(stderr));
        let status = child
            .wait()
            .await
            .map_err(|error| host(format!("cannot wait for a compile child: {error}")))?;
        match reply {
            Some((Status::Compiled, code)) if status.success() => Ok(Artifact::compiled(code)),
            Some((Status::Refused, payload)) if status.success() => {
                Err(wire::decode_refusal(&payload)
                    .unwrap_or_else(|| host("a compile child refused without a reason".to_owned())))
            }
            Some(_) | None => Err(self.died(status, &last_words)),
        }
    }

    /// Why a child ended without a reply.
    fn died(&self, status: ExitStatus, last_words: &str) -> Refusal {
        let last_line = last_words
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or_default();
        tracing::warn!(%status, last_line, "a compile child ended without a result");
        // The standard library says so before it aborts.
        if last_words.contains("memory allocation of") {
            return Refusal::new(
                Reason::CompileLimit,
                format!(
                    "compiling took more than {} MiB of memory; make the component smaller",
                    self.limits.memory_bytes >> 20
                ),
            );
        }
        match status.signal().map(Signal::from_named_raw) {
            Some(Some(Signal::XCPU)) => Refusal::new(
                Reason::CompileLimit,
                format!(
                    "compiling took more than {} s of CPU time; split up its largest functions",
                    self.limits.cpu_s
                ),
            ),
            Some(Some(Signal::KILL)) => Refusal::new(
                Reason::CompileCrashed,
                "the compiler was killed from outside, as happens when a machine has no memory left; try again",
            )
            .passing(),
            Some(_) => Refusal::new(
                Reason::CompileCrashed,
                format!("the compiler crashed on this component ({status})"),
            ),
            None if status.code() == Some(child::PANICKED) => Refusal::new(
                Reason::CompileCrashed,
                "the compiler gave up on this component by a panic",
            ),
            None => host(format!(
                "the compile child ended with {status} and no result: {last_line}"
            )),
        }
    }
}

async fn place(places: &Semaphore) -> SemaphorePermit<'_> {
    let place = places.acquire().await;
    place.expect("the semaphore is never closed")
}

/// Goes on to the end and keeps the place until then.
async fn finish<T>(work: impl Future<Output = T>, _place: SemaphorePermit<'_>) -> T {
    work.await
}

/// One that waits, for as long as it does.
struct Waiting<'a>(&'a watch::Sender<usize>);

impl<'a> Waiting<'a> {
    fn among(all: &'a watch::Sender<usize>) -> Self {
        all.send_modify(|waiting| *waiting += 1);
        Self(all)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

/// Our own fault, which no other upload would cure.
fn host(message: String) -> Refusal {
    tracing::error!("{message}");
    Refusal::new(Reason::Host, message)
}

/// The reply, if one comes that is whole and not too large.
async fn receive(
    stdout: &mut (impl AsyncRead + Unpin),
    artifact_bytes: u64,
) -> Option<(Status, Vec<u8>)> {
    let mut head = [0; wire::REPLY_LEN];
    stdout.read_exact(&mut head).await.ok()?;
    let reply = Reply::decode(&head)?;
    if reply.payload_bytes > artifact_bytes {
        return None;
    }
    let mut payload = Vec::new();
    stdout
        .take(reply.payload_bytes)
        .read_to_end(&mut payload)
        .await
        .ok()?;
    (payload.len() as u64 == reply.payload_bytes).then_some((reply.status, payload))
}

/// Reads stderr to its end, whatever comes, and keeps the last of it.
async fn last_words(mut stderr: impl AsyncRead + Unpin) -> String {
    let mut kept = Vec::new();
    let mut piece = [0; LAST_WORDS];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        kept.extend_from_slice(&piece[..read]);
        kept.drain(..kept.len().saturating_sub(LAST_WORDS));
    }
    String::from_utf8_lossy(&kept).into_owned()
}
