//! Which requests are sent, and by which rule.

use longshore_policy::authority::{Authority, Scheme};
use longshore_policy::http::{Denied, InDoubt, Rule, Target, verdict};

fn target(method: &str, url: &str) -> Result<Target, Denied> {
    let (scheme, authority) = url.split_once("://").unwrap();
    let scheme = Scheme::parse(scheme).unwrap();
    Ok(Target {
        scheme,
        authority: Authority::read(scheme, authority)?,
        method: method.parse()?,
    })
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn judged(rules: &[Rule], method: &str, url: &str) -> Result<String, Denied> {
    let target = target(method, url)?;
    verdict(rules, &target).map(ToString::to_string)
}

#[test]
fn nothing_is_sent_that_no_rule_names() {
    let rules = rules(&[
        "api.example.org",
        "GET,POST https://*.example.org:8443",
        "* http://10.0.0.1",
    ]);
    let first = "GET,HEAD,OPTIONS https://api.example.org";
    let second = "GET,POST https://*.example.org:8443";
    let third = "* http://10.0.0.1";
    for (method, url, expected) in [
        ("GET", "https://api.example.org", Some(first)),
        ("GET", "https://API.example.ORG.:443", Some(first)),
        ("HEAD", "https://api.example.org", Some(first)),
        ("POST", "https://api.example.org", None),
        ("get", "https://api.example.org", None),
        ("GET", "http://api.example.org", None),
        ("GET", "http://api.example.org:443", None),
        ("GET", "https://api.example.org:444", None),
        ("GET", "https://api.example.org.evil.test", None),
        ("GET", "https://example.org", None),
        ("POST", "https://api.example.org:8443", Some(second)),
        ("POST", "https://a.b.example.org:8443", Some(second)),
        ("PUT", "https://a.b.example.org:8443", None),
        ("BREW", "http://10.0.0.1", Some(third)),
        ("BREW", "http://[::ffff:10.0.0.1]", Some(third)),
        ("CONNECT", "http://10.0.0.1", None),
        ("TRACE", "http://10.0.0.1", None),
        ("trace", "http://10.0.0.1", None),
        ("GET", "http://user@10.0.0.1", None),
        ("GET", "http://0x0a.1", None),
        ("GET", "http://167772161", None),
    ] {
        let judged = judged(&rules, method, url);
        assert_eq!(
            judged.as_deref().ok(),
            expected,
            "{method} {url}: {judged:?}"
        );
    }
}

#[test]
fn a_rule_may_be_for_every_port() {
    let all = rules(&["http://a.test:*"]);
    for (url, is_held) in [
        ("http://a.test", true),
        ("http://a.test:1", true),
        ("http://a.test:65535", true),
        ("https://a.test", false),
        ("http://b.test", false),
    ] {
        assert_eq!(judged(&all, "GET", url).is_ok(), is_held, "{url}");
    }
    let meet = |granted: &str, asked: &str| {
        let rule = |text: &str| text.parse::<Rule>().unwrap();
        Rule::meet(&rule(granted), &rule(asked)).map(|rule| rule.to_string())
    };
    let at_81 = Some("GET,HEAD,OPTIONS http://a.test:81".to_owned());
    assert_eq!(meet("http://a.test:*", "http://a.test:81"), at_81);
    assert_eq!(meet("http://a.test:81", "http://a.test:*"), at_81);
    let every = Some("GET,HEAD,OPTIONS http://a.test:*".to_owned());
    assert_eq!(meet("http://a.test:*", "http://a.test:*"), every);
    assert_eq!(meet("http://a.test:82", "http://a.test:81"), None);
    assert!("http://a.test:x".parse::<Rule>().is_err());
}

#[test]
fn a_denial_says_how_near_it_was() {
    let granted = rules(&["https://a.test", "http://a.test:81"]);
    for (method, url, expected) in [
        ("GET", "https://b.test", "b.test is not granted"),
        (
            "GET",
            "http://a.test",
            "a.test is granted, and not at port 80",
        ),
        (
            "PUT",
            "http://a.test:81",
            "a.test is granted, and not for PUT",
        ),
        (
            "GET",
            "https://a.test:444",
            "a.test is granted, and not at port 444",
        ),
        (
            "GET",
            "https://u@a.test",
            "\"u@a.test\" names a user; credentials do not belong in an address",
        ),
    ] {
        assert_eq!(
            judged(&granted, method, url).unwrap_err().to_string(),
            expected
        );
    }
    let only_https = rules(&["a.test"]);
    let denied = judged(&only_https, "GET", "http://a.test").unwrap_err();
    assert_eq!(denied.to_string(), "a.test is granted, and not over http");
    assert_eq!(judged(&[], "GET", "http://a.test"), Err(Denied::Nothing));
}

#[test]
fn rules_at_the_prompt_are_rules() {
    for (text, expected) in [
        ("example.org", "GET,HEAD,OPTIONS https://example.org"),
        (
            "https://example.org/",
            "GET,HEAD,OPTIONS https://example.org",
        ),
        (
            "HTTPS://Example.org:443",
            "GET,HEAD,OPTIONS https://example.org",
        ),
        (
            "http://example.org:8080",
            "GET,HEAD,OPTIONS http://example.org:8080",
        ),
        ("POST,GET *.example.org", "GET,POST https://*.example.org"),
        ("* http://[::1]:81", "* http://[::1]:81"),
        ("*", "GET,HEAD,OPTIONS https://*"),
    ] {
        assert_eq!(
            text.parse::<Rule>().unwrap().to_string(),
            expected,
            "{text}"
        );
    }
    for text in [
        "",
        "ftp://example.org",
        "example.org/path",
        "example.org?x",
        "example.org:0",
        "example.org:x",
        "CONNECT example.org",
        "GET,TRACE example.org",
        ", example.org",
        "GE(T example.org",
        "*.com",
        "GET POST example.org",
        "user@example.org",
    ] {
        assert!(text.parse::<Rule>().is_err(), "{text}");
    }
}

#[test]
fn what_is_read_is_said_of_each_host() {
    let mut rule: Rule = "* example.org".parse().unwrap();
    let get = "GET".parse().unwrap();
    assert!(rule.is_read(&get));
    assert!(!rule.is_read(&"POST".parse().unwrap()));
    assert!(!rule.is_read(&"get".parse().unwrap()));
    rule.treat_as_write = true;
    assert!(!rule.is_read(&get));
    assert_eq!(rule.in_doubt(), InDoubt::Ask);
}

#[test]
fn the_operator_has_the_first_word_on_what_is_in_doubt() {
    let rule = |in_doubt, treat_as_write| Rule {
        in_doubt,
        treat_as_write,
        ..rules(&["example.org"]).remove(0)
    };
    for (granted, asked, expected) in [
        (None, None, InDoubt::Ask),
        (None, Some(InDoubt::Resend), InDoubt::Resend),
        (Some(InDoubt::Fail), Some(InDoubt::Resend), InDoubt::Fail),
        (Some(InDoubt::Tell), None, InDoubt::Tell),
    ] {
        let both = Rule::meet(&rule(granted, false), &rule(asked, true)).unwrap();
        assert_eq!(both.in_doubt(), expected);
        assert!(both.treat_as_write);
    }
}
