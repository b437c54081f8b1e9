use longshore_protocol::envelope::{self, Message, RequestId};
use longshore_protocol::error;
use longshore_protocol::json::MAX_DEPTH;
use longshore_protocol::request::Notification;

/// What becomes of a body: `request ID METHOD PARAMS`, `notification METHOD`, `result ID RESULT`, `error ID ERROR`, or
/// `refused CODE ID`.
fn parsed(body: &[u8]) -> String {
    match envelope::parse(body) {
        Ok(Message::Request(request)) => {
            let params = request.params.map_or("-", |raw| raw.get());
            format!(
                "request {} {} {params}",
                request.id.as_json(),
                request.method
            )
        }
        Ok(Message::Notification(notification)) => format!("notification {}", notification.method),
        Ok(Message::Response(response)) => {
            let (word, raw) = match response.outcome {
                Ok(result) => ("result", result),
                Err(error) => ("error", error),
            };
            format!("{word} {} {}", response.id.as_json(), raw.get())
        }
        Err(refusal) => {
            assert_eq!(error::http_status(&refusal.error), 400);
            format!(
                "refused {} {}",
                refusal.error.code,
                refusal.id.as_ref().map_or("-", RequestId::as_json)
            )
        }
    }
}

#[test]
fn bodies_are_read_or_refused() {
    for (body, expected) in [
        // Requests, with ids of all kinds.
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "request 1 m -"),
        (r#"{"jsonrpc":"2.0","id":0,"method":"m"}"#, "request 0 m -"),
        (
            r#"{"jsonrpc":"2.0","id":-3,"method":"m"}"#,
            "request -3 m -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}"#,
            "request 123456789012345678901234567890 m -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"1","method":"m"}"#,
            r#"request "1" m -"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"","method":"m"}"#,
            r#"request "" m -"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"\u0061\n","method":"m"}"#,
            r#"request "a\n" m -"#,
        ),
        // Members in any order, spaced, escaped, and with others beside them.
        (
            " {\"params\" : { \"a\" : 1 } ,\n\"method\":\"\\u006d\",\"x\":[{}],\"id\":1,\"jsonrpc\":\"2.0\"}\r\n",
            "request 1 m { \"a\" : 1 }",
        ),
        (
            r#"{"jsonrpc":"2.0","\u0069d":1,"method":"m"}"#,
            "request 1 m -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":2}"#,
            "request 1 m -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#,
            "request 1 m [1]",
        ),
        // Notifications.
        (r#"{"jsonrpc":"2.0","method":"m"}"#, "notification m"),
        // Not JSON.
        ("", "refused -32700 -"),
        ("{", "refused -32700 -"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m"} {}"#,
            "refused -32700 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m"}x"#,
            "refused -32700 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":01,"method":"m"}"#,
            "refused -32700 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m",}"#,
            "refused -32700 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":tru}}"#,
            "refused -32700 -",
        ),
        (
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}",
            "refused -32700 -",
        ),
        ("[1,", "refused -32700 -"),
        ("nul", "refused -32700 -"),
        // JSON but no request.
        ("[]", "refused -32600 -"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#,
            "refused -32600 -",
        ),
        ("1", "refused -32600 -"),
        ("null", "refused -32600 -"),
        (r#""text""#, "refused -32600 -"),
        ("{}", "refused -32600 -"),
        (r#"{"id":1,"method":"m"}"#, "refused -32600 1"),
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#,
            "refused -32600 1",
        ),
        (
            r#"{"jsonrpc":2.0,"id":"a","method":"m"}"#,
            r#"refused -32600 "a""#,
        ),
        (r#"{"jsonrpc":"2.0","id":1}"#, "refused -32600 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "refused -32600 1"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
            "refused -32600 1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            "refused -32600 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
            "refused -32600 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.0,"method":"m"}"#,
            "refused -32600 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1e3,"method":"m"}"#,
            "refused -32600 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
            "refused -32600 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#,
            "refused -32600 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"\ud800","method":"m"}"#,
            "refused -32600 -",
        ),
        // Responses, also in the clothes of a request.
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "result 1 {}"),
        (
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":""}}"#,
            r#"error "a" {"code":1,"message":""}"#,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result 1 null"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            "refused -32600 1",
        ),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "refused -32600 -"),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{}}"#,
            "refused -32600 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
            "refused -32600 1",
        ),
        // Members that stand twice.
        (
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#,
            "refused -32600 -",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}"#,
            "refused -32600 1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{}}"#,
            "refused -32600 1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","\u006dethod":"n"}"#,
            "refused -32600 1",
        ),
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}"#,
            "refused -32600 1",
        ),
    ] {
        assert_eq!(parsed(body.as_bytes()), expected, "{body}");
    }
}

