//! What is no request in order, in both eras and over both transports: the same code wherever it comes.

use longshore_tests::pipes::{Pipes, data};
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, Session};
use serde_json::{Value, json};

use super::alone;

/// A text, and the code and the id of what is said to it.
type Row = (&'static str, String, i64, Value);

/// The faults of JSON-RPC, and those of parameters, around a request that is in order.
fn rows(good: &Value) -> Vec<Row> {
    let text = good.to_string();
    let edit = |from: &str, to: &str| {
        let edited = text.replacen(from, to, 1);
        assert_ne!(edited, text, "{from} is not in {text}");
        edited
    };
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut request = good.clone();
        edit(&mut request);
        request.to_string()
    };
    let deep = "[".repeat(100) + &"]".repeat(100);
    let mut rows = vec![
        ("no JSON", "tools/call".to_owned(), -32700, Value::Null),
        (
            "half of it",
            text[..text.len() / 2].to_owned(),
            -32700,
            Value::Null,
        ),
        (
            "a byte order mark",
            format!("\u{feff}{text}"),
            -32700,
            Value::Null,
        ),
        ("a batch", format!("[{text}]"), -32600, Value::Null),
        ("an empty batch", "[]".to_owned(), -32600, Value::Null),
        ("a number", "7".to_owned(), -32600, Value::Null),
        (
            "no jsonrpc",
            edit(r#""jsonrpc":"2.0","#, ""),
            -32600,
            json!(7),
        ),
        ("another jsonrpc", edit("2.0", "1.0"), -32600, json!(7)),
        (
            "an id that is null",
            edit(r#""id":7"#, r#""id":null"#),
            -32600,
            Value::Null,
        ),
        (
            "an id with a fraction",
            edit(r#""id":7"#, r#""id":7.5"#),
            -32600,
            Value::Null,
        ),
        (
            "an id twice",
            edit(r#""id":7"#, r#""id":7,"id":8"#),
            -32600,
            Value::Null,
        ),
        (
            "a method twice",
            edit(r#""id":7"#, r#""id":7,"method":"ping""#),
            -32600,
            json!(7),
        ),
        (
            "a method that is a number",
            edit(r#""tools/call""#, "1"),
            -32600,
            json!(7),
        ),
        (
            "a method and a result",
            edit(r#""id":7"#, r#""id":7,"result":{}"#),
            -32600,
            json!(7),
        ),
        (
            "too deep",
            edit(r#""params":{"#, &format!(r#""params":{{"x":{deep},"#)),
            -32600,
            Value::Null,
        ),
        (
            "a method that is not there",
            edit("tools/call", "tools/call2"),
            -32601,
            json!(7),
        ),
        (
            "no name",
            with(&|request| {
                drop(
                    request["params"]
                        .as_object_mut()
                        .map(|params| params.remove("name")),
                )
            }),
            -32602,
            json!(7),
        ),
        (
            "a name that is a number",
            with(&|request| request["params"]["name"] = json!(1)),
            -32602,
            json!(7),
        ),
        (
            "a name twice",
            edit(r#""name":"#, r#""name":"a","name":"#),
            -32602,
            json!(7),
        ),
        (
            "arguments in a list",
            with(&|request| request["params"]["arguments"] = json!([])),
            -32602,
            json!(7),
        ),
        (
            "an argument twice",
            edit(r#""arguments":{"#, r#""arguments":{"a":1,"a":2,"#),
            -32602,
            json!(7),
        ),
        (
            "an unknown tool",
            with(&|request| request["params"]["name"] = json!("nothing")),
            -32602,
            json!(7),
        ),
        (
            "a token that is an object",
            with(&|request| request["params"]["_meta"]["progressToken"] = json!({})),
            -32602,
            json!(7),
        ),
    ];
    rows.push((
        "parameters in a list",
        edit(&good["params"].to_string(), "[]"),
        -32602,
        json!(7),
    ));
    rows
}

fn good(params: Value) -> Value {
    let mut request = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call" });
    request["params"] = params;
    request
}

fn params() -> Value {
    json!({ "name": "hello", "arguments": { "name": "Ada" } })
}

fn judge(faults: &mut Vec<String>, name: &str, told: &Value, code: i64, id: &Value) {
    let is_so = told["error"]["code"] == code
        && told["id"] == *id
        && told.get("result").is_none()
        && told["error"]["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty());
    if !is_so {
        faults.push(format!("{name}: {told}"));
    }
}

#[tokio::test]
async fn over_pipes() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["hello"]);
    let mut faults = Vec::new();
    for is_session in [false, true] {
        let mut params = params();
        if is_session {
            pipes.open(NEWEST, json!({})).await;
            params["_meta"] = json!({});
        } else {
            params = alone(params);
        }
        for (name, text, code, id) in rows(&good(params.clone())) {
            pipes.write(format!("{text}\n")).await;
            let told = loop {
                let told = pipes.next().await.expect("it goes on");
                if told.get("method").is_none() {
                    break told;
                }
            };
            judge(&mut faults, name, &told, code, &id);
        }
        // White space and long lines are no messages, and nothing of it was in the way.
        pipes.write(" \n\r\n").await;
        pipes
            .write([&b"x".repeat(3 << 20)[..], b"\n"].concat())
            .await;
        let told = pipes.next().await.expect("it goes on");
        assert_eq!(told["error"]["data"]["reason"], "too-large", "{told}");
        pipes.write(format!("{}\r\n", good(params))).await;
        let told = pipes.until(&json!(7)).await.pop().expect("the last");
        assert_eq!(told["result"]["content"][0]["text"], "Hello, Ada!");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(pipes.end().await.1, Some(0));
}

#[tokio::test]
async fn over_http_in_a_session() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let headers = session.headers();
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let mut params = params();
    params["_meta"] = json!({});
    let mut faults = Vec::new();
    for (name, text, code, id) in rows(&good(params)) {
        let reply = longshore_tests::http::send(server.address, "POST", "/mcp", &headers, text)
            .await
            .expect("the server answers");
        let told = reply.json();
        judge(&mut faults, name, &told, code, &id);
        // What is no message at all belongs to no era; an error of a method is an answer like any other.
        let status = if matches!(code, -32700 | -32600) {
            400
        } else {
            200
        };
        if reply.status != status {
            faults.push(format!("{name}: {} and not {status}", reply.status));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
