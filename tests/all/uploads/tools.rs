//! What a component lists, and how it behaves while it is asked.

use std::io::ErrorKind;
use std::net::TcpListener;

use longshore_tests::component::{Behaviour, Made, Mode, Tool};
use longshore_tests::process::Server;
use serde_json::{Value, json};

use super::{Row, check, server};

fn listing(
    what: &str,
    tools: impl Into<Vec<Tool>>,
    reason: &'static str,
    says: &'static str,
) -> Row {
    Row::new(what, Made::of(tools).bytes(), reason, says)
}

fn named(name: &str, reason: &'static str, says: &'static str) -> Row {
    listing(
        &format!("a tool named {name:?}"),
        [Tool::named(name)],
        reason,
        says,
    )
}

/// Beside a good tool, so that one bad schema is enough.
fn schema(schema: impl Into<String>, says: &'static str) -> Row {
    let schema = schema.into();
    let what = format!("the schema {}", schema.chars().take(80).collect::<String>());
    let tools = [Tool::named("good"), Tool::named("bad").with_input(schema)];
    listing(&what, tools, "schema", says)
}

fn header(property: &Value) -> Row {
    let schema = json!({ "type": "object", "properties": { "p": property } }).to_string();
    listing(
        &schema,
        [Tool::named("t").with_input(schema.clone())],
        "x-mcp-header",
        "x-mcp-header",
    )
}

#[tokio::test]
async fn names_are_unique_plain_and_not_the_hosts() {
    let long = "n".repeat(65);
    let rows = vec![
        listing(
            "a name twice",
            [Tool::named("twin"), Tool::named("one"), Tool::named("twin")],
            "duplicate-tool",
            "\"twin\"",
        ),
        named("", "tool-name", "clients refuse"),
        named(&long, "tool-name", "clients refuse"),
        named("two words", "tool-name", "clients refuse"),
        named("tasks/get", "tool-name", "clients refuse"),
        named("line\nbreak", "tool-name", "clients refuse"),
        named("аdd", "tool-name", "clients refuse"),
        named("longshore_task_wait", "reserved", "longshore_"),
        named("LongShore_anything", "reserved", "longshore_"),
    ];
    let server = server().await;
    check(&server, rows).await;
    // Names that differ by case or sign are different names.
    let alike: Vec<Tool> = ["a-b", "a_b", "A-b", "a.b", &"n".repeat(64)]
        .map(Tool::named)
        .into();
    let reply = server.upload("alike", Made::of(alike).bytes()).await;
    assert_eq!(
        (reply.status, reply.json()["tools"].as_array().map(Vec::len)),
        (201, Some(5)),
        "{}",
        reply.json()
    );
}

#[tokio::test]
async fn fields_that_are_not_as_they_must_be_are_refused() {
    let tool = || Tool::named("t");
    let many: Vec<Tool> = (0..129).map(|n| Tool::named(&format!("t{n}"))).collect();
    let rows = vec![
        listing("no tool", [], "list-tools", "no tool"),
        listing("129 tools", many, "list-tools", "at most 128"),
        listing(
            "a long title",
            [Tool {
                title: Some("t".repeat(256)),
                ..tool()
            }],
            "list-tools",
            "title",
        ),
        listing(
            "a long description",
            [Tool {
                description: "d".repeat(8193),
                ..tool()
            }],
            "list-tools",
            "description",
        ),
        listing(
            "an unknown word",
            [Tool {
                requires: vec!["telepathy".into()],
                ..tool()
            }],
            "list-tools",
            "telepathy",
        ),
        listing(
            "extra that is a list",
            [Tool {
                extra: Some("[]".into()),
                ..tool()
            }],
            "list-tools",
            "object",
        ),
        listing(
            "extra that is no JSON",
            [Tool {
                extra: Some("{".into()),
                ..tool()
            }],
            "list-tools",
            "JSON",
        ),
        listing(
            "a bad deadline",
            [Tool {
                extra: Some("{\"longshore/deadlineMs\":-1}".into()),
                ..tool()
            }],
            "list-tools",
            "deadlineMs",
        ),
        listing(
            "annotations that are a number",
            [Tool {
                extra: Some("{\"annotations\":1}".into()),
                ..tool()
            }],
            "list-tools",
            "annotations",
        ),
        header(&json!({ "type": "string", "x-mcp-header": "" })),
        header(&json!({ "type": "string", "x-mcp-header": "a\r\nEvil: 1" })),
        header(&json!({ "type": "number", "x-mcp-header": "Size" })),
        header(&json!({ "type": "array", "items": { "type": "string", "x-mcp-header": "Item" } })),
    ];
    check(&server().await, rows).await;
}

