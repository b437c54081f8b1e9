//! The pipes of a server as a transport of this client.

use std::process::Stdio;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::Mutex;

/// The pipes of a server, for a client that brings none of its own.
pub(super) struct Piped {
    _child: Child,
    input: Arc<Mutex<ChildStdin>>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Piped {
    pub(super) fn start(data: &std::path::Path, examples: &[&str]) -> Self {
        let mut child = longshore_tests::process::command(data)
            .args(["serve", "--stdio"])
            .args(
                examples
                    .iter()
                    .map(|name| longshore_tests::guests::component(name)),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the server can be started");
        Self {
            input: Arc::new(Mutex::new(child.stdin.take().expect("stdin is a pipe"))),
            output: BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines(),
            _child: child,
        }
    }
}

impl Transport<RoleClient> for Piped {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_string(&message)?;
            line.push('\n');
            input.lock().await.write_all(line.as_bytes()).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let line = self.output.next_line().await.ok()??;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.input.lock().await.shutdown().await
    }
}
