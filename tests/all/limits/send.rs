//! What a tool may send, and how long it may wait for what comes back.

use longshore_tests::process::Server;
use longshore_tests::target::Target;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Outcome, Reaching};

/// What the tool says of its requests, in a word.
fn outcome(task: &Value) -> Outcome {
    let result = &task["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    if result["isError"] != true {
        return if task["status"] == "completed" {
            Ok(())
        } else {
            Err(task.to_string())
        };
    }
    let words = [
        ("too large", "too-large"),
        ("larger than it may be", "too-large"),
        ("in time", "timed-out"),
        ("too many requests", "too-many"),
    ];
    let word = words.iter().find(|(said, _)| text.contains(said));
    Err(word.map_or(text, |(_, word)| word).to_owned())
}

async fn sent(server: &Server, scheme: &str, port: u16, path: &str, more: Value) -> Outcome {
    let rule = json!({
        "scheme": scheme, "host": "127.0.0.1", "port": port, "methods": ["POST"],
        "networks": ["127.0.0.0/8"],
    });
    let granted = json!({ "http": [rule] }).to_string();
    let reply = server
        .admin("PUT", "/v1/components/limits/grant", granted)
        .await;
    assert_eq!(reply.status, 200, "{}", reply.json());
    let mut arguments = more;
    arguments["url"] = format!("{scheme}://127.0.0.1:{port}{path}").into();
    let client = server.client();
    let id = client.start("send", arguments).await;
    outcome(&client.until_ended(&id).await)
}

async fn to_target(server: &Server, path: &str, more: Value) -> Outcome {
    let target = Target::start().await;
    sent(server, "http", target.address.port(), path, more).await
}

/// Requests for that path, where nothing but the path changes with the amount.
macro_rules! by_the_path {
    ($($name:ident: $path:literal),* $(,)?) => {
        $(pub(super) fn $name(server: &Server, amount: u64) -> Reaching<'_> {
            Box::pin(async move { to_target(server, &format!($path, amount), json!({})).await })
        })*
    };
}

by_the_path! {
    response: "/bytes/{}",
    head: "/head/{}",
    late: "/late/{}",
    pause: "/pause/{}",
}

pub(super) fn request(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move { to_target(server, "/", json!({ "bytes": bytes })).await })
}

/// None of them is looked at before all are sent, and each takes a while.
pub(super) fn at_once(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move { to_target(server, "/late/6000", json!({ "at_once": count })).await })
}

/// Whoever answers, or with 1 somebody who takes connections and never says who it is.
pub(super) fn connect(server: &Server, is_mute: u64) -> Reaching<'_> {
    Box::pin(async move {
        if is_mute == 0 {
            return to_target(server, "/", json!({})).await;
        }
        let mute = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = mute.local_addr().expect("an address").port();
        sent(server, "https", port, "/", json!({})).await
    })
}
