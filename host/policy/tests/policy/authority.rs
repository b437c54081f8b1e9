//! One reading of whom a request goes to.

use longshore_policy::authority::{Authority, Host, Scheme};
use longshore_policy::pattern::HostPattern;

/// A text, and what is dialled for it over https; nothing if it is refused.
const READINGS: [(&str, Option<&str>); 48] = [
    ("example.org", Some("example.org:443")),
    ("example.org:", Some("example.org:443")),
    ("example.org:8443", Some("example.org:8443")),
    ("EXAMPLE.Org", Some("example.org:443")),
    ("example.org.", Some("example.org:443")),
    ("example.org.:80", Some("example.org:80")),
    ("localhost", Some("localhost:443")),
    ("a_b.example.org", Some("a_b.example.org:443")),
    ("bücher.example", Some("xn--bcher-kva.example:443")),
    ("BÜCHER.example", Some("xn--bcher-kva.example:443")),
    ("xn--bcher-kva.example", Some("xn--bcher-kva.example:443")),
    // Other writings of the same letters, as browsers read them.
    ("ｅxample.org", Some("example.org:443")),
    ("example。org", Some("example.org:443")),
    ("127.0.0.1", Some("127.0.0.1:443")),
    ("127.0.0.1.", Some("127.0.0.1:443")),
    ("１２７.0.0.1", Some("127.0.0.1:443")),
    ("[::1]", Some("[::1]:443")),
    ("[::1]:8080", Some("[::1]:8080")),
    ("[2001:DB8::1]", Some("[2001:db8::1]:443")),
    ("[::ffff:127.0.0.1]", Some("127.0.0.1:443")),
    ("[::ffff:7f00:1]", Some("127.0.0.1:443")),
    ("0x7f.example", Some("0x7f.example:443")),
    ("", None),
    (".", None),
    ("..", None),
    (":443", None),
    ("example..org", None),
    (".example.org", None),
    ("example.org..", None),
    ("user@example.org", None),
    ("user:password@example.org", None),
    ("example.org@evil.test", None),
    ("example.org:0", None),
    ("example.org:65536", None),
    ("example.org:+1", None),
    ("example.org:80:80", None),
    ("2001:db8::1", None),
    ("[::1", None),
    ("[::1]x", None),
    ("[fe80::1%eth0]", None),
    ("0x7f.1", None),
    ("0x7f000001", None),
    ("2130706433", None),
    ("0177.0.0.1", None),
    ("127.1", None),
    ("exa%6dple.org", None),
    ("example.org/", None),
    ("exa mple.org", None),
];

#[test]
fn each_text_names_one_host_or_none() {
    for (text, expected) in READINGS {
        let read = Authority::read(Scheme::Https, text)
            .ok()
            .map(|read| read.to_string());
        assert_eq!(read.as_deref(), expected, "{text:?}");
    }
}

#[test]
fn what_is_read_is_read_alike_again() {
    for (text, expected) in READINGS {
        let Ok(once) = Authority::read(Scheme::Https, text) else {
            continue;
        };
        let again = Authority::read(Scheme::Https, expected.unwrap());
        assert_eq!(Ok(once), again, "{text:?}");
    }
}

#[test]
fn http_has_another_port() {
    let read = Authority::read(Scheme::Http, "example.org").unwrap();
    assert_eq!(read.port, 80);
}

#[test]
fn names_are_no_longer_than_names_may_be() {
    let label = "a".repeat(63);
    assert!(Host::read(&format!("{label}.org")).is_ok());
    assert!(Host::read(&format!("{label}a.org")).is_err());
    let whole = [label.as_str(); 4].join(".");
    assert_eq!(whole.len(), 255);
    assert!(Host::read(&whole).is_err());
    assert!(Host::read(&whole[2..]).is_ok());
}

#[test]
fn patterns_hold_what_they_name() {
    let rows = [
        ("example.org", "example.org", true),
        ("example.org", "EXAMPLE.org.", true),
        ("example.org", "a.example.org", false),
        ("example.org", "example.org.evil.test", false),
        ("example.org", "evilexample.org", false),
        ("*.example.org", "a.example.org", true),
        ("*.example.org", "a.b.example.org", true),
        ("*.example.org", "example.org", false),
        ("*.example.org", "evilexample.org", false),
        ("*.example.org", "a.example.org.evil.test", false),
        ("*.Example.ORG.", "a.example.org", true),
        ("127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "[::ffff:127.0.0.1]", true),
        ("[::1]", "[0:0::1]", true),
        ("*", "a.test", true),
        ("*", "127.0.0.1", true),
    ];
    for (pattern, host, expected) in rows {
        let pattern: HostPattern = pattern.parse().unwrap();
        let host = Host::read(host).unwrap();
        assert_eq!(pattern.holds(&host), expected, "{pattern} {host}");
    }
}

#[test]
fn patterns_that_hold_strangers_are_refused() {
    for text in [
        "*.com",
        "*.org.",
        "*.COM",
        "*.co.uk",
        "*.com.au",
        "*.github.io",
        "*.",
        "*.*",
        "**",
        "*example.org",
        "a.*.example.org",
        "ex*mple.org",
        "*.127.0.0.1",
        "*.0.0.1",
        ".",
        "",
        "https://example.org",
        "example.org:80",
        "example.org/path",
        "user@example.org",
    ] {
        assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
    }
    for text in [
        "*.example.com",
        "*.example.co.uk",
        "*.co.example",
        "*.me.github.io",
        "*",
    ] {
        assert!(text.parse::<HostPattern>().is_ok(), "{text:?}");
    }
}
