//! The client of a server's admin API: one request, one connection, over loopback.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::data;
use crate::env;
use crate::exchange::exchange;
use crate::exit::{Exit, Failure, OrExit as _};

/// A server on this machine accepts at once or not at all.
const CONNECT: Duration = Duration::from_secs(5);
/// Everything but an upload is a few reads and one commit of the store.
const ANSWER: Duration = Duration::from_secs(30);
/// An upload is compiled before it is answered, and may have to wait for its turn.
const UPLOADED: Duration = Duration::from_secs(900);

/// What a request carries.
const JSON: &str = "application/json";
const WASM: &str = "application/wasm";

/// Which server, and how to be let in.
#[derive(clap::Args)]
pub(crate) struct Reach {
    /// The server
    #[arg(long, env = env::SERVER, default_value = "http://127.0.0.1:8383", value_name = "URL")]
    server: String,
    /// The server's data directory, where its admin token is read from unless LONGSHORE_ADMIN_TOKEN is set
    /// [default: $XDG_DATA_HOME/longshore]
    #[arg(long, env = env::DATA, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Reach {
    /// A server that this process knows.
    pub(crate) fn of(server: String, data: PathBuf) -> Self {
        let data = Some(data);
        Self { server, data }
    }
}

/// A server's admin API.
pub(crate) struct Client {
    target: Target,
    data: Option<PathBuf>,
}

