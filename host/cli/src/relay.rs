//! `serve --stdio` beside a server that has the data already: what its client says goes there, and comes back.
//!
//! The socket lies in the data directory. Its path may be longer than a socket's may be, so that it is reached by way of
//! the open directory.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Stdin};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::AbortHandle;

use crate::exit::{Exit, Failure};

const SOCKET: &str = "stdio.sock";
/// How long the other process may take from its lock to its socket: it may have much to load.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);
/// What a client may have said before it is answered for the first time.
const UNHEARD_BYTES: usize = 1024 * 1024;
/// How long the answers to what was said last may take.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Others are served through the socket for as long as this is open.
#[derive(Default)]
pub(crate) struct Open(Mutex<Option<(PathBuf, AbortHandle)>>);

impl Open {
    /// Serves others by what comes of the listener, if there can be one.
    pub(crate) fn serve<F>(data: &Path, accept: impl FnOnce(UnixListener) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        match listen(data) {
            Ok((path, listener)) => {
                let accepting = tokio::spawn(accept(listener)).abort_handle();
                Self(Mutex::new(Some((path, accepting))))
            }
            Err(error) => {
                tracing::warn!("no second `serve --stdio` can share this data: {error:#}");
                Self::default()
            }
        }
    }

    /// Takes nobody new: this process ends, and whoever comes now waits for the data instead.
    pub(crate) fn close(&self) {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((path, accepting)) = open {
            accepting.abort();
            let _it_is_made_anew_anyway = fs::remove_file(path);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.close();
    }
}

/// Listens beside the data, whose lock this process holds.
fn listen(data: &Path) -> anyhow::Result<(PathBuf, UnixListener)> {
    let path = data.join(SOCKET);
    match fs::remove_file(&path) {
        // Of a process that died.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("removing {}", path.display())),
    }
    let making = || format!("making the socket {}", path.display());
    let directory = File::open(data).with_context(making)?;
    let listener = UnixListener::bind(through(&directory)).with_context(making)?;
    // Whoever came before this is told apart by their user.
    fs::set_permissions(&path, Permissions::from_mode(0o600)).with_context(making)?;
    Ok((path, listener))
}

fn through(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))
}

/// What a process is that finds the data taken.
pub(crate) enum Found<S> {
    /// The data is free after all.
    Free(S),
    /// Somebody serves it.
    Server(UnixStream),
}

/// Waits for the other process to answer, or to be gone. `open` is tried again for as long as it gives nothing.
pub(crate) async fn find<S>(
    data: &Path,
    mut open: impl FnMut() -> Result<Option<S>, Failure>,
) -> Result<Found<S>, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(store) = open()? {
            return Ok(Found::Free(store));
        }
        let directory = File::open(data)
            .with_context(|| format!("opening {}", data.display()))
            .map_err(|error| Failure::because(Exit::CannotStart, error))?;
        match UnixStream::connect(through(&directory)).await {
            Ok(stream) => return Ok(Found::Server(stream)),
            Err(error) if Instant::now() >= until => {
                let error = anyhow!(error).context(format!(
                    "another longshore has the data in {} and does not answer at its {SOCKET}: stop it, or name another \
                     data directory with --data DIR",
                    data.display()
                ));
                return Err(Failure::because(Exit::CannotStart, error));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// What came of passing on.
pub(crate) enum Passed {
    /// The client has said all, and was answered.
    Over,
    /// The server went before it said anything: it was about to end when it was found. Another one can take up what was
    /// said to it.
    Unheard,
}

/// Passes on what is said in both directions, until one of them ends. What the client has said so far is in `said`, for
/// as long as nothing was answered.
pub(crate) async fn pass_on(
    server: UnixStream,
    input: &mut Stdin,
    said: &mut Vec<u8>,
) -> Result<Passed, Failure> {
    let (mut from_server, mut to_server) = server.into_split();
    let is_heard = AtomicBool::new(false);
    let there = async {
        let mut buffer = vec![0; 64 * 1024];
        if to_server.write_all(said).await.is_err() {
            std::future::pending::<()>().await;
        }
        loop {
            match input.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => {
                    if !is_heard.load(Ordering::Relaxed) && said.len() < UNHEARD_BYTES {
                        said.extend_from_slice(&buffer[..read]);
                    }
                    if to_server.write_all(&buffer[..read]).await.is_err() {
                        // The other direction says so as well, and more clearly.
                        std::future::pending::<()>().await;
                    }
                }
            }
        }
        let _it_may_be_gone = to_server.shutdown().await;
    };
    let back = async {
        let (mut output, mut buffer) = (tokio::io::stdout(), vec![0; 64 * 1024]);
        loop {
            let read = match from_server.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => read,
            };
            is_heard.store(true, Ordering::Relaxed);
            let written = output.write_all(&buffer[..read]).await;
            if written.is_err() || output.flush().await.is_err() {
                return;
            }
        }
    };
    tokio::pin!(back);
    tokio::select! {
        () = &mut back => if is_heard.load(Ordering::Relaxed) || said.len() >= UNHEARD_BYTES {
            Err(Failure::new(
            Exit::Unreachable,
            "the server of this data directory has ended, and with it what was under way here; its tasks go on when one \
             is started again: start this client's server anew",
            ))
        } else {
            Ok(Passed::Unheard)
        },
        () = there => {
            // The client has said all. What it is still answered is passed on.
            let _cut_off = tokio::time::timeout(LAST_ANSWERS, back).await;
            Ok(Passed::Over)
        }
    }
}
