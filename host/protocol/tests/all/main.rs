//! The wire from outside: bytes in, bytes out.

mod envelope;
mod forms;
mod goldens;
mod guests;
mod lists;
mod order;
mod params;
mod questions;
mod sessions;

use longshore_protocol::decode;
use longshore_protocol::envelope::{self as wire, Message};
use longshore_protocol::error::{self, RpcError};
use longshore_protocol::headers::{Field, Headers};
use serde_json::{Value, json};

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const VERSION: &str = "2026-07-28";

/// A request as a client that makes no mistake sends it, to be spoiled by the test.
struct Sent {
    body: Value,
    version: Vec<Vec<u8>>,
    method: Vec<Vec<u8>>,
    name: Vec<Vec<u8>>,
}

impl Sent {
    fn new(method: &str, params: Value) -> Self {
        let mut sent = Self::without_meta(method, params);
        sent.body["params"]["_meta"] = json!({
            VERSION_KEY: VERSION,
            CAPABILITIES_KEY: {"extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        sent
    }

    fn without_meta(method: &str, params: Value) -> Self {
        let name = ["name", "taskId", "uri"]
            .iter()
            .find_map(|key| params[*key].as_str());
        let name = name
            .map(|name| name.as_bytes().to_vec())
            .into_iter()
            .collect();
        let mut body = json!({"jsonrpc": "2.0", "id": 7, "method": method});
        body["params"] = params;
        Self {
            body,
            version: vec![VERSION.into()],
            method: vec![method.into()],
            name,
        }
    }

    fn meta(mut self, key: &str, value: Value) -> Self {
        self.body["params"]["_meta"][key] = value;
        self
    }

    fn without(mut self, key: &str) -> Self {
        self.body["params"]["_meta"]
            .as_object_mut()
            .unwrap()
            .remove(key);
        self
    }

    fn version(self, values: &[&str]) -> Self {
        Self {
            version: bytes(values),
            ..self
        }
    }

    fn method(self, values: &[&str]) -> Self {
        Self {
            method: bytes(values),
            ..self
        }
    }

    fn name(self, values: &[&str]) -> Self {
        Self {
            name: bytes(values),
            ..self
        }
    }

    /// Over HTTP; what was read as its debug text.
    fn read(&self) -> Result<String, RpcError> {
        self.read_text(&self.body.to_string())
    }

    fn read_text(&self, body: &str) -> Result<String, RpcError> {
        let headers = Headers {
            protocol_version: field(&self.version),
            method: field(&self.method),
            name: field(&self.name),
        };
        let Message::Request(envelope) = wire::parse(body.as_bytes()).unwrap() else {
            panic!("{body} is no request");
        };
        decode::over_http(&headers, &envelope)
            .map(|(meta, request)| format!("{request:?} {meta:?}"))
    }
}

fn bytes(values: &[&str]) -> Vec<Vec<u8>> {
    values
        .iter()
        .map(|value| value.as_bytes().to_vec())
        .collect()
}

fn field(values: &[Vec<u8>]) -> Field<'_> {
    values.iter().map(Vec::as_slice).collect()
}

/// The code and status that a request is refused with, or (0, 200) if it is read.
fn outcome(sent: &Sent) -> (i32, u16) {
    code_and_status(sent.read())
}

fn code_and_status(read: Result<String, RpcError>) -> (i32, u16) {
    read.map_or_else(
        |error| (error.code, error::http_status(&error)),
        |_| (0, 200),
    )
}

const READ: (i32, u16) = (0, 200);
const INVALID_PARAMS: (i32, u16) = (-32602, 400);
const NOT_FOUND: (i32, u16) = (-32601, 404);
const MISMATCH: (i32, u16) = (-32020, 400);
const NOT_CAPABLE: (i32, u16) = (-32021, 400);
const UNSUPPORTED: (i32, u16) = (-32022, 400);

/// Runs a table: each row has a name, a request and what becomes of it.
fn check(rows: Vec<(&str, Sent, (i32, u16))>) {
    for (name, sent, expected) in rows {
        assert_eq!(
            outcome(&sent),
            expected,
            "{name}: {} → {:?}",
            sent.body,
            sent.read()
        );
    }
}

#[test]
fn each_code_has_its_status() {
    for (code, status) in [
        (-32700, 400),
        (-32600, 400),
        (-32601, 404),
        (-32602, 400),
        (-32603, 500),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (1000, 200),
        (42, 200),
        (-1, 200),
    ] {
        assert_eq!(
            error::http_status(&RpcError::new(code, "x")),
            status,
            "{code}"
        );
    }
}
