//! Sessions over Streamable HTTP (MCP 2025-11-25 and 2025-06-18): the same endpoint, by the header that names them.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, Stream, StreamExt as _};
use longshore_protocol::envelope::{Envelope, NotificationEnvelope, RequestId, ResponseEnvelope};
use longshore_protocol::error::RpcError;
use longshore_protocol::response;
use longshore_protocol::version::Revision;

use super::mcp::{accepts, fail, fail_as, respond, send};
use super::{App, events};
use crate::dispatch::Identity;
use crate::errors::{self, Era};
use crate::listen::no_listener;
use crate::reason::RequestReason;
use crate::requests::Refused;
use crate::sessions::Session;
use crate::sessions::kept::{Event, Kind, Reader};
use crate::sessions::news::News;
use crate::sessions::serve::Answering;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Opens a session, whose name is in a header of the answer.
pub(super) fn open(app: &App, envelope: &Envelope<'_>) -> Response {
    match app.server.open_session(&Identity::local(), envelope) {
        Ok((session, result)) => {
            let mut response = respond(StatusCode::OK, response::result(&envelope.id, &result));
            let id = HeaderValue::from_str(&session.id).expect("an id is letters and digits");
            response.headers_mut().insert(SESSION_ID, id);
            response
        }
        Err(error) => fail_as(Some(&envelope.id), error, Era::Sessions),
    }
}

/// The session that a request names, or what it is answered with instead.
pub(super) fn find(app: &App, headers: &HeaderMap) -> Result<Arc<Session>, Box<Response>> {
    let refuse = |is_named| Err(Box::new(fail(None, &errors::no_session(is_named))));
    let mut named = headers.get_all(SESSION_ID).iter();
    let (first, second) = (named.next(), named.next());
    if first.is_none() {
        return refuse(false);
    }
    let session = first
        .filter(|_| second.is_none())
        .and_then(|id| id.to_str().ok())
        .and_then(|id| app.server.sessions.find(id, &Identity::local()));
    let Some(session) = session else {
        return refuse(true);
    };
    let mut versions = headers.get_all(super::mcp::PROTOCOL_VERSION).iter();
    // MCP 2025-11-25, Streamable HTTP, protocol version header: absent is fine, unknown is not.
    if versions.all(|version| version.to_str().is_ok_and(Revision::is_of_sessions)) {
        return Ok(session);
    }
    let error = RpcError::invalid_request(format!(
        "the header MCP-Protocol-Version names another revision than {}, which this session speaks",
        session.revision.as_str()
    ));
    Err(Box::new(respond(
        StatusCode::BAD_REQUEST,
        response::error(None, &error),
    )))
}

/// What comes of a request of a session.
pub(super) enum Served {
    /// Its answer.
    Now(Response),
    /// What is said until then.
    Stream(Arc<Session>, Reader),
}

/// Begins to answer a request. What it begins goes on though its connection is lost.
pub(super) async fn serve(app: &App, headers: &HeaderMap, envelope: &Envelope<'_>) -> Served {
    let session = match find(app, headers) {
        Ok(session) => session,
        Err(response) => return Served::Now(*response),
    };
    let _it_is_used = session.enter();
    let id = &envelope.id;
    let begun = match session.requests.begin(id) {
        Ok(begun) => begun,
        Err(Refused::Over) => return Served::Now(fail(Some(id), &errors::no_session(true))),
        Err(refused) => {
            let text = response::error(Some(id), &refused.into());
            return Served::Now(respond(StatusCode::OK, text));
        }
    };
    let can_stream = accepts(headers, "text", "event-stream");
    match app
        .server
        .serve_in_session(&session, begun, envelope, can_stream)
        .await
    {
        Answering::Now(Some(text)) => Served::Now(send(app, id, text, Era::Sessions)),
        Answering::Now(None) => Served::Now(StatusCode::ACCEPTED.into_response()),
        Answering::Talk(talk) => {
            let most = app.server.settings.limits.log_ring_bytes;
            let reader = session.stream(talk, most);
            Served::Stream(session, reader)
        }
    }
}

