//! One request and its response, on a connection of their own.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use longshore_journal::http::{Blob, Failure, Outcome, Response};
use longshore_policy::secrets::SecretName;
use longshore_sandbox::outside::{Bounds, Outgoing};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::dial::Connection;
use super::vault::Vault;

/// Whose request it is, where a guest does not say.
const AGENT: &str = concat!("longshore/", env!("CARGO_PKG_VERSION"));
/// By what a target can tell that it has seen a request before.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The least that the client reads at once.
const LEAST_BUFFER: usize = 8 * 1024;
/// A head has no more fields than that, however small they are.
const FIELDS: usize = 256;

/// What says how a message travels is ours to say (RFC 9110, section 7.6.1), and so is how long it is.
const OURS: [&str; 10] = [
    "connection",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request as it is sent.
pub(super) struct Ready {
    pub(super) request: Request<Full<Bytes>>,
    /// A secret in it that nobody on the way may read.
    pub(super) guarded: Option<SecretName>,
}

/// The request as it is sent.
pub(super) fn request(call: &str, outgoing: &Outgoing, vault: &Vault) -> Result<Ready, Failure> {
    let mut fields = HeaderMap::with_capacity(outgoing.fields.len() + 4);
    let host = if outgoing.authority.port == outgoing.scheme.port() {
        outgoing.authority.host.to_string()
    } else {
        outgoing.authority.to_string()
    };
    fields.insert(HOST, value(host.as_bytes())?);
    for (name, given) in &outgoing.fields {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Failure::Protocol)?;
        if OURS.contains(&name.as_str()) || name == CONTENT_LENGTH || name == EXPECT {
            continue;
        }
        fields.append(name, value(given)?);
    }
    fields
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(AGENT));
    if outgoing.is_keyed {
        let key = format!("{call}-{}", outgoing.exchange);
        fields.insert(KEY, value(key.as_bytes())?);
    }
    let guarded = vault.fill(&mut fields, &outgoing.secrets)?;
    let method = http::Method::from_bytes(outgoing.method.as_str().as_bytes())
        .map_err(|_| Failure::Protocol)?;
    let mut request = Request::new(Full::new(outgoing.body.clone()));
    *request.method_mut() = method;
    *request.uri_mut() = outgoing.path.parse().map_err(|_| Failure::Protocol)?;
    *request.headers_mut() = fields;
    Ok(Ready { request, guarded })
}

fn value(bytes: &[u8]) -> Result<HeaderValue, Failure> {
    HeaderValue::from_bytes(bytes).map_err(|_| Failure::Protocol)
}

/// Whoever moves the bytes of a connection. It is closed when this is let go of.
struct Moving(JoinHandle<()>);

impl Drop for Moving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) async fn exchange(
    connection: Connection,
    request: Request<Full<Bytes>>,
    outgoing: &Outgoing,
) -> Outcome {
    match connection {
        Connection::Plain(stream) => on(stream, request, outgoing).await,
        Connection::Tls(stream) => on(*stream, request, outgoing).await,
    }
}

async fn on(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
    outgoing: &Outgoing,
) -> Outcome {
    let bounds = outgoing.bounds;
    let head_bytes = usize::try_from(bounds.head_bytes).unwrap_or(usize::MAX);
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(head_bytes.max(LEAST_BUFFER))
        .max_headers(FIELDS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| Failure::Terminated)?;
    let _moving = Moving(tokio::spawn(async move {
        let _what_went_wrong_is_told_to_the_exchange = connection.await;
    }));
    let is_head = request.method() == http::Method::HEAD;
    let first_byte = Duration::from_millis(bounds.first_byte_ms);
    let response = timeout(first_byte, sender.send_request(request))
        .await
        .map_err(|_| Failure::ResponseTimeout)?
        .map_err(|error| failure(&error, &bounds))?;
    let (head, body) = response.into_parts();
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Failure::Protocol);
    }
    let fields: Vec<(String, Blob)> = head
        .headers
        .iter()
        .map(|(name, value)| {
            (
                name.as_str().to_owned(),
                Blob::from(value.as_bytes().to_vec()),
            )
        })
        .collect();
    let head_size: u64 = fields
        .iter()
        .map(|(name, value)| (name.len() + value.len() + ": \r\n".len()) as u64)
        .sum();
    if head_size > bounds.head_bytes {
        return Err(Failure::HeadTooLarge(bounds.head_bytes));
    }
    let body = if is_head {
        Vec::new()
    } else {
        read(body, &bounds).await?
    };
    Ok(Response {
        status: head.status.as_u16(),
        fields,
        body: Blob::from(body),
    })
}

async fn read(mut body: Incoming, bounds: &Bounds) -> Result<Vec<u8>, Failure> {
    let too_large = Failure::BodyTooLarge(bounds.body_bytes);
    // What is promised is never begun if it cannot end.
    if body.size_hint().lower() > bounds.body_bytes {
        return Err(too_large);
    }
    let between = Duration::from_millis(bounds.between_bytes_ms);
    let mut bytes = Vec::new();
    loop {
        let frame = timeout(between, body.frame())
            .await
            .map_err(|_| Failure::ResponseTimeout)?;
        let Some(frame) = frame else {
            return Ok(bytes);
        };
        let frame = frame.map_err(|error| failure(&error, bounds))?;
        // Trailers are not kept.
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if (bytes.len() + piece.len()) as u64 > bounds.body_bytes {
            return Err(too_large);
        }
        bytes.extend_from_slice(&piece);
    }
}

fn failure(error: &hyper::Error, bounds: &Bounds) -> Failure {
    if error.is_parse_too_large() {
        Failure::HeadTooLarge(bounds.head_bytes)
    } else if error.is_parse() || error.is_parse_status() {
        Failure::Protocol
    } else {
        Failure::Terminated
    }
}
