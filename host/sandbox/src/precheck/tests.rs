//! Every reason that can be told of the bytes alone, by the pre-check or, behind it, by the validator
//! as the compile child runs it.

use std::time::{Duration, Instant};

use super::{Bounds, Facts, check};
use crate::child;
use crate::refusal::{Reason, Refusal};
use crate::typed::docs::Docs;

/// One of everything that the walk reads.
const SAMPLE: &str = r#"(component
    (import "longshore:tool/task" (instance
        (type $r (record (field "a" u32) (field "b" (list string))))
        (export "t" (type $t (eq $r)))
        (export "f" (func (param "x" $t) (result string)))
        (type (instance (type $g (func)) (export "g" (func (type $g)))))))
    (core module $m
        (memory (export "memory") 1)
        (table 3 funcref)
        (global (mut i32) (i32.const 7))
        (func (export "run") (param i32) (result i32)
            (block (block (block (br_table 0 1 2 (local.get 0)))))
            (i32.add (local.get 0) (i32.const 1)))
        (data (i32.const 8) "hello"))
    (core instance $i (instantiate $m))
    (type $ft (func (param "x" u32) (result u32)))
    (func $run (type $ft) (canon lift (core func $i "run")))
    (component $c
        (import "run" (func (param "x" u32) (result u32)))
        (core module $n (func (export "z")))
        (core instance (instantiate $n))
        (export "run" (func 0)))
    (instance (instantiate $c (with "run" (func $run))))
    (instance $out (export "run" (func $run)))
    (export "longshore:tool/tools" (instance $out)))"#;

fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text of a test is right")
}

/// The way of an upload up to native code.
fn upload(bytes: &[u8]) -> Result<(), Refusal> {
    check(bytes, &Bounds::default())?;
    child::compile(bytes, 64 << 20).map(drop)
}

fn reason(bytes: &[u8]) -> Option<Reason> {
    upload(bytes).err().map(|refusal| refusal.reason)
}

#[track_caller]
fn refused(bytes: &[u8], reason: Reason, message: &str) {
    let refusal = upload(bytes).expect_err("it is to be refused");
    assert_eq!(refusal.reason, reason, "{refusal}");
    assert!(
        refusal.message.contains(message),
        "{refusal} does not say: {message}"
    );
}

/// How the pre-check refuses, and the least time that it took: a busy machine only adds to it.
#[track_caller]
fn quickest(bytes: &[u8]) -> (Refusal, Duration) {
    let once = || {
        let started = Instant::now();
        let refusal = check(bytes, &Bounds::default()).expect_err("it is to be refused");
        (refusal, started.elapsed())
    };
    (0..5)
        .map(|_| once())
        .min_by_key(|(_, took)| *took)
        .expect("five times")
}

#[test]
fn a_component_passes_and_its_names_are_seen() {
    let sample = binary(SAMPLE);
    let facts = check(&sample, &Bounds::default()).unwrap();
    assert_eq!(
        facts,
        Facts {
            docs: Docs::default(),
            imports: vec!["longshore:tool/task".to_owned()],
            exports: vec!["longshore:tool/tools".to_owned()],
            manifest: None,
        }
    );
    upload(&sample).unwrap();
    upload(&binary("(component)")).unwrap();
}

/// A component with custom sections of those names and contents, one after the other.
fn with_sections(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let short = |length: usize| u8::try_from(length).expect("it fits one byte") & 0x7f;
    let mut bytes = binary("(component)");
    for (name, content) in sections {
        bytes.extend([0, short(1 + name.len() + content.len()), short(name.len())]);
        bytes.extend(name.as_bytes());
        bytes.extend(*content);
    }
    bytes
}

