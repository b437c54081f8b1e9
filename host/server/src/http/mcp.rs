//! The MCP endpoint (2026-07-28, Streamable HTTP).

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, StreamExt as _};
use longshore_protocol::decode;
use longshore_protocol::envelope::{self, Envelope, Message, RequestId};
use longshore_protocol::error::{RpcError, http_status};
use longshore_protocol::headers::{Field, Headers, ParameterHeaders};
use longshore_protocol::response;

use super::body::{self, Most};
use super::{App, events, whole};
use crate::dispatch::{Answer, DispatchError, Held, Identity, Incoming, Said};
use crate::polls::Late;
use crate::presence::{self, Presence};
use crate::reason::RunReason;
use crate::wire;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Seconds after which a refused call may be tried again.
const RETRY_AFTER_S: &str = "1";

/// Answers whatever is sent to the endpoint.
pub(super) async fn endpoint(State(app): State<App>, request: Request) -> Response {
    if request.method() != Method::POST {
        // Streams to read and sessions to end belong to revisions that are not spoken here.
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response();
    }
    let (parts, body) = request.into_parts();
    if !is_json(&parts.headers) {
        let error = RpcError::invalid_request("the Content-Type must be application/json");
        return respond(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            response::error(None, &error),
        );
    }
    if !accepts(&parts.headers, "application", "json") {
        let error = RpcError::invalid_request("the Accept header must allow application/json");
        return respond(StatusCode::NOT_ACCEPTABLE, response::error(None, &error));
    }
    let settings = &app.server.settings;
    let pause = Duration::from_secs(settings.body_pause_s);
    let most = Most::of("request_kib", settings.request_bytes);
    let bytes = match body::read(&parts.headers, body, most, pause).await {
        Ok(bytes) => bytes,
        Err(fault) => {
            let error = RpcError::invalid_request(fault.message()).with_data(fault.reason().data());
            return respond(fault.status(), response::error(None, &error));
        }
    };
    let (_until_it_is_answered, presence) = presence::somebody();
    let served = whole(async move {
        match envelope::parse(&bytes) {
            Ok(Message::Request(envelope)) => {
                answer(&app, &parts.headers, &presence, &envelope).await
            }
            // None of them has an effect over HTTP: a request is cancelled by closing its stream.
            Ok(Message::Notification(_)) => Served::Now(StatusCode::ACCEPTED.into_response()),
            Err(refusal) => Served::Now(fail(refusal.id.as_ref(), &refusal.error)),
        }
    });
    match served.await {
        Served::Now(response) => response,
        // Waited for here, so that a client that goes away lets go of its call, and of its poll.
        Served::Held(id, held) => wait(&id, held).await,
        Served::Late(id, late) => finish(&id, late.result().await),
    }
}

/// What comes of a request.
enum Served {
    /// Its answer.
    Now(Response),
    /// A call that is to be waited for.
    Held(RequestId, Held),
    /// A poll that is to be answered in a while.
    Late(RequestId, Box<Late>),
}

async fn answer(
    app: &App,
    headers: &HeaderMap,
    presence: &Presence,
    envelope: &Envelope<'_>,
) -> Served {
    let values = |name: &HeaderName| {
        headers
            .get_all(name)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect::<Field<'_>>()
    };
    let repeated = Headers {
        protocol_version: values(&PROTOCOL_VERSION),
        method: values(&MCP_METHOD),
        name: values(&MCP_NAME),
    };
    let id = &envelope.id;
    let (meta, request) = match decode::over_http(&repeated, envelope) {
        Ok(decoded) => decoded,
        Err(error) => return Served::Now(fail(Some(id), &error)),
    };
    let incoming = Incoming {
        id,
        identity: &Identity::local(),
        meta: &meta,
        can_stream: accepts(headers, "text", "event-stream"),
        headers: Some(&ParameterHeaders::among(
            headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_bytes())),
        )),
        presence,
    };
    match app.server.dispatch(&incoming, request).await {
        Ok(Answer::Result(result)) => Served::Now(finish(id, Ok(result))),
        Ok(Answer::Held(held)) => Served::Held(id.clone(), held),
        Ok(Answer::Late(late)) => Served::Late(id.clone(), late),
        Ok(Answer::Listening(listening)) => {
            let messages = stream::unfold(listening, |mut listening| async {
                Some((listening.next().await?, listening))
            });
            Served::Now(events::respond(messages))
        }
        Err(error) => Served::Now(finish(id, Err(error))),
    }
}

