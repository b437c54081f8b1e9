//! What can be told of the bytes: by reading, by compiling, by linking.

use longshore_tests::component::Made;

use super::{Row, binary, check, compiles, exporting_tools, server};

/// Components in components, each level starting the one below ten times: ten million instances.
fn instantiation_bomb() -> Vec<u8> {
    let mut text = "(component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
    for level in 1..=7 {
        let starts = format!("(instance (instantiate $c{}))", level - 1).repeat(10);
        text = format!("(component $c{level} {text} {starts})");
    }
    let bytes = binary(&text);
    assert!(
        bytes.len() < 1000,
        "{} bytes are no small bomb",
        bytes.len()
    );
    bytes
}

fn chain(first: &str, next: impl Fn(usize) -> String, levels: usize) -> Vec<u8> {
    let mut text = format!("(component (type $t0 {first})");
    for level in 1..levels {
        text += &format!("(type $t{level} {})", next(level - 1));
    }
    binary(&exporting_tools(&(text + ")")))
}

fn nested_lists(levels: usize) -> Vec<u8> {
    chain("(list u8)", |below| format!("(list $t{below})"), levels)
}

fn doubled_tuples(levels: usize) -> Vec<u8> {
    chain(
        "(tuple u8 u8)",
        |below| format!("(tuple $t{below} $t{below})"),
        levels,
    )
}

#[tokio::test]
async fn what_reading_tells_is_refused_without_compiling() {
    let server = server().await;
    let before = compiles(&server).await;
    let png = [
        0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d,
    ];
    let functions = format!("(component (core module {}))", "(func)".repeat(400_000));
    check(
        &server,
        vec![
            Row::new("nothing", "", "not-wasm", "empty"),
            Row::new("zeros", [0; 8], "not-wasm", "binary form"),
            Row::new("a picture", png, "not-wasm", "binary form"),
            Row::new(
                "a program",
                b"\x7fELF\x02\x01\x01\0\0\0\0\0",
                "not-wasm",
                "binary form",
            ),
            Row::new("text", "(component)", "not-wasm", "text format"),
            Row::new("half a header", b"\0asm", "malformed", "version"),
            Row::new(
                "a header of no version",
                b"\0asm\x0a\0\x01\0",
                "malformed",
                "version",
            ),
            Row::new(
                "a core module",
                binary("(module (func (export \"run\")))"),
                "core-module",
                "wrap it as a component",
            ),
            Row::new(
                "an instantiation bomb",
                instantiation_bomb(),
                "too-many-instances",
                "instances",
            ),
            Row::new(
                "functions",
                binary(&functions),
                "too-many-functions",
                "400000 functions",
            ),
            Row::text(
                "(component (core module (memory 65536)))",
                "memory-min",
                "4294967296 bytes",
            ),
            Row::text(
                "(component (core module (table 10000000 funcref)))",
                "table-min",
                "10000000 elements",
            ),
        ],
    )
    .await;
    assert_eq!(compiles(&server).await, before);
}

