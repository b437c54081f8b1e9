//! `subscriptions/listen`: what is acknowledged, what is told, and what it may cost.

use std::time::Duration;

use longshore_tests::component::{Act, Behaviour, Made, Mode, Tool};
use longshore_tests::events::{self, Answer};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";
const LONG_MS: u64 = 600_000;

fn request(client: &Client, id: &Value, filter: &Value) -> Value {
    let mut request = client.request("subscriptions/listen", json!({ "notifications": filter }));
    request["id"] = id.clone();
    request
}

/// A stream, with what it acknowledged first.
async fn listen(client: &Client, id: &Value, filter: &Value) -> (Answer, Value) {
    let mut answer = events::open(client.address, &request(client, id, filter)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.is_stream());
    let first = answer.next().await.expect("the acknowledgement");
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["_meta"], json!({ SUBSCRIPTION: id }));
    let honoured = first["params"]["notifications"].clone();
    (answer, honoured)
}

/// The next news of a task, as a task.
async fn news(answer: &mut Answer, id: &Value) -> Value {
    let mut event = answer.next().await.expect("there is news");
    assert_eq!(event["method"], "notifications/tasks", "{event}");
    assert!(event.get("id").is_none(), "{event}");
    let params = event["params"].as_object_mut().expect("an object");
    assert_eq!(params.remove("_meta"), Some(json!({ SUBSCRIPTION: id })));
    event["params"].take()
}

/// What `tasks/get` shows of the task itself.
fn task_itself(mut result: Value) -> Value {
    let members = result.as_object_mut().expect("an object");
    members.remove("resultType");
    members.remove("_meta");
    result
}

async fn until_listeners(server: &Server, count: u64) {
    wait::until(
        &format!("{count} listeners"),
        Duration::from_secs(20),
        || async { (server.figures().await["listeners"] == count).then_some(()) },
    )
    .await;
}

#[tokio::test]
async fn exactly_what_is_honoured_is_acknowledged() {
    let mut server = Server::start(Options::with_guests(&["modes"])).await;
    let mine = server
        .client()
        .start("modes-always", json!({ "ms": 0 }))
        .await;
    let foreign = server
        .client()
        .start("modes-always", json!({ "ms": 0 }))
        .await;
    for id in [&mine, &foreign] {
        server.client().until_ended(id).await;
    }
    server.kill().await;
    let database = Connection::open(server.data().join("longshore.db")).expect("it is a database");
    let changed = database.execute(
        "update task set principal = 'somebody else' where id = ?1",
        [uuid::Uuid::parse_str(&foreign)
            .expect("ids are UUIDs")
            .as_bytes()],
    );
    assert_eq!(changed.expect("it can be written"), 1);
    drop(database);
    server.restart().await;

    let client = server.client();
    let rows = [
        (json!({}), json!({})),
        (json!({ "toolsListChanged": false }), json!({})),
        (
            json!({ "toolsListChanged": true, "weatherChanged": true, "resourceSubscriptions": ["a:b"] }),
            json!({ "toolsListChanged": true, "resourceSubscriptions": [] }),
        ),
        (json!({ "taskIds": [] }), json!({ "taskIds": [] })),
        (
            json!({ "taskIds": [UNKNOWN, mine, "no id", foreign, mine] }),
            json!({ "taskIds": [mine] }),
        ),
        (json!({ "taskIds": [foreign] }), json!({ "taskIds": [] })),
    ];
    for (filter, expected) in rows {
        for id in [json!("listen:0"), json!(7)] {
            let (_, honoured) = listen(&client, &id, &filter).await;
            assert_eq!(honoured, expected, "{filter}");
        }
    }
    until_listeners(&server, 0).await;
}