/// The answer to a held call: one message if nothing is said before the end, else a stream of them.
async fn wait(id: &RequestId, mut held: Held) -> Response {
    let first = match held.next().await {
        Said::End(result) => return finish(id, result),
        Said::Aside(message) => message,
    };
    let id = id.clone();
    let rest = stream::unfold(Some((id, held)), |going| async {
        let (id, mut held) = going?;
        match held.next().await {
            Said::Aside(message) => Some((message, Some((id, held)))),
            Said::End(result) => Some((last(&id, result), None)),
        }
    });
    events::respond(stream::once(std::future::ready(first)).chain(rest))
}

/// The response at the end of a stream, whose HTTP status is long said.
fn last(id: &RequestId, result: Result<String, DispatchError>) -> String {
    match result {
        Ok(result) => response::result(id, &result),
        Err(DispatchError::Refused(error) | DispatchError::Run(error)) => {
            response::error(Some(id), &error)
        }
        Err(DispatchError::NoRoom { reason, message }) => {
            response::error(Some(id), &wire::rpc_error(&wire::failure(reason, message)))
        }
    }
}

fn finish(id: &RequestId, result: Result<String, DispatchError>) -> Response {
    match result {
        Ok(result) => respond(StatusCode::OK, response::result(id, &result)),
        Err(DispatchError::Refused(error)) => fail(Some(id), &error),
        // The request was right and was served; what the tool made of it says nothing about HTTP.
        Err(DispatchError::Run(error)) => {
            respond(StatusCode::OK, response::error(Some(id), &error))
        }
        Err(DispatchError::NoRoom { reason, message }) => {
            let status = match reason {
                RunReason::QueueFull => StatusCode::TOO_MANY_REQUESTS,
                _ => StatusCode::SERVICE_UNAVAILABLE,
            };
            let error = wire::rpc_error(&wire::failure(reason, message));
            let mut response = respond(status, response::error(Some(id), &error));
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
            response
        }
    }
}

fn fail(id: Option<&RequestId>, error: &RpcError) -> Response {
    let status = StatusCode::from_u16(http_status(error)).unwrap_or(StatusCode::BAD_REQUEST);
    respond(status, response::error(id, error))
}

fn respond(status: StatusCode, body: String) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        Body::from(body),
    )
        .into_response()
}

/// A media type other than JSON is refused, which also stops what a foreign page can send without
/// asking first.
fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let Ok(value) = value.to_str() else {
        return false;
    };
    let (kind, parameters) = value.split_once(';').unwrap_or((value, ""));
    let charset = parameters.trim().to_ascii_lowercase();
    kind.trim().eq_ignore_ascii_case("application/json")
        && (charset.is_empty() || charset == "charset=utf-8" || charset == "charset=\"utf-8\"")
}

/// Whether the client takes that media type. One that says nothing takes anything.
fn accepts(headers: &HeaderMap, kind: &str, subtype: &str) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|range| range.split(';').next()?.trim().split_once('/'))
        .any(|(range_kind, range_subtype)| {
            let is = |range: &str, this: &str| range == "*" || range.eq_ignore_ascii_case(this);
            is(range_kind, kind) && is(range_subtype, subtype)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn media_types() {
        let rows = [
            ("application/json", true),
            ("Application/JSON; charset=UTF-8", true),
            ("application/json;charset=latin1", false),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("application/jsonp", false),
            ("", false),
        ];
        for (value, is_ok) in rows {
            assert_eq!(
                is_json(&one(header::CONTENT_TYPE, value)),
                is_ok,
                "{value:?}"
            );
        }
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn what_a_client_takes() {
        let rows = [
            ("application/json, text/event-stream", true, true),
            ("text/event-stream, application/json;q=0.5", true, true),
            ("*/*", true, true),
            ("application/*", true, false),
            ("application/json", true, false),
            ("text/event-stream", false, true),
            ("Text/*", false, true),
            ("text/html", false, false),
            ("json", false, false),
        ];
        for (value, json, events) in rows {
            let headers = one(header::ACCEPT, value);
            assert_eq!(accepts(&headers, "application", "json"), json, "{value:?}");
            assert_eq!(
                accepts(&headers, "text", "event-stream"),
                events,
                "{value:?}"
            );
        }
        assert!(accepts(&HeaderMap::new(), "application", "json"));
    }
}
