use longshore_protocol::capability::{Capability, ClientCapabilities, MAX_CAPABILITIES_BYTES};
use longshore_protocol::meta::{
    LogLevel, MAX_BAGGAGE_BYTES, MAX_IDEMPOTENCY_KEY_BYTES, MAX_TRACESTATE_BYTES,
};
use longshore_protocol::request::Request;
use serde_json::json;

use super::*;

fn list() -> Sent {
    Sent::new("tools/list", json!({}))
}

const LEVEL: &str = "io.modelcontextprotocol/logLevel";
const KEY: &str = "longshore/idempotencyKey";
const DEADLINE: &str = "longshore/deadlineMs";

#[test]
fn the_required_members_of_meta_are_required() {
    check(vec![
        (
            "no _meta",
            Sent::without_meta("tools/list", json!({})),
            INVALID_PARAMS,
        ),
        (
            "_meta null",
            Sent::without_meta("tools/list", json!({"_meta": null})),
            INVALID_PARAMS,
        ),
        (
            "_meta a list",
            Sent::without_meta("tools/list", json!({"_meta": []})),
            INVALID_PARAMS,
        ),
        (
            "_meta empty",
            Sent::without_meta("tools/list", json!({"_meta": {}})),
            INVALID_PARAMS,
        ),
        (
            "params a list",
            Sent {
                body: json!({"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}),
                ..list()
            },
            INVALID_PARAMS,
        ),
        (
            "params null",
            Sent {
                body: json!({"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}),
                ..list()
            },
            INVALID_PARAMS,
        ),
        (
            "no params",
            Sent {
                body: json!({"jsonrpc":"2.0","id":1,"method":"tools/list"}),
                ..list()
            },
            INVALID_PARAMS,
        ),
        ("no version", list().without(VERSION_KEY), INVALID_PARAMS),
        (
            "version a number",
            list().meta(VERSION_KEY, json!(2026)),
            INVALID_PARAMS,
        ),
        (
            "no capabilities",
            list().without(CAPABILITIES_KEY),
            INVALID_PARAMS,
        ),
        (
            "capabilities null",
            list().meta(CAPABILITIES_KEY, json!(null)),
            INVALID_PARAMS,
        ),
        (
            "capabilities a list",
            list().meta(CAPABILITIES_KEY, json!([])),
            INVALID_PARAMS,
        ),
        (
            "capabilities empty",
            list().meta(CAPABILITIES_KEY, json!({})),
            READ,
        ),
        (
            "client info is anything",
            list().meta("io.modelcontextprotocol/clientInfo", json!(5)),
            READ,
        ),
        (
            "unknown keys",
            list().meta("com.example/x", json!([{}])),
            READ,
        ),
    ]);
    let error = Sent::without_meta("initialize", json!({"protocolVersion": "2025-06-18"}))
        .read()
        .unwrap_err();
    assert!(
        error.message.contains("2026-07-28"),
        "an older client learns what is spoken: {}",
        error.message
    );
}

#[test]
fn optional_members_of_meta_have_their_types() {
    let longest = "k".repeat(MAX_IDEMPOTENCY_KEY_BYTES);
    let too_long = format!("{longest}k");
    let mut rows = vec![
        (
            "token a string",
            list().meta("progressToken", json!("p")),
            READ,
        ),
        ("token 0", list().meta("progressToken", json!(0)), READ),
        (
            "token a float",
            list().meta("progressToken", json!(0.5)),
            INVALID_PARAMS,
        ),
        (
            "token null",
            list().meta("progressToken", json!(null)),
            INVALID_PARAMS,
        ),
        (
            "token an object",
            list().meta("progressToken", json!({})),
            INVALID_PARAMS,
        ),
        (
            "token too long",
            list().meta("progressToken", json!("p".repeat(1023))),
            INVALID_PARAMS,
        ),
        (
            "level in capitals",
            list().meta(LEVEL, json!("Debug")),
            INVALID_PARAMS,
        ),
        (
            "level unknown",
            list().meta(LEVEL, json!("warn")),
            INVALID_PARAMS,
        ),
        (
            "level a number",
            list().meta(LEVEL, json!(4)),
            INVALID_PARAMS,
        ),
        ("key longest", list().meta(KEY, json!(longest)), READ),
        (
            "key too long",
            list().meta(KEY, json!(too_long)),
            INVALID_PARAMS,
        ),
        ("key empty", list().meta(KEY, json!("")), INVALID_PARAMS),
        ("key a number", list().meta(KEY, json!(1)), INVALID_PARAMS),
        ("deadline 1", list().meta(DEADLINE, json!(1)), READ),
        (
            "deadline 0",
            list().meta(DEADLINE, json!(0)),
            INVALID_PARAMS,
        ),
        (
            "deadline negative",
            list().meta(DEADLINE, json!(-1)),
            INVALID_PARAMS,
        ),
        (
            "deadline a float",
            list().meta(DEADLINE, json!(1.5)),
            INVALID_PARAMS,
        ),
        (
            "deadline a string",
            list().meta(DEADLINE, json!("1")),
            INVALID_PARAMS,
        ),
    ];
    for level in LogLevel::ALL {
        rows.push((
            level.as_str(),
            list().meta(LEVEL, json!(level.as_str())),
            READ,
        ));
    }
    check(rows);
}

#[test]
fn a_member_that_stands_twice_is_refused() {
    let sent = Sent::new("tools/call", json!({"name": "hello"}));
    let meta = format!(r#""_meta":{{"{VERSION_KEY}":"{VERSION}","{CAPABILITIES_KEY}":{{}}}}"#);
    for (params, expected) in [
        (format!(r#"{{"name":"hello",{meta}}}"#), READ),
        (
            format!(r#"{{"name":"hello","name":"hello",{meta}}}"#),
            INVALID_PARAMS,
        ),
        (
            format!(r#"{{"name":"hello",{meta},{meta}}}"#),
            INVALID_PARAMS,
        ),
        (
            format!(r#"{{"name":"hello","arguments":{{}},"arguments":{{}},{meta}}}"#),
            INVALID_PARAMS,
        ),
        (
            format!(r#"{{"name":"hello","\u006eame":"other",{meta}}}"#),
            INVALID_PARAMS,
        ),
        (format!(r#"{{"name":"hello","x":1,"x":2,{meta}}}"#), READ),
        (
            format!(
                r#"{{"name":"hello",{}}}"#,
                meta.replace("{}", r#"{"roots":{},"roots":{}}"#)
            ),
            INVALID_PARAMS,
        ),
        (
            format!(
                r#"{{"name":"hello",{}}}"#,
                meta.replace("{}", r#"{},"progressToken":1,"progressToken":2"#)
            ),
            INVALID_PARAMS,
        ),
        (
            format!(r#"{{"name":"hello","\ud800":1,{meta}}}"#),
            INVALID_PARAMS,
        ),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        assert_eq!(code_and_status(sent.read_text(&body)), expected, "{body}");
    }
}

#[test]
fn parameters_have_their_types() {
    let call = |params: Value| Sent::new("tools/call", params).name(&["hello"]);
    let update = |params: Value| Sent::new("tasks/update", params).name(&[]);
    let task = |method: &str, params: Value| Sent::new(method, params).name(&[]);
    check(vec![
        (
            "discover",
            Sent::new("server/discover", json!({"x": 1})),
            READ,
        ),
        (
            "cursor",
            Sent::new("tools/list", json!({"cursor": "c"})),
            READ,
        ),
        (
            "cursor a number",
            Sent::new("tools/list", json!({"cursor": 5})),
            INVALID_PARAMS,
        ),
        (
            "cursor null",
            Sent::new("tools/list", json!({"cursor": null})),
            INVALID_PARAMS,
        ),
        ("no arguments", call(json!({"name": "hello"})), READ),
        (
            "arguments",
            call(json!({"name": "hello", "arguments": {"a": [1]}})),
            READ,
        ),
        (
            "arguments a list",
            call(json!({"name": "hello", "arguments": [1]})),
            INVALID_PARAMS,
        ),
        (
            "arguments null",
            call(json!({"name": "hello", "arguments": null})),
            INVALID_PARAMS,
        ),
        (
            "arguments a string",
            call(json!({"name": "hello", "arguments": "{}"})),
            INVALID_PARAMS,
        ),
        (
            "a stray task",
            call(json!({"name": "hello", "task": 5})),
            READ,
        ),
        (
            "answers a list",
            call(json!({"name": "hello", "inputResponses": []})),
            INVALID_PARAMS,
        ),
        ("no name", call(json!({"arguments": {}})), INVALID_PARAMS),
        ("name a number", call(json!({"name": 5})), INVALID_PARAMS),
        ("get", task("tasks/get", json!({"taskId": "t"})), READ),
        (
            "get without id",
            task("tasks/get", json!({})),
            INVALID_PARAMS,
        ),
        (
            "get with a number",
            task("tasks/get", json!({"taskId": 5})),
            INVALID_PARAMS,
        ),
        ("cancel", task("tasks/cancel", json!({"taskId": "t"})), READ),
        (
            "cancel without id",
            task("tasks/cancel", json!({"id": "t"})),
            INVALID_PARAMS,
        ),
        (
            "update",
            update(json!({"taskId": "t", "inputResponses": {"k": 5}})),
            READ,
        ),
        (
            "update with nothing",
            update(json!({"taskId": "t", "inputResponses": {}})),
            READ,
        ),
        (
            "update without answers",
            update(json!({"taskId": "t"})),
            INVALID_PARAMS,
        ),
        (
            "update with a list",
            update(json!({"taskId": "t", "inputResponses": []})),
            INVALID_PARAMS,
        ),
        (
            "update without id",
            update(json!({"inputResponses": {}})),
            INVALID_PARAMS,
        ),
    ]);
    let meta = format!(
        r#"{{"{VERSION_KEY}":"{VERSION}","{CAPABILITIES_KEY}":{{"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}}}}"#
    );
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{{"taskId":"t","inputResponses":{{"k":1,"k":2}},"_meta":{meta}}}}}"#
    );
    assert_eq!(
        code_and_status(update(json!({})).read_text(&body)),
        INVALID_PARAMS
    );
}

#[test]
fn what_is_read_is_what_was_sent() {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{{"taskId":"t\u0031","inputResponses":{{"b":{{ "x" : 1.0 }},"\u0061":[]}},"_meta":{{"{VERSION_KEY}":"{VERSION}","{CAPABILITIES_KEY}": {{ "extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}} ,"progressToken":"p","{LEVEL}":"warning","{KEY}":"k","{DEADLINE}":5000}}}}}}"#
    );
    let Message::Request(envelope) = wire::parse(body.as_bytes()).unwrap() else {
        panic!("not a request");
    };
    let (meta, request) = decode::over_stdio(&envelope).unwrap();
    assert_eq!(meta.revision.as_str(), VERSION);
    assert_eq!(
        meta.capabilities,
        ClientCapabilities {
            tasks: true,
            ..Default::default()
        }
    );
    assert_eq!(
        meta.capabilities_json,
        r#"{ "extensions":{"io.modelcontextprotocol/tasks":{}}}"#
    );
    assert_eq!(
        ClientCapabilities::parse(meta.capabilities_json).unwrap(),
        meta.capabilities
    );
    assert_eq!(meta.progress_token.unwrap().as_json(), r#""p""#);
    assert_eq!(meta.log_level, Some(LogLevel::Warning));
    assert_eq!(meta.idempotency_key.as_deref(), Some("k"));
    assert_eq!(meta.deadline_ms, Some(5000));
    let Request::TasksUpdate {
        task_id,
        input_responses,
    } = request
    else {
        panic!("not an update");
    };
    assert_eq!(task_id, "t1");
    let answers: Vec<(&str, &str)> = input_responses
        .iter()
        .map(|(key, raw)| (key.as_ref(), raw.get()))
        .collect();
    assert_eq!(answers, [("b", r#"{ "x" : 1.0 }"#), ("a", "[]")]);
}

#[test]
fn capabilities_are_what_was_declared() {
    use Capability::{
        Elicitation, ElicitationForm, ElicitationUrl, Roots, Sampling, SamplingContext,
        SamplingTools, Tasks,
    };
    for (text, expected) in [
        ("{}", vec![]),
        (r#"{"elicitation":{}}"#, vec![Elicitation, ElicitationForm]),
        (
            r#"{"elicitation":{"form":{}}}"#,
            vec![Elicitation, ElicitationForm],
        ),
        (
            r#"{"elicitation":{"url":{}}}"#,
            vec![Elicitation, ElicitationUrl],
        ),
        (
            r#"{"elicitation":{"form":{},"url":{}}}"#,
            vec![Elicitation, ElicitationForm, ElicitationUrl],
        ),
        (r#"{"sampling":{}}"#, vec![Sampling]),
        (
            r#"{"sampling":{"tools":{}}}"#,
            vec![Sampling, SamplingTools],
        ),
        (
            r#"{"sampling":{"context":{}}}"#,
            vec![Sampling, SamplingContext],
        ),
        (r#"{"roots":{"listChanged":true}}"#, vec![Roots]),
        (
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"com.example/x":5}}"#,
            vec![Tasks],
        ),
        (r#"{"tasks":{},"experimental":{"tasks":{}}}"#, vec![]),
    ] {
        let capabilities = ClientCapabilities::parse(text).unwrap();
        let has: Vec<Capability> = Capability::ALL
            .into_iter()
            .filter(|one| capabilities.has(*one))
            .collect();
        assert_eq!(has, expected, "{text}");
        for capability in Capability::ALL {
            assert_eq!(
                capabilities.require(&[capability]).is_ok(),
                expected.contains(&capability),
                "{text}"
            );
        }
    }
    for text in [
        r#"{"elicitation":true}"#,
        r#"{"elicitation":null}"#,
        r#"{"elicitation":{"form":true}}"#,
        r#"{"sampling":[]}"#,
        r#"{"sampling":{"tools":1}}"#,
        r#"{"roots":"yes"}"#,
        r#"{"extensions":[]}"#,
        r#"{"extensions":{"io.modelcontextprotocol/tasks":true}}"#,
        r#"{"roots":{},"roots":{}}"#,
        "[]",
        "{",
    ] {
        let error = ClientCapabilities::parse(text).unwrap_err();
        assert_eq!(
            (error.code, error::http_status(&error)),
            INVALID_PARAMS,
            "{text}"
        );
    }
    let of = |length: usize| format!(r#"{{"x":"{}"}}"#, "y".repeat(length - 8));
    assert!(ClientCapabilities::parse(&of(MAX_CAPABILITIES_BYTES)).is_ok());
    assert!(ClientCapabilities::parse(&of(MAX_CAPABILITIES_BYTES + 1)).is_err());
}

#[test]
fn what_is_missing_is_shaped_like_a_declaration() {
    for (required, expected) in [
        (
            vec![Capability::Tasks],
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
        ),
        (vec![Capability::Elicitation], r#"{"elicitation":{}}"#),
        (
            vec![Capability::ElicitationUrl],
            r#"{"elicitation":{"url":{}}}"#,
        ),
        (
            vec![Capability::ElicitationForm, Capability::Elicitation],
            r#"{"elicitation":{"form":{}}}"#,
        ),
        (
            vec![Capability::SamplingTools, Capability::Roots],
            r#"{"sampling":{"tools":{}},"roots":{}}"#,
        ),
        (
            vec![Capability::Sampling, Capability::SamplingContext],
            r#"{"sampling":{"context":{}}}"#,
        ),
    ] {
        let error = ClientCapabilities::default()
            .require(&required)
            .unwrap_err();
        assert_eq!((error.code, error::http_status(&error)), NOT_CAPABLE);
        assert_eq!(
            error.data.unwrap(),
            format!(r#"{{"requiredCapabilities":{expected}}}"#)
        );
        // A client that declares just that is served.
        assert!(
            ClientCapabilities::parse(expected)
                .unwrap()
                .require(&required)
                .is_ok(),
            "{expected}"
        );
    }
    for capability in Capability::ALL {
        assert_eq!(Capability::parse(capability.word()), Some(capability));
    }
    assert_eq!(Capability::parse("elicitation.voice"), None);
}

#[test]
fn a_malformed_trace_is_as_good_as_none() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let trace = |key: &str, value: Value| {
        let sent = if key == "tracestate" {
            list().meta("traceparent", json!(PARENT))
        } else {
            list()
        };
        let read = sent.meta(key, value).read().unwrap();
        read.split_once("TraceContext ")
            .unwrap()
            .1
            .contains(&format!("{key}: Some("))
    };
    for (key, value, kept) in [
        ("traceparent", json!(PARENT), true),
        ("traceparent", json!(PARENT.to_uppercase()), false),
        ("traceparent", json!(PARENT.replacen("00", "ff", 1)), false),
        ("traceparent", json!(format!("{PARENT}-more")), false),
        (
            "traceparent",
            json!(format!("{PARENT}-more").replacen("00", "01", 1)),
            true,
        ),
        (
            "traceparent",
            json!("00-00000000000000000000000000000000-b7ad6b7169203331-01"),
            false,
        ),
        (
            "traceparent",
            json!("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"),
            false,
        ),
        (
            "traceparent",
            json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"),
            false,
        ),
        ("traceparent", json!(""), false),
        ("traceparent", json!(5), false),
        ("tracestate", json!("a=1,b=2"), true),
        ("tracestate", json!("s".repeat(MAX_TRACESTATE_BYTES)), true),
        (
            "tracestate",
            json!("s".repeat(MAX_TRACESTATE_BYTES + 1)),
            false,
        ),
        ("tracestate", json!("a=\n"), false),
        ("baggage", json!("user=1"), true),
        ("baggage", json!("é=1"), false),
        ("baggage", json!("b".repeat(MAX_BAGGAGE_BYTES)), true),
        ("baggage", json!("b".repeat(MAX_BAGGAGE_BYTES + 1)), false),
        ("baggage", json!([]), false),
    ] {
        assert_eq!(trace(key, value.clone()), kept, "{key} {value}");
    }
    let alone = list().meta("tracestate", json!("a=1")).read().unwrap();
    assert!(
        alone.contains("tracestate: None"),
        "a state without a parent means nothing"
    );
}
