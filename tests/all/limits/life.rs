//! How many, and for how long.

use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, select_all};
use longshore_tests::component::{Made, Tool};
use longshore_tests::events;
use longshore_tests::http::Reply;
use longshore_tests::process::Server;
use longshore_tests::session::{NEWEST, Session};
use longshore_tests::wait;
use serde_json::{Value, json};

use super::runs::outcome;
use super::{Outcome, Reaching};

/// Longer than any test waits.
const LONG_S: u64 = 600;

pub(super) fn deadline(server: &Server, ms: u64) -> Reaching<'_> {
    Box::pin(async move {
        let client = server.client();
        let seconds = Duration::from_millis(ms).as_secs_f64();
        let id = client.start("sleep", json!({ "seconds": seconds })).await;
        outcome(&client.until_ended(&id).await)
    })
}

/// Read at once, or for as long as it can be read.
pub(super) fn retention(server: &Server, until_gone: u64) -> Reaching<'_> {
    Box::pin(async move {
        let client = server.client();
        let id = client.start("sleep", json!({ "seconds": 0.01 })).await;
        client.until_ended(&id).await;
        if until_gone == 0 {
            return Ok(());
        }
        wait::until("the task to be gone", Duration::from_secs(20), || async {
            let reply = client.send("tasks/get", json!({ "taskId": id })).await;
            let reply = reply.expect("the server answers").json();
            (reply["error"]["code"] == -32602).then_some(())
        })
        .await;
        Err("gone".to_owned())
    })
}

/// A call that is answered when it has a place, and goes on as a task for long.
async fn sleeping(server: &Server) -> Reply {
    let params = json!({ "name": "sleep", "arguments": { "seconds": LONG_S } });
    let reply = server.client().send("tools/call", params).await;
    reply.expect("the server answers")
}

/// The same, at work all the time: what sleeps gives its place to others.
async fn working(server: &Server) -> Reply {
    let params = json!({ "name": "spin", "arguments": { "seconds": 25 } });
    let reply = server.client().send("tools/call", params).await;
    reply.expect("the server answers")
}

fn of_a_call(reply: &Reply) -> Result<String, String> {
    let body = reply.json();
    if let Some(reason) = body["error"]["data"]["reason"].as_str() {
        assert!(matches!(reply.status, 429 | 503), "{body}");
        assert!(reply.headers.contains_key("retry-after"), "{body}");
        return Err(reason.to_owned());
    }
    let id = body["result"]["taskId"].as_str();
    Ok(id.unwrap_or_else(|| panic!("{body}")).to_owned())
}

async fn unfinished(server: &Server) -> Value {
    server.figures().await["store"]["unfinishedTasks"].clone()
}

/// Ends all that were begun, and waits until their places are free.
async fn end(server: &Server, ids: &[String]) {
    let client = server.client();
    for id in ids {
        client.result("tasks/cancel", json!({ "taskId": id })).await;
    }
    wait::until("all places to be free", Duration::from_secs(20), || async {
        (server.figures().await["tenants"] == json!({})).then_some(())
    })
    .await;
}

pub(super) fn running(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let mut ids = Vec::new();
        let mut outcome = Ok(());
        for _ in 0..count {
            match of_a_call(&working(server).await) {
                Ok(id) => ids.push(id),
                Err(reason) => outcome = Err(reason),
            }
        }
        let figures = server.figures().await;
        let share = json!({ "running": ids.len(), "queued": 0 });
        assert_eq!(figures["tenants"]["local"], share, "{figures}");
        // What was refused left no row.
        assert_eq!(unfinished(server).await, ids.len());
        end(server, &ids).await;
        outcome
    })
}

/// So many tasks that wait and have no place.
pub(super) fn parked(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let mut ids = Vec::new();
        let mut outcome = Ok(());
        for _ in 0..count {
            match of_a_call(&sleeping(server).await) {
                Ok(id) => ids.push(id),
                Err(reason) => outcome = Err(reason),
            }
            wait::until("a task to be parked", Duration::from_secs(20), || async {
                (server.figures().await["runs"]["parked"] == ids.len()).then_some(())
            })
            .await;
        }
        // Nobody holds a place, and yet there is no room.
        assert_eq!(server.figures().await["tenants"], json!({}));
        assert_eq!(unfinished(server).await, ids.len());
        end(server, &ids).await;
        outcome
    })
}

/// One call has the only place; the others stand in the queue, or do not.
pub(super) fn queued(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let holder = of_a_call(&working(server).await).expect("there is a place");
        let mut waiting: Vec<BoxFuture<'_, Reply>> =
            (0..count).map(|_| working(server).boxed()).collect();
        // Either all of them stand there, or one of them is told that it may not.
        let stand = wait::until("a queue", Duration::from_secs(20), || async {
            (server.figures().await["runs"]["queued"] == count).then_some(())
        });
        tokio::pin!(stand);
        let told = tokio::select! {
            (reply, _, rest) = select_all(&mut waiting) => {
                drop(rest);
                of_a_call(&reply).map(drop)
            }
            () = &mut stand => Ok(()),
        };
        assert_eq!(unfinished(server).await, 1, "what waits has no row");
        // Whoever goes away leaves the queue.
        drop(waiting);
        end(server, &[holder]).await;
        told
    })
}

