//! Uploads from strangers: each is refused by its reason or served, and the server is none the worse.

mod bytes;
mod held;
mod library;
mod lifecycle;
mod limits;
mod mutants;
mod tools;

use longshore_tests::alive::{Baseline, canary};
use longshore_tests::process::{Options, Server};
use serde_json::Value;

/// An upload that must be refused.
struct Row {
    what: String,
    bytes: Vec<u8>,
    reason: &'static str,
    /// What the message must say.
    says: &'static str,
}

impl Row {
    fn new(
        what: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
        reason: &'static str,
        says: &'static str,
    ) -> Self {
        Self {
            what: what.into(),
            bytes: bytes.into(),
            reason,
            says,
        }
    }

    /// The same from the text format.
    fn text(text: &str, reason: &'static str, says: &'static str) -> Self {
        Self::new(
            text.chars().take(100).collect::<String>(),
            binary(text),
            reason,
            says,
        )
    }
}

async fn server() -> Server {
    Server::start(Options::with_guests(&["hello"])).await
}

fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text of a test is right")
}

/// The same component, which by its names is a tool: what is none is refused before anything else is tried.
fn exporting_tools(text: &str) -> String {
    let inside = text.trim_end().strip_suffix(')').expect("a text ends so");
    format!("{inside} (instance $tools) (export \"longshore:tool/tools@0.1.0\" (instance $tools)))")
}

/// Uploads every row, and looks that nothing came of it.
async fn check(server: &Server, rows: Vec<Row>) {
    let baseline = Baseline::of(server).await;
    let before = server.admin("GET", "/v1/components", "").await.json();
    for Row {
        what,
        bytes,
        reason,
        says,
    } in rows
    {
        let reply = server.upload("upload", bytes).await;
        let body = reply.json();
        let error = &body["error"];
        assert_eq!(
            (reply.status, &error["reason"]),
            (422, &Value::from(reason)),
            "{what}: {body}"
        );
        let message = error["message"].as_str().expect("an error has a message");
        assert!(
            message.contains(says),
            "{what}: {message:?} does not say {says:?}"
        );
        assert!(
            !message.contains('\n') && message.len() < 1500,
            "{what}: {message:?} is no short line"
        );
        assert!(
            !message.contains("/home/") && !message.contains(".rs:"),
            "{what}: {message:?} names our own places"
        );
        canary(server).await;
    }
    assert_eq!(
        server.admin("GET", "/v1/components", "").await.json(),
        before
    );
    assert_eq!(
        server
            .admin("GET", "/v1/components/upload", "")
            .await
            .status,
        404
    );
    baseline.holds(server).await;
}

/// How many compilations were begun.
async fn compiles(server: &Server) -> Value {
    server.figures().await["sandbox"]["compiles"].clone()
}

/// A function that loads many values before it uses the first: the compiler's time grows with the cube
/// of their number.
fn live_values(count: usize) -> Vec<u8> {
    // Each from a place of its own, or the compiler makes one value of them.
    let loads: String = (0..count)
        .map(|n| format!("(i32.load offset={} (local.get 0))", 4 * n))
        .collect();
    let xors = "i32.xor ".repeat(count - 1);
    binary(&exporting_tools(&format!(
        "(component (core module (memory 1) (func (param i32) (result i32) {loads} {xors})))"
    )))
}
