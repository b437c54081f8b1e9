//! Who may speak to this listener at all, and who to its admin API.

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use longshore_protocol::error::RpcError;
use longshore_protocol::response;

use super::App;
use super::admin::ApiError;
use super::head::{self, Excess};
use crate::reason::RequestReason;

/// The answer to what may not come in, if it may not: only that may which has few and short headers, and was sent to this
/// listener by its own name and by no foreign web page. A page that made its own name resolve to this machine is told
/// apart by the name in `Host`; a page that sends blindly, by its `Origin` (MCP 2026-07-28, Streamable HTTP, security).
pub(super) fn keep_out(app: &App, headers: &HeaderMap, uri: &Uri) -> Option<Response> {
    if let Some(excess) = head::too_much(headers, uri, &app.server.settings) {
        return Some(refuse_head(uri.path(), excess));
    }
    let port = app.address.port();
    let uri_host = uri.authority().map(Authority::as_str);
    let refuse = |message: &str| {
        let (status, reason) = (StatusCode::FORBIDDEN, RequestReason::Foreign);
        Some(refuse(uri.path(), status, reason, message.to_owned()))
    };
    if let Err(fault) = own_host(headers, uri_host, port) {
        return refuse(fault);
    }
    if !is_own_origin(headers, port) {
        return refuse("the Origin header names a web page that may not use this server");
    }
    None
}

fn refuse_head(path: &str, excess: Excess) -> Response {
    let (reason, message) = match excess {
        Excess::Count(message) => (RequestReason::TooMany, message),
        Excess::Bytes(message) => (RequestReason::TooLarge, message),
    };
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    refuse(path, status, reason, message)
}

/// An error as whoever asks there reads it.
fn refuse(path: &str, status: StatusCode, reason: RequestReason, message: String) -> Response {
    if path == super::MCP {
        let error = RpcError::invalid_request(message).with_data(reason.data());
        let body = response::error(None, &error);
        return (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    }
    ApiError::new(status, reason, message).into_response()
}

/// The names by which a listener on loopback is reached.
const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// What is wrong with the name by which this server is called, if anything is.
fn own_host(
    headers: &HeaderMap,
    uri_authority: Option<&str>,
    port: u16,
) -> Result<(), &'static str> {
    const ANOTHER: &str = "the Host header names another server than this one";
    if !headers.contains_key(header::HOST) {
        return Err("the Host header is missing");
    }
    if headers.get_all(header::HOST).iter().nth(1).is_some() {
        return Err("the Host header stands twice");
    }
    let host = only(headers, &header::HOST).ok_or(ANOTHER)?;
    if !is_own_authority(host, port) {
        return Err(ANOTHER);
    }
    match uri_authority {
        Some(authority) if !authority.eq_ignore_ascii_case(host) => {
            Err("the request's target names another server than its Host header")
        }
        _ => Ok(()),
    }
}

fn is_own_origin(headers: &HeaderMap, port: u16) -> bool {
    if !headers.contains_key(header::ORIGIN) {
        return true;
    }
    let Some(origin) = only(headers, &header::ORIGIN) else {
        return false;
    };
    origin
        .strip_prefix("http://")
        .is_some_and(|authority| is_own_authority(authority, port))
}

fn is_own_authority(authority: &str, port: u16) -> bool {
    const HTTP_PORT: u16 = 80;
    OWN_NAMES.iter().any(|name| {
        let Some((host, rest)) = authority.split_at_checked(name.len()) else {
            return false;
        };
        let is_own_port = match rest.strip_prefix(':') {
            // As clients write it: no sign, no leading zero, no white space.
            Some(digits) => digits == port.to_string(),
            None => rest.is_empty() && port == HTTP_PORT,
        };
        host.eq_ignore_ascii_case(name) && is_own_port
    })
}

/// The text of a header that is there exactly once.
fn only<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(HeaderValue::to_str), values.next()) {
        (Some(Ok(value)), None) => Some(value),
        _ => None,
    }
}

/// Lets through whoever brings the admin token.
pub(super) async fn admin_only(State(app): State<App>, request: Request, next: Next) -> Response {
    let token = only(request.headers(), &header::AUTHORIZATION)
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| blake3::hash(token.trim().as_bytes()));
    // A blake3 hash compares in constant time.
    if token.is_some_and(|token| token == *app.admin_token) {
        return next.run(request).await;
    }
    let place = &app.admin_token_place;
    let message = if token.is_some() {
        format!("the token is not the one of this server: it is in {place}")
    } else {
        format!(
            "the admin API needs the header `Authorization: Bearer TOKEN`, once: TOKEN is in {place}"
        )
    };
    let error = ApiError::new(
        StatusCode::UNAUTHORIZED,
        RequestReason::Unauthorized,
        message,
    );
    let mut response = error.into_response();
    response.headers_mut().insert(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer realm=\"longshore\""),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(header::HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn only_our_own_names_and_port_are_ours() {
        let rows = [
            ("127.0.0.1:8383", true),
            ("localhost:8383", true),
            ("LocalHost:8383", true),
            ("[::1]:8383", true),
            ("127.0.0.1", false),
            ("127.0.0.1:80", false),
            ("127.0.0.1:08383", false),
            ("127.0.0.1:+8383", false),
            ("127.0.0.1:8383 ", false),
            ("evil.example:8383", false),
            ("localhost.evil.example:8383", false),
            ("localhost", false),
            ("user@127.0.0.1:8383", false),
            ("2130706433:8383", false),
            ("0.0.0.0:8383", false),
            ("", false),
            ("é", false),
        ];
        for (host, is_ours) in rows {
            assert_eq!(is_own_authority(host, 8383), is_ours, "{host:?}");
        }
        assert!(is_own_authority("localhost", 80));
    }

    #[test]
    fn a_header_that_is_doubled_or_missing_is_not_ours_and_said_to_be() {
        let own = (header::HOST, "127.0.0.1:8383");
        let other = (header::HOST, "evil.example");
        let rows = [
            (vec![own.clone()], None, ""),
            (vec![own.clone()], Some("127.0.0.1:8383"), ""),
            (vec![], None, "missing"),
            (vec![own.clone(), own.clone()], None, "stands twice"),
            (vec![other], None, "names another server"),
            (vec![own], Some("localhost:8383"), "target"),
        ];
        for (list, target, expected) in rows {
            let said = own_host(&headers(&list), target, 8383)
                .err()
                .unwrap_or_default();
            assert!(
                said.contains(expected) && said.is_empty() == expected.is_empty(),
                "{list:?}: {said}"
            );
        }
    }

    #[test]
    fn an_origin_must_be_our_own_page() {
        let rows = [
            ("http://127.0.0.1:8383", true),
            ("http://localhost:8383", true),
            ("https://127.0.0.1:8383", false),
            ("http://127.0.0.1:8384", false),
            ("http://localhost.evil.example", false),
            ("http://evil.example", false),
            ("null", false),
            ("", false),
        ];
        for (origin, is_ours) in rows {
            assert_eq!(
                is_own_origin(&headers(&[(header::ORIGIN, origin)]), 8383),
                is_ours,
                "{origin:?}"
            );
        }
        assert!(is_own_origin(&headers(&[]), 8383));
        let own = (header::ORIGIN, "http://localhost:8383");
        assert!(!is_own_origin(&headers(&[own.clone(), own]), 8383));
    }
}