impl Client {
    /// The API of that server. Nothing is read or connected yet.
    pub(crate) fn new(reach: Reach) -> Result<Self, Failure> {
        let target =
            Target::parse(&reach.server).map_err(|fault| Failure::new(Exit::Usage, fault))?;
        Ok(Self {
            target,
            data: reach.data,
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call((Method::GET, JSON), path, Bytes::new(), ANSWER)
            .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value, Failure> {
        self.call((Method::DELETE, JSON), path, Bytes::new(), ANSWER)
            .await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.call((Method::POST, JSON), path, body.to_string().into(), ANSWER)
            .await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let body = body.to_string().into();
        self.call((Method::PUT, JSON), path, body, ANSWER).await
    }

    pub(crate) async fn upload(&self, path: &str, component: Vec<u8>) -> Result<Value, Failure> {
        self.call((Method::PUT, WASM), path, component.into(), UPLOADED)
            .await
    }

    async fn call(
        &self,
        (method, content_type): (Method, &str),
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<Value, Failure> {
        let stream = self.connect().await.or_exit(Exit::Unreachable)?;
        // Only now: without a server there is no token either, and the server is what is missed.
        let token = self.token().or_exit(Exit::Unreachable)?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.target.authority)
            .header(header::AUTHORIZATION, format!("Bearer {token}"))
            .header(header::CONTENT_TYPE, content_type)
            .body(body)
            .or_exit(Exit::Usage)?;
        match tokio::time::timeout(within, exchange(stream, request)).await {
            Err(_elapsed) => {
                let message = format!(
                    "the server at {} did not answer within {} s",
                    self.target,
                    within.as_secs()
                );
                Err(Failure::new(Exit::Unreachable, message))
            }
            Ok(Err(error)) => {
                let error = error.context(format!(
                    "the connection to the server at {} broke",
                    self.target
                ));
                Err(Failure::because(Exit::Unreachable, error))
            }
            Ok(Ok((status, body))) => self.read(status, &body),
        }
    }

    async fn connect(&self) -> anyhow::Result<TcpStream> {
        let Target { host, port, .. } = &self.target;
        let connecting = TcpStream::connect((host.as_str(), *port));
        let stream = tokio::time::timeout(CONNECT, connecting)
            .await
            .unwrap_or_else(|_elapsed| Err(std::io::ErrorKind::TimedOut.into()))
            .with_context(|| {
                format!("is a server running at {}? start one with `longshore serve`, or name it with --server", self.target)
            })?;
        stream
            .set_nodelay(true)
            .context("setting up the connection")?;
        Ok(stream)
    }

    fn token(&self) -> anyhow::Result<String> {
        if let Some(token) = env::text(env::ADMIN_TOKEN).map_err(|fault| anyhow!(fault))? {
            data::check_token(&token)
                .with_context(|| format!("{} is no token", env::ADMIN_TOKEN))?;
            return Ok(token);
        }
        let dir = self.data.clone().map_or_else(data::default_dir, Ok)?;
        data::kept_admin_token(&dir)?.with_context(|| {
            format!(
                "there is no admin token in {}: name the server's data directory with --data, or set {}",
                dir.display(),
                env::ADMIN_TOKEN
            )
        })
    }

    /// What an answer says: a document, or a failure in the server's words.
    fn read(&self, status: StatusCode, body: &[u8]) -> Result<Value, Failure> {
        let document = match serde_json::from_slice(body) {
            _ if body.is_empty() => Value::Null,
            Ok(document) => document,
            Err(_) => return Err(self.foreign(status)),
        };
        if status.is_success() {
            return Ok(document);
        }
        let error = &document["error"];
        let (Some(reason), Some(message)) = (error["reason"].as_str(), error["message"].as_str())
        else {
            return Err(self.foreign(status));
        };
        // Its message goes on as it came; whoever prints it neutralises it.
        let exit = if status == StatusCode::UNAUTHORIZED {
            Exit::Unreachable
        } else {
            Exit::Failed
        };
        Err(Failure {
            exit,
            reason: reason.to_owned(),
            error: anyhow!(message.to_owned()),
        })
    }

    fn foreign(&self, status: StatusCode) -> Failure {
        let message = format!(
            "{} answered {status} and not as longshore does: is another program listening there?",
            self.target
        );
        Failure::new(Exit::Unreachable, message)
    }
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    host: String,
    port: u16,
    /// Both as they were written, for the Host header.
    authority: String,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

impl Target {
    fn parse(url: &str) -> Result<Self, String> {
        const HTTP_PORT: u16 = 80;
        let example = "write it like http://127.0.0.1:8383";
        let uri: Uri = url
            .parse()
            .map_err(|_| format!("the server {url:?} is no URL: {example}"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(format!(
                    "the server {url} is reached by https, which this client does not speak: run it on the server's machine and name http://127.0.0.1:PORT"
                ));
            }
            _ => {
                return Err(format!(
                    "the server {url:?} has no http:// before it: {example}"
                ));
            }
        }
        let (Some(authority), Some(host)) = (uri.authority(), uri.host()) else {
            return Err(format!("the server {url:?} names no host: {example}"));
        };
        if authority.as_str().contains('@')
            || !matches!(uri.path(), "" | "/")
            || uri.query().is_some()
        {
            return Err(format!(
                "the server {url:?} has more than a host and a port: {example}"
            ));
        }
        // A port that fits into no number of a port would be left out as if none stood there.
        if authority.as_str() != host && uri.port_u16().is_none() {
            return Err(format!(
                "the server {url:?} has a port that is none: {example}"
            ));
        }
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = host
            .parse()
            .map_or(host.eq_ignore_ascii_case("localhost"), |ip: IpAddr| {
                ip.is_loopback()
            });
        if !is_loopback {
            // The token would travel in the clear.
            return Err(format!(
                "the server {url} is on another machine, where http cannot keep the admin token: {example}"
            ));
        }
        Ok(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(HTTP_PORT),
            authority: authority.to_string(),
        })
    }
}

/// A text as one segment of a path, or one value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Also dots, since a segment of dots means another folder.
            let _infallible = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_on_this_machine_only() {
        let rows = [
            ("http://127.0.0.1:8383", "127.0.0.1", 8383),
            ("http://localhost:1/", "localhost", 1),
            ("http://[::1]:8383", "::1", 8383),
            ("http://127.0.0.1", "127.0.0.1", 80),
        ];
        for (url, host, port) in rows {
            let target = Target::parse(url).unwrap();
            assert_eq!((target.host.as_str(), target.port), (host, port), "{url}");
            assert_eq!(target.to_string(), url.trim_end_matches('/'));
        }
        let rows = [
            ("https://127.0.0.1:8383", "https"),
            ("http://192.168.1.1:8383", "another machine"),
            ("http://localhost.evil.example", "another machine"),
            ("127.0.0.1:8383", "no http://"),
            ("http://127.0.0.1:8383/mcp", "more than a host"),
            ("http://user@127.0.0.1:8383", "more than a host"),
            ("", "no URL"),
            ("http://", "no URL"),
            ("http://127.0.0.1:99999", "a port that is none"),
            ("http://[::1]:65536", "a port that is none"),
            ("http://localhost:/", "a port that is none"),
        ];
        for (url, expected) in rows {
            let fault = Target::parse(url).unwrap_err();
            assert!(fault.contains(expected), "{url}: {fault}");
        }
    }

    #[test]
    fn a_segment_stays_one() {
        assert_eq!(encode("hello-2"), "hello-2");
        assert_eq!(encode("../a b?é"), "%2E%2E%2Fa%20b%3F%C3%A9");
    }

    fn client() -> Client {
        Client {
            target: Target::parse("http://127.0.0.1:8383").unwrap(),
            data: None,
        }
    }

    #[test]
    fn answers_become_documents_or_failures() {
        let client = client();
        assert_eq!(
            client.read(StatusCode::NO_CONTENT, b"").unwrap(),
            Value::Null
        );
        assert_eq!(client.read(StatusCode::OK, b"[1]").unwrap()[0], 1);
        let rows = [
            (
                StatusCode::NOT_FOUND,
                r#"{"error":{"reason":"not-found","message":"m"}}"#,
                Exit::Failed,
                "not-found",
            ),
            (
                StatusCode::UNAUTHORIZED,
                r#"{"error":{"reason":"unauthorized","message":"m"}}"#,
                Exit::Unreachable,
                "unauthorized",
            ),
            (StatusCode::OK, "<html>", Exit::Unreachable, "unreachable"),
            (
                StatusCode::FORBIDDEN,
                r#"{"jsonrpc":"2.0"}"#,
                Exit::Unreachable,
                "unreachable",
            ),
        ];
        for (status, body, exit, reason) in rows {
            let failure = client.read(status, body.as_bytes()).unwrap_err();
            assert_eq!(
                (failure.exit, failure.reason.as_str()),
                (exit, reason),
                "{body}"
            );
        }
    }

    #[tokio::test]
    async fn nobody_there_names_the_remedy() {
        // A port that was free a moment ago.
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let target = Target::parse(&format!("http://127.0.0.1:{port}")).unwrap();
        let failure = Client { target, data: None }
            .get("/v1/node")
            .await
            .unwrap_err();
        assert_eq!(failure.exit, Exit::Unreachable);
        assert!(
            failure
                .to_string()
                .contains("start one with `longshore serve`"),
            "{failure}"
        );
    }
}
