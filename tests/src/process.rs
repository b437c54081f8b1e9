//! A server as a real process, on a free port and in a folder of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::guests;
use crate::http::{Reply, send};
use crate::mcp::Client;
use crate::wait;

/// The admin token of every server under test.
pub const TOKEN: &str = "token-of-the-tests";

/// How long a server may take to get ready, which is after it has compiled what is on its command line: the largest
/// example costs half a minute of CPU, on a machine that others use too.
const MOST_TO_GET_READY: Duration = Duration::from_secs(300);

/// What a server is started with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Components on the command line.
    pub components: Vec<PathBuf>,
    /// Further arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment.
    pub variables: Vec<(String, String)>,
    /// Whether a test wants the server while it still makes its components ready.
    pub early: bool,
}

impl Options {
    /// With these examples on the command line.
    #[must_use]
    pub fn with_guests(names: &[&str]) -> Self {
        Self {
            components: names.iter().map(|name| guests::component(name)).collect(),
            ..Self::default()
        }
    }

    /// With one more setting.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.arguments
            .extend(["--set".to_owned(), format!("{key}={value}")]);
        self
    }
}

impl Options {
    /// Whether a test says anything of the tools that the server itself lists. Most look at those of their guests, and
    /// hold calls for as long as it takes.
    fn own_tools(&self) -> &[&str] {
        let is_told = self
            .arguments
            .iter()
            .any(|argument| argument.starts_with("handoff="));
        if is_told {
            &[]
        } else {
            &["--set", "handoff=false"]
        }
    }
}

/// A running server. Dropping it kills it.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    data: Arc<TempDir>,
    options: Options,
    errors: Arc<Mutex<String>>,
}

impl Server {
    /// Starts a server in a new folder.
    pub async fn start(options: Options) -> Self {
        let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
        Self::start_in(data, options).await
    }

    /// Starts a server in that folder.
    ///
    /// # Panics
    /// If it does not get ready.
    pub async fn start_in(data: Arc<TempDir>, options: Options) -> Self {
        let mut child = command(data.path())
            .envs(options.variables.iter().cloned())
            .arg("serve")
            .args(["--listen", "127.0.0.1:0", "--json"])
            .args(options.own_tools())
            .args(&options.arguments)
            .args(&options.components)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the server can be started");
        let errors = Arc::new(Mutex::new(String::new()));
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
        let kept = Arc::clone(&errors);
        tokio::spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                let mut kept = kept.lock().expect("nobody panics with it");
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        let line = tokio::time::timeout(MOST_TO_GET_READY, stdout.next_line()).await;
        let Ok(Ok(Some(line))) = line else {
            let errors = errors.lock().expect("nobody panics with it").clone();
            panic!("the server did not get ready: {line:?}\n{errors}");
        };
        // Whatever else it may print must not block it.
        tokio::spawn(async move { while let Ok(Some(_)) = stdout.next_line().await {} });
        let ready: Value = serde_json::from_str(&line).expect("the ready line is JSON");
        assert_eq!(ready["event"], "ready", "{ready}");
        let url = ready["url"].as_str().expect("the ready line has a url");
        let address = url
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .and_then(|address| address.parse().ok())
            .unwrap_or_else(|| panic!("no address in {url}"));
        let server = Self {
            child,
            address,
            data,
            options,
            errors,
        };
        if !server.options.early {
            server.prepared().await;
        }
        server
    }

    /// Waits until everything that it serves can run.
    ///
    /// # Panics
    /// If it cannot.
    pub async fn prepared(&self) {
        wait::until(
            "all components to be ready",
            Duration::from_secs(300),
            || async { (self.figures().await["preparing"] == 0).then_some(()) },
        )
        .await;
    }

    /// A client that knows tasks.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::able(self.address)
    }

    /// Its process id.
    ///
    /// # Panics
    /// If it is dead.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the server lives")
    }

    /// The folder that it keeps everything in.
    #[must_use]
    pub fn data(&self) -> &Path {
        self.data.path()
    }

    /// What it wrote to stderr so far.
    ///
    /// # Panics
    /// Never in practice.
    #[must_use]
    pub fn errors(&self) -> String {
        self.errors.lock().expect("nobody panics with it").clone()
    }

    /// A request to the admin API.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn admin(&self, method: &str, path: &str, body: impl Into<bytes::Bytes>) -> Reply {
        let authorization = format!("Bearer {TOKEN}");
        let headers = [
            ("authorization", authorization.as_str()),
            ("content-type", "application/json"),
        ];
        send(self.address, method, path, &headers, body)
            .await
            .expect("the server answers")
    }

    /// Its figures.
    pub async fn figures(&self) -> Value {
        self.admin("GET", "/v1/node", "").await.json()
    }

    /// Waits until so many instances live.
    ///
    /// # Panics
    /// If that does not come in time.
    pub async fn until_live(&self, count: u64, time: Duration) {
        wait::until(&format!("{count} instances to live"), time, || async {
            (self.figures().await["runs"]["liveStores"] == count).then_some(())
        })
        .await;
    }

    /// Uploads a component.
    pub async fn upload(&self, name: &str, bytes: impl Into<bytes::Bytes>) -> Reply {
        self.admin("PUT", &format!("/v1/components/{name}"), bytes)
            .await
    }

    /// Kills it as a power cut would, and waits until it is dead.
    pub async fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _status = self.child.wait().await;
    }

    /// Asks it to go down, and gives back its exit code.
    pub async fn terminate(&mut self) -> Option<i32> {
        self.signal(Signal::TERM);
        let status = tokio::time::timeout(Duration::from_secs(30), self.child.wait()).await;
        status
            .expect("it goes down within 30 s")
            .ok()
            .and_then(|status| status.code())
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.child.id() {
            let pid = Pid::from_raw(i32::try_from(pid).expect("process ids are small"))
                .expect("no process id is 0");
            let _it_may_be_dead = kill_process(pid, signal);
        }
    }

    /// Starts it again where it was, after it was killed.
    pub async fn restart(&mut self) {
        self.kill().await;
        let data = Arc::clone(&self.data);
        *self = Self::start_in(data, self.options.clone()).await;
    }
}

/// The program with nothing of the tester's own environment that it would read.
#[must_use]
pub fn command(data: &Path) -> Command {
    let mut command = Command::new(guests::longshore());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LONGSHORE_")) {
        command.env_remove(name);
    }
    command
        .env("LONGSHORE_ADMIN_TOKEN", TOKEN)
        .env("LONGSHORE_DATA", data);
    command
}

/// Runs the program to its end and gives back exit code, stdout and stderr.
///
/// # Panics
/// If it does not end.
pub async fn run(command: Command) -> (i32, String, String) {
    run_fed(command, "").await
}

/// The same, with that on stdin and nothing after it.
///
/// # Panics
/// If it does not end.
pub async fn run_fed(mut command: Command, input: &str) -> (i32, String, String) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the program can be started");
    let (mut out, mut err) = (String::new(), String::new());
    let mut stdout = child.stdout.take().expect("stdout is a pipe");
    let mut stderr = child.stderr.take().expect("stderr is a pipe");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let feed = async {
        // It may end without reading all of it.
        let _unread = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
    };
    let whole = async {
        let (read_out, read_err, status, ()) = tokio::join!(
            stdout.read_to_string(&mut out),
            stderr.read_to_string(&mut err),
            child.wait(),
            feed
        );
        read_out.and(read_err).expect("its output is text");
        status.expect("it ends")
    };
    let status = tokio::time::timeout(Duration::from_secs(120), whole)
        .await
        .expect("it ends within 120 s");
    (status.code().unwrap_or(-1), out, err)
}
