//! How a session begins and ends, and whose requests belong to one.

use std::time::Duration;

use longshore_tests::http::{Reply, send};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, OLDEST, Session, ask_for, initialize, notification};
use longshore_tests::wait;
use serde_json::{Value, json};

#[tokio::test]
async fn the_revision_is_settled_and_shown() {
    let server = Server::start(Options::default()).await;
    let rows = [
        (NEWEST, NEWEST),
        (OLDEST, OLDEST),
        ("2025-03-26", OLDEST),
        ("2024-11-05", OLDEST),
        ("2026-07-28", NEWEST),
        ("2099-01-01", NEWEST),
        ("anything", OLDEST),
    ];
    for (asked, settled) in rows {
        let reply = ask_for(server.address, &initialize(asked, json!({}))).await;
        let told = reply.json();
        assert_eq!((reply.status, &told["id"]), (200, &json!(0)), "{told}");
        let mut capabilities = json!({
            "tools": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "prompts": { "listChanged": true },
            "completions": {},
            "logging": {},
        });
        if settled == NEWEST {
            capabilities["tasks"] =
                json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
        }
        let result = &told["result"];
        assert_eq!(result["protocolVersion"], settled, "{asked}");
        assert_eq!(result["capabilities"], capabilities, "{asked}");
        assert_eq!(result["serverInfo"]["name"], "longshore");
        let members: Vec<&String> = result.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["protocolVersion", "capabilities", "serverInfo"]);
        let id = reply.headers["mcp-session-id"].as_bytes();
        assert!(id.len() >= 32 && id.iter().all(u8::is_ascii_graphic));
    }
    assert_eq!(server.figures().await["sessions"], rows.len());
}

#[tokio::test]
async fn what_opens_no_session_says_why() {
    let server = Server::start(Options::default()).await;
    let with = |edit: fn(&mut Value)| {
        let mut message = initialize(NEWEST, json!({}));
        edit(&mut message["params"]);
        message
    };
    let rows = [
        (
            "no params",
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize" }),
        ),
        ("params in a list", with(|params| *params = json!([]))),
        (
            "no version",
            with(|params| {
                drop(
                    params
                        .as_object_mut()
                        .and_then(|p| p.remove("protocolVersion")),
                )
            }),
        ),
        (
            "a version that is a number",
            with(|params| params["protocolVersion"] = json!(20251125)),
        ),
        (
            "no capabilities",
            with(|params| {
                drop(
                    params
                        .as_object_mut()
                        .and_then(|p| p.remove("capabilities")),
                )
            }),
        ),
        (
            "capabilities in a list",
            with(|params| params["capabilities"] = json!([])),
        ),
        (
            "elicitation that is true",
            with(|params| params["capabilities"]["elicitation"] = json!(true)),
        ),
    ];
    for (name, message) in rows {
        let reply = ask_for(server.address, &message).await;
        let told = reply.json();
        assert_eq!(
            (reply.status, &told["error"]["code"]),
            (200, &json!(-32602)),
            "{name}: {told}"
        );
        assert!(reply.headers.get("mcp-session-id").is_none(), "{name}");
    }
    assert_eq!(server.figures().await["sessions"], 0);
}

/// Sends `tools/list` with these headers and this `_meta`.
async fn list(server: &Server, headers: &[(&str, &str)], meta: Option<Value>) -> Reply {
    let params = meta.map_or(json!({}), |meta| json!({ "_meta": meta }));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
    let mut all = vec![("content-type", "application/json")];
    all.extend_from_slice(headers);
    send(server.address, "POST", "/mcp", &all, body.to_string())
        .await
        .expect("the server answers")
}

