//! Every rule of the wire, against a real process: what is refused, with which status, code and data,
//! and what the answers look like.

mod answers;
mod bodies;
mod envelope;
mod headers;
mod hosts;
mod methods;
mod parameters;
mod patience;
mod raw;
mod smuggling;
mod tasks;
mod tools;

use std::net::SocketAddr;

use longshore_tests::http::{Reply, send};
use longshore_tests::mcp::Client;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The key under which every request names its revision.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The key under which every request says what its client can do.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The key under which every result says who answers.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The tasks extension.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A request as a client in order sends it, to be bent by a test.
#[derive(Clone, Debug)]
struct Sent {
    verb: &'static str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Sent {
    /// A request in order.
    fn new(client: &Client, method: &str, params: Value) -> Self {
        Self::edited(client, method, params, |_| {})
    }

    /// A request whose body is changed after its headers were written.
    fn edited(client: &Client, method: &str, params: Value, edit: impl FnOnce(&mut Value)) -> Self {
        let mut request = client.request(method, params);
        let headers = Client::headers(&request);
        edit(&mut request);
        Self {
            verb: "POST",
            headers,
            body: request.to_string().into_bytes(),
        }
    }

    /// Any bytes, under the headers of `tools/list`.
    fn bytes(client: &Client, body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..Self::new(client, "tools/list", json!({}))
        }
    }

    /// The same by another HTTP method.
    fn by(self, verb: &'static str) -> Self {
        Self { verb, ..self }
    }

    /// With this header in place of any of its name.
    fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// With this header beside any of its name.
    fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(there, _)| there != name);
        self
    }

    async fn to(&self, address: SocketAddr) -> Reply {
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        send(address, self.verb, "/mcp", &headers, self.body.clone())
            .await
            .expect("the server answers")
    }
}

/// What must come of a request.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    /// A result.
    Result,
    /// An error: HTTP status and code.
    Error(u16, i64),
    /// An error whose `data` is this.
    ErrorWith(u16, i64, Value),
}
use Expected::{Error, ErrorWith, Result as Fine};

/// A request and what must come of it.
type Row = (&'static str, Sent, Expected);

/// Sends every row, and only then complains, of all at once.
async fn check(address: SocketAddr, rows: Vec<Row>) {
    assert!(!rows.is_empty());
    let mut faults = Vec::new();
    for (name, sent, expected) in rows {
        let reply = sent.to(address).await;
        if let Err(fault) = judge(&reply, &expected) {
            faults.push(format!("{name}: {fault}"));
        }
    }
    assert!(
        faults.is_empty(),
        "{} rows fail:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Whether an answer is what it must be, in every member.
fn judge(reply: &Reply, expected: &Expected) -> Result<(), String> {
    let fault = |what: &str| {
        let body = String::from_utf8_lossy(&reply.body);
        Err(format!(
            "{what}: expected {expected:?}, got {} {body}",
            reply.status
        ))
    };
    if reply
        .headers
        .get("content-type")
        .is_none_or(|kind| kind != "application/json")
    {
        return fault("content type");
    }
    let Ok(body) = serde_json::from_slice::<Value>(&reply.body) else {
        return fault("body");
    };
    if body["jsonrpc"] != "2.0" {
        return fault("jsonrpc");
    }
    let (status, code) = match expected {
        Expected::Result => {
            let result = &body["result"];
            if reply.status != 200 || body.get("error").is_some() {
                return fault("not a result");
            }
            if !is_marked(result) {
                return fault("result without resultType or serverInfo");
            }
            return Ok(());
        }
        Expected::Error(status, code) | Expected::ErrorWith(status, code, _) => (*status, *code),
    };
    let error = &body["error"];
    if reply.status != status || error["code"] != code || body.get("result").is_some() {
        return fault("not that error");
    }
    if error["message"].as_str().is_none_or(str::is_empty) {
        return fault("no message");
    }
    if let Expected::ErrorWith(_, _, data) = expected
        && error["data"] != *data
    {
        return fault("data");
    }
    Ok(())
}

/// Whether a result says what it is and who answers.
fn is_marked(result: &Value) -> bool {
    let info = &result["_meta"][SERVER_INFO];
    let has = |member: &str| info[member].as_str().is_some_and(|text| !text.is_empty());
    matches!(result["resultType"].as_str(), Some("complete" | "task"))
        && has("name")
        && has("version")
}

/// The id of an answer as the text that it is.
fn id_of(reply: &Reply) -> Option<String> {
    #[derive(Deserialize)]
    struct WithId<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let answer: WithId<'_> = serde_json::from_slice(&reply.body).expect("the answer is JSON");
    answer.id.map(|id| id.get().to_owned())
}

/// The names of an object's members, sorted.
fn members(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = object
        .as_object()
        .expect("it is an object")
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}