#[tokio::test]
async fn schemas_that_are_not_fit_for_strangers_are_refused() {
    let deep = format!(
        "{{\"type\":\"object\",\"a\":{}{}}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let deep_properties = (0..5_000).fold("true".to_owned(), |inside, _| {
        format!("{{\"not\":{inside}}}")
    });
    let wide = format!(
        "{{\"type\":\"object\",\"enum\":[{}0]}}",
        "0,".repeat(10_000)
    );
    let rows = vec![
        schema("", "JSON"),
        schema("{", "JSON"),
        schema("[]", "object"),
        schema("true", "object"),
        schema("{}", "\"type\": \"object\""),
        schema("{\"type\":\"string\"}", "\"type\": \"object\""),
        schema("{\"type\":[\"object\",\"null\"]}", "\"type\": \"object\""),
        schema("{\"type\":\"object\",\"type\":\"object\"}", "stands twice"),
        schema(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"objekt\"}}}",
            "not a JSON Schema",
        ),
        schema(
            "{\"type\":\"object\",\"required\":\"a\"}",
            "not a JSON Schema",
        ),
        schema(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"minimum\":\"1\"}}}",
            "not a JSON Schema",
        ),
        schema(
            "{\"type\":\"object\",\"$schema\":\"https://acme.example/dialect\"}",
            "dialect",
        ),
        schema(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"file:///etc/passwd\"}}}",
            "file:///etc/passwd",
        ),
        schema(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"pattern\":\"(a)\\\\1\"}}}",
            "linear time",
        ),
        schema(
            "{\"type\":\"object\",\"properties\":{\"a\":{\"pattern\":\"(((a{99}){99}){99}){99}\"}}}",
            "pattern",
        ),
        schema(
            format!(
                "{{\"type\":\"object\",\"description\":\"{}\"}}",
                "d".repeat(256 * 1024)
            ),
            "make it at most",
        ),
        schema(deep, "nested deeper"),
        schema(
            format!("{{\"type\":\"object\",\"properties\":{{\"a\":{deep_properties}}}}}"),
            "nested deeper",
        ),
        schema(wide, "values"),
        listing(
            "a bad output schema",
            [Tool {
                output_schema: Some("{\"type\":5}".to_owned()),
                ..Tool::named("t")
            }],
            "schema",
            "output schema",
        ),
    ];
    check(&server().await, rows).await;
}

#[tokio::test]
async fn references_to_elsewhere_are_refused_and_never_followed() {
    let canary = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    canary
        .set_nonblocking(true)
        .expect("a listener can be asked without waiting");
    let port = canary.local_addr().expect("it has an address").port();
    let at = |keyword: &str, scheme: &str| {
        let schema = json!({ "type": "object", "properties": { "a": { keyword: format!("{scheme}://127.0.0.1:{port}/s.json") } } });
        schema.to_string()
    };
    let rows = vec![
        schema(at("$ref", "http"), "127.0.0.1"),
        schema(at("$ref", "https"), "127.0.0.1"),
        schema(at("$dynamicRef", "http"), "127.0.0.1"),
        schema(json!({ "type": "object", "$schema": format!("http://127.0.0.1:{port}/d.json") }).to_string(), "dialect"),
        schema(
            json!({ "type": "object", "$id": format!("http://127.0.0.1:{port}/"), "$ref": "other.json" }).to_string(),
            "",
        ),
    ];
    check(&server().await, rows).await;
    let knocked = canary
        .accept()
        .map(|(_, from)| from)
        .map_err(|error| error.kind());
    assert_eq!(
        knocked,
        Err(ErrorKind::WouldBlock),
        "somebody followed a reference"
    );
}