#[tokio::test]
async fn each_request_is_read_by_the_rules_of_its_era() {
    let server = Server::start(Options::default()).await;
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let id = ("mcp-session-id", session.id.as_str());
    let meta = || {
        Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }))
    };
    let version = |version| ("mcp-protocol-version", version);
    let method = ("mcp-method", "tools/list");
    let ours = "0f0f0f0f-0000-4000-8000-000000000000";
    // Headers, `_meta`, status, code of the error if there is one, and whether the result is of the newer era.
    type Row<'a> = (
        &'a str,
        Vec<(&'a str, &'a str)>,
        Option<Value>,
        u16,
        Option<i64>,
        bool,
    );
    let rows: Vec<Row<'_>> = vec![
        ("of the session", vec![id], None, 200, None, false),
        (
            "with its revision",
            vec![id, version(NEWEST)],
            None,
            200,
            None,
            false,
        ),
        (
            "with another that has sessions",
            vec![id, version("2025-03-26")],
            None,
            200,
            None,
            false,
        ),
        (
            "with an unknown revision",
            vec![id, version("1999-01-01")],
            None,
            400,
            Some(-32600),
            false,
        ),
        (
            "with two revisions",
            vec![id, version(NEWEST), version("x")],
            None,
            400,
            Some(-32600),
            false,
        ),
        ("of no session", vec![], None, 400, Some(-32602), false),
        (
            "of no session, with its revision",
            vec![version(NEWEST)],
            None,
            400,
            Some(-32602),
            false,
        ),
        (
            "of a session that never was",
            vec![("mcp-session-id", ours)],
            None,
            404,
            Some(-32600),
            false,
        ),
        (
            "of two sessions",
            vec![id, id],
            None,
            404,
            Some(-32600),
            false,
        ),
        (
            "by itself",
            vec![version("2026-07-28"), method],
            meta(),
            200,
            None,
            true,
        ),
        (
            "by itself, with a session",
            vec![id, version("2026-07-28"), method],
            meta(),
            200,
            None,
            true,
        ),
        (
            "by itself, with a session that never was",
            vec![("mcp-session-id", ours), version("2026-07-28"), method],
            meta(),
            200,
            None,
            true,
        ),
        // It names a revision for itself, so that its headers have to as well.
        (
            "by itself, with an older header",
            vec![id, version(NEWEST), method],
            meta(),
            400,
            Some(-32020),
            false,
        ),
        (
            "by itself, without the header",
            vec![id, method],
            meta(),
            400,
            Some(-32020),
            false,
        ),
        (
            "with a newer header only",
            vec![id, version("2026-07-28"), method],
            None,
            400,
            Some(-32602),
            false,
        ),
    ];
    for (name, headers, meta, status, code, is_newer) in rows {
        let reply = list(&server, &headers, meta).await;
        let told = reply.json();
        assert_eq!(reply.status, status, "{name}: {told}");
        assert_eq!(told["error"]["code"].as_i64(), code, "{name}: {told}");
        if code.is_none() {
            assert!(told["result"]["tools"].is_array(), "{name}: {told}");
            assert_eq!(
                told["result"].get("resultType").is_some(),
                is_newer,
                "{name}: {told}"
            );
        }
        if status == 404 {
            assert_eq!(told["error"]["data"]["reason"], "no-session", "{name}");
        }
    }
    // What says nothing is told of both.
    let told = list(&server, &[], None).await.json();
    let message = told["error"]["message"].as_str().expect("there is one");
    for revision in ["2026-07-28", NEWEST, OLDEST] {
        assert!(message.contains(revision), "{message}");
    }
}

