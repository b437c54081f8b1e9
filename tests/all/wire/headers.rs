//! The headers that repeat the body, and the order in which faults are reported.

use longshore_tests::mcp::{Client, REVISION};
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::raw::Raw;
use super::{CAPABILITIES, Error, ErrorWith, Fine, Sent, TASKS, VERSION, check, judge};

/// What a refused version says.
fn spoken(requested: &str) -> super::Expected {
    ErrorWith(
        400,
        -32022,
        json!({ "supported": [REVISION], "requested": requested }),
    )
}

fn list(client: &Client) -> Sent {
    Sent::new(client, "tools/list", json!({}))
}

/// A request that says in its body that it speaks that version.
fn speaking(client: &Client, version: &str) -> Sent {
    Sent::edited(client, "tools/list", json!({}), |request| {
        request["params"]["_meta"][VERSION] = json!(version)
    })
}

#[tokio::test]
async fn the_version_stands_in_header_and_body() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    const NAME: &str = "mcp-protocol-version";
    let rows = vec![
        ("the same", list(&client), Fine),
        (
            "white space around it",
            list(&client).with(NAME, "  2026-07-28\t"),
            Fine,
        ),
        ("missing", list(&client).without(NAME), Error(400, -32020)),
        ("empty", list(&client).with(NAME, ""), Error(400, -32020)),
        (
            "doubled",
            list(&client).and(NAME, REVISION),
            Error(400, -32020),
        ),
        (
            "doubled in one line",
            list(&client).with(NAME, "2026-07-28, 2026-07-28"),
            Error(400, -32020),
        ),
        (
            "another known one",
            list(&client).with(NAME, "2025-11-25"),
            Error(400, -32020),
        ),
        (
            "an unknown one",
            list(&client).with(NAME, "2099-01-01"),
            Error(400, -32020),
        ),
        (
            "in base64, which it cannot be",
            list(&client).with(NAME, "=?base64?MjAyNi0wNy0yOA==?="),
            Error(400, -32020),
        ),
        (
            "only the body is another",
            speaking(&client, "2099-01-01"),
            Error(400, -32020),
        ),
        (
            "both unknown",
            speaking(&client, "2099-01-01").with(NAME, "2099-01-01"),
            spoken("2099-01-01"),
        ),
        (
            "both of old",
            speaking(&client, "2025-11-25").with(NAME, "2025-11-25"),
            spoken("2025-11-25"),
        ),
        (
            "both empty",
            speaking(&client, "").with(NAME, ""),
            spoken(""),
        ),
        (
            "both in other case",
            speaking(&client, "2026-07-28A").with(NAME, "2026-07-28a"),
            Error(400, -32020),
        ),
    ];
    check(server.address, rows).await;
}

#[tokio::test]
async fn the_method_stands_in_header_and_body() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    const NAME: &str = "mcp-method";
    let rows = vec![
        (
            "white space around it",
            list(&client).with(NAME, " \ttools/list "),
            Fine,
        ),
        ("missing", list(&client).without(NAME), Error(400, -32020)),
        ("empty", list(&client).with(NAME, ""), Error(400, -32020)),
        (
            "doubled",
            list(&client).and(NAME, "tools/list"),
            Error(400, -32020),
        ),
        (
            "another",
            list(&client).with(NAME, "tools/call"),
            Error(400, -32020),
        ),
        (
            "other case",
            list(&client).with(NAME, "Tools/List"),
            Error(400, -32020),
        ),
        (
            "in base64, which it cannot be",
            list(&client).with(NAME, "=?base64?dG9vbHMvbGlzdA==?="),
            Error(400, -32020),
        ),
        (
            "a name where none belongs",
            list(&client).with("mcp-name", "hello"),
            Fine,
        ),
        (
            "a session that nobody opened",
            list(&client).with("mcp-session-id", "1"),
            Fine,
        ),
        (
            "an event that nobody sent",
            list(&client).with("last-event-id", "1"),
            Fine,
        ),
        (
            "an unknown parameter",
            list(&client).with("mcp-param-colour", "red"),
            Fine,
        ),
    ];
    check(server.address, rows).await;
}

