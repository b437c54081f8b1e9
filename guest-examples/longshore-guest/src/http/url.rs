//! URLs, as far as a request needs to know its own.

use std::fmt::Write as _;

use super::error::Error;
use super::wasi::wasi::http::types::Scheme;

pub(super) struct Parts {
    pub(super) scheme: Scheme,
    /// With its port, if it names one.
    pub(super) host: String,
    /// With what is asked behind it.
    pub(super) path: String,
}

pub(super) fn parts(url: &str) -> Result<Parts, Error> {
    let invalid = || {
        Error::Invalid(format!(
            "{url:?} is no URL: write it like https://example.org/path"
        ))
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(invalid)?;
    let scheme = match &*scheme.to_ascii_lowercase() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(invalid()),
    };
    // What stands behind a `#` is for whoever asks.
    let rest = rest.split('#').next().unwrap_or_default();
    let at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(at);
    if let Some((_, host)) = host.rsplit_once('@') {
        // Not shown: there may be a password in it.
        let why = format!("the URL of a request to {host} may name no user: use a header");
        return Err(Error::Invalid(why));
    }
    if host.is_empty() {
        return Err(invalid());
    }
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok(Parts {
        scheme,
        host: host.to_owned(),
        path,
    })
}

/// The URL with this beside what it asks.
pub(super) fn with_query(url: &str, name: &str, value: &str) -> String {
    let (url, fragment) = match url.split_once('#') {
        Some((url, fragment)) => (url, Some(fragment)),
        None => (url, None),
    };
    let mut url = url.to_owned();
    url.push(if url.contains('?') { '&' } else { '?' });
    encode(name, &mut url);
    url.push('=');
    encode(value, &mut url);
    if let Some(fragment) = fragment {
        url.push('#');
        url.push_str(fragment);
    }
    url
}

/// All but the letters that mean nothing in a URL (RFC 3986, `unreserved`).
fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(byte.into());
        } else {
            write!(into, "%{byte:02X}").expect("a text takes what is written to it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_its_parts() {
        let cases = [
            ("https://a.example", "https a.example /"),
            ("HTTP://a.example:8080/b?c#d", "http a.example:8080 /b?c"),
            ("https://a.example?b", "https a.example /?b"),
            ("https://[::1]:1/", "https [::1]:1 /"),
            ("https://a.example/@b", "https a.example /@b"),
        ];
        for (url, expected) in cases {
            let Parts { scheme, host, path } = parts(url).unwrap();
            let scheme = match scheme {
                Scheme::Http => "http",
                Scheme::Https => "https",
                Scheme::Other(_) => "another",
            };
            assert_eq!(format!("{scheme} {host} {path}"), expected);
        }
        for url in ["", "a.example", "ftp://a.example", "https:///path"] {
            assert!(matches!(parts(url), Err(Error::Invalid(_))), "{url}");
        }
    }

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        let Err(Error::Invalid(why)) = parts("https://me:hidden@a.example/") else {
            panic!("it was taken");
        };
        assert!(
            why.contains("a.example") && !why.contains("hidden"),
            "{why}"
        );
    }

    #[test]
    fn what_is_asked_stands_in_the_url_letter_by_letter() {
        let cases = [
            ("https://a.example", "https://a.example?q=x"),
            ("https://a.example/b?c=1", "https://a.example/b?c=1&q=x"),
            ("https://a.example/b#c?d", "https://a.example/b?q=x#c?d"),
        ];
        for (url, expected) in cases {
            assert_eq!(with_query(url, "q", "x"), expected);
        }
        assert_eq!(
            with_query("https://a.example/", "a b", "1&2=ä/~"),
            "https://a.example/?a%20b=1%262%3D%C3%A4%2F~"
        );
    }
}