#[tokio::test]
async fn a_session_ends_when_its_client_says_so() {
    let server = Server::start(Options::default()).await;
    let session = Session::able(server.address, NEWEST).await;
    let other = Session::able(server.address, NEWEST).await;
    let mut heard = session.listen(None).await;
    assert!(heard.is_stream());
    let ended = session.end().await;
    assert_eq!((ended.status, ended.body.len()), (204, 0));
    assert_eq!(heard.next().await, None);
    let (status, error) = session.error("tools/list", json!({})).await;
    assert_eq!(
        (status, &error["data"]["reason"]),
        (404, &json!("no-session"))
    );
    for reply in [
        session.end().await,
        session
            .post(&notification("notifications/initialized", json!({})))
            .await,
        session.answer(&json!(1), json!({})).await,
    ] {
        assert_eq!(reply.status, 404);
    }
    assert_eq!(session.listen(None).await.status, 404);
    assert_eq!(other.result("ping", json!({})).await, json!({}));
    // Without a name there is nothing to end or to hear.
    for method in ["GET", "DELETE"] {
        let reply = send(server.address, method, "/mcp", &[], "")
            .await
            .expect("an answer");
        assert_eq!(reply.status, 400, "{method}");
        assert_eq!(reply.json()["error"]["data"]["reason"], "no-session");
    }
    let reply = send(server.address, "PUT", "/mcp", &[], "")
        .await
        .expect("an answer");
    assert_eq!(
        (reply.status, &reply.headers["allow"]),
        (405, &"GET, POST, DELETE".parse().expect("a header"))
    );
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends() {
    let server = Server::start(Options::default().set("session_idle_s", 1)).await;
    let left = Session::able(server.address, NEWEST).await;
    let heard = Session::able(server.address, NEWEST).await;
    let mut stream = heard.listen(None).await;
    assert!(stream.is_stream());
    // Looking for it does not keep it.
    wait::until("the session to end", Duration::from_secs(60), || async {
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let reply = left.post(&left.request("ping", json!({}))).await;
        (reply.status == 404).then_some(())
    })
    .await;
    // Whoever listens uses it.
    assert_eq!(heard.result("ping", json!({})).await, json!({}));
    let ended = heard.end().await;
    assert_eq!(ended.status, 204);
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn there_are_so_many_sessions_and_so_many_of_one_caller() {
    for (key, reason, code) in [
        ("sessions", "busy", 1019),
        ("sessions_each", "queue-full", 1020),
    ] {
        let server = Server::start(Options::default().set(key, 2)).await;
        let first = Session::open(server.address, NEWEST, json!({})).await;
        let _second = Session::open(server.address, OLDEST, json!({})).await;
        let reply = ask_for(server.address, &initialize(NEWEST, json!({}))).await;
        let told = reply.json();
        // The clients of that time show an error only if it comes as an answer.
        assert_eq!(reply.status, 200, "{told}");
        assert_eq!(told["error"]["code"], code, "{told}");
        assert_eq!(told["error"]["data"]["reason"], reason);
        assert!(
            told["error"]["message"]
                .as_str()
                .is_some_and(|message| message.contains(key))
        );
        assert_eq!(reply.headers["retry-after"], "1");
        first.end().await;
        Session::open(server.address, NEWEST, json!({})).await;
        // The newer era needs none.
        assert_eq!(
            Client::plain(server.address)
                .result("tools/list", json!({}))
                .await["tools"],
            json!([])
        );
    }
}

#[tokio::test]
async fn only_requests_of_a_session_are_answered_in_it() {
    let server = Server::start(Options::default()).await;
    for revision in [NEWEST, OLDEST] {
        let session = Session::able(server.address, revision).await;
        assert_eq!(session.result("ping", json!({})).await, json!({}));
        assert_eq!(
            session
                .result("logging/setLevel", json!({ "level": "info" }))
                .await,
            json!({})
        );
        let mut absent = vec![
            "initialise",
            "server/discover",
            "subscriptions/listen",
            "tasks/update",
            "unknown/method",
        ];
        if revision == OLDEST {
            absent.extend(["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"]);
        }
        for method in absent {
            let (status, error) = session.error(method, json!({ "taskId": "x" })).await;
            assert_eq!(
                (status, &error["code"]),
                (200, &json!(-32601)),
                "{method}: {error}"
            );
        }
        for (method, params) in [
            ("logging/setLevel", json!({})),
            ("logging/setLevel", json!({ "level": "loud" })),
            ("logging/setLevel", json!({ "level": 1 })),
            ("tools/list", json!({ "cursor": 1 })),
            ("tools/list", json!({ "cursor": "nowhere" })),
            ("tools/call", json!({})),
            ("tools/call", json!({ "name": 1 })),
            ("tools/call", json!({ "name": "nothing" })),
            ("tools/call", json!({ "name": "nothing", "arguments": [] })),
            ("tools/call", json!({ "name": "nothing", "_meta": [] })),
            (
                "tools/call",
                json!({ "name": "nothing", "_meta": { "progressToken": {} } }),
            ),
        ] {
            let (status, error) = session.error(method, params.clone()).await;
            assert_eq!(
                (status, &error["code"]),
                (200, &json!(-32602)),
                "{method} {params}: {error}"
            );
        }
    }
}