#[tokio::test]
async fn the_name_stands_in_header_and_body() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let client = server.client();
    const NAME: &str = "mcp-name";
    let call = |tool: &str, header: &str| {
        let params = json!({ "name": tool, "arguments": { "name": "x" } });
        // A name outside ASCII is no header; whoever tests one brings the header.
        let params = Sent::edited(&client, "tools/call", json!({ "name": "x" }), |request| {
            let meta = request["params"]["_meta"].take();
            request["params"] = params;
            request["params"]["_meta"] = meta;
        });
        params.with(NAME, header)
    };
    // Past the comparison, a tool that is not there is another error.
    let (same, other) = (Error(400, -32602), Error(400, -32020));
    let rows = vec![
        ("the same", call("hello", "hello"), Fine),
        ("white space around it", call("hello", " hello\t"), Fine),
        (
            "missing",
            call("hello", "hello").without(NAME),
            other.clone(),
        ),
        ("empty", call("hello", ""), other.clone()),
        (
            "doubled",
            call("hello", "hello").and(NAME, "hello"),
            other.clone(),
        ),
        ("another", call("hello", "spin"), other.clone()),
        ("other case", call("hello", "Hello"), other.clone()),
        ("base64", call("hello", "=?base64?aGVsbG8=?="), Fine),
        (
            "base64 with white space around it",
            call("hello", " =?base64?aGVsbG8=?= "),
            Fine,
        ),
        (
            "base64 of another",
            call("hello", "=?base64?c3Bpbg==?="),
            other.clone(),
        ),
        (
            "base64 without its padding",
            call("hello", "=?base64?aGVsbG8?="),
            other.clone(),
        ),
        (
            "base64 with too much padding",
            call("hello", "=?base64?aGVsbG8==?="),
            other.clone(),
        ),
        (
            "base64 with a stray bit",
            call("hello", "=?base64?aGVsbG9=?="),
            other.clone(),
        ),
        (
            "base64 with a stray character",
            call("hello", "=?base64?aGVs*bG8=?="),
            other.clone(),
        ),
        (
            "base64 with white space inside",
            call("hello", "=?base64?aGVs bG8=?="),
            other.clone(),
        ),
        (
            "base64 of no UTF-8",
            call("hello", "=?base64?/+8=?="),
            other.clone(),
        ),
        (
            "base64 of nothing",
            call("hello", "=?base64??="),
            other.clone(),
        ),
        (
            "base64 under another case of its marker",
            call("hello", "=?BASE64?aGVsbG8=?="),
            other.clone(),
        ),
        (
            "only the marker before it",
            call("=?base64?aGVsbG8=", "=?base64?aGVsbG8="),
            same.clone(),
        ),
        (
            "only the marker after it",
            call("aGVsbG8=?=", "aGVsbG8=?="),
            same.clone(),
        ),
        (
            "base64 outside ASCII",
            call("héllo 世界", "=?base64?aMOpbGxvIOS4lueVjA==?="),
            same.clone(),
        ),
        (
            "base64 of what looks like base64",
            call("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
            same.clone(),
        ),
        (
            "what looks like base64, as it is",
            call("=?base64?eA==?=", "=?base64?eA==?="),
            other.clone(),
        ),
    ];
    check(server.address, rows).await;

    // No HTTP library sends this: the very bytes of the body, which a header cannot hold.
    let sent = call("héllo", "héllo");
    let lines: String = sent
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\n{lines}content-length: {}\r\n\r\n",
        server.address,
        sent.body.len()
    );
    let mut raw = Raw::open(server.address).await;
    raw.send([head.as_bytes(), &sent.body].concat()).await;
    let reply = raw.reply().await.expect("it is answered");
    judge(&reply, &other).unwrap_or_else(|fault| panic!("eight-bit characters: {fault}"));
}

#[tokio::test]
async fn of_several_faults_the_first_in_the_order_is_reported() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let (client, plain) = (server.client(), Client::plain(server.address));
    let bare = |client: &Client, method: &str, params: Value| {
        Sent::edited(client, method, params, |request| {
            request["params"]["_meta"] = json!({})
        })
    };
    let unknown = |client: &Client| {
        Sent::edited(client, "tools/none", json!({}), |request| {
            request["params"]["_meta"][VERSION] = json!("2099-01-01");
        })
    };
    let needs = json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } });
    let rows = vec![
        // Required `_meta` before the version header, on whatever method.
        (
            "no _meta, no version",
            bare(&client, "tools/list", json!({})).without("mcp-protocol-version"),
            Error(400, -32602),
        ),
        (
            "no _meta, no such method",
            bare(&client, "tools/none", json!({})),
            Error(400, -32602),
        ),
        // Header = body before known.
        (
            "no version header, unknown version",
            unknown(&client).without("mcp-protocol-version"),
            Error(400, -32020),
        ),
        // Known version before method headers and method.
        (
            "unknown version, no method header, no such method",
            unknown(&client)
                .with("mcp-protocol-version", "2099-01-01")
                .without("mcp-method"),
            spoken("2099-01-01"),
        ),
        // Method header before method.
        (
            "no method header, no such method",
            Sent::new(&client, "tools/none", json!({})).without("mcp-method"),
            Error(400, -32020),
        ),
        // Name header before capability and parameters.
        (
            "another name, no such tool",
            Sent::new(&client, "tools/call", json!({ "name": "none" })).with("mcp-name", "x"),
            Error(400, -32020),
        ),
        (
            "another name, no tasks",
            Sent::new(&plain, "tasks/get", json!({ "taskId": "a" })).with("mcp-name", "b"),
            Error(400, -32020),
        ),
        // Method before capability.
        (
            "no such method of tasks, no tasks",
            Sent::new(&plain, "tasks/list", json!({})),
            Error(404, -32601),
        ),
        // Capability before parameters and before the task is looked for.
        (
            "no tasks, no id",
            Sent::new(&plain, "tasks/get", json!({})),
            ErrorWith(400, -32021, needs.clone()),
        ),
        (
            "no tasks, an id of nothing",
            Sent::new(&plain, "tasks/get", json!({ "taskId": "none" })),
            ErrorWith(400, -32021, needs),
        ),
        // Parameters before the tool is looked for.
        (
            "no such tool, arguments of another type",
            Sent::new(
                &client,
                "tools/call",
                json!({ "name": "none", "arguments": [] }),
            ),
            Error(400, -32602),
        ),
        (
            "capabilities that are none",
            Sent::edited(&client, "tools/list", json!({}), |request| {
                request["params"]["_meta"][CAPABILITIES] = json!(7)
            })
            .with("mcp-method", "tools/none"),
            Error(400, -32602),
        ),
    ];
    check(server.address, rows).await;
}
