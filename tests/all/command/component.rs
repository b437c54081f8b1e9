//! `component new`: core modules become components that can be served.

use serde_json::{Value, json};

use super::{FAILED, alone, text};

/// A program for preview 1, by hand: it prints its first line and ends with a status.
const PROGRAM: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (data (i32.const 32) "hello\n")
    (func (export "_start")
      (i32.store (i32.const 0) (i32.const 32))
      (i32.store (i32.const 4) (i32.const 6))
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
      (call $exit (i32.const 0))))"#;

#[tokio::test]
async fn a_program_for_preview_1_becomes_a_component_that_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let module = folder.path().join("hi.wasm");
    let bytes = wat::parse_str(PROGRAM).expect("it is a module");
    std::fs::write(&module, bytes).expect("it can be written");
    alone(&["inspect", text(&module)])
        .await
        .assert_failed(FAILED, &["core-module", "longshore component new"]);
    let made = alone(&["component", "new", text(&module), "--json"]).await;
    let component = folder.path().join("hi.component.wasm");
    assert_eq!(made.json()["component"], text(&component), "{made:?}");
    let ran = alone(&["run", text(&component), "--json"]).await;
    let result: Value = ran.json();
    let expected = json!({ "exit": 0, "stdout": "hello\n", "stderr": "", "files": {} });
    assert_eq!(result["structuredContent"], expected, "{result}");

    // To a place of one's own, and what is one already stays what it is.
    let other = folder.path().join("other.wasm");
    let made = alone(&["component", "new", text(&module), "-o", text(&other)]).await;
    assert_eq!(made.code, 0, "{made:?}");
    assert_eq!(
        std::fs::read(&other).expect("it was written"),
        std::fs::read(&component).expect("it was written")
    );
    alone(&["component", "new", text(&component)])
        .await
        .assert_failed(FAILED, &["hi.component.wasm", "no core module"]);
}

#[tokio::test]
async fn a_module_that_says_nothing_of_its_functions_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let module = folder.path().join("m.wasm");
    for (content, says) in [
        (r#"(module (func (export "f")))"#, "no program"),
        (
            r#"(module (import "env" "f" (func)) (func (export "_start")))"#,
            "env",
        ),
    ] {
        let bytes = wat::parse_str(content).expect("it is a module");
        std::fs::write(&module, bytes).expect("it can be written");
        alone(&["component", "new", text(&module)])
            .await
            .assert_failed(FAILED, &["m.wasm", says]);
    }
    std::fs::write(&module, b"\0asm\x01\0\0\0\xff").expect("it can be written");
    alone(&["component", "new", text(&module)])
        .await
        .assert_failed(FAILED, &["m.wasm"]);
}
