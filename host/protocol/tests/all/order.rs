use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use longshore_protocol::headers::{ParameterHeaders, decode_value};
use serde_json::json;

use super::*;

fn call(name: &str) -> Sent {
    Sent::new("tools/call", json!({"name": name}))
}

fn list() -> Sent {
    Sent::new("tools/list", json!({}))
}

fn get() -> Sent {
    Sent::new("tasks/get", json!({"taskId": "t-1"}))
}

#[test]
fn headers_repeat_the_body() {
    check(vec![
        ("as it should be", list(), READ),
        ("as it should be, with a name", call("hello"), READ),
        ("no version", list().version(&[]), MISMATCH),
        ("another version", list().version(&["2025-11-25"]), MISMATCH),
        (
            "version twice",
            list().version(&[VERSION, VERSION]),
            MISMATCH,
        ),
        ("empty version", list().version(&[""]), MISMATCH),
        (
            "spaces around the version",
            list().version(&[" \t2026-07-28 "]),
            READ,
        ),
        ("no method", list().method(&[]), MISMATCH),
        ("another method", list().method(&["tools/call"]), MISMATCH),
        (
            "method in other case",
            list().method(&["Tools/List"]),
            MISMATCH,
        ),
        (
            "method twice",
            list().method(&["tools/list", "tools/list"]),
            MISMATCH,
        ),
        (
            "spaces around the method",
            list().method(&["  tools/list\t"]),
            READ,
        ),
        ("a space inside", list().method(&["tools/ list"]), MISMATCH),
        (
            "the method is never encoded",
            list().method(&["=?base64?dG9vbHMvbGlzdA==?="]),
            MISMATCH,
        ),
        ("no name on a call", call("hello").name(&[]), MISMATCH),
        ("another name", call("hello").name(&["hallo"]), MISMATCH),
        (
            "name in other case",
            call("hello").name(&["Hello"]),
            MISMATCH,
        ),
        (
            "name twice",
            call("hello").name(&["hello", "hello"]),
            MISMATCH,
        ),
        (
            "spaces around the name",
            call("hello").name(&["\t hello  "]),
            READ,
        ),
        ("a name where none belongs", list().name(&["x"]), READ),
        ("no name on a task", get().name(&[]), READ),
        ("another name on a task", get().name(&["t-2"]), MISMATCH),
        (
            "the name of a task twice",
            get().name(&["t-1", "t-1"]),
            MISMATCH,
        ),
        (
            "name encoded",
            call("hello").name(&["=?base64?aGVsbG8=?="]),
            READ,
        ),
        (
            "name encoded, spaces around",
            call("hello").name(&[" =?base64?aGVsbG8=?= "]),
            READ,
        ),
        (
            "another name encoded",
            call("hello").name(&["=?base64?aGFsbG8=?="]),
            MISMATCH,
        ),
        (
            "encoded without padding",
            call("hello").name(&["=?base64?aGVsbG8?="]),
            MISMATCH,
        ),
        (
            "encoded with stray bits",
            call("hello").name(&["=?base64?aGVsbG9=?="]),
            MISMATCH,
        ),
        (
            "encoded with a space",
            call("hello").name(&["=?base64?aGVs bG8=?="]),
            MISMATCH,
        ),
        (
            "encoded with the URL alphabet",
            call("a??>").name(&["=?base64?YT8_Pg==?="]),
            MISMATCH,
        ),
        (
            "encoded with the right alphabet",
            call("a??>").name(&["=?base64?YT8/Pg==?="]),
            READ,
        ),
        (
            "encoded bytes that are no UTF-8",
            call("hello").name(&["=?base64?/w==?="]),
            MISMATCH,
        ),
        (
            "marker in capitals is literal",
            call("hello").name(&["=?BASE64?aGVsbG8=?="]),
            MISMATCH,
        ),
        (
            "only the prefix is literal",
            call("=?base64?aGVsbG8=").name(&["=?base64?aGVsbG8="]),
            READ,
        ),
        (
            "only the suffix is literal",
            call("aGVsbG8=?=").name(&["aGVsbG8=?="]),
            READ,
        ),
        (
            "markers that overlap are literal",
            call("=?base64?=").name(&["=?base64?="]),
            READ,
        ),
        (
            "a name like an encoded one",
            call("=?base64?x?=").name(&["=?base64?PT9iYXNlNjQ/eD89?="]),
            READ,
        ),
        (
            "raw text beyond ASCII",
            call("café").name(&["café"]),
            MISMATCH,
        ),
        (
            "encoded text beyond ASCII",
            call("café").name(&["=?base64?Y2Fmw6k=?="]),
            READ,
        ),
        (
            "control characters",
            call("a\u{1}b").name(&["a\u{1}b"]),
            MISMATCH,
        ),
    ]);
}

