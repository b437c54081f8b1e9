//! JSON-RPC: what is a message at all, and whose id an answer repeats.

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::json;

use super::{Error, Fine, Row, Sent, check, id_of, judge};

/// A request to list tools, with other text in place of its parts.
fn request(client: &Client, id: &str) -> String {
    let params = client.request("tools/list", json!({}))["params"].to_string();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{params}}}"#)
}

#[tokio::test]
async fn what_is_no_message_is_refused() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    let good = request(&client, "1");
    let nested = |depth: usize| {
        // The message and its parameters are two levels of their own.
        let list = "[".repeat(depth - 2) + &"]".repeat(depth - 2);
        good.replace(r#""params":{"#, &format!(r#""params":{{"extra":{list},"#))
    };
    let edit = |from: &str, to: &str| {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from} is not in {good}");
        text
    };
    let bodies: Vec<(&'static str, Vec<u8>, super::Expected)> = vec![
        ("in order", good.clone().into(), Fine),
        (
            "white space around it",
            format!(" \r\n\t{good}\n").into(),
            Fine,
        ),
        ("nothing", Vec::new(), Error(400, -32700)),
        (
            "half of it",
            good.as_bytes()[..good.len() / 2].to_vec(),
            Error(400, -32700),
        ),
        ("no JSON", "tools/list".into(), Error(400, -32700)),
        (
            "a form",
            "jsonrpc=2.0&method=tools/list".into(),
            Error(400, -32700),
        ),
        (
            "a comma too many",
            edit(r#""id":1,"#, r#""id":1,,"#).into(),
            Error(400, -32700),
        ),
        (
            "two documents",
            format!("{good}{good}").into(),
            Error(400, -32700),
        ),
        (
            "two documents on two lines",
            format!("{good}\n{good}").into(),
            Error(400, -32700),
        ),
        (
            "a byte order mark",
            format!("\u{feff}{good}").into(),
            Error(400, -32700),
        ),
        (
            "Latin-1",
            [good.as_bytes(), b"\xe9"].concat(),
            Error(400, -32700),
        ),
        (
            "UTF-16",
            good.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Error(400, -32700),
        ),
        ("a batch", format!("[{good}]").into(), Error(400, -32600)),
        ("an empty batch", "[]".into(), Error(400, -32600)),
        ("a number", "5".into(), Error(400, -32600)),
        ("null", "null".into(), Error(400, -32600)),
        ("a string", "\"tools/list\"".into(), Error(400, -32600)),
        (
            "a response",
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into(),
            Error(400, -32600),
        ),
        (
            "an error response",
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#.into(),
            Error(400, -32600),
        ),
        (
            "a request that is a response too",
            edit(r#""id":1"#, r#""id":1,"result":{}"#).into(),
            Error(400, -32600),
        ),
        (
            "no jsonrpc",
            edit(r#""jsonrpc":"2.0","#, "").into(),
            Error(400, -32600),
        ),
        (
            "jsonrpc 1.0",
            edit(r#""2.0""#, r#""1.0""#).into(),
            Error(400, -32600),
        ),
        (
            "jsonrpc as a number",
            edit(r#""2.0""#, "2.0").into(),
            Error(400, -32600),
        ),
        (
            "no method",
            edit(r#""method":"tools/list","#, "").into(),
            Error(400, -32600),
        ),
        (
            "a method that is no string",
            edit(r#""tools/list""#, "7").into(),
            Error(400, -32600),
        ),
        (
            "a method with half a character",
            edit(r#""tools/list""#, r#""tools/list\ud800""#).into(),
            Error(400, -32600),
        ),
        (
            "parameters in a list",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#.into(),
            Error(400, -32602),
        ),
        ("depth 64", nested(64).into(), Fine),
        ("depth 65", nested(65).into(), Error(400, -32600)),
        (
            "depth 100,000",
            "[".repeat(100_000).into(),
            Error(400, -32600),
        ),
        (
            "jsonrpc twice",
            edit(r#""id":1"#, r#""id":1,"jsonrpc":"2.0""#).into(),
            Error(400, -32600),
        ),
        (
            "id twice",
            edit(r#""id":1"#, r#""id":1,"id":2"#).into(),
            Error(400, -32600),
        ),
        (
            "method twice",
            edit(r#""id":1"#, r#""id":1,"method":"tools/list""#).into(),
            Error(400, -32600),
        ),
        (
            "method twice, once in escapes",
            edit(r#""id":1"#, r#""id":1,"\u006dethod":"ping""#).into(),
            Error(400, -32600),
        ),
        (
            "params twice",
            edit(r#""id":1"#, r#""id":1,"params":{}"#).into(),
            Error(400, -32600),
        ),
        (
            "_meta twice",
            edit(r#""params":{"#, r#""params":{"_meta":{},"#).into(),
            Error(400, -32602),
        ),
        (
            "the version twice",
            edit(
                r#""_meta":{"#,
                &format!(r#""_meta":{{"{}":"1","#, super::VERSION),
            )
            .into(),
            Error(400, -32602),
        ),
        (
            "id null",
            request(&client, "null").into(),
            Error(400, -32600),
        ),
        (
            "id with a fraction",
            request(&client, "1.5").into(),
            Error(400, -32600),
        ),
        (
            "id with an exponent",
            request(&client, "1e3").into(),
            Error(400, -32600),
        ),
        (
            "id true",
            request(&client, "true").into(),
            Error(400, -32600),
        ),
        (
            "id in an object",
            request(&client, "{}").into(),
            Error(400, -32600),
        ),
        (
            "id in a list",
            request(&client, "[1]").into(),
            Error(400, -32600),
        ),
        (
            "id with half a character",
            request(&client, r#""\ud800""#).into(),
            Error(400, -32600),
        ),
        (
            "id of 2,000 bytes",
            request(&client, &format!("\"{}\"", "x".repeat(2_000))).into(),
            Error(400, -32600),
        ),
    ];
    let rows: Vec<Row> = bodies
        .into_iter()
        .map(|(name, body, expected)| (name, Sent::bytes(&client, body), expected))
        .collect();
    check(server.address, rows).await;
}

#[tokio::test]
async fn answers_repeat_the_id_in_value_and_type() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    let ids = [
        "0",
        "1",
        "-7",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""0""#,
        r#""""#,
        r#""a b""#,
        r#""é世界""#,
        r#""say \"so\"""#,
    ];
    for id in ids {
        let good = request(&client, id);
        let reply = Sent::bytes(&client, good.clone()).to(server.address).await;
        judge(&reply, &Fine).unwrap_or_else(|fault| panic!("{id}: {fault}"));
        assert_eq!(id_of(&reply).as_deref(), Some(id), "on a result");

        // Errors of every stage: the envelope, the headers, the method.
        let unmarked = good.replace(r#""2.0""#, r#""1.0""#);
        let elsewhere = good.replace("tools/list", "tools/none");
        let errors = [
            (Sent::bytes(&client, unmarked), Error(400, -32600)),
            (
                Sent::bytes(&client, good).without("mcp-method"),
                Error(400, -32020),
            ),
            (
                Sent::bytes(&client, elsewhere).with("mcp-method", "tools/none"),
                Error(404, -32601),
            ),
        ];
        for (sent, expected) in errors {
            let reply = sent.to(server.address).await;
            judge(&reply, &expected).unwrap_or_else(|fault| panic!("{id}: {fault}"));
            assert_eq!(id_of(&reply).as_deref(), Some(id), "on {expected:?}");
        }
    }
    // An id that cannot be read is not made up.
    for body in [
        "{".to_owned(),
        request(&client, "null"),
        request(&client, "1.0"),
        request(&client, r#"1,"id":2"#),
    ] {
        let reply = Sent::bytes(&client, body.clone()).to(server.address).await;
        assert_eq!(id_of(&reply), None, "{body}");
    }
}

#[tokio::test]
async fn notifications_are_taken_and_do_nothing() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let client = server.client();
    let started = server.figures().await["runs"]["started"].clone();
    assert!(started.is_u64(), "{started}");
    let call = client.request(
        "tools/call",
        json!({ "name": "hello", "arguments": { "name": "x" } }),
    );
    let told = [
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": [] }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/unheard-of", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": call["method"], "params": call["params"] }),
    ];
    for told in told {
        let reply = Sent::bytes(&client, told.to_string())
            .to(server.address)
            .await;
        assert_eq!((reply.status, reply.body.len()), (202, 0), "{told}");
    }
    assert_eq!(
        server.figures().await["runs"]["started"],
        started,
        "a request without an id was run"
    );
    // The figure would have moved.
    client.call("hello", json!({ "name": "x" })).await;
    assert_ne!(server.figures().await["runs"]["started"], started);
}
