//! Sessions, and what they keep.

use std::time::Duration;

use longshore_tests::component::{Act, Behaviour, Made, Tool};
use longshore_tests::process::Server;
use longshore_tests::session::{OLDEST, Session, ask_for, initialize};
use longshore_tests::wait;
use serde_json::json;

use super::{Outcome, Reaching};

pub(super) fn open(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let mut opened = Vec::new();
        let mut told = Ok(());
        for _ in 0..count {
            let reply = ask_for(server.address, &initialize(OLDEST, json!({}))).await;
            match reply.headers.get("mcp-session-id") {
                Some(id) => opened.push(id.to_str().expect("an id is ASCII").to_owned()),
                None => {
                    let reason = reply.json()["error"]["data"]["reason"].take();
                    told = Err(reason.as_str().expect("a reason").to_owned());
                }
            }
        }
        for id in opened {
            let headers = [("mcp-session-id", id.as_str())];
            let ended = longshore_tests::http::send(server.address, "DELETE", "/mcp", &headers, "");
            assert_eq!(ended.await.expect("an answer").status, 204);
        }
        told
    })
}

/// Waits for a session to end, or does not.
pub(super) fn idle(server: &Server, waits: u64) -> Reaching<'_> {
    Box::pin(async move {
        let session = Session::open(server.address, OLDEST, json!({})).await;
        if waits > 0 {
            wait::until(
                "nobody's session to end",
                Duration::from_secs(120),
                || async {
                    // Opening one looks through all that are there.
                    let other = Session::open(server.address, OLDEST, json!({})).await;
                    other.end().await;
                    (server.figures().await["sessions"] == 0).then_some(())
                },
            )
            .await;
        }
        let reply = session.post(&session.request("ping", json!({}))).await;
        let told = reply.json();
        match told["error"]["data"]["reason"].as_str() {
            None => Ok(()),
            Some(reason) => Err(reason.to_owned()),
        }
    })
}

/// A call that writes so many lines after its client has lost its connection.
pub(super) fn kept(server: &Server, lines: u64) -> Reaching<'_> {
    Box::pin(async move {
        const LINE: &str =
            "a line of the log that is about a hundred bytes long once it is in its notification";
        let mut acts = vec![Act::Log(7, LINE), Act::Sleep(500)];
        acts.extend((0..lines).map(|_| Act::Log(7, LINE)));
        let made = Made {
            call: Behaviour::Does(acts.leak()),
            ..Made::of([Tool::named("acts")])
        };
        let uploaded = server.upload("acts", made.bytes()).await;
        assert!(matches!(uploaded.status, 200 | 201), "{}", uploaded.json());
        let session = Session::open(server.address, OLDEST, json!({})).await;
        session
            .result("logging/setLevel", json!({ "level": "debug" }))
            .await;
        let call = session.request("tools/call", json!({ "name": "acts" }));
        let mut answer = session.begin(&call).await;
        let first = answer.event().await.expect("it begins");
        drop(answer);
        let same_id = json!({ "jsonrpc": "2.0", "id": call["id"], "method": "ping" });
        wait::until("the call to end", Duration::from_secs(20), || async {
            let told = session.post(&same_id).await.json();
            told.get("result").is_some().then_some(())
        })
        .await;
        let outcome = read_on(&session, &first.id.expect("it has one")).await;
        session.end().await;
        outcome
    })
}

async fn read_on(session: &Session, place: &str) -> Outcome {
    let mut again = session.listen(Some(place)).await;
    if again.status == 400 {
        return Err("gone".to_owned());
    }
    let mut last = None;
    while let Some(event) = again.event().await {
        last = event.data;
    }
    assert!(last.is_some_and(|response| response["result"].is_object()));
    Ok(())
}
