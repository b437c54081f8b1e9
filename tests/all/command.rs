//! The command line, end to end: what it prints where, and how it ends.

mod component;
mod disk;
mod file;
mod inspect;
mod push;
mod run;
mod serving;
mod tasks;
mod usage;
mod watch;

use std::net::TcpListener;
use std::path::Path;

use longshore_tests::process::{Server, command, run, run_fed};
use serde_json::Value;
use tokio::process::Command;

/// The codes it exits with.
const FAILED: i32 = 1;
const USAGE: i32 = 2;
const UNREACHABLE: i32 = 3;
const CANNOT_START: i32 = 4;
const CANCELLED: i32 = 130;

/// What a command left behind.
#[derive(Debug)]
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Ended {
    async fn of(command: Command) -> Self {
        let (code, out, err) = run(command).await;
        Self { code, out, err }
    }

    /// The one JSON document on stdout.
    fn json(&self) -> Value {
        assert_eq!(self.out.trim_end().lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that it failed so, with nothing on stdout, and that stderr has those words.
    fn assert_failed(&self, code: i32, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        for word in words {
            assert!(self.err.contains(word), "{word:?} is missing: {self:?}");
        }
        assert!(
            !self.err.contains("panicked") && !self.err.contains("RUST_BACKTRACE"),
            "{self:?}"
        );
    }
}

/// Runs a command that needs no server.
async fn alone(arguments: &[&str]) -> Ended {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = command(data.path());
    command.args(arguments);
    Ended::of(command).await
}

/// The same with that on stdin.
async fn fed(arguments: &[&str], stdin: &str) -> Ended {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = command(data.path());
    command.args(arguments);
    let (code, out, err) = run_fed(command, stdin).await;
    Ended { code, out, err }
}

/// Runs a command against a server.
async fn against(server: &Server, arguments: &[&str]) -> Ended {
    let mut command = command(server.data());
    command
        .env("LONGSHORE_SERVER", format!("http://{}", server.address))
        .args(arguments);
    Ended::of(command).await
}

/// The same with `--json`, where it must succeed.
async fn json_of(server: &Server, arguments: &[&str]) -> Value {
    let ended = against(server, &[arguments, &["--json"]].concat()).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    ended.json()
}

/// A port that nobody listens on.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths here are text")
}