#[test]
fn a_byte_order_mark_is_refused_by_its_name() {
    let refusal = envelope::parse("\u{feff}{}".as_bytes()).unwrap_err();
    assert!(
        refusal.error.message.contains("byte order mark"),
        "{}",
        refusal.error
    );
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    assert_eq!(
        parsed(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"),
        "refused -32700 -"
    );
    assert_eq!(
        parsed(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"x\":\"\xc3\"}"),
        "refused -32700 -"
    );
}

#[test]
fn an_id_of_the_longest_length_is_read_and_a_longer_one_is_not() {
    let body = |length: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#,
            "i".repeat(length - 2)
        )
    };
    assert!(parsed(body(envelope::MAX_ID_BYTES).as_bytes()).starts_with("request"));
    assert_eq!(
        parsed(body(envelope::MAX_ID_BYTES + 1).as_bytes()),
        "refused -32600 -"
    );
}

#[test]
fn an_id_that_is_no_text_is_told_from_one_of_another_type() {
    let said = |id: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        envelope::parse(body.as_bytes()).unwrap_err().error.message
    };
    for id in [r#""\ud800""#, r#""a\udc00b""#] {
        assert!(
            said(id).contains("half of a surrogate pair"),
            "{}",
            said(id)
        );
    }
    for id in ["true", "1.5", "null"] {
        assert!(
            said(id).contains("must be a string or an integer"),
            "{}",
            said(id)
        );
    }
}

#[test]
fn depth_is_limited_wherever_it_stands() {
    // The body itself is one level.
    let body =
        |inner: String| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{inner}}}"#);
    let lists = |depth: usize| body("[".repeat(depth) + &"]".repeat(depth));
    let objects = |depth: usize| body("{\"a\":".repeat(depth) + "1" + &"}".repeat(depth));
    assert!(parsed(lists(MAX_DEPTH - 1).as_bytes()).starts_with("request"));
    assert_eq!(parsed(lists(MAX_DEPTH).as_bytes()), "refused -32600 -");
    assert!(parsed(objects(MAX_DEPTH - 1).as_bytes()).starts_with("request"));
    assert_eq!(parsed(objects(MAX_DEPTH).as_bytes()), "refused -32600 -");
    // A million levels cost no stack, closed or not, alone or inside a batch.
    assert_eq!(parsed(lists(1_000_000).as_bytes()), "refused -32600 -");
    assert_eq!(parsed("[".repeat(1_000_000).as_bytes()), "refused -32600 -");
    // Brackets in strings are text, also behind escapes.
    let text = format!(r#"{{"a":"\\\"{}"}}"#, "[{".repeat(100));
    assert!(parsed(body(text).as_bytes()).starts_with("request"));
    let after = format!(r#"{{"a":"\\","b":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    assert_eq!(parsed(body(after).as_bytes()), "refused -32600 -");
    // Width is not depth.
    assert!(parsed(body(format!("[{}1]", "[],".repeat(1000))).as_bytes()).starts_with("request"));
}

#[test]
fn no_prefix_of_a_request_is_a_request() {
    let body = r#"{"jsonrpc":"2.0","id":"é","method":"tools/call","params":{"name":"a\u00e9\"","arguments":{"x":[1.5e3,null,true]}}}"#;
    for length in 0..body.len() {
        assert_eq!(
            parsed(&body.as_bytes()[..length]),
            "refused -32700 -",
            "{length}"
        );
    }
    assert!(parsed(body.as_bytes()).starts_with("request"));
}

#[test]
fn malformed_notifications_are_tolerated() {
    let read = |body: &str| match envelope::parse(body.as_bytes()).unwrap() {
        Message::Notification(envelope) => format!("{:?}", Notification::read(envelope)),
        other => panic!("{other:?} is no notification"),
    };
    let cancelled = |params: &str| {
        read(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
        ))
    };
    for (params, expected) in [
        (
            r#"{"requestId":0}"#,
            r#"Cancelled { request_id: RequestId("0"), reason: None }"#,
        ),
        (
            r#"{"requestId":"a","reason":"late"}"#,
            r#"Cancelled { request_id: RequestId("\"a\""), reason: Some("late") }"#,
        ),
        (
            r#"{"requestId":1,"reason":5}"#,
            r#"Cancelled { request_id: RequestId("1"), reason: None }"#,
        ),
        ("{}", r#"Other("notifications/cancelled")"#),
        ("[]", r#"Other("notifications/cancelled")"#),
        (
            r#"{"requestId":null}"#,
            r#"Other("notifications/cancelled")"#,
        ),
        (
            r#"{"requestId":1,"requestId":2}"#,
            r#"Other("notifications/cancelled")"#,
        ),
    ] {
        assert_eq!(cancelled(params), expected, "{params}");
    }
    assert_eq!(
        read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        r#"Other("notifications/initialized")"#
    );
}