#[tokio::test]
async fn a_component_that_does_not_list_its_tools_is_given_up() {
    let listing = |listing, says| {
        Row::new(
            format!("listing {listing:?}"),
            Made {
                listing,
                ..Made::with_tool("t")
            }
            .bytes(),
            "list-tools",
            says,
        )
    };
    let start = |start, says| {
        Row::new(
            format!("starting {start:?}"),
            Made {
                start,
                ..Made::with_tool("t")
            }
            .bytes(),
            "init",
            says,
        )
    };
    let rows = vec![
        listing(Behaviour::Loops, "CPU"),
        listing(Behaviour::Traps, "unreachable"),
        listing(Behaviour::Sleeps(3_600_000), "more than 2 s"),
        listing(Behaviour::Waits(3_600_000), "more than 2 s"),
        start(Behaviour::Loops, "CPU"),
        start(Behaviour::Traps, "unreachable"),
        start(Behaviour::Sleeps(3_600_000), "more than 2 s"),
        start(Behaviour::Waits(3_600_000), "more than 2 s"),
    ];
    check(&server().await, rows).await;
}

async fn descriptor(server: &Server, name: &str) -> Value {
    let mut listed = server.client().result("tools/list", json!({})).await;
    let tools = listed["tools"].as_array_mut().expect("a list");
    tools
        .iter_mut()
        .find(|tool| tool["name"] == name)
        .map_or(Value::Null, Value::take)
}

#[tokio::test]
async fn every_field_of_a_good_tool_arrives() {
    let server = server().await;
    let tool = Tool {
        title: Some("A Title — with signs".into()),
        description: "Says it.".into(),
        input_schema: "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}".into(),
        output_schema: None,
        mode: Mode::Never,
        requires: vec!["elicitation".into()],
        extra: Some(
            "{\"annotations\":{\"readOnlyHint\":true},\"longshore/deadlineMs\":60000}".into(),
        ),
        ..Tool::named("good")
    };
    let made = Made {
        answer: "it".into(),
        ..Made::of([Tool::named("another"), tool])
    };
    let reply = server.upload("good", made.bytes()).await;
    assert_eq!(reply.status, 201, "{}", reply.json());
    assert_eq!(reply.json()["tools"], json!(["another", "good"]));
    let listed = descriptor(&server, "good").await;
    assert_eq!(listed["title"], "A Title — with signs");
    assert_eq!(listed["description"], "Says it.");
    assert_eq!(
        listed["inputSchema"],
        json!({ "type": "object", "properties": { "a": { "type": "integer" } } })
    );
    assert_eq!(listed["annotations"], json!({ "readOnlyHint": true }));
    assert!(!listed.to_string().contains("deadline"), "{listed}");
    let shown = server.admin("GET", "/v1/components/good", "").await.json();
    assert_eq!(
        shown["tools"][1]["requires"],
        json!(["elicitation"]),
        "{shown}"
    );
    assert_eq!(shown["tools"][1]["taskMode"], "never", "{shown}");
    let answer = server.client().call("good", json!({ "a": 1 })).await;
    assert_eq!(answer["content"], json!([{ "type": "text", "text": "it" }]));
    let refused = server.client().call("good", json!({ "a": "one" })).await;
    assert_eq!(refused["isError"], true, "{refused}");
}
