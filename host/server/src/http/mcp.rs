//! The MCP endpoint (Streamable HTTP): 2026-07-28, and the way to [`session`]s for what came before it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use longshore_protocol::decode;
use longshore_protocol::envelope::{self, Envelope, Message, RequestId};
use longshore_protocol::error::RpcError;
use longshore_protocol::headers::{Field, Headers, ParameterHeaders};
use longshore_protocol::meta;
use longshore_protocol::response;
use longshore_protocol::session::INITIALIZE;
use longshore_protocol::version::Revision;
use tokio::time::Instant;

use super::body::{self, Most};
use super::session::{self, SESSION_ID};
use super::unread::{self, Unread};
use super::{App, events, whole};
use crate::dispatch::{Answer, DispatchError, Held, Identity, Incoming, Said};
use crate::errors::{self, Era, Failure};
use crate::polls::Late;
use crate::presence::{self, Presence};
use crate::reason::RequestReason;
use crate::sessions::Session;
use crate::sessions::kept::Reader;

pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Seconds after which a refused call may be tried again.
const RETRY_AFTER_S: &str = "1";

/// Answers whatever is sent to the endpoint.
pub(super) async fn endpoint(app: App, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => {}
        Method::GET => return session::listen(&app, &parts.headers),
        Method::DELETE => return session::end(&app, &parts.headers),
        _ => {
            let allowed = [(header::ALLOW, "GET, POST, DELETE")];
            return (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response();
        }
    }
    if !is_json(&parts.headers) {
        let error = RpcError::invalid_request("the Content-Type must be application/json")
            .with_data(RequestReason::MediaType.data());
        return respond(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            response::error(None, &error),
        );
    }
    if !accepts(&parts.headers, "application", "json") {
        let error = RpcError::invalid_request("the Accept header must allow application/json")
            .with_data(RequestReason::MediaType.data());
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
    let can_stream = accepts(&parts.headers, "text", "event-stream");
    let served = whole({
        let app = app.clone();
        async move {
            let headers = &parts.headers;
            match envelope::parse(&bytes) {
                Ok(Message::Request(envelope)) => match way_of(headers, &envelope) {
                    Way::Alone => answer(&app, headers, can_stream, &presence, &envelope).await,
                    Way::Opening => Served::Now(session::open(&app, &envelope)),
                    Way::InSession => match session::serve(&app, headers, &envelope).await {
                        session::Served::Now(response) => Served::Now(response),
                        session::Served::Stream(session, reader) => {
                            Served::InSession(envelope.id.clone(), session, reader)
                        }
                    },
                },
                Ok(Message::Notification(told)) => Served::Now(session::told(&app, headers, told)),
                Ok(Message::Response(response)) => {
                    Served::Now(session::answered(&app, headers, response).await)
                }
                Err(refusal) => Served::Now(refuse(refusal.id.as_ref(), refusal.error)),
            }
        }
    });
    match served.await {
        Served::Now(response) => response,
        Served::InSession(id, session, reader) => {
            session::answer(&app, can_stream, &id, &session, reader).await
        }
        // Waited for here, so that a client that goes away lets go of its call, and of its poll.
        Served::Held(id, held) => wait(&app, &id, held).await,
        Served::Late(id, late) => finish(&app, &id, late.result().await),
    }
}

/// How a request is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It says all that is needed (2026-07-28), or nothing that is understood.
    Alone,
    /// It opens a session.
    Opening,
    /// It belongs to one.
    InSession,
}