/// A place is given up while a call waits for it, or it is not.
pub(super) fn queue_wait(server: &Server, in_vain: u64) -> Reaching<'_> {
    Box::pin(async move {
        let holder = of_a_call(&working(server).await).expect("there is a place");
        let waiting = async { of_a_call(&working(server).await) };
        if in_vain > 0 {
            let told = waiting.await;
            end(server, &[holder]).await;
            return told.map(drop);
        }
        let giving_up = async {
            wait::until("a queue", Duration::from_secs(20), || async {
                (server.figures().await["runs"]["queued"] == 1).then_some(())
            })
            .await;
            let client = server.client();
            client
                .result("tasks/cancel", json!({ "taskId": holder }))
                .await;
        };
        let (told, ()) = tokio::join!(waiting, giving_up);
        end(server, &[told?]).await;
        Ok(())
    })
}

pub(super) fn early_polls(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let client = server.client();
        let id = of_a_call(&sleeping(server).await)?;
        client.task(&id).await;
        let poll = || async {
            let reply = client.send("tasks/get", json!({ "taskId": id })).await;
            reply.expect("the server answers")
        };
        let mut polls: Vec<_> = (0..count).map(|_| poll().boxed()).collect();
        let wait = wait::until("polls to wait", Duration::from_secs(20), || async {
            (server.figures().await["polls"]["waiting"] == count).then_some(())
        });
        tokio::pin!(wait);
        let told: Outcome = tokio::select! {
            (reply, _, rest) = select_all(&mut polls) => {
                drop(rest);
                assert_eq!(reply.status, 429, "{}", reply.json());
                let reason = reply.json()["error"]["data"]["reason"].take();
                Err(reason.as_str().expect("a reason").to_owned())
            }
            () = &mut wait => Ok(()),
        };
        drop(polls);
        end(server, &[id]).await;
        told
    })
}

fn listening(notifications: &Value) -> Value {
    json!({ "notifications": notifications })
}

pub(super) fn listeners(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let request = server.client().request(
            "subscriptions/listen",
            listening(&json!({ "toolsListChanged": true })),
        );
        let mut open = Vec::new();
        let mut told = Ok(());
        for _ in 0..count {
            let answer = events::open(server.address, &request).await;
            if answer.is_stream() {
                open.push(answer);
            } else {
                assert!(matches!(answer.status, 429 | 503), "{}", answer.status);
                let body = answer.json().await;
                let reason = body["error"]["data"]["reason"].as_str();
                told = Err(reason.expect("a reason").to_owned());
            }
        }
        drop(open);
        wait::until("nobody to listen", Duration::from_secs(20), || async {
            (server.figures().await["listeners"] == 0).then_some(())
        })
        .await;
        told
    })
}

/// Listens in both eras until it is ended, or not at all.
pub(super) fn listen(server: &Server, to_the_end: u64) -> Reaching<'_> {
    Box::pin(async move {
        let filter = listening(&json!({ "toolsListChanged": true }));
        let request = server.client().request("subscriptions/listen", filter);
        let mut alone = events::open(server.address, &request).await;
        let session = Session::open(server.address, NEWEST, json!({})).await;
        let mut in_session = session.listen(None).await;
        assert!(alone.is_stream() && in_session.is_stream());
        let first = alone.next().await.expect("the acknowledgement");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        if to_the_end == 0 {
            return Ok(());
        }
        let [last] = alone.rest().await.try_into().expect("there is no news");
        assert_eq!(last["id"], request["id"], "{last}");
        assert_eq!(last["result"]["resultType"], "complete", "{last}");
        assert_eq!(in_session.next().await, None);
        // It may ask again.
        assert!(events::open(server.address, &request).await.is_stream());
        assert!(session.listen(None).await.is_stream());
        Err("closed".to_owned())
    })
}

pub(super) fn listen_tasks(server: &Server, count: u64) -> Reaching<'_> {
    let ids: Vec<String> = (0..count)
        .map(|n| format!("00000000-0000-4000-8000-{n:012}"))
        .collect();
    listen_to(server, json!({ "taskIds": ids }))
}

pub(super) fn listen_resources(server: &Server, count: u64) -> Reaching<'_> {
    let uris: Vec<String> = (0..count).map(|n| format!("test://{n}")).collect();
    listen_to(server, json!({ "resourceSubscriptions": uris }))
}

fn listen_to(server: &Server, filter: Value) -> Reaching<'_> {
    Box::pin(async move {
        let request = server
            .client()
            .request("subscriptions/listen", listening(&filter));
        let answer = events::open(server.address, &request).await;
        if answer.is_stream() {
            return Ok(());
        }
        let body = answer.json().await;
        let reason = body["error"]["data"]["reason"].as_str();
        Err(reason.expect("a reason").to_owned())
    })
}

pub(super) fn page(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let tools: Vec<Tool> = (0..count)
            .map(|n| Tool::named(&format!("tool-{n}")))
            .collect();
        let uploaded = server.upload("paged", Made::of(tools).bytes()).await;
        assert!(matches!(uploaded.status, 200 | 201), "{}", uploaded.json());
        let list = server.client().result("tools/list", json!({})).await;
        match list.get("nextCursor") {
            Some(_) => Err("continued".to_owned()),
            None => Ok(()),
        }
    })
}