#[tokio::test]
async fn native_code_is_refused_with_and_without_its_seal() {
    let server = server().await;
    let kept: Vec<Vec<u8>> = std::fs::read_dir(server.data().join("artifacts"))
        .expect("native code is kept in the data directory")
        .map(|entry| {
            std::fs::read(entry.expect("the folder can be read").path()).expect("so can its files")
        })
        .collect();
    let [sealed] = kept.as_slice() else {
        panic!("{} files for one component", kept.len())
    };
    let elf = sealed
        .windows(4)
        .position(|window| window == b"\x7fELF")
        .expect("native code is an ELF file");
    let native = sealed[elf..].to_vec();
    check(
        &server,
        vec![
            Row::new("native code", native, "precompiled", "upload the component"),
            Row::new(
                "native code under its seal",
                sealed.as_slice(),
                "not-wasm",
                "binary form",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_the_validator_tells_is_refused_by_its_reason() {
    let rows = [
        ("(core module (memory i64 1))", "memory64"),
        ("(core module (memory 1 1 shared))", "threads"),
        ("(core module (type (struct)))", "gc"),
        ("(core module (type $f (func)) (type (cont $f)))", "stack"),
        ("(type (future u32))", "async"),
    ];
    let mut rows: Vec<Row> = rows
        .map(|(inside, says)| {
            Row::text(
                &exporting_tools(&format!("(component {inside})")),
                "feature-off",
                says,
            )
        })
        .into();
    rows.extend([
        Row::new("lists 101 deep", nested_lists(101), "type-depth", "nesting"),
        Row::new(
            "lists 20,000 deep",
            nested_lists(20_000),
            "type-depth",
            "nesting",
        ),
        Row::new(
            "tuples that double 40 times",
            doubled_tuples(40),
            "type-size",
            "type size",
        ),
        // What is within the bounds is judged by what it is, and this is no tool.
        Row::new("lists 99 deep", nested_lists(99), "world", "tools"),
        Row::new(
            "tuples that double 12 times",
            doubled_tuples(12),
            "world",
            "tools",
        ),
    ]);
    check(&server().await, rows).await;
}

/// A component with one import of this name and kind.
fn importing(import: &str) -> String {
    exporting_tools(&format!("(component (import {import}))"))
}

/// A component that exports an instance with these functions, each answering with a number.
fn exporting(name: &str, functions: &[&str]) -> String {
    let exports: String = functions
        .iter()
        .map(|name| format!("(export \"{name}\" (func $f))"))
        .collect();
    format!(
        "(component
            (core module $m (func (export \"f\") (result i32) (i32.const 0)))
            (core instance $m (instantiate $m))
            (func $f (result u32) (canon lift (core func $m \"f\")))
            (instance $i {exports})
            (export \"{name}\" (instance $i)))"
    )
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_named() {
    let tools = "longshore:tool/tools@0.1.0";
    let both = ["list-tools", "call-tool"];
    let rows = vec![
        Row::text(
            "(component)",
            "world",
            "exports none of `longshore:tool/tools@0.1.0`",
        ),
        Row::text(
            &exporting("longshore:tool/tools@0.2.0", &both),
            "world",
            "exports none of `longshore:tool/tools@0.1.0`",
        ),
        Row::text(&exporting(tools, &[]), "world", "`list-tools`"),
        Row::text(&exporting(tools, &both), "world", "function `list-tools`"),
        Row::text(
            &exporting("longshore:tool/restart@0.1.0", &["resume-tool"]),
            "world",
            "restart",
        ),
        Row::text(
            &importing(
                "\"longshore:tool/restart-points@0.1.0\" (instance (export \"checkpoint\" (func (param \"state\" (list u8)))))",
            ),
            "world",
            "`checkpoint`",
        ),
        Row::text(
            &importing(
                "\"longshore:tool/task@0.1.0\" (instance (export \"sleep\" (func (param \"ms\" string))))",
            ),
            "import",
            "longshore:tool/task",
        ),
        Row::text(
            &importing("\"acme:secrets/store@1.0.0\" (instance (export \"get\" (func)))"),
            "import",
            "acme:secrets/store",
        ),
        Row::text(
            &importing("\"wasi:nn/graph@0.2.0\" (instance (export \"load\" (func)))"),
            "import",
            "wasi:nn/graph",
        ),
        Row::text(
            &importing("\"wasi:cli/telemetry@0.2.0\" (instance (export \"on\" (func)))"),
            "import",
            "wasi:cli/telemetry",
        ),
        Row::text(
            &importing("\"wasi-snapshot-preview1\" (instance (export \"random-get\" (func)))"),
            "import",
            "wasi-snapshot",
        ),
        Row::text(&importing("\"help\" (func)"), "import", "`help`"),
        Row::text(&importing("\"whole\" (core module)"), "import", "`whole`"),
    ];
    let server = server().await;
    check(&server, rows).await;
    // What all of these lack is there in this one, so that they are refused for nothing else.
    assert_eq!(
        server
            .upload("made", Made::with_tool("made").bytes())
            .await
            .status,
        201
    );
}

#[tokio::test]
async fn nothing_is_kept_of_what_was_refused() {
    let server = server().await;
    let kept = || -> Vec<_> {
        let files = std::fs::read_dir(server.data().join("artifacts"))
            .expect("native code is kept in the data directory");
        files
            .map(|entry| entry.expect("the folder can be read").file_name())
            .collect()
    };
    let before = kept();
    check(
        &server,
        vec![Row::text(
            &exporting_tools("(component (core module (func)))"),
            "world",
            "`list-tools`",
        )],
    )
    .await;
    assert_eq!(kept(), before, "native code of a refused component is kept");
}
