//! A client of MCP 2026-07-28 that writes what the tests tell it to.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::http::{Reply, send};
use crate::wait;

/// The revision spoken here.
pub const REVISION: &str = "2026-07-28";

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    /// Where the server is.
    pub address: SocketAddr,
    /// What it says that it can do.
    pub capabilities: Value,
}

/// A name as a header can carry it (MCP 2026-07-28, Streamable HTTP, value encoding).
fn header_value(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && name.trim() == name
        && !name.starts_with("=?base64?");
    if is_plain {
        name.to_owned()
    } else {
        format!("=?base64?{}?=", BASE64_STANDARD.encode(name))
    }
}

impl Client {
    /// A client that knows tasks and can be asked in every way.
    #[must_use]
    pub fn able(address: SocketAddr) -> Self {
        let capabilities = json!({
            "elicitation": { "form": {}, "url": {} },
            "sampling": {},
            "roots": {},
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        });
        Self {
            address,
            capabilities,
        }
    }

    /// A client that can do nothing beyond the core.
    #[must_use]
    pub fn plain(address: SocketAddr) -> Self {
        Self {
            address,
            capabilities: json!({}),
        }
    }

    /// A whole request as a client in order writes it, with whatever `_meta` the parameters bring.
    #[must_use]
    pub fn request(&self, method: &str, mut params: Value) -> Value {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!(REVISION);
        meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        meta["io.modelcontextprotocol/clientInfo"] =
            json!({ "name": "longshore-tests", "version": "0" });
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
    }

    /// The headers that belong to a request.
    #[must_use]
    pub fn headers(request: &Value) -> Vec<(String, String)> {
        let method = request["method"].as_str().unwrap_or_default();
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            (
                "accept".to_owned(),
                "application/json, text/event-stream".to_owned(),
            ),
            ("mcp-protocol-version".to_owned(), REVISION.to_owned()),
            ("mcp-method".to_owned(), method.to_owned()),
        ];
        let named = match method {
            "tools/call" | "prompts/get" => request["params"]["name"].as_str(),
            "resources/read" => request["params"]["uri"].as_str(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => request["params"]["taskId"].as_str(),
            _ => None,
        };
        if let Some(name) = named {
            headers.push(("mcp-name".to_owned(), header_value(name)));
        }
        headers
    }

    /// Sends a request in order and gives back status and body.
    pub async fn send(&self, method: &str, params: Value) -> Result<Reply> {
        let request = self.request(method, params);
        let headers = Self::headers(&request);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        send(self.address, "POST", "/mcp", &headers, request.to_string()).await
    }

    /// The result of a request.
    ///
    /// # Panics
    /// If it is answered by an error.
    pub async fn result(&self, method: &str, params: Value) -> Value {
        let reply = self.send(method, params).await.expect("the server answers");
        let mut body = reply.json();
        assert_eq!(reply.status, 200, "{method}: {body}");
        assert!(body.get("error").is_none(), "{method}: {body}");
        body["result"].take()
    }

    /// The error of a request.
    ///
    /// # Panics
    /// If it is answered by a result.
    pub async fn error(&self, method: &str, params: Value) -> (u16, Value) {
        let reply = self.send(method, params).await.expect("the server answers");
        let mut body = reply.json();
        assert!(body.get("result").is_none(), "{method}: {body}");
        (reply.status, body["error"].take())
    }

    /// Calls a tool.
    ///
    /// # Panics
    /// If it is answered by an error.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.result(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
        .await
    }

    /// Calls a tool that becomes a task, and gives back the task's id.
    ///
    /// # Panics
    /// If it does not become one.
    pub async fn start(&self, tool: &str, arguments: Value) -> String {
        let created = self.call(tool, arguments).await;
        assert_eq!(created["resultType"], "task", "{created}");
        created["taskId"]
            .as_str()
            .expect("a task has an id")
            .to_owned()
    }

    /// Where a task stands.
    pub async fn task(&self, id: &str) -> Value {
        self.result("tasks/get", json!({ "taskId": id })).await
    }

    /// The task once it is no longer `working`, or once it is in that state.
    pub async fn until_status(&self, id: &str, status: &str) -> Value {
        wait::until(
            &format!("task {id} to be {status}"),
            Duration::from_secs(60),
            || async {
                let task = self.task(id).await;
                (task["status"] == status).then_some(task)
            },
        )
        .await
    }

    /// The task once it has ended.
    pub async fn until_ended(&self, id: &str) -> Value {
        wait::until(
            &format!("task {id} to end"),
            Duration::from_secs(120),
            || async {
                let task = self.task(id).await;
                let ended = ["completed", "failed", "cancelled"]
                    .iter()
                    .any(|status| task["status"] == *status);
                ended.then_some(task)
            },
        )
        .await
    }
}