#[test]
fn a_manifest_is_read_or_refused_before_anything_is_compiled() {
    const SECTION: &str = "longshore:manifest";
    let asked: &[u8] = b"[[http]]\nhost = \"a.test\"\n";
    fn facts(sections: &[(&str, &[u8])]) -> Facts {
        check(&with_sections(sections), &Bounds::default()).unwrap()
    }
    assert_eq!(
        facts(&[("producers", b"x"), (SECTION, asked)])
            .manifest
            .as_deref(),
        std::str::from_utf8(asked).ok()
    );
    assert_eq!(facts(&[(SECTION, b"")]).manifest.as_deref(), Some(""));
    assert_eq!(facts(&[("longshore:manifest2", b"\xff")]).manifest, None);
    for (sections, word) in [
        (&[(SECTION, &b"htp = []"[..])][..], "is `http` meant?"),
        (&[(SECTION, b"\xff")], "no text"),
        (&[(SECTION, b""), (SECTION, b"")], "two of them"),
    ] {
        refused(&with_sections(sections), Reason::Manifest, word);
    }
    // A compiler puts it into a module. Whoever made the component of that goes before it.
    let module = |inner: &str, outer: &str| {
        let text = format!("(component (core module {inner}) {outer})");
        wat::parse_str(text).unwrap()
    };
    let section = |name: &str| format!("(@custom \"longshore:manifest\" \"cleanup = {name}\")");
    let manifest = |bytes: &[u8]| check(bytes, &Bounds::default()).unwrap().manifest;
    assert_eq!(
        manifest(&module(&section("true"), "")).as_deref(),
        Some("cleanup = true")
    );
    for both in [
        module(&section("true"), &section("false")),
        wat::parse_str(format!(
            "(component {} (core module {}))",
            section("false"),
            section("true")
        ))
        .unwrap(),
    ] {
        assert_eq!(manifest(&both).as_deref(), Some("cleanup = false"));
    }
    let twice = format!("{} {}", section("true"), section("false"));
    refused(&module(&twice, ""), Reason::Manifest, "two of them");
    // What a component is composed of asks for nothing by itself.
    let inner =
        wat::parse_str("(component (component (@custom \"longshore:manifest\" \"htp\")))").unwrap();
    assert_eq!(check(&inner, &Bounds::default()).unwrap().manifest, None);
}

#[test]
fn what_is_no_component_is_told_by_its_first_bytes() {
    let png = [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];
    refused(b"", Reason::NotWasm, "empty");
    refused(&[0; 8], Reason::NotWasm, "binary form");
    refused(&png, Reason::NotWasm, "binary form");
    refused(b"\x7fELF\x02\x01\x01\0", Reason::NotWasm, "binary form");
    refused(b" (component)", Reason::NotWasm, "wasm-tools parse");
    refused(b"\0as", Reason::NotWasm, "binary form");
    refused(b"\0asm", Reason::Malformed, "version");
    refused(b"\0asm\x0a\0\x01\0", Reason::Malformed, "version");
    refused(
        &binary("(module)"),
        Reason::CoreModule,
        "longshore component new",
    );
    let native = child::compile(&binary("(component)"), 1 << 20).unwrap();
    refused(&native, Reason::Precompiled, "upload the component");
}

#[test]
fn starts_of_memories_and_tables_are_bounded() {
    refused(
        &binary("(component (core module (memory 65536)))"),
        Reason::MemoryMin,
        "4294967296 bytes",
    );
    refused(
        &binary("(component (core module (table 10000000 funcref)))"),
        Reason::TableMin,
        "10000000 elements",
    );
    upload(&binary(
        "(component (core module (memory 4096) (table 100000 funcref)))",
    ))
    .unwrap();
    refused(
        &binary("(component (core module (memory 4097)))"),
        Reason::MemoryMin,
        "at most",
    );
}

#[test]
fn features_that_are_off_are_named() {
    let rows = [
        ("(core module (memory i64 1))", "memory64"),
        ("(core module (memory 1 1 shared))", "threads"),
        (
            "(core module (memory 1) (func (drop (i32.atomic.load (i32.const 0)))))",
            "threads",
        ),
        (
            "(core module (table shared 1 funcref))",
            "shared-everything-threads",
        ),
        ("(core module (memory 1 (pagesize 1)))", "custom"),
        ("(core module (type (struct)))", "gc"),
        ("(core module (type (array i8)))", "gc"),
        ("(core module (func (param anyref)))", "gc"),
        (
            "(core module (type $f (func)) (func (param (ref $f))))",
            "function",
        ),
        (
            "(core module (type $f (func)) (type (cont $f)))",
            "stack switching",
        ),
        (
            "(core module (func (drop (i64.add128 (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0))) drop))",
            "wide",
        ),
        ("(core module (tag) (func try catch 0 end))", "exceptions"),
        ("(type (func async))", "async"),
        ("(type (future u32))", "async"),
        ("(core func (canon task.cancel))", "async"),
        ("(type error-context)", "error-context"),
        ("(type (list u32 4))", "fixed"),
        ("(import \"v\" (value u32))", "value"),
    ];
    for (inside, name) in rows {
        let refusal = upload(&binary(&format!("(component {inside})"))).expect_err(inside);
        assert_eq!(refusal.reason, Reason::FeatureOff, "{inside}: {refusal}");
        let message = refusal.message.to_lowercase();
        assert!(
            message.contains(name),
            "{inside}: {refusal} does not name {name}"
        );
    }
    // What guests in C and Rust need stays on.
    upload(&binary("(component (core module (tag) (func (throw 0)) (func (result v128) (v128.const i64x2 0 0))))"))
        .unwrap();
}

