//! `push`: what comes of an upload, and what is said when nothing comes of it.

use longshore_tests::guests;
use longshore_tests::process::{Options, Server};
use serde_json::json;

use super::{FAILED, USAGE, against, json_of, text};

#[tokio::test]
async fn push_installs_and_says_what() {
    let server = Server::start(Options::default()).await;
    let hello = guests::component("hello");
    let first = against(&server, &["push", text(&hello)]).await;
    assert_eq!((first.code, first.err.as_str()), (0, ""), "{first:?}");
    assert!(
        first.out.starts_with("hello is installed\n") && first.out.contains("sha256:"),
        "{first:?}"
    );
    let listed = server.client().result("tools/list", json!({})).await;
    assert_eq!(listed["tools"][0]["name"], "hello");

    let again = json_of(&server, &["push", text(&hello)]).await;
    assert_eq!(
        (&again["name"], &again["changed"], &again["tools"]),
        (&json!("hello"), &json!(false), &json!(["hello"]))
    );
    let named = json_of(
        &server,
        &["push", text(&guests::component("spin")), "--name", "turner"],
    )
    .await;
    assert_eq!(
        (&named["name"], &named["changed"], &named["tools"]),
        (&json!("turner"), &json!(true), &json!(["spin"]))
    );
    assert!(
        named["digest"]
            .as_str()
            .is_some_and(|digest| digest.starts_with("sha256:") && digest.len() == 71),
        "{named}"
    );
}

#[tokio::test]
async fn push_says_why_not() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("it can be written");
        text(&path).to_owned()
    };
    let (spin, hello) = (guests::component("spin"), guests::component("hello"));
    let no_wasm = file("text.wasm", b"no component at all");
    let core = file("core.wasm", b"\0asm\x01\0\0\0");
    let missing = folder.path().join("missing.wasm");
    // (arguments, exit code, words on stderr, reason in JSON)
    let rows: [(&[&str], i32, &[&str], &str); 8] = [
        (&["push", &no_wasm], FAILED, &["WebAssembly"], "not-wasm"),
        (&["push", &core], FAILED, &["component"], "core-module"),
        // The first server of that name is on its command line.
        (
            &["push", text(&spin), "--name", "hello"],
            FAILED,
            &["command line"],
            "static-name",
        ),
        // Two components cannot have one tool.
        (
            &["push", text(&hello), "--name", "greeter"],
            FAILED,
            &["hello", "greeter"],
            "name-collision",
        ),
        (
            &["push", text(&spin), "--name", "Spin"],
            FAILED,
            &["Spin"],
            "id",
        ),
        (
            &["push", text(&spin), "--name", "../up"],
            FAILED,
            &["../up"],
            "id",
        ),
        (
            &["push", text(&missing)],
            FAILED,
            &["missing.wasm"],
            "failed",
        ),
        (
            &["push", text(folder.path())],
            USAGE,
            &["longshore new"],
            "usage",
        ),
    ];
    for (arguments, code, words, reason) in rows {
        against(&server, arguments).await.assert_failed(code, words);
        let ended = against(&server, &[arguments, &["--json"]].concat()).await;
        assert_eq!(
            (ended.code, &ended.json()["error"]["reason"]),
            (code, &json!(reason)),
            "{ended:?}"
        );
        assert!(
            ended.json()["error"]["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{ended:?}"
        );
    }
    // None of it left a trace.
    let listed = server.client().result("tools/list", json!({})).await;
    assert_eq!(
        listed["tools"].as_array().map(Vec::len),
        Some(1),
        "{listed}"
    );
}