#[tokio::test]
async fn what_cannot_be_listened_to_is_refused() {
    let server = Server::start(Options::default().set("listen_tasks", 3)).await;
    let client = server.client();
    let rows = [
        json!({}),
        json!({ "notifications": null }),
        json!({ "notifications": ["taskIds"] }),
        json!({ "notifications": { "toolsListChanged": "yes" } }),
        json!({ "notifications": { "taskIds": UNKNOWN } }),
        json!({ "notifications": { "taskIds": [1] } }),
        json!({ "notifications": { "taskIds": [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN] } }),
    ];
    for params in rows {
        let (status, error) = client.error("subscriptions/listen", params.clone()).await;
        assert_eq!((status, &error["code"]), (400, &json!(-32602)), "{params}");
    }
    let most = json!({ "taskIds": [UNKNOWN, UNKNOWN, UNKNOWN] });
    listen(&client, &json!(1), &most).await;

    // Tasks are for those who know them; tools are for everybody.
    let plain = Client::plain(server.address);
    let (status, error) = plain
        .error(
            "subscriptions/listen",
            json!({ "notifications": { "taskIds": [] } }),
        )
        .await;
    assert_eq!((status, &error["code"]), (400, &json!(-32021)));
    assert_eq!(
        error["data"]["requiredCapabilities"],
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
    );
    let (_, honoured) = listen(&plain, &json!(1), &json!({ "toolsListChanged": true })).await;
    assert_eq!(honoured, json!({ "toolsListChanged": true }));
}

#[tokio::test]
async fn a_task_is_told_from_where_it_stands_to_its_end() {
    let server = Server::start(Options::with_guests(&["ask-form"])).await;
    let client = server.client();
    let task = client.start("ask-form", json!({})).await;
    let asking = client.until_status(&task, "input_required").await;
    let number = json!(7);
    let text = json!("listen:0");
    let filter = json!({ "taskIds": [task] });
    let (mut first, _) = listen(&client, &number, &filter).await;
    let (mut second, _) = listen(&client, &text, &filter).await;
    assert_eq!(news(&mut first, &number).await, task_itself(asking.clone()));
    assert_eq!(news(&mut second, &text).await, task_itself(asking.clone()));

    let key = asking["inputRequests"]
        .as_object()
        .and_then(|requests| requests.keys().next())
        .expect("it asks");
    let answer =
        json!({ "action": "accept", "content": { "name": "Ann", "age": 36, "choice": "red" } });
    client
        .result(
            "tasks/update",
            json!({ "taskId": task, "inputResponses": { key: answer } }),
        )
        .await;
    let ended = task_itself(client.until_ended(&task).await);
    assert_eq!(ended["status"], "completed");
    for (answer, id) in [(&mut first, &number), (&mut second, &text)] {
        let last = loop {
            let told = news(answer, id).await;
            if told["status"] != "working" {
                break told;
            }
        };
        assert_eq!(last, ended);
    }
}

