//! Answers of more than one message: what a call tells while somebody waits for it, and what happens to tasks and tools
//! that somebody listens to.

mod early;
mod held;
mod listen;

use longshore_tests::mcp::Client;
use serde_json::{Value, json};

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// A call that asks for more than its result.
fn call(client: &Client, tool: &str, arguments: &Value, meta: &Value) -> Value {
    let mut request = client.request(
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    );
    for (key, value) in meta.as_object().expect("_meta is an object") {
        request["params"]["_meta"][key] = value.clone();
    }
    request
}
