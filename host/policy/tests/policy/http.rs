//! Which requests are sent, and by which rule.

use longshore_policy::authority::{Authority, Scheme};
use longshore_policy::http::{Denied, InDoubt, Permit, Rule, Target, verdict};

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

fn judged(rules: &[Rule], method: &str, url: &str) -> Result<Permit, Denied> {
    verdict(rules, &target(method, url)?)
}

#[test]
fn nothing_is_sent_that_no_rule_names() {
    let rules = rules(&[
        "api.example.org",
        "GET,POST https://*.example.org:8443",
        "* http://10.0.0.1",
    ]);
    for (method, url, expected) in [
        ("GET", "https://api.example.org", true),
        ("GET", "https://API.example.ORG.:443", true),
        ("HEAD", "https://api.example.org", true),
        ("POST", "https://api.example.org", false),
        ("get", "https://api.example.org", false),
        ("GET", "http://api.example.org", false),
        ("GET", "http://api.example.org:443", false),
        ("GET", "https://api.example.org:444", false),
        ("GET", "https://api.example.org.evil.test", false),
        ("GET", "https://example.org", false),
        ("POST", "https://api.example.org:8443", true),
        ("POST", "https://a.b.example.org:8443", true),
        ("PUT", "https://a.b.example.org:8443", false),
        ("BREW", "http://10.0.0.1", true),
        ("BREW", "http://[::ffff:10.0.0.1]", true),
        ("CONNECT", "http://10.0.0.1", false),
        ("TRACE", "http://10.0.0.1", false),
        ("trace", "http://10.0.0.1", false),
        ("GET", "http://user@10.0.0.1", false),
        ("GET", "http://0x0a.1", false),
        ("GET", "http://167772161", false),
    ] {
        let judged = judged(&rules, method, url);
        assert_eq!(judged.is_ok(), expected, "{method} {url}: {judged:?}");
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
    let mut rules = rules(&["* example.org"]);
    let is_write = |rules: &[Rule], method: &str| {
        let permit = judged(rules, method, "https://example.org").unwrap();
        assert_eq!(permit.in_doubt, InDoubt::Ask);
        permit.is_write
    };
    assert!(!is_write(&rules, "GET"));
    assert!(is_write(&rules, "POST"));
    assert!(is_write(&rules, "get"));
    rules[0].treat_as_write = true;
    assert!(is_write(&rules, "GET"));
}

/// A rule with a word of care, of freedom, or of nothing.
fn said(text: &str, in_doubt: Option<InDoubt>, treat_as_write: bool, network: &str) -> Rule {
    let networks = network.split_whitespace();
    Rule {
        in_doubt,
        treat_as_write,
        networks: networks.map(|network| network.parse().unwrap()).collect(),
        ..text.parse().unwrap()
    }
}

#[test]
fn every_rule_that_is_fitted_has_its_word_whatever_their_order() {
    use InDoubt::{Ask, Fail, Resend, Tell};
    const ONE: &str = "GET https://a.example.org";
    const ALL: &str = "* https://*.example.org";
    let lax = || said(ALL, Some(Resend), false, "10.0.0.0/8");
    let cases = [
        // What is behind a rule that fits is looked at.
        (vec![lax(), said(ONE, Some(Fail), true, "")], Fail, true),
        (vec![lax(), said(ALL, Some(Tell), false, "")], Tell, false),
        (vec![lax(), said(ONE, Some(Ask), false, "")], Ask, false),
        (
            vec![
                said(ONE, Some(Ask), false, ""),
                lax(),
                said(ALL, Some(Fail), false, ""),
            ],
            Fail,
            false,
        ),
        // Who says nothing has no word.
        (vec![lax(), said(ONE, None, false, "")], Resend, false),
        // Nor has whoever speaks of something else.
        (
            vec![
                lax(),
                said("POST https://a.example.org", Some(Fail), true, ""),
            ],
            Resend,
            false,
        ),
        (
            vec![
                lax(),
                said("GET http://a.example.org", Some(Fail), true, ""),
            ],
            Resend,
            false,
        ),
        (
            vec![
                lax(),
                said("GET https://b.example.org", Some(Fail), true, ""),
            ],
            Resend,
            false,
        ),
        (
            vec![
                lax(),
                said("GET https://a.example.org:81", Some(Fail), true, ""),
            ],
            Resend,
            false,
        ),
    ];
    for (mut rules, in_doubt, is_write) in cases {
        for _ in 0..rules.len() {
            let permit = judged(&rules, "GET", "https://a.example.org").unwrap();
            let expected = Permit {
                is_write,
                in_doubt,
                networks: vec!["10.0.0.0/8".parse().unwrap()],
            };
            assert_eq!(permit, expected, "{rules:?}");
            rules.rotate_left(1);
        }
    }
    let mut both = vec![lax(), said(ONE, None, false, "127.0.0.1")];
    let open = judged(&both, "GET", "https://a.example.org")
        .unwrap()
        .networks;
    assert_eq!(open.len(), 2, "what either opens is open");
    both.pop();
    assert_eq!(
        judged(&both, "GET", "https://a.example.org")
            .unwrap()
            .networks
            .len(),
        1
    );
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
        let permit = judged(std::slice::from_ref(&both), "GET", "https://example.org");
        assert_eq!(permit.unwrap().in_doubt, expected);
        assert!(both.treat_as_write);
    }
}