/// Which era a request is of. One that names a revision for itself belongs to no session, whatever its headers say; one
/// that says nothing at all is told what it could say.
fn way_of(headers: &HeaderMap, envelope: &Envelope<'_>) -> Way {
    let version = headers.get(PROTOCOL_VERSION);
    let version = version.and_then(|version| version.to_str().ok());
    if version.is_some_and(Revision::is_sessionless) || meta::names_revision(envelope.params) {
        return Way::Alone;
    }
    let is_older = version.is_none_or(Revision::is_of_sessions);
    if envelope.method == INITIALIZE && is_older {
        Way::Opening
    } else if headers.contains_key(SESSION_ID) {
        Way::InSession
    } else {
        Way::Alone
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
    /// A request of a session, which goes on whether or not it is waited for.
    InSession(RequestId, Arc<Session>, Reader),
}

async fn answer(
    app: &App,
    headers: &HeaderMap,
    can_stream: bool,
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
        Err(error) => return Served::Now(refuse(Some(id), error)),
    };
    let incoming = Incoming {
        id,
        identity: &Identity::local(),
        meta: &meta,
        can_stream,
        headers: Some(&ParameterHeaders::among(
            headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_bytes())),
        )),
        presence,
    };
    match app.server.dispatch(&incoming, request).await {
        Ok(Answer::Result(result)) => Served::Now(finish(app, id, Ok(result))),
        Ok(Answer::Held(held)) => Served::Held(id.clone(), held),
        Ok(Answer::Late(late)) => Served::Late(id.clone(), late),
        Ok(Answer::Listening(listening)) => {
            let over_at = Instant::now() + Duration::from_secs(app.server.settings.listen_s);
            let messages = stream::unfold(listening, move |mut listening| async move {
                Some((listening.next_until(over_at).await?, listening))
            });
            Served::Now(events::respond(&app.unread, messages))
        }
        Err(error) => Served::Now(finish(app, id, Err(error))),
    }
}

/// The answer to a held call: one message if nothing is said before the end, else a stream of them.
async fn wait(app: &App, id: &RequestId, mut held: Held) -> Response {
    let first = match until_told(&mut held).await {
        Told::End(result) => return finish(app, id, result),
        Told::Aside(message) => message,
    };
    let first = Bytes::from(events::frame(&first));
    let (id, unread) = (id.clone(), app.unread.clone());
    let rest = stream::unfold(Some((id, unread, held)), |going| async {
        let (id, unread, mut held) = going?;
        match until_told(&mut held).await {
            Told::Aside(message) => Some((
                Bytes::from(events::frame(&message)),
                Some((id, unread, held)),
            )),
            Told::End(result) => Some((last(&unread, &id, result), None)),
        }
    });
    events::respond_bytes(stream::once(std::future::ready(first)).chain(rest))
}

enum Told {
    Aside(String),
    End(Result<String, DispatchError>),
}

/// What there is to say next. Nobody is asked anything here.
async fn until_told(held: &mut Held) -> Told {
    loop {
        match held.next().await {
            Said::Aside(message) => return Told::Aside(message),
            Said::Inquiry(_) => {}
            Said::End(result) => return Told::End(result),
        }
    }
}

/// The response at the end of a stream, whose HTTP status is long said.
fn last(unread: &Unread, id: &RequestId, result: Result<String, DispatchError>) -> Bytes {
    let error = match result {
        Ok(result) => {
            let response = events::frame(&response::result(id, &result));
            match unread.hold(response) {
                Some(response) => return response,
                None => unread::full(),
            }
        }
        Err(error) => error,
    };
    let error = errors::told(error, Era::Requests).error;
    Bytes::from(events::frame(&response::error(Some(id), &error)))
}

fn finish(app: &App, id: &RequestId, result: Result<String, DispatchError>) -> Response {
    match result {
        Ok(result) => send(app, id, response::result(id, &result), Era::Requests),
        Err(error) => fail_as(Some(id), error, Era::Requests),
    }
}

/// A message as the answer to a request, if there is room for it.
pub(super) fn send(app: &App, id: &RequestId, message: String, era: Era) -> Response {
    match app.unread.hold(message) {
        Some(message) => respond(StatusCode::OK, message),
        None => fail_as(Some(id), unread::full(), era),
    }
}

/// An error by the rules of that era.
pub(super) fn fail_as(id: Option<&RequestId>, error: DispatchError, era: Era) -> Response {
    fail(id, &errors::told(error, era))
}

pub(super) fn fail(id: Option<&RequestId>, failure: &Failure) -> Response {
    let status = StatusCode::from_u16(failure.status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = respond(status, response::error(id, &failure.error));
    if failure.try_again {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
    }
    response
}

fn refuse(id: Option<&RequestId>, error: RpcError) -> Response {
    fail_as(id, DispatchError::Refused(error), Era::Requests)
}

pub(super) fn respond(status: StatusCode, body: impl Into<Body>) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        body.into(),
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
pub(super) fn accepts(headers: &HeaderMap, kind: &str, subtype: &str) -> bool {
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
