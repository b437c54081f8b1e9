//! Tasks whose component does something else when it is repeated.

use longshore_tests::component::{Behaviour, Made, Mode, Tool};
use longshore_tests::process::{Options, Server};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::until_parked;

const AN_HOUR_MS: u64 = 3_600_000;

/// A component that behaves so.
fn made(call: Behaviour) -> Vec<u8> {
    let tool = Tool {
        mode: Mode::Always,
        ..Tool::named("changeable")
    };
    Made {
        call,
        ..Made::of([tool])
    }
    .bytes()
}

/// How a task ends that sleeps for an hour, and goes on with a component that behaves like that.
async fn goes_on_as(call: Behaviour) -> Value {
    let options = Options::default().set("warm", 0).set("park_from_ms", 0);
    let mut server = Server::start(options).await;
    let installed = server
        .upload("changeable", made(Behaviour::Sleeps(AN_HOUR_MS)))
        .await;
    assert_eq!(installed.status, 201, "{}", installed.json());
    let id = server.client().start("changeable", json!({})).await;
    until_parked(&server, &id).await;
    let replaced = server.upload("changeable", made(call)).await;
    assert_eq!(replaced.status, 200, "{}", replaced.json());
    server.kill().await;
    // A task keeps its component for as long as it lives, so it takes a hand in the database to give it another. It
    // is also to wake at once.
    let db = Connection::open(server.data().join("longshore.db")).expect("it can be opened");
    let changed = db
        .execute(
            "update task set wake_at = 0, digest = (select digest from component_name)",
            [],
        )
        .expect("it can be changed");
    assert_eq!(changed, 1);
    drop(db);
    server.restart().await;
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["status"], "failed", "{task}");
    task["error"].clone()
}

#[tokio::test]
async fn what_returns_or_fails_before_its_past_is_over_is_found_out() {
    let cases = [
        // What it recorded first is the clock, or the wait if no millisecond had passed.
        (Behaviour::Returns, "it returns before call 1 ("),
        (Behaviour::Traps, "it fails where it went on before"),
    ];
    for (call, says) in cases {
        let error = goes_on_as(call).await;
        assert_eq!(error["data"]["reason"], "nondeterminism", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test]
async fn what_never_gets_through_its_past_is_stopped() {
    let error = goes_on_as(Behaviour::Loops).await;
    assert_eq!(error["data"]["reason"], "replay-limit", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("to repeat what it did before"),
        "{message}"
    );
}