#[test]
fn a_header_that_is_no_text_is_refused() {
    let sent = Sent {
        name: vec![vec![0xff, 0xfe]],
        ..call("hello")
    };
    assert_eq!(outcome(&sent), MISMATCH);
}

#[test]
fn the_first_of_several_faults_is_the_one_reported() {
    let old = |sent: Sent| sent.meta(VERSION_KEY, json!("1900-01-01"));
    let no_tasks = |sent: Sent| sent.meta(CAPABILITIES_KEY, json!({}));
    check(vec![
        (
            "no _meta, no headers",
            Sent::without_meta("tools/list", json!({}))
                .version(&[])
                .method(&[]),
            INVALID_PARAMS,
        ),
        (
            "no _meta, unknown method",
            Sent::without_meta("initialize", json!({})),
            INVALID_PARAMS,
        ),
        (
            "no version in _meta, none in the header",
            list().without(VERSION_KEY).version(&[]),
            INVALID_PARAMS,
        ),
        (
            "no capabilities, another version",
            old(list().without(CAPABILITIES_KEY)),
            INVALID_PARAMS,
        ),
        ("unknown version in the body only", old(list()), MISMATCH),
        (
            "unknown version in the header only",
            list().version(&["1900-01-01"]),
            MISMATCH,
        ),
        (
            "the same unknown version in both",
            old(list()).version(&["1900-01-01"]),
            UNSUPPORTED,
        ),
        (
            "a known version that is switched off",
            list()
                .meta(VERSION_KEY, json!("2025-11-25"))
                .version(&["2025-11-25"]),
            UNSUPPORTED,
        ),
        (
            "unknown version, wrong method header",
            old(list()).version(&["1900-01-01"]).method(&["x"]),
            UNSUPPORTED,
        ),
        (
            "unknown version, members that only this one knows",
            old(list())
                .version(&["1900-01-01"])
                .meta("io.modelcontextprotocol/logLevel", json!(5)),
            UNSUPPORTED,
        ),
        (
            "wrong method header, unknown method",
            Sent::new("tasks/list", json!({})).method(&["x"]),
            MISMATCH,
        ),
        (
            "wrong name, not capable",
            no_tasks(get()).name(&["t-2"]),
            MISMATCH,
        ),
        (
            "unknown method, bad parameters",
            Sent::new("tasks/list", json!({"taskId": 5})),
            NOT_FOUND,
        ),
        (
            "unknown method, bad capabilities",
            Sent::new("x", json!({})).meta(CAPABILITIES_KEY, json!({"roots": 5})),
            NOT_FOUND,
        ),
        (
            "not capable, bad parameters",
            no_tasks(Sent::new("tasks/get", json!({}))),
            NOT_CAPABLE,
        ),
        (
            "not capable, a bad level",
            no_tasks(get()).meta("io.modelcontextprotocol/logLevel", json!("x")),
            NOT_CAPABLE,
        ),
        (
            "no name in the body",
            Sent::new("tools/call", json!({})).name(&["hello"]),
            INVALID_PARAMS,
        ),
        (
            "no name anywhere",
            Sent::new("tools/call", json!({})),
            MISMATCH,
        ),
    ]);
}