/// Answers with one message if nothing is said before it and it comes soon, else with a stream of them.
pub(super) async fn answer(
    app: &App,
    can_stream: bool,
    id: &RequestId,
    session: &Session,
    mut reader: Reader,
) -> Response {
    let first = if can_stream {
        let soon = Duration::from_millis(app.server.settings.inline_budget_ms);
        tokio::time::timeout(soon, reader.next()).await
    } else {
        // Nothing else could be told to this client.
        loop {
            let next = reader.next().await;
            if next
                .as_ref()
                .is_none_or(|event| event.kind == Kind::Response)
            {
                break Ok(next);
            }
        }
    };
    let first = match first {
        Ok(Some(event)) if event.kind == Kind::Response => {
            return send(app, id, event.text.to_string(), Era::Sessions);
        }
        Ok(Some(event)) => Some(event),
        // It was cancelled, and is not answered.
        Ok(None) => return StatusCode::ACCEPTED.into_response(),
        Err(_) => None,
    };
    stream_of(app, session.revision, first, reader)
}

/// A stream whose events have ids, so that it can be read on when its connection is lost.
fn stream_of(app: &App, revision: Revision, first: Option<Event>, reader: Reader) -> Response {
    let place = match &first {
        Some(event) => reader.place_before(event),
        None => reader.place(),
    };
    // A place to come back to before anything was said; older clients may stumble over an event without a message.
    let priming = (revision == Revision::R20251125).then(|| format!("id: {place}\ndata: \n\n"));
    let first = first.map(|event| frame(&reader, &event));
    let begin = stream::iter(priming.into_iter().chain(first));
    events::respond_frames(&app.unread, begin.chain(rest(reader)))
}

fn rest(reader: Reader) -> impl Stream<Item = String> + Send + 'static {
    stream::unfold(reader, |mut reader| async {
        let event = reader.next().await?;
        Some((frame(&reader, &event), reader))
    })
}

fn frame(reader: &Reader, event: &Event) -> String {
    format!("id: {}\ndata: {}\n\n", reader.place_of(event), event.text)
}

/// What a client is told that belongs to no request, or the rest of a stream that it lost.
pub(super) fn listen(app: &App, headers: &HeaderMap) -> Response {
    if !accepts(headers, "text", "event-stream") {
        let error = RpcError::invalid_request("the Accept header must allow text/event-stream")
            .with_data(RequestReason::MediaType.data());
        return respond(StatusCode::NOT_ACCEPTABLE, response::error(None, &error));
    }
    let session = match find(app, headers) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    if let Some(event_id) = headers.get(LAST_EVENT_ID) {
        let reader = event_id.to_str().ok().and_then(|id| session.read_on(id));
        return match reader {
            Some(reader) => {
                // Known already, or it could not be named.
                let _place = reader.place();
                events::respond_frames(&app.unread, rest(reader))
            }
            None => {
                let error = RpcError::invalid_request("nothing is kept behind that Last-Event-ID");
                respond(StatusCode::BAD_REQUEST, response::error(None, &error))
            }
        };
    }
    match News::of(&session, &app.server.bus) {
        Ok(news) => {
            let over = tokio::time::sleep(Duration::from_secs(app.server.settings.listen_s));
            let messages =
                stream::unfold(news, |mut news| async { Some((news.next().await?, news)) });
            events::respond(&app.unread, messages.take_until(over))
        }
        Err(full) => fail_as(None, no_listener(full), Era::Requests),
    }
}

/// Ends a session.
pub(super) fn end(app: &App, headers: &HeaderMap) -> Response {
    match find(app, headers) {
        Ok(session) => {
            app.server.sessions.end(&session.id, &session.identity);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => *response,
    }
}

/// A notification of a client, in a session or not.
pub(super) fn told(app: &App, headers: &HeaderMap, told: NotificationEnvelope<'_>) -> Response {
    // Without a session none of them has an effect: a request is cancelled by closing its stream.
    if !headers.contains_key(SESSION_ID) {
        return StatusCode::ACCEPTED.into_response();
    }
    match find(app, headers) {
        Ok(session) => {
            drop(session.enter());
            session.told(told);
            StatusCode::ACCEPTED.into_response()
        }
        Err(response) => *response,
    }
}

/// An answer to a question of ours.
pub(super) async fn answered(
    app: &App,
    headers: &HeaderMap,
    response: ResponseEnvelope<'_>,
) -> Response {
    if !headers.contains_key(SESSION_ID) {
        let refusal = response.unasked();
        return respond(
            StatusCode::BAD_REQUEST,
            response::error(refusal.id.as_ref(), &refusal.error),
        );
    }
    let session = match find(app, headers) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    drop(session.enter());
    match app.server.take_answer(&session, &response).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(error) => respond(
            StatusCode::BAD_REQUEST,
            response::error(Some(&response.id), &error),
        ),
    }
}
