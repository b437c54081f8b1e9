//! `inspect`: what a component is, or why it is refused.

use longshore_tests::guests;
use serde_json::json;

use super::{FAILED, alone, text};

#[tokio::test]
async fn a_component_is_shown_with_all_that_matters_of_it() {
    let modes = guests::component("modes");
    let shown = alone(&["inspect", text(&modes)]).await;
    assert_eq!((shown.code, shown.err.as_str()), (0, ""), "{shown:?}");
    let size = std::fs::metadata(&modes).expect("it is there").len();
    for words in [
        "digest  sha256:",
        &format!("{size} bytes"),
        "tool modes-on-detach  (task mode: on-detach)",
        "ms (integer)  Milliseconds of work.",
        "detach (boolean, optional)",
        "longshore:tool/task@",
        "memory_mib             64",
        "runs are durable",
    ] {
        assert!(
            shown.out.contains(words),
            "{words:?} is missing: {}",
            shown.out
        );
    }
    let ended = alone(&[
        "inspect",
        text(&modes),
        "--json",
        "--set",
        "limits.memory_mib=16",
    ])
    .await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let document = ended.json();
    assert_eq!(document["limits"]["memory_bytes"], 16 << 20, "{document}");
    assert_eq!(document["durable"], true, "{document}");
    let unrecorded = alone(&["inspect", text(&modes), "--json", "--set", "durable=false"]).await;
    let document = unrecorded.json();
    assert_eq!(document["durable"], false, "{document}");
    assert_eq!(
        document["volatile"].as_array().map(Vec::len),
        Some(1),
        "{document}"
    );
    assert_eq!(
        document["tools"].as_array().map(Vec::len),
        Some(4),
        "{document}"
    );
    assert_eq!(
        document["tools"][0]["inputSchema"]["required"],
        json!(["ms"]),
        "{document}"
    );
}

#[tokio::test]
async fn a_refusal_comes_with_its_reason_and_what_helps() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("it can be written");
        text(&path).to_owned()
    };
    let core = file("core.wasm", b"\0asm\x01\0\0\0");
    let words = file("text.wasm", b"no component at all");
    let hello = std::fs::read(guests::component("hello")).expect("it can be read");
    let half = file("half.wasm", &hello[..hello.len() / 2]);
    let whole = file("Some Name.wasm", &hello);
    let rows: [(&[&str], &str, &str); 4] = [
        (&[&core], "core-module", "longshore component new"),
        (&[&words], "not-wasm", "your tool chain"),
        (&[&half], "malformed", "build it again"),
        // Settings count here as on a server.
        (
            &[&whole, "--set", "upload.functions=1"],
            "too-many-functions",
            "upload.functions",
        ),
    ];
    for (arguments, reason, remedy) in rows {
        let arguments = [&["inspect"], arguments].concat();
        alone(&arguments).await.assert_failed(
            FAILED,
            &[&format!("is refused ({reason})"), "remedy: ", remedy],
        );
        let ended = alone(&[&arguments[..], &["--json"]].concat()).await;
        assert_eq!(
            (ended.code, &ended.json()["error"]["reason"]),
            (FAILED, &json!(reason)),
            "{ended:?}"
        );
    }
    // A file's name matters only to a server.
    assert_eq!(alone(&["inspect", &whole]).await.code, 0);
}