#[test]
fn methods_of_other_revisions_are_not_found() {
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/result",
        "tasks/list",
        "notifications/initialized",
        "Tools/List",
        "tools/list ",
        "",
    ] {
        assert_eq!(
            outcome(&Sent::new(method, json!({}))),
            if method.ends_with(' ') {
                MISMATCH
            } else {
                NOT_FOUND
            },
            "{method}"
        );
    }
}

#[test]
fn tasks_exist_only_for_clients_that_declare_them() {
    let with = |method: &str, capabilities: Value| {
        Sent::new(method, json!({"taskId": "t-1", "inputResponses": {}}))
            .meta(CAPABILITIES_KEY, capabilities)
    };
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        check(vec![
            (
                "declared",
                with(
                    method,
                    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
                ),
                READ,
            ),
            ("nothing declared", with(method, json!({})), NOT_CAPABLE),
            (
                "the tasks of 2025-11-25",
                with(
                    method,
                    json!({"tasks": {"requests": {"tools": {"call": {}}}}}),
                ),
                NOT_CAPABLE,
            ),
            (
                "another extension",
                with(method, json!({"extensions": {"com.example/tasks": {}}})),
                NOT_CAPABLE,
            ),
            (
                "at the wrong level",
                with(method, json!({"io.modelcontextprotocol/tasks": {}})),
                NOT_CAPABLE,
            ),
        ]);
    }
    let error = with("tasks/get", json!({})).read().unwrap_err();
    assert_eq!(
        error.data.unwrap(),
        r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#
    );
}

#[test]
fn a_transport_without_headers_has_the_same_order() {
    let read = |body: &Value| {
        let text = body.to_string();
        let Message::Request(envelope) = wire::parse(text.as_bytes()).unwrap() else {
            panic!("{text} is no request");
        };
        code_and_status(decode::over_stdio(&envelope).map(|(_, request)| format!("{request:?}")))
    };
    assert_eq!(read(&call("hello").body), READ);
    assert_eq!(
        read(&Sent::without_meta("tools/list", json!({})).body),
        INVALID_PARAMS
    );
    assert_eq!(
        read(&list().meta(VERSION_KEY, json!("2025-11-25")).body),
        UNSUPPORTED
    );
    assert_eq!(read(&Sent::new("tasks/list", json!({})).body), NOT_FOUND);
    assert_eq!(
        read(&get().meta(CAPABILITIES_KEY, json!({})).body),
        NOT_CAPABLE
    );
    assert_eq!(
        read(&Sent::new("tools/call", json!({})).body),
        INVALID_PARAMS
    );
}

/// A generator of the same numbers each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn text(&mut self) -> String {
        let length = self.next() % 24;
        let mut c = || char::from_u32(u32::try_from(self.next() % 0x3000).unwrap()).unwrap_or('=');
        (0..length).map(|_| c()).collect()
    }
}

#[test]
fn every_name_survives_its_encoding_and_no_damaged_one_does() {
    let mut numbers = Numbers(7);
    let mut damaged = 0;
    for _ in 0..5000 {
        let name = numbers.text();
        let encoded = BASE64_STANDARD.encode(&name);
        assert_eq!(
            decode_value(&format!("=?base64?{encoded}?=")).unwrap(),
            name
        );
        if encoded.is_empty() {
            continue;
        }
        // One character left out, or one that no encoder writes put in.
        let at = usize::try_from(numbers.next()).unwrap() % encoded.len();
        let (before, after) = encoded.split_at(at);
        for spoiled in [
            format!("{before}{}", &after[1..]),
            format!("{before}*{after}"),
            format!("{before} {after}"),
        ] {
            assert!(
                decode_value(&format!("=?base64?{spoiled}?=")).is_err(),
                "{spoiled}"
            );
            damaged += 1;
        }
    }
    assert!(damaged > 10_000);
}

