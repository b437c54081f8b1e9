//! Which components are accepted, and what they list.

use longshore_policy::limits::Limits;

use super::kit::{Guest, PATIENCE, SLEEPY, fit, prepared, sandbox};
use crate::offer::{Mode, Offer, Tool};
use crate::refusal::Reason;

fn refused(text: &str) -> (Reason, String) {
    let refusal = fit(&sandbox(1), text).err().expect("it is refused");
    (refusal.reason, refusal.message)
}

#[test]
fn a_tool_fits_and_says_what_it_imports() {
    let sandbox = sandbox(1);
    assert_eq!(
        prepared(&sandbox, &SLEEPY).imports(),
        ["longshore:tool/task@0.1.0"]
    );
    assert!(prepared(&sandbox, &Guest::default()).imports().is_empty());
    // A later 0.1 of the same shape.
    fit(
        &sandbox,
        &Guest::default()
            .text()
            .replace("tools@0.1.0", "tools@0.1.7"),
    )
    .unwrap();
}

#[test]
fn an_import_that_nothing_provides_is_named() {
    for name in [
        "acme:db/query@1.0.0",
        "wasi:nn/tensor@0.2.0",
        "wasi-snapshot-preview1",
        "wasi:sockets/raw@0.2.0",
    ] {
        let import = format!(r#"(import "{name}" (instance (export "f" (func))))"#);
        let (reason, message) = refused(
            &Guest {
                imports: &import,
                ..Guest::default()
            }
            .text(),
        );
        assert_eq!(reason, Reason::Import);
        assert!(message.contains(name), "{message}");
    }
    let wrong = r#"(import "longshore:tool/task@0.1.0" (instance (export "sleep" (func (param "ms" u32)))))"#;
    let (reason, message) = refused(
        &Guest {
            imports: wrong,
            ..Guest::default()
        }
        .text(),
    );
    assert_eq!(reason, Reason::Import);
    assert!(message.contains("sleep"), "{message}");
}

#[test]
fn an_export_that_is_missing_or_differs_is_named() {
    let good = Guest::default().text();
    let cases = [
        ("(component)".to_owned(), "there is nothing"),
        (good.replace("tools@0.1.0", "tools@0.2.0"), "`longshore:tool/tools@0.2.0`"),
        (good.replace(r#"(export "call-tool" (func $call)"#, r#"(export "call-tools" (func $call)"#), "`call-tool`"),
        (good.replace(r#"(field "structured" (option string))"#, r#"(field "other" (option string))"#), "`call-tool`"),
        (good.replace(r#""on-detach" "#, ""), "`list-tools`"),
        (good.replace("\"longshore:tool/tools@0.1.0\" (instance $tools))",
            "\"longshore:tool/tools@0.1.0\" (instance $tools)) (export \"longshore:tool/restart@0.1.0\" (instance $none))")
            .replace("(core module $m", "(instance $none) (core module $m"), "it would never be entered there"),
    ];
    for (text, says) in cases {
        let (reason, message) = refused(&text);
        assert_eq!(reason, Reason::World);
        assert!(message.contains(says), "{says:?} is not in {message:?}");
    }
    let checkpoint = r#"(import "longshore:tool/restart-points@0.1.0" (instance (export "checkpoint" (func (param "state" (list u8))))))"#;
    let (reason, message) = refused(
        &Guest {
            imports: checkpoint,
            ..Guest::default()
        }
        .text(),
    );
    assert_eq!(reason, Reason::World);
    assert!(
        message.contains("does not export `longshore:tool/restart@0.1.0`"),
        "{message}"
    );
}

#[tokio::test]
async fn tools_are_listed_as_offered() {
    let sandbox = sandbox(1);
    // One record of `tool` at 2,048: name `hello`, no title, description `he`, schema `{}`, mode 2.
    let core = r#"
        (data (i32.const 64) "{}")
        (data (i32.const 1024) "\00\08\00\00\01\00\00\00")
        (data (i32.const 2048)
            "\10\00\00\00\05\00\00\00" "\00\00\00\00\00\00\00\00\00\00\00\00" "\10\00\00\00\02\00\00\00"
            "\40\00\00\00\02\00\00\00" "\00\00\00\00\00\00\00\00\00\00\00\00" "\02\00\00\00"
            "\00\00\00\00\00\00\00\00" "\01\00\00\00\40\00\00\00\02\00\00\00")"#;
    let prepared = prepared(
        &sandbox,
        &Guest {
            core,
            ..Guest::default()
        },
    );
    let expected = Tool {
        name: "hello".into(),
        title: None,
        description: "he".into(),
        input_schema: "{}".into(),
        output_schema: None,
        task_mode: Mode::Auto,
        requires: Vec::new(),
        extra: Some("{}".into()),
    };
    assert_eq!(
        sandbox
            .list(&prepared, "guest", &Limits::default())
            .await
            .unwrap(),
        Offer {
            tools: vec![expected],
            ..Offer::default()
        }
    );
    assert_eq!(sandbox.figures().live_stores, 0);
    assert_eq!(sandbox.figures().started, 0, "it is no run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_does_not_list_its_tools_is_refused() {
    let sandbox = sandbox(1);
    let start = "(func $start (loop (br 0))) (start $start)";
    let cases = [
        (
            Guest {
                list: "(loop (br 0)) (unreachable)",
                ..Guest::default()
            },
            Reason::ListTools,
            "CPU time",
        ),
        (
            Guest {
                list: "(unreachable)",
                ..Guest::default()
            },
            Reason::ListTools,
            "unreachable",
        ),
        (
            Guest {
                list: "(i32.const -4)",
                ..Guest::default()
            },
            Reason::ListTools,
            "out of bounds",
        ),
        (
            Guest {
                list: "(call $sleep (i64.const -1))",
                ..SLEEPY
            },
            Reason::ListTools,
            "more than 2 s",
        ),
        (
            Guest {
                core: start,
                ..Guest::default()
            },
            Reason::Init,
            "CPU time",
        ),
        (
            Guest {
                memory: "1025",
                ..Guest::default()
            },
            Reason::Init,
            "memory limits",
        ),
    ];
    for (guest, reason, says) in cases {
        let prepared = prepared(&sandbox, &guest);
        let listed = tokio::time::timeout(
            PATIENCE,
            sandbox.list(&prepared, "guest", &Limits::default()),
        )
        .await;
        let refusal = listed.expect("it ends").unwrap_err();
        assert_eq!(refusal.reason, reason, "{refusal}");
        assert!(refusal.message.contains(says), "{refusal}");
        assert_eq!(sandbox.figures().live_stores, 0);
    }
}
