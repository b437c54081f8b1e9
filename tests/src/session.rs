//! A client of the revisions that have sessions, which writes what the tests tell it to.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::events::{self, Answer};
use crate::http::{Reply, send};

/// The newest revision that has sessions.
pub const NEWEST: &str = "2025-11-25";
/// The one before it.
pub const OLDEST: &str = "2025-06-18";

/// A session over HTTP.
#[derive(Debug)]
pub struct Session {
    /// Where the server is.
    pub address: SocketAddr,
    /// Its name.
    pub id: String,
    /// The revision that was settled.
    pub revision: String,
    requests: AtomicU64,
}

/// A message without an answer.
#[must_use]
pub fn notification(method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    message["params"] = params;
    message
}

/// What opens a session.
#[must_use]
pub fn initialize(revision: &str, capabilities: Value) -> Value {
    let mut message = json!({
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": revision,
            "clientInfo": { "name": "longshore-tests", "version": "0" },
        },
    });
    message["params"]["capabilities"] = capabilities;
    message
}

fn headers() -> Vec<(String, String)> {
    [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Sends a message with these headers.
///
/// # Panics
/// If there is no answer.
pub async fn post(address: SocketAddr, headers: &[(String, String)], message: &Value) -> Reply {
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    send(address, "POST", "/mcp", &headers, message.to_string())
        .await
        .expect("the server answers")
}

/// Asks for a session, and gives back the whole answer.
pub async fn ask_for(address: SocketAddr, message: &Value) -> Reply {
    post(address, &headers(), message).await
}

impl Session {
    /// Opens a session as a client in order does it.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn open(address: SocketAddr, revision: &str, capabilities: Value) -> Self {
        let reply = ask_for(address, &initialize(revision, capabilities)).await;
        let told = reply.json();
        assert_eq!(reply.status, 200, "{told}");
        let session = Self {
            address,
            id: reply.headers["mcp-session-id"]
                .to_str()
                .expect("an id is visible ASCII")
                .to_owned(),
            revision: told["result"]["protocolVersion"]
                .as_str()
                .expect("a revision is settled")
                .to_owned(),
            requests: AtomicU64::new(1),
        };
        let reply = session
            .post(&notification("notifications/initialized", json!({})))
            .await;
        assert_eq!((reply.status, reply.body.len()), (202, 0));
        session
    }

    /// A session of a client that can be asked in every way.
    pub async fn able(address: SocketAddr, revision: &str) -> Self {
        let capabilities = json!({
            "elicitation": { "form": {}, "url": {} },
            "sampling": { "tools": {} },
            "roots": { "listChanged": true },
        });
        Self::open(address, revision, capabilities).await
    }

    /// The headers of everything that is sent in it.
    #[must_use]
    pub fn headers(&self) -> Vec<(String, String)> {
        let mut headers = headers();
        headers.push(("mcp-session-id".to_owned(), self.id.clone()));
        headers.push(("mcp-protocol-version".to_owned(), self.revision.clone()));
        headers
    }

    /// A request under an id of its own.
    #[must_use]
    pub fn request(&self, method: &str, params: Value) -> Value {
        let id = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        message["params"] = params;
        message
    }

    /// Sends a message.
    pub async fn post(&self, message: &Value) -> Reply {
        post(self.address, &self.headers(), message).await
    }

    /// Sends a request whose answer may be a stream.
    pub async fn begin(&self, request: &Value) -> Answer {
        events::open_with(self.address, "POST", &self.headers(), request.to_string()).await
    }

    /// Calls a tool, and gives back the answer as it comes.
    pub async fn call(&self, tool: &str, arguments: Value) -> Answer {
        let request = self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        self.begin(&request).await
    }

    /// Answers what the server asks under that id.
    pub async fn answer(&self, id: &Value, result: Value) -> Reply {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await
    }

    /// Listens to what belongs to no request, or reads on behind that event.
    pub async fn listen(&self, behind: Option<&str>) -> Answer {
        let mut headers = self.headers();
        headers.extend(behind.map(|id| ("last-event-id".to_owned(), id.to_owned())));
        events::open_with(self.address, "GET", &headers, String::new()).await
    }

    /// Ends it.
    ///
    /// # Panics
    /// If there is no answer.
    pub async fn end(&self) -> Reply {
        let headers = self.headers();
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        send(self.address, "DELETE", "/mcp", &headers, "")
            .await
            .expect("the server answers")
    }

    /// The result of a request that is answered at once.
    ///
    /// # Panics
    /// If it is answered by an error.
    pub async fn result(&self, method: &str, params: Value) -> Value {
        let reply = self.post(&self.request(method, params)).await;
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
        let reply = self.post(&self.request(method, params)).await;
        let mut body = reply.json();
        assert!(body.get("result").is_none(), "{method}: {body}");
        (reply.status, body["error"].take())
    }
}