#[test]
fn every_cursor_leads_back_and_nothing_else_is_one() {
    use longshore_protocol::cursor;

    let mut numbers = Numbers(11);
    for _ in 0..5000 {
        let name = numbers.text();
        if name.is_empty() {
            continue;
        }
        let cursor = cursor::encode(&name);
        assert_eq!(cursor::decode(&cursor).unwrap(), name);
        assert!(
            cursor
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        );
        let error = cursor::decode(&format!("{cursor}=")).unwrap_err();
        assert_eq!((error.code, error::http_status(&error)), INVALID_PARAMS);
    }
    let long = cursor::encode(&"n".repeat(8 * 1024 + 1));
    for cursor in [
        "",
        "x",
        "AQ",
        "hello",
        "AmhlbGxv",
        "AWhlbGxv\n",
        "AWhlbGx",
        "AQD_",
        "é",
        &long,
        &"A".repeat(100_000),
    ] {
        let error = cursor::decode(cursor).unwrap_err();
        assert_eq!(
            (error.code, error::http_status(&error)),
            INVALID_PARAMS,
            "{cursor}"
        );
    }
    assert_eq!(cursor::decode("AWhlbGxv").unwrap(), "hello");
    assert_eq!(
        cursor::decode(&cursor::encode(&"n".repeat(255)))
            .unwrap()
            .len(),
        255
    );
}

#[test]
fn headers_repeat_arguments() {
    let check = |sent: &[(&str, &str)], argument: Option<Value>| {
        let headers = sent.iter().map(|(name, value)| (*name, value.as_bytes()));
        ParameterHeaders::among(headers)
            .check("Region", argument.as_ref())
            .map_err(|error| error.code)
    };
    const NAME: &str = "mcp-param-region";
    let no = Err(error::HEADER_MISMATCH);
    type Row<'a> = (&'a [(&'a str, &'a str)], Option<Value>, Result<(), i32>);
    let rows: [Row<'_>; 29] = [
        (&[(NAME, "eu")], Some(json!("eu")), Ok(())),
        (&[("MCP-PARAM-REGION", "eu")], Some(json!("eu")), Ok(())),
        (&[(NAME, " \teu ")], Some(json!("eu")), Ok(())),
        (&[(NAME, "EU")], Some(json!("eu")), no),
        (&[(NAME, "eu"), (NAME, "eu")], Some(json!("eu")), no),
        (&[], Some(json!("eu")), no),
        (&[], Some(json!("")), no),
        (&[(NAME, "")], Some(json!("")), Ok(())),
        (&[], None, Ok(())),
        (&[], Some(json!(null)), Ok(())),
        (&[(NAME, "eu")], None, no),
        (&[(NAME, "null")], Some(json!(null)), no),
        (&[(NAME, "=?base64?w6k=?=")], Some(json!("é")), Ok(())),
        (&[(NAME, "é")], Some(json!("é")), no),
        (&[(NAME, "=?base64?w6k?=")], Some(json!("é")), no),
        (
            &[(NAME, "=?base64?w6k=")],
            Some(json!("=?base64?w6k=")),
            Ok(()),
        ),
        (&[(NAME, "42")], Some(json!(42)), Ok(())),
        (&[(NAME, "42.0")], Some(json!(42)), Ok(())),
        (&[(NAME, "4.2e1")], Some(json!(42)), Ok(())),
        (&[(NAME, "43")], Some(json!(42)), no),
        (&[(NAME, "042")], Some(json!(42)), no),
        (&[(NAME, "inf")], Some(json!(42)), no),
        (
            &[(NAME, "9007199254740992")],
            Some(json!(9_007_199_254_740_992_u64)),
            Ok(()),
        ),
        (
            &[(NAME, "9007199254740993")],
            Some(json!(9_007_199_254_740_992_u64)),
            no,
        ),
        (&[(NAME, "true")], Some(json!(true)), Ok(())),
        (&[(NAME, "True")], Some(json!(true)), no),
        (&[(NAME, "1")], Some(json!(true)), no),
        (&[], Some(json!([1])), Ok(())),
        (&[("mcp-param-other", "x"), ("region", "x")], None, Ok(())),
    ];
    for (sent, argument, expected) in rows {
        assert_eq!(
            check(sent, argument.clone()),
            expected,
            "{sent:?} {argument:?}"
        );
    }
}