#[tokio::test]
async fn changed_tools_are_told_once_each_to_those_who_asked() {
    let mut server = Server::start(Options::default()).await;
    let client = server.client();
    let id = json!("listen-1");
    let (mut tools, _) = listen(&client, &id, &json!({ "toolsListChanged": true })).await;
    let (mut nothing, _) = listen(&client, &json!(2), &json!({})).await;
    let changed = json!({
        "jsonrpc": "2.0",
        "method": "notifications/tools/list_changed",
        "params": { "_meta": { SUBSCRIPTION: id } },
    });
    let made = |description: &str, answer: &str| {
        let tool = Tool {
            description: description.to_owned(),
            ..Tool::named("made")
        };
        Made {
            answer: answer.to_owned(),
            call: Behaviour::Does(&[Act::ToolsChanged]),
            ..Made::of([tool])
        }
        .bytes()
    };
    let first = made("one", "something");
    let second = made("two", "something");
    let third = made("two", "something else");

    assert_eq!(server.upload("made", first.clone()).await.status, 201);
    assert_eq!(tools.next().await, Some(changed.clone()));
    assert_eq!(server.upload("made", second).await.status, 200);
    assert_eq!(tools.next().await, Some(changed.clone()));
    // It lists what it listed before, so that there is nothing to read again.
    assert_eq!(server.upload("made", third).await.status, 200);
    // The guest's own word is told as well.
    client.call("made", json!({})).await;
    assert_eq!(tools.next().await, Some(changed.clone()));
    assert_eq!(
        server
            .admin("DELETE", "/v1/components/made", "")
            .await
            .status,
        204
    );
    assert_eq!(tools.next().await, Some(changed.clone()));

    assert_eq!(server.upload("made", first.clone()).await.status, 201);
    assert_eq!(tools.next().await, Some(changed));
    // Long enough that a notice would not be put off any more, so that none is lost in the end.
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(server.upload("made", first).await.status, 200);
    assert_eq!(
        server
            .admin("DELETE", "/v1/components/other", "")
            .await
            .status,
        404
    );
    assert_eq!(server.upload("bad", "no component").await.status, 422);

    // The end is a result, for everybody, and comes at once.
    let (exit, told, others) = tokio::join!(server.terminate(), tools.rest(), nothing.rest());
    assert_eq!(exit, Some(0));
    for (events, id) in [(told, id), (others, json!(2))] {
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(events[0]["id"], id);
        let result = &events[0]["result"];
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(result["_meta"][SUBSCRIPTION], id);
        assert_eq!(result["_meta"][SERVER_INFO]["name"], "longshore");
    }
}

#[tokio::test]
async fn there_are_only_so_many_listeners() {
    let server = Server::start(Options::default().set("listeners", 2)).await;
    let client = server.client();
    let filter = json!({ "toolsListChanged": true });
    let first = listen(&client, &json!(1), &filter).await;
    let _second = listen(&client, &json!(2), &filter).await;
    let reply = client
        .send("subscriptions/listen", json!({ "notifications": filter }))
        .await
        .expect("the server answers");
    assert_eq!(reply.status, 503);
    assert!(reply.headers.contains_key("retry-after"));
    assert_eq!(reply.json()["error"]["data"]["reason"], "busy");

    drop(first);
    until_listeners(&server, 1).await;
    listen(&client, &json!(3), &filter).await;
}

#[tokio::test]
async fn a_stream_that_is_not_read_is_given_up_and_its_tasks_go_on() {
    // More than fits between the two sockets, whatever the system gives them.
    const TASKS: usize = 24;
    const BYTES: usize = 1_000_000;
    let server = Server::start(Options::with_guests(&["modes"]).set("write_s", 1)).await;
    let large = Tool {
        mode: Mode::Always,
        ..Tool::named("large")
    };
    let large = Made {
        answer: "x".repeat(BYTES),
        ..Made::of([large])
    };
    assert_eq!(server.upload("large", large.bytes()).await.status, 201);
    let client = server.client();
    let live = client.start("modes-always", json!({ "ms": LONG_MS })).await;
    let mut tasks = vec![live.clone()];
    for _ in 0..TASKS {
        let id = client.start("large", json!({})).await;
        client.until_ended(&id).await;
        tasks.push(id);
    }

    let socket = TcpSocket::new_v4().expect("there are sockets");
    socket
        .set_recv_buffer_size(4096)
        .expect("a socket can have a small buffer");
    let mut stream = socket
        .connect(server.address)
        .await
        .expect("the server listens");
    let request = request(&client, &json!(1), &json!({ "taskIds": tasks }));
    let body = request.to_string();
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n",
        server.address,
        body.len()
    );
    for (name, value) in Client::headers(&request) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream
        .write_all(format!("{head}\r\n{body}").as_bytes())
        .await
        .expect("the server reads");
    until_listeners(&server, 1).await;
    until_listeners(&server, 0).await;

    assert_eq!(client.task(&live).await["status"], "working");
    client
        .result("tasks/cancel", json!({ "taskId": live }))
        .await;
    assert_eq!(client.until_ended(&live).await["status"], "cancelled");
    drop(stream);
}
