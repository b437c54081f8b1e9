//! Schemas and values made to exhaust whoever checks them. Each ends soon, with an answer.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use longshore_catalog::schema::{Compiled, check_input};
use serde_json::{Map, Value, json};

/// Ten times what was measured on two busy cores without optimisation; a hang or an exponential is far beyond.
const UPLOAD: Duration = Duration::from_secs(2);
const CHECK: Duration = Duration::from_secs(12);

fn timed<T>(limit: Duration, what: &str, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    let took = begun.elapsed();
    assert!(took < limit, "{what} took {took:?}");
    result
}

fn nested(depth: usize, leaf: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(leaf, |inner, _| wrap(inner))
}

#[test]
fn oversized_schemas_are_refused_before_they_are_compiled() {
    let five_megabytes = format!(r#"{{"type":"object","title":"{}"}}"#, "x".repeat(5_000_000));
    let ten_thousand_deep = format!(
        r#"{{"type":"object","not":{}{{}}{}}}"#,
        r#"{"not":"#.repeat(10_000),
        "}".repeat(10_000)
    );
    let only_brackets = "[".repeat(200_000);
    let a_million_subschemas = format!(
        r#"{{"type":"object","allOf":[{}]}}"#,
        vec!["{}"; 1 << 20].join(",")
    );
    let most_subschemas_that_fit = format!(
        r#"{{"type":"object","allOf":[{}]}}"#,
        vec!["{}"; 80_000].join(",")
    );
    for text in [
        five_megabytes,
        ten_thousand_deep,
        only_brackets,
        a_million_subschemas,
        most_subschemas_that_fit,
    ] {
        timed(Duration::from_millis(500), &text[..40], || {
            check_input(&text)
        })
        .unwrap_err();
    }
}

#[test]
fn the_largest_schemas_that_are_accepted_compile_soon() {
    let wide: Map<String, Value> = (0..4_900)
        .map(|n| (format!("p{n}"), json!({"type": "string"})))
        .collect();
    let references: Map<String, Value> = (0..4_900)
        .map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/a"})))
        .collect();
    let ring: Map<String, Value> = (0..2_400)
        .map(|n| {
            (
                format!("d{n}"),
                json!({"items": {"$ref": format!("#/$defs/d{}", (n + 1) % 2_400)}}),
            )
        })
        .collect();
    let patterns: Map<String, Value> = (0..64)
        .map(|n| {
            (
                format!("p{n}"),
                json!({"pattern": format!("{n}[ab]*a[ab]{{380}}c")}),
            )
        })
        .collect();
    let names: Map<String, Value> = (0..64)
        .map(|n| (format!("{n}(?:[ab]?){{100}}[ab]{{100}}c"), json!({})))
        .collect();
    for schema in [
        json!({"type": "object", "properties": wide}),
        json!({"type": "object", "properties": references, "$defs": {"a": {"type": "object"}}}),
        json!({"type": "object", "$defs": ring, "properties": {"a": {"$ref": "#/$defs/d0"}}}),
        json!({"type": "object", "properties": patterns}),
        json!({"type": "object", "patternProperties": names}),
        nested(
            30,
            json!({"type": "object"}),
            |inner| json!({"type": "object", "allOf": [inner]}),
        ),
        nested(
            31,
            json!({"type": "object"}),
            |inner| json!({"type": "object", "properties": {"k": inner}}),
        ),
    ] {
        let text = schema.to_string();
        let checked = timed(UPLOAD, &text[..60], || check_input(&text));
        assert_eq!(checked, Ok(()), "{text:.100}");
    }
}

#[test]
fn no_reference_is_ever_fetched() {
    let canary = TcpListener::bind("127.0.0.1:0").unwrap();
    canary.set_nonblocking(true).unwrap();
    let url = format!("http://{}/schema.json", canary.local_addr().unwrap());
    for schema in [
        json!({"type": "object", "$ref": url}),
        json!({"type": "object", "$dynamicRef": url}),
        json!({"type": "object", "$schema": url}),
        json!({"type": "object", "$id": url, "$ref": "other.json"}),
        json!({"type": "object", "$defs": {"a": {"$id": url, "$ref": "b"}}}),
        json!({"type": "object", "$defs": {"a": {"$schema": url}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "file:///etc/hostname"}}}),
    ] {
        check_input(&schema.to_string()).unwrap_err();
    }
    // Where it is no reference it is only text.
    let text = json!({"type": "object", "$id": url, "$recursiveRef": url, "const": {"$ref": url}, "$vocabulary": {url.as_str(): false}});
    Compiled::compile(&text.to_string())
        .unwrap()
        .check(&json!({}))
        .unwrap_err();
    assert_eq!(
        canary.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[test]
fn patterns_take_linear_time() {
    for (pattern, unit) in [
        ("(a+)+$", "ab"),
        ("^(a|aa)+$", "a"),
        ("^(a*)*b", "a"),
        ("([a-z]+)*[0-9]", "a"),
        ("(.*)(.*)(.*)(.*)x$", "a"),
        ("[ab]*a[ab]{380}c", "ab"),
        ("(?:[ab]?){100}[ab]{100}c", "ab"),
    ] {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": pattern}}, "patternProperties": {pattern: {}}});
        let compiled = timed(UPLOAD, pattern, || Compiled::compile(&schema.to_string())).unwrap();
        let short = unit.repeat(10_000 / unit.len());
        let long = unit.repeat(1_000_000 / unit.len());
        // The first use builds what the matcher caches.
        let _warm = compiled.check(&json!({"a": "a"}));
        let limit = Duration::from_millis(500);
        timed(limit, pattern, || {
            drop(compiled.check(&json!({"a": short, short.as_str(): 1})))
        });
        timed(CHECK, pattern, || {
            drop(compiled.check(&json!({"a": long, long.as_str(): 1})))
        });
    }
}

#[test]
fn a_simple_pattern_matches_a_megabyte() {
    let schema =
        json!({"type": "object", "properties": {"a": {"pattern": "^[A-Za-z0-9+/]*={0,2}$"}}});
    let compiled = Compiled::compile(&schema.to_string()).unwrap();
    assert_eq!(
        compiled.check(&json!({"a": "QUJD".repeat(250_000)})),
        Ok(())
    );
    assert!(
        compiled
            .check(&json!({"a": "QUJD!".repeat(200_000)}))
            .is_err()
    );
}

#[test]
fn references_that_double_the_work_are_stopped() {
    for combine in ["allOf", "anyOf", "oneOf"] {
        // Twice per level in one place: 2^31 visits for any value.
        let twice = |n: usize| json!({combine: [{"$ref": format!("#/$defs/d{}", n + 1)}, {"$ref": format!("#/$defs/d{}", n + 1)}]});
        let mut defs: Map<String, Value> = (0..14).map(|n| (format!("d{n}"), twice(n))).collect();
        // Wider instead of longer, since the length of a chain is bounded.
        let wide: Vec<Value> = vec![json!({"$ref": "#/$defs/leaf"}); 600];
        defs.insert("d14".into(), json!({combine: wide}));
        defs.insert("leaf".into(), json!({"type": "object", "required": ["a"]}));
        let schema = json!({"type": "object", "$defs": defs, "$ref": "#/$defs/d0"});
        let compiled = timed(UPLOAD, combine, || Compiled::compile(&schema.to_string())).unwrap();
        for value in [json!({}), json!({"a": 1}), json!({"b": [1]})] {
            timed(CHECK, combine, || drop(compiled.check(&value)));
        }

        // Twice per level of the value: 2^64 visits for a deep one.
        let list = json!({"type": "object", "properties": {"k": {"$ref": "#/$defs/t"}}, "$defs": {
            "t": {"type": "array", "items": {combine: [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/t"}]}}}});
        let object = json!({"type": "object", combine: [
            {"properties": {"k": {"$ref": "#"}}, "unevaluatedProperties": false},
            {"patternProperties": {"k": {"$ref": "#"}}}], "unevaluatedProperties": false});
        for schema in [list, object] {
            let compiled = Compiled::compile(&schema.to_string()).unwrap();
            for leaf in [json!(1), json!([]), json!({})] {
                let lists = json!({"k": nested(62, leaf.clone(), |inner| json!([inner]))});
                let objects = nested(63, leaf, |inner| json!({"k": inner}));
                for value in [lists, objects] {
                    let found = timed(CHECK, combine, || compiled.check(&value));
                    assert!(found.is_ok() || !found.unwrap_err().is_empty());
                }
            }
        }
    }
}

#[test]
fn work_that_runs_out_is_said_and_leaves_the_next_check_alone() {
    let twice = |n: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}, {"$ref": format!("#/$defs/d{}", n + 1)}]});
    let mut defs: Map<String, Value> = (0..12).map(|n| (format!("d{n}"), twice(n))).collect();
    defs.insert(
        "d12".into(),
        json!({"properties": {"s": {"type": "string"}, "l": {"items": {"type": "integer"}}}}),
    );
    let schema = json!({"type": "object", "$defs": defs, "$ref": "#/$defs/d0"});
    let compiled = Compiled::compile(&schema.to_string()).unwrap();
    let heavy = compiled.check(&json!({"l": vec![1; 2_000]})).unwrap_err();
    assert!(heavy[0].message.contains("too much work"), "{heavy:?}");
    assert_eq!(compiled.check(&json!({"s": "x", "l": [1]})), Ok(()));
    assert!(
        compiled.check(&json!({"s": 1})).unwrap_err()[0]
            .message
            .contains("type string")
    );
}

#[test]
fn work_inside_one_keyword_is_counted() {
    let long = "a".repeat(1_000_000);
    let dear = r"\p{L}{1,20}x";
    let same: Value = (0..20_000).collect();
    let few_large: Value = (0..10).map(|n| json!([same, n])).collect();
    let often = json!({"anyOf": vec![json!({"$ref": "#/$defs/t"}); 1_000]});
    let unique = json!({"uniqueItems": true, "contains": false});
    let options = json!({"enum": (0..8_000).collect::<Value>()});
    let many = vec![json!(-1); 5_000];
    for (what, property, stored, value) in [
        ("pattern", json!({"pattern": dear}), json!({}), json!(long)),
        (
            "propertyNames",
            json!({"propertyNames": {"pattern": dear}}),
            json!({}),
            json!({long.as_str(): 1}),
        ),
        (
            "patternProperties",
            json!({"patternProperties": {dear: {}}}),
            json!({}),
            json!({long.as_str(): 1}),
        ),
        ("uniqueItems", often, unique, few_large),
        (
            "enum",
            json!({"items": {"anyOf": [{"$ref": "#/$defs/t"}, true]}}),
            options,
            json!(many),
        ),
    ] {
        let schema =
            json!({"type": "object", "properties": {"p": property}, "$defs": {"t": stored}});
        let compiled = Compiled::compile(&schema.to_string()).unwrap();
        let found = timed(CHECK, what, || compiled.check(&json!({"p": value})));
        let said = found.map_err(|problems| problems[0].message.clone());
        assert!(
            said.as_ref()
                .is_err_and(|said| said.contains("too much work")),
            "{what}: {said:?}"
        );
    }
}

#[test]
fn a_large_honest_value_is_checked_whole() {
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}});
    let compiled = Compiled::compile(&schema.to_string()).unwrap();
    let mut numbers = vec![json!(1); 500_000];
    timed(CHECK, "half a million items", || {
        assert_eq!(compiled.check(&json!({"l": numbers})), Ok(()))
    });
    numbers.push(json!(null));
    let found = timed(CHECK, "half a million and one", || {
        compiled.check(&json!({"l": numbers}))
    });
    assert_eq!(found.unwrap_err().len(), 1);
}

#[test]
fn dear_keywords_pay_for_what_they_do() {
    let options: Vec<Value> = (0..4_000).map(|n| json!([n])).collect();
    let big = json!({"const": (0..3_000).collect::<Vec<_>>()});
    for (items, item) in [
        (json!({"enum": options}), json!([-1])),
        (json!({"anyOf": [{"enum": options}, {}]}), json!([-1])),
        (
            json!({"anyOf": [big, {}]}),
            json!((0..3_000).collect::<Vec<_>>()),
        ),
        (json!({"multipleOf": 1e-300}), json!(1e300)),
        (
            json!({"uniqueItems": true}),
            json!((0..3_000).map(|n| json!({"a": [n]})).collect::<Vec<_>>()),
        ),
    ] {
        let schema = json!({"type": "object", "properties": {"l": {"items": items}}});
        let compiled = Compiled::compile(&schema.to_string()).unwrap();
        let count = 1_000_000 / item.to_string().len();
        let value = json!({"l": vec![item; count]});
        timed(CHECK, &schema.to_string()[..60], || {
            drop(compiled.check(&value))
        });
    }
}

/// Blocking workers of async runtimes have stacks of 2 MiB.
#[test]
fn the_deepest_check_fits_a_small_stack() {
    let deepest = || {
        let mut defs: Map<String, Value> = (0..15)
            .map(|n| {
                (
                    format!("d{n}"),
                    json!({"anyOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]}),
                )
            })
            .collect();
        defs.insert(
            "d15".into(),
            json!({"properties": {"k": {"$ref": "#/$defs/d0"}}, "unevaluatedProperties": false}),
        );
        let schema = json!({"type": "object", "$defs": defs, "$ref": "#/$defs/d0"});
        let compiled = Compiled::compile(&schema.to_string()).unwrap();
        let good = nested(64, json!({}), |inner| json!({"k": inner}));
        let bad = nested(64, json!({"z": 1}), |inner| json!({"k": inner}));
        (compiled.check(&good), compiled.check(&bad).is_err())
    };
    let thread = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(deepest)
        .unwrap();
    assert_eq!(thread.join().unwrap(), (Ok(()), true));
}

#[test]
fn a_compiled_schema_is_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let compiled = Compiled::compile(r#"{"type":"object","required":["a"]}"#).unwrap();
    shared(&compiled);
    std::thread::scope(|scope| {
        for n in 0..4 {
            let compiled = &compiled;
            scope.spawn(move || {
                for _ in 0..200 {
                    let value = if n % 2 == 0 {
                        json!({"a": 1})
                    } else {
                        json!({})
                    };
                    assert_eq!(compiled.check(&value).is_ok(), n % 2 == 0);
                }
            });
        }
    });
}