#[test]
fn a_whole_component_is_not_to_be_imported() {
    refused(
        &binary(r#"(component (import "c" (component)))"#),
        Reason::Import,
        "`c`, a component",
    );
    refused(
        &binary(r#"(component (import "m" (core module)))"#),
        Reason::Import,
        "`m`, a module",
    );
}

/// Lists of lists, the innermost holding numbers.
fn nested_lists(levels: usize) -> Vec<u8> {
    let mut text = "(component (type $t0 (list u8))".to_owned();
    for level in 1..levels {
        text += &format!("(type $t{level} (list $t{}))", level - 1);
    }
    binary(&(text + ")"))
}

#[test]
fn types_nest_a_hundred_deep_and_no_deeper() {
    upload(&nested_lists(99)).unwrap();
    refused(&nested_lists(101), Reason::TypeDepth, "nesting");
    refused(&nested_lists(20_000), Reason::TypeDepth, "nesting");
}

#[test]
fn types_that_double_are_judged_by_their_size() {
    let doubled = |levels: usize| {
        let mut text = "(component (type $t0 (tuple u8 u8))".to_owned();
        for level in 1..levels {
            text += &format!("(type $t{level} (tuple $t{0} $t{0}))", level - 1);
        }
        binary(&(text + ")"))
    };
    upload(&doubled(12)).unwrap();
    refused(&doubled(40), Reason::TypeSize, "effective type size");
}

/// A component with one section.
fn with_section(id: u8, contents: &[u8]) -> Vec<u8> {
    let mut bytes = binary("(component)");
    bytes.truncate(8);
    bytes.push(id);
    let mut len = contents.len();
    while len >= 0x80 {
        bytes.push((len & 0x7f) as u8 | 0x80);
        len >>= 7;
    }
    bytes.push(len as u8);
    bytes.extend(contents);
    bytes
}

const COMPONENT_TYPES: u8 = 7;

#[test]
fn types_written_inside_types_do_not_overflow_the_stack() {
    let nested = |levels: usize| {
        let mut contents = vec![1];
        for _ in 1..levels {
            contents.extend([0x42, 1, 1]);
        }
        contents.extend([0x42, 0]);
        with_section(COMPONENT_TYPES, &contents)
    };
    upload(&nested(99)).unwrap();
    refused(&nested(101), Reason::TypeDepth, "inside types");
    let abyss = nested(300_000);
    let (refusal, took) = quickest(&abyss);
    assert_eq!(refusal.reason, Reason::TypeDepth, "{refusal}");
    assert!(took < Duration::from_millis(5), "{took:?}");
}

#[test]
fn counts_that_the_bytes_cannot_hold_are_malformed_without_reserving() {
    // Four billion types, core types, canonical functions, aliases, instances.
    for section in [2, 3, 5, 6, 7, 8, 10, 11] {
        let bytes = with_section(section, &[0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(reason(&bytes), Some(Reason::Malformed), "section {section}");
    }
    let overlong = with_section(COMPONENT_TYPES, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x00]);
    assert_eq!(reason(&overlong), Some(Reason::Malformed));
    let mut endless = binary("(component)");
    endless.extend([COMPONENT_TYPES, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert_eq!(reason(&endless), Some(Reason::Malformed));
}

/// A bomb whose lowest level is `bottom`: every level holds the one below and starts it ten times.
fn bomb_inside(bottom: &str, levels: usize) -> Vec<u8> {
    let mut text = format!("(component $c0 {bottom})");
    for level in 1..=levels {
        let starts = format!("(instance (instantiate $c{}))", level - 1).repeat(10);
        text = format!("(component $c{level} {text} {starts})");
    }
    binary(&text)
}

/// The same with the levels side by side, each reaching out for the one below.
fn bomb_beside(bottom: &str, levels: usize) -> Vec<u8> {
    let mut text = format!("(component $c0 {bottom})");
    for level in 1..=levels {
        let starts = format!("(instance (instantiate $c{}))", level - 1).repeat(10);
        text += &format!("(component $c{level} {starts})");
    }
    binary(&format!(
        "(component {text} (instance (instantiate $c{levels})))"
    ))
}

/// The same with every level exported, which defines it anew, before it is used.
fn bomb_by_export(bottom: &str, levels: usize) -> Vec<u8> {
    let mut text = format!(r#"(component $c0 {bottom}) (export $e0 "e0" (component $c0))"#);
    for level in 1..=levels {
        let starts = format!("(instance (instantiate $e{}))", level - 1).repeat(10);
        text += &format!(
            r#"(component $c{level} {starts}) (export $e{level} "e{level}" (component $c{level}))"#
        );
    }
    // The engine lets no component out of the outermost.
    binary(&format!(
        "(component (component $c {text} (instance (instantiate $e{levels}))) (instance (instantiate $c)))"
    ))
}

#[test]
fn instantiation_bombs_are_counted_not_lit() {
    let core = "(core module $m) (core instance (instantiate $m))";
    for bottom in [core, ""] {
        for levels in 6..=9 {
            for bomb in [bomb_inside, bomb_beside, bomb_by_export] {
                let bytes = bomb(bottom, levels);
                assert!(bytes.len() < 2500, "{} bytes", bytes.len());
                let (refusal, took) = quickest(&bytes);
                assert_eq!(refusal.reason, Reason::TooManyInstances, "{refusal}");
                assert!(took < Duration::from_millis(5), "{took:?}");
            }
        }
    }
    // 100 instances are no bomb.
    upload(&bomb_inside(core, 2)).unwrap();
    upload(&bomb_beside(core, 2)).unwrap();
    upload(&bomb_by_export(core, 2)).unwrap();
}

#[test]
fn a_component_that_is_handed_in_cannot_be_instantiated() {
    let handed_in = r#"(component
        (component $c (import "x" (component $x)) (instance (instantiate $x))))"#;
    refused(&binary(handed_in), Reason::TooManyInstances, "handed in");
    let taken_out = r#"(component
        (component $c (component $d) (export "d" (component $d)))
        (instance $i (instantiate $c))
        (alias export $i "d" (component $d))
        (instance (instantiate $d)))"#;
    refused(&binary(taken_out), Reason::TooManyInstances, "handed in");
    assert_eq!(
        reason(&with_section(5, &[1, 0, 7, 0])),
        Some(Reason::Malformed),
        "there is no component 7"
    );
}

#[test]
fn every_truncation_is_refused_or_fine_and_never_a_panic() {
    let sample = binary(SAMPLE);
    let mut refusals = 0;
    for length in 0..sample.len() {
        let outcome = upload(&sample[..length]);
        if let Err(refusal) = outcome {
            let expected = if length < 4 {
                Reason::NotWasm
            } else {
                Reason::Malformed
            };
            assert_eq!(refusal.reason, expected, "{length} bytes: {refusal}");
            refusals += 1;
        }
    }
    // What is left whole: a component cut between two of its sections.
    assert!(
        sample.len() - refusals < 20,
        "{refusals} of {} are refused",
        sample.len()
    );
}

#[test]
fn two_thousand_mutants_are_refused_or_fine_and_never_a_panic() {
    let sample = binary(SAMPLE);
    // A small generator of our own (xorshift), so that a failing mutant comes again.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound as u64) as usize
    };
    let (mut past_walk, mut past_all) = (0, 0);
    for _ in 0..2_000 {
        let mut mutant = sample.clone();
        for _ in 0..=next(8) {
            let place = next(mutant.len());
            mutant[place] = next(256) as u8;
        }
        if check(&mutant, &Bounds::default()).is_ok() {
            past_walk += 1;
            match child::compile(&mutant, 64 << 20) {
                Ok(_code) => past_all += 1,
                Err(refusal) => assert_ne!(refusal.reason, Reason::Host, "{refusal}"),
            }
        }
    }
    println!("of 2000 mutants {past_walk} pass the walk and {past_all} everything");
    // Else the mutants test nothing but the first check.
    assert!(
        past_walk > 100 && past_all > 10,
        "{past_walk} pass the walk, {past_all} everything"
    );
}

#[test]
fn at_each_bound_is_fine_and_one_above_is_not() {
    let nest = |levels: usize| format!("{}{}", "(component ".repeat(levels), ")".repeat(levels));
    let instances = |n: usize| {
        format!(
            "(component (core module $m) {})",
            "(core instance (instantiate $m))".repeat(n)
        )
    };
    let named = |what: &str, n: usize| {
        let each: String = (0..n).map(|i| what.replace('N', &i.to_string())).collect();
        format!("(component (import \"f\" (func $f)) {each})")
    };
    let small = Bounds {
        bytes: usize::MAX,
        instances: 5,
        items: 100,
        parts: 6,
        nesting: 4,
        type_nesting: 3,
        type_bytes: 300,
        functions: 5,
        function_bytes: 20,
        jump_targets: 5,
        imports: 5,
        exports: 5,
        memory_bytes: 2 << 16,
        table_elements: 5,
    };
    let func = |inside: &str| format!("(component (core module (func {inside})))");
    let rows = [
        (instances(5), instances(6), Reason::TooManyInstances),
        (nest(5), nest(6), Reason::TypeDepth),
        (
            format!("(component {})", "(core module)".repeat(6)),
            format!("(component {})", "(core module)".repeat(7)),
            Reason::TooManyInstances,
        ),
        (
            format!("(component (core module {}))", "(func)".repeat(5)),
            format!(
                "(component (core module {}) (core module {}))",
                "(func)".repeat(5),
                "(func)"
            ),
            Reason::TooManyFunctions,
        ),
        // A count of locals and an end are two bytes more.
        (
            func(&"nop ".repeat(18)),
            func(&"nop ".repeat(19)),
            Reason::FunctionSize,
        ),
        (
            func("(br_table 0 0 0 0 0 0 (i32.const 0))"),
            func("(br_table 0 0 0 0 0 0 0 (i32.const 0))"),
            Reason::FunctionSize,
        ),
        (
            named("(import \"fN\" (func))", 4),
            named("(import \"fN\" (func))", 5),
            Reason::TooManyFunctions,
        ),
        (
            named("(export \"eN\" (func $f))", 5),
            named("(export \"eN\" (func $f))", 6),
            Reason::TooManyFunctions,
        ),
        (
            "(component (core module (memory 2)))".to_owned(),
            "(component (core module (memory 3)))".to_owned(),
            Reason::MemoryMin,
        ),
        (
            "(component (core module (table 5 funcref)))".to_owned(),
            "(component (core module (table 6 funcref)))".to_owned(),
            Reason::TableMin,
        ),
        (
            "(component (type (instance (type (instance)))))".to_owned(),
            "(component (type (instance (type (instance (type (instance)))))))".to_owned(),
            Reason::TypeDepth,
        ),
        (
            format!("(component {})", "(type u8)".repeat(100)),
            format!("(component {})", "(type u8)".repeat(101)),
            Reason::TooManyInstances,
        ),
        // A count, and for each name its length, are bytes too.
        (
            format!("(component (type (enum \"{}\")))", "a".repeat(295)),
            format!("(component (type (enum \"{}\")))", "a".repeat(296)),
            Reason::TypeSize,
        ),
    ];
    for (at, above, reason) in rows {
        check(&binary(&at), &small).unwrap_or_else(|refusal| panic!("{at}: {refusal}"));
        let refusal = check(&binary(&above), &small).expect_err(&above);
        assert_eq!(refusal.reason, reason, "{above}: {refusal}");
    }
    let sample = binary(SAMPLE);
    check(
        &sample,
        &Bounds {
            bytes: sample.len(),
            ..Bounds::default()
        },
    )
    .unwrap();
    let refusal = check(
        &sample,
        &Bounds {
            bytes: sample.len() - 1,
            ..Bounds::default()
        },
    )
    .unwrap_err();
    assert_eq!(refusal.reason, Reason::TooLarge);
}

#[test]
fn large_things_are_refused_by_the_default_bounds() {
    let functions = |n: usize| binary(&format!("(component (core module {}))", "(func)".repeat(n)));
    refused(
        &functions(100_001),
        Reason::TooManyFunctions,
        "100001 functions",
    );
    let long = format!(
        "(component (core module (func {})))",
        "nop ".repeat(1 << 20)
    );
    refused(
        &binary(&long),
        Reason::FunctionSize,
        "bytes in one function",
    );
    let table = format!("(func (br_table {} (i32.const 0)))", "0 ".repeat(65_000));
    let jumps = format!("(component (core module {}))", table.repeat(4));
    refused(
        &binary(&jumps),
        Reason::FunctionSize,
        "targets in jump tables",
    );
    let types = "(type (tuple u8 u8 u8 u8 u8 u8))".repeat(150_000);
    refused(
        &binary(&format!("(component {types})")),
        Reason::TypeSize,
        "bytes in one section of types",
    );
}
