//! A server on pipes, as clients start it, and what they say to it line by line.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;

use crate::guests;
use crate::process::command;

/// How long a test waits for one message.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server on pipes. Dropping it kills it.
pub struct Pipes {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<Lines<BufReader<ChildStdout>>>,
    errors: Arc<Mutex<String>>,
    /// Ends when all of them were read.
    listening: JoinHandle<()>,
    requests: u64,
}

/// A data directory that several may use after and beside each other.
#[must_use]
pub fn data() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

impl Pipes {
    /// Starts one with these examples.
    #[must_use]
    pub fn start(data: &Path, examples: &[&str]) -> Self {
        let components: Vec<PathBuf> = examples
            .iter()
            .map(|name| guests::component(name))
            .collect();
        let arguments: Vec<&str> = components.iter().filter_map(|path| path.to_str()).collect();
        Self::start_with(data, &arguments)
    }

    /// Starts one with these arguments.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start_with(data: &Path, arguments: &[&str]) -> Self {
        let mut child = command(data)
            .args(["serve", "--stdio"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the server can be started");
        let errors = Arc::new(Mutex::new(String::new()));
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
        let kept = Arc::clone(&errors);
        let listening = tokio::spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                let mut kept = kept.lock().expect("nobody panics with it");
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        Self {
            input: child.stdin.take(),
            output: child
                .stdout
                .take()
                .map(|stdout| BufReader::new(stdout).lines()),
            child,
            errors,
            listening,
            requests: 0,
        }
    }

    /// Writes these bytes.
    ///
    /// # Panics
    /// If it reads no more.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(bytes.as_ref()).await.expect("it reads");
    }

    /// Says one message.
    pub async fn say(&mut self, message: &Value) {
        self.write(format!("{message}\n")).await;
    }

    /// Sends a request under an id of its own, which it gives back.
    pub async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        request["params"] = params;
        self.say(&request).await;
        id
    }

    /// The next message, or none at the end.
    ///
    /// # Panics
    /// If it is not one JSON object on one line, or does not come in time.
    pub async fn next(&mut self) -> Option<Value> {
        let output = self.output.as_mut().expect("it is read");
        let line = tokio::time::timeout(PATIENCE, output.next_line()).await;
        let line = line
            .unwrap_or_else(|_| panic!("nothing is said; {}", self.errors()))
            .expect("its output is text")?;
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        Some(message)
    }

    /// What is said up to the response to that request, which is the last.
    ///
    /// # Panics
    /// If it does not come.
    pub async fn until(&mut self, id: &Value) -> Vec<Value> {
        let mut said = Vec::new();
        loop {
            let message = self
                .next()
                .await
                .unwrap_or_else(|| panic!("it ended: {}", self.errors()));
            let is_it = message["id"] == *id && message.get("method").is_none();
            said.push(message);
            if is_it {
                return said;
            }
        }
    }

    /// The response to a request.
    ///
    /// # Panics
    /// Never in practice.
    pub async fn response(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.until(&json!(id))
            .await
            .pop()
            .expect("the response is the last")
    }

    /// The result of a request.
    ///
    /// # Panics
    /// If it is answered by an error.
    pub async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.response(method, params).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].take()
    }

    /// Opens a session as a client in order does it.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn open(&mut self, revision: &str, capabilities: Value) -> Value {
        self.say(&crate::session::initialize(revision, capabilities))
            .await;
        let opened = self
            .until(&json!(0))
            .await
            .pop()
            .expect("the response is the last");
        assert!(opened["result"].is_object(), "{opened}");
        self.say(&crate::session::notification(
            "notifications/initialized",
            json!({}),
        ))
        .await;
        opened
    }

    /// Closes its output.
    pub fn read_no_more(&mut self) {
        drop(self.output.take());
    }

    /// Says nothing more, reads what is still said, and gives back that and the exit code.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn end(&mut self) -> (Vec<Value>, Option<i32>) {
        drop(self.input.take());
        let mut said = Vec::new();
        while let Some(message) = self.next().await {
            said.push(message);
        }
        (said, self.exit().await)
    }

    /// Its exit code, once it has ended.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn exit(&mut self) -> Option<i32> {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = status.expect("it ends").expect("it can be waited for");
        // Its last words lie in the pipe still.
        let _all_was_read = tokio::time::timeout(PATIENCE, &mut self.listening).await;
        status.code()
    }

    /// What it wrote to stderr so far.
    ///
    /// # Panics
    /// Never in practice.
    #[must_use]
    pub fn errors(&self) -> String {
        self.errors.lock().expect("nobody panics with it").clone()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// If it is dead.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.id().expect("it lives");
        let pid = Pid::from_raw(i32::try_from(pid).expect("process ids are small"));
        kill_process(pid.expect("no process id is 0"), signal).expect("it can be told");
    }
}
