//! The settings file: where it is found, what it may say, and that it counts.

use std::path::Path;
use std::sync::Arc;

use longshore_tests::process::{Options, Server, command};
use serde_json::json;
use tokio::process::Command;

use super::{CANNOT_START, Ended, USAGE, alone, text};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

fn write(path: &Path, content: &str) {
    std::fs::write(path, content).expect("it can be written");
}

fn printing(data: &Path) -> Command {
    let mut command = command(data);
    command.args(["serve", "--print-config", "--json"]);
    command
}

#[tokio::test]
async fn each_key_comes_from_the_nearest_layer_and_says_which() {
    let data = folder();
    let kept = data.path().join("longshore.toml");
    write(
        &kept,
        "listen = \"127.0.0.1:4001\"\ngrace_ms = 1\nqueued = 1\nrunning = 1\n\n[limits]\ncpu_ms = 1\n",
    );
    let mut command = printing(data.path());
    command
        .env("LONGSHORE_GRACE_MS", "2")
        .env("LONGSHORE_QUEUED", "2")
        .args(["--set", "grace_ms=3"]);
    let shown = Ended::of(command).await.json();
    let rows = [
        ("grace_ms", json!(3), "--set"),
        ("queued", json!(2), "LONGSHORE_QUEUED"),
        ("running", json!(1), text(&kept)),
        ("limits.cpu_ms", json!(1), text(&kept)),
        ("listen", json!("127.0.0.1:4001"), text(&kept)),
        ("page", json!(100), "default"),
    ];
    for (key, value, source) in rows {
        assert_eq!(
            shown[key],
            json!({ "value": value, "source": source }),
            "{key}"
        );
    }

    // A named file counts in place of that one, not beside it.
    let named = data.path().join("named.toml");
    write(&named, "page = 7\n");
    for by_variable in [true, false] {
        let mut command = printing(data.path());
        if by_variable {
            command.env("LONGSHORE_CONFIG", &named);
        } else {
            command.env("LONGSHORE_CONFIG", &kept);
            command.args(["--config", text(&named)]);
        }
        let shown = Ended::of(command).await.json();
        assert_eq!(
            shown["page"],
            json!({ "value": 7, "source": text(&named) }),
            "{by_variable}"
        );
        assert_eq!(shown["running"]["source"], "default", "{by_variable}");
    }
    let mut command = printing(data.path());
    command
        .env("LONGSHORE_LISTEN", "127.0.0.1:4002")
        .args(["--listen", "127.0.0.1:4003"]);
    let shown = Ended::of(command).await.json();
    assert_eq!(
        shown["listen"],
        json!({ "value": "127.0.0.1:4003", "source": "--listen" })
    );
}

#[tokio::test]
async fn what_is_printed_can_be_kept_as_the_file() {
    let data = folder();
    let mut first = command(data.path());
    first.args(["serve", "--print-config", "--set", "grace_ms=77"]);
    let printed = Ended::of(first).await;
    assert_eq!(printed.code, 0, "{printed:?}");
    write(&data.path().join("longshore.toml"), &printed.out);
    let shown = Ended::of(printing(data.path())).await.json();
    for (key, shown) in shown.as_object().expect("an object") {
        assert_ne!(shown["source"], "default", "{key}");
    }
    assert_eq!(shown["grace_ms"]["value"], 77);
}

#[tokio::test]
async fn a_file_that_is_wrong_is_refused_with_the_remedy() {
    let data = folder();
    let file = data.path().join("longshore.toml");
    let rows = [
        ("grace = 1", "is grace_ms meant?"),
        ("[limit]\ncpu_ms = 1", "is limits.cpu_ms meant?"),
        ("grace_ms = \"1\"", "grace_ms must be a whole number"),
        ("grace_ms =", "line 1"),
        ("page = 1\n\ngrace_ms = 1 2", "line 3"),
        ("connections = 0", "from 1 to"),
        ("listen = \"here\"", "127.0.0.1:8383"),
        ("data = \"elsewhere\"", "--data"),
    ];
    for (content, words) in rows {
        write(&file, content);
        for verb in [&["serve"][..], &["run", "x.wasm"], &["inspect", "x.wasm"]] {
            let mut command = command(data.path());
            command.args(verb);
            let ended = Ended::of(command).await;
            ended.assert_failed(USAGE, &[text(&file), words]);
        }
    }
    let missing = data.path().join("missing.toml");
    for verb in [&["serve"][..], &["run", "x.wasm"]] {
        let arguments = [verb, &["--config", text(&missing)]].concat();
        alone(&arguments)
            .await
            .assert_failed(USAGE, &[text(&missing), "--config"]);
    }
}

#[tokio::test]
async fn a_server_does_what_its_file_says() {
    let data = Arc::new(folder());
    write(&data.path().join("longshore.toml"), "page = 1\n");
    let server = Server::start_in(data, Options::with_guests(&["hello", "sleep"])).await;
    let listed = server.client().result("tools/list", json!({})).await;
    assert_eq!(
        listed["tools"].as_array().map(Vec::len),
        Some(1),
        "{listed}"
    );
    assert!(listed["nextCursor"].is_string(), "{listed}");
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_made_or_trusted_is_named() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = folder();
    let file = home.path().join("file");
    write(&file, "");
    let below = file.join("longshore");
    alone(&["serve", "--listen", "127.0.0.1:0", "--data", text(&below)])
        .await
        .assert_failed(CANNOT_START, &[text(&below), "data directory"]);

    let open = home.path().join("open");
    std::fs::create_dir(&open).expect("it can be made");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    alone(&["serve", "--listen", "127.0.0.1:0", "--data", text(&open)])
        .await
        .assert_failed(CANNOT_START, &["chmod o-w", "--data"]);

    let mut homeless = command(home.path());
    homeless.args(["serve", "--listen", "127.0.0.1:0"]);
    for name in ["HOME", "XDG_DATA_HOME", "LONGSHORE_DATA"] {
        homeless.env_remove(name);
    }
    Ended::of(homeless)
        .await
        .assert_failed(USAGE, &["HOME is not set", "--data"]);
}
