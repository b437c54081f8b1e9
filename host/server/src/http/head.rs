//! Bounds on the headers of a request.

use axum::http::{HeaderMap, Uri};

use crate::settings::Settings;

/// Why the headers of a request are too much, with the setting that says so; nothing if they are not. Names, values
/// and the address count, and the signs between them: what the client has written, but for its first line's words.
pub(super) fn too_much(headers: &HeaderMap, uri: &Uri, settings: &Settings) -> Option<Excess> {
    let count = headers.len();
    if count > settings.headers {
        return Some(Excess::Count(format!(
            "the request has {count} headers, and at most {} are taken: send fewer, or raise the server's setting headers",
            settings.headers
        )));
    }
    let address = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let bytes = address + written(headers);
    (bytes > settings.header_bytes).then(|| {
        Excess::Bytes(format!(
            "the headers of the request have {bytes} bytes, and at most {} are taken: send less, or raise the server's \
             setting header_kib",
            settings.header_bytes
        ))
    })
}

/// What is too much.
pub(super) enum Excess {
    /// How many there are.
    Count(String),
    /// How long they are.
    Bytes(String),
}

/// As they were written: `name: value` and the end of the line.
fn written(headers: &HeaderMap) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use axum::http::request::Parts;

    use super::*;

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::get("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn headers_are_counted_and_measured() {
        let settings = |headers, header_bytes| Settings {
            headers,
            header_bytes,
            ..Settings::default()
        };
        let parts = parts(&[("host", "h"), ("x", "12")]);
        // `/mcp`, `host: h` and `x: 12`, with two line ends.
        let bytes = 4 + 9 + 7;
        assert!(too_much(&parts.headers, &parts.uri, &settings(2, bytes)).is_none());
        assert!(matches!(
            too_much(&parts.headers, &parts.uri, &settings(1, bytes)),
            Some(Excess::Count(_))
        ));
        assert!(matches!(
            too_much(&parts.headers, &parts.uri, &settings(2, bytes - 1)),
            Some(Excess::Bytes(_))
        ));
    }
}
