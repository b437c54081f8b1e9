//! Arguments that are repeated as headers, because the tool's schema says so.

use longshore_tests::component::{Made, Tool};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::{Error, Fine, Sent, check};

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "value": { "type": "string", "x-mcp-header": "Value" },
        "plain": { "type": "string" },
        "where": {
            "type": "object",
            "properties": { "shelf": { "type": "integer", "x-mcp-header": "Shelf" } }
        }
    }
}"#;

fn call(client: &Client, arguments: &Value) -> Sent {
    Sent::new(
        client,
        "tools/call",
        json!({ "name": "stored", "arguments": arguments }),
    )
}

#[tokio::test]
async fn arguments_are_repeated_as_the_schema_says() {
    let server = Server::start(Options::default()).await;
    let made = Made::of([Tool::named("stored").with_input(SCHEMA)]);
    assert_eq!(server.upload("stored", made.bytes()).await.status, 201);
    let client = server.client();
    let text = |text: &str| call(&client, &json!({ "value": text }));
    let mismatch = Error(400, -32020);
    const VALUE: &str = "mcp-param-value";
    let rows = vec![
        ("the same", text("hello").with(VALUE, "hello"), Fine),
        (
            "encoded",
            text("Hello").with(VALUE, "=?base64?SGVsbG8=?="),
            Fine,
        ),
        (
            "encoded without padding",
            text("Hello").with(VALUE, "=?base64?SGVsbG8?="),
            mismatch.clone(),
        ),
        (
            "encoded in another alphabet",
            text("Hello").with(VALUE, "=?base64?SGVs!!!bG8=?="),
            mismatch.clone(),
        ),
        (
            "the first marker alone",
            text("=?base64?SGVsbG8=").with(VALUE, "=?base64?SGVsbG8="),
            Fine,
        ),
        (
            "the last marker alone",
            text("SGVsbG8=?=").with(VALUE, "SGVsbG8=?="),
            Fine,
        ),
        ("left out", text("hello"), mismatch.clone()),
        (
            "another",
            text("hello").with(VALUE, "hallo"),
            mismatch.clone(),
        ),
        (
            "doubled",
            text("hello").and(VALUE, "hello").and(VALUE, "hello"),
            mismatch.clone(),
        ),
        (
            "nothing to repeat",
            call(&client, &json!({ "value": null, "plain": "x" })),
            // Null is no string, which is for the model to learn.
            Fine,
        ),
        ("no arguments", call(&client, &json!({})), Fine),
        (
            "a value that is not in the body",
            call(&client, &json!({})).with(VALUE, "hello"),
            mismatch.clone(),
        ),
        (
            "a number inside, written in another way",
            call(&client, &json!({ "where": { "shelf": 42 } })).with("mcp-param-shelf", "42.0"),
            Fine,
        ),
        (
            "another number inside",
            call(&client, &json!({ "where": { "shelf": 42 } })).with("mcp-param-shelf", "41"),
            mismatch.clone(),
        ),
        (
            "a header that no schema names",
            call(&client, &json!({ "plain": "x" })).with("mcp-param-plain", "y"),
            Fine,
        ),
        (
            "an argument that does not fit, and its header: the header is looked at first",
            call(&client, &json!({ "value": "x", "where": 1 })).with(VALUE, "y"),
            mismatch,
        ),
    ];
    check(server.address, rows).await;
}
