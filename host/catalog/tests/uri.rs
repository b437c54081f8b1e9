//! Which texts are URIs and templates of them, and which URIs fit which.

use longshore_catalog::uri::{self, MAX_EXPRESSIONS, MAX_URI, Pattern};

#[test]
fn a_uri_is_whole_and_plain() {
    for good in [
        "test://static-text",
        "file:///a/b.txt",
        "mailto:a@example.com",
        "a+b-c.d:x",
        "http://[::1]:80/?q=1&r=(2)#f",
        "t:%C3%A9",
        "T:",
    ] {
        assert_eq!(uri::check(good), Ok(()), "{good}");
    }
    for (bad, says) in [
        ("", "scheme"),
        ("a", "scheme"),
        ("/a", "scheme"),
        ("//host/a", "scheme"),
        ("1a:x", "scheme"),
        ("a_b:x", "scheme"),
        (":x", "scheme"),
        ("test://a b", "percent-encode"),
        ("test://é", "percent-encode"),
        ("test://a\nb", "percent-encode"),
        ("test://a\0", "percent-encode"),
        ("test://{id}", "percent-encode"),
        ("test://\"", "percent-encode"),
        ("test://%", "%25"),
        ("test://%4", "%25"),
        ("test://%zz", "%25"),
        ("test://%é", "percent-encode"),
    ] {
        let fault = uri::check(bad).unwrap_err();
        assert!(fault.contains(says), "{bad:?}: {fault}");
    }
}

#[test]
fn a_template_is_read_as_rfc_6570_has_it() {
    let many = |count: usize| format!("t:{}", "{x}".repeat(count));
    for good in [
        "test://{id}",
        "test://{id}/data",
        "test://{a,b}/{+c}{#d}{.e}{/f}{;g}{?h,i}{&j}",
        "t:{a.b:3}{c*}{_d%20}",
        "test://plain",
        &many(MAX_EXPRESSIONS),
    ] {
        assert!(
            Pattern::parse(good).is_ok(),
            "{good}: {:?}",
            Pattern::parse(good)
        );
    }
    let named = Pattern::parse("t:{?a.b:3,c*}{+d}").unwrap();
    for (name, is_there) in [
        ("a.b", true),
        ("c", true),
        ("d", true),
        ("a", false),
        ("", false),
    ] {
        assert_eq!(named.has_variable(name), is_there, "{name}");
    }
    for (bad, says) in [
        ("", "scheme"),
        ("{x}", "scheme"),
        ("{scheme}://a", "scheme"),
        ("a{x}://b", "scheme"),
        ("t:{", "{ without its }"),
        ("t:{x", "{ without its }"),
        ("t:x}", "} without its {"),
        ("t:{}", "no list of variables"),
        ("t:{{x}}", "no list of variables"),
        ("t:{a b}", "no list of variables"),
        ("t:{a,}", "no list of variables"),
        ("t:{a:0}", "no list of variables"),
        ("t:{a:12345}", "no list of variables"),
        ("t:{a:x}", "no list of variables"),
        ("t:{a**}", "no list of variables"),
        ("t:{.}", "no list of variables"),
        ("t:{é}", "no list of variables"),
        ("t:{=x}", "operator"),
        ("t:{|x}", "operator"),
        ("t: {x}", "percent-encode"),
        ("t:%{x}", "%25"),
        (&many(MAX_EXPRESSIONS + 1), "17 expressions"),
        (&format!("t:{}", "x".repeat(MAX_URI - 1)), "bytes"),
    ] {
        let fault = Pattern::parse(bad).unwrap_err();
        assert!(fault.contains(says), "{bad:?}: {fault}");
    }
}

#[test]
fn a_uri_fits_what_a_template_can_become() {
    let rows: [(&str, &[&str], &[&str]); 9] = [
        (
            "test://t/{id}/data",
            &[
                "test://t/123/data",
                "test://t/a-b.c_d~e/data",
                "test://t/%2F/data",
            ],
            &[
                "test://t//data",
                "test://t/a/b/data",
                "test://t/1/data/",
                "test://t/1",
                "TEST://t/1/data",
                "test://t/?/data",
            ],
        ),
        ("t:{a}{b}", &["t:xy"], &["t:x", "t:"]),
        ("t:{a,b}", &["t:x,y", "t:x"], &["t:x/y"]),
        (
            "t:{+path}/end",
            &["t:a/b/c/end", "t:/end/end", "t:a?b#c/end"],
            &["t:/en", "t:/end"],
        ),
        (
            "t:x{?q,r}",
            &["t:x", "t:x?q=1", "t:x?q=1&r=2", "t:x?"],
            &["t:x?q=1/2", "t:xq", "t:x&q"],
        ),
        (
            "t:x{/a,b}",
            &["t:x", "t:x/1", "t:x/1/2"],
            &["t:x1", "t:x/1?"],
        ),
        ("t:x{.e}", &["t:x", "t:x.png", "t:x.tar.gz"], &["t:xpng"]),
        (
            "t:x{;a}{#f}",
            &["t:x;a=1", "t:x#f", "t:x;a#f/g", "t:x"],
            &["t:xa"],
        ),
        ("t:plain", &["t:plain"], &["t:plain/", "t:plai"]),
    ];
    for (template, fits, misses) in rows {
        let pattern = Pattern::parse(template).unwrap();
        for uri in fits {
            assert!(pattern.fits(uri), "{uri} fits {template}");
        }
        for uri in misses {
            assert!(!pattern.fits(uri), "{uri} does not fit {template}");
        }
    }
    // What is no URI fits nothing.
    let all = Pattern::parse("t:{+x}").unwrap();
    for bad in [
        "t:a b",
        "t:é",
        "t:%",
        "t:",
        "",
        &format!("t:{}", "x".repeat(MAX_URI)),
    ] {
        assert!(!all.fits(bad), "{bad:?}");
    }
}

#[test]
fn the_worst_template_is_still_one_pass_for_each_part() {
    let worst = format!("t:{}", "a{+x}".repeat(MAX_EXPRESSIONS));
    let uri = format!("t:{}", "a".repeat(MAX_URI - 3)) + "?";
    // A matcher that goes back would not come to an end here.
    assert!(Pattern::parse(&worst).unwrap().fits(&uri));
    let never = Pattern::parse(&format!("{worst}!")).unwrap();
    assert!(!never.fits(&uri));
}
