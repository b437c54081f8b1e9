//! Whether a server is as well as it was before something was done to it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp::Client;
use crate::process::Server;
use crate::wait;

/// Connections that were just closed, and files that a child's end will close.
const FEW: u64 = 4;

/// The figures of a server that has nothing to do and serves the example `hello`.
#[derive(Clone, Copy, Debug)]
pub struct Baseline {
    fds: u64,
}

impl Baseline {
    /// Takes the figures.
    pub async fn of(server: &Server) -> Self {
        canary(server).await;
        Self {
            fds: fds(&server.figures().await),
        }
    }

    /// Waits until a call is served as before and nothing is left of what was done.
    ///
    /// # Panics
    /// If something is left.
    pub async fn holds(self, server: &Server) {
        canary(server).await;
        wait::until(
            "nothing to be left of it",
            Duration::from_secs(20),
            || async {
                let figures = server.figures().await;
                let runs = &figures["runs"];
                let idle = ["live", "liveStores", "queued"]
                    .iter()
                    .all(|what| runs[what] == 0);
                (idle && fds(&figures) <= self.fds + FEW).then_some(())
            },
        )
        .await;
    }
}

/// Calls the example `hello`.
///
/// # Panics
/// If it does not greet.
pub async fn canary(server: &Server) {
    // It waits for the result, however long that takes on a busy machine.
    let client = Client::plain(server.address);
    let greeting = client.call("hello", json!({ "name": "canary" })).await;
    assert_eq!(
        greeting["content"][0]["text"], "Hello, canary!",
        "{greeting}"
    );
}

fn fds(figures: &Value) -> u64 {
    figures["process"]["fds"]
        .as_u64()
        .expect("the system tells how many files are open")
}
