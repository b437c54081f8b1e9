//! A server that starts, does not start, goes down, or is not there.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use longshore_tests::guests;
use longshore_tests::http::send;
use longshore_tests::process::{Options, Server, TOKEN, command};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::{CANNOT_START, Ended, UNREACHABLE, USAGE, alone, free_port, text};

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_remedy() {
    let server = format!("http://127.0.0.1:{}", free_port());
    let hello = guests::component("hello");
    let rows: [&[&str]; 5] = [
        &["push", text(&hello)],
        &["tasks", "list"],
        &["tasks", "show", "x"],
        &["tasks", "cancel", "x"],
        &["node"],
    ];
    for arguments in rows {
        let ended = alone(&[arguments, &["--server", &server]].concat()).await;
        ended.assert_failed(UNREACHABLE, &[&server, "longshore serve", "--server"]);
        let ended = alone(&[arguments, &["--server", &server, "--json"]].concat()).await;
        assert_eq!(
            (ended.code, &ended.json()["error"]["reason"]),
            (UNREACHABLE, &json!("unreachable")),
            "{ended:?}"
        );
    }
    // Another token than the server's.
    let server = Server::start(Options::default()).await;
    let mut wrong = command(server.data());
    wrong
        .env("LONGSHORE_ADMIN_TOKEN", "guessed")
        .env("LONGSHORE_SERVER", format!("http://{}", server.address));
    wrong.args(["tasks", "list"]);
    Ended::of(wrong).await.assert_failed(
        UNREACHABLE,
        &["is not the one of this server", "LONGSHORE_ADMIN_TOKEN"],
    );
    let reply = send(server.address, "GET", "/v1/node", &[], "").await;
    let message = reply.expect("the server answers").json()["error"]["message"].take();
    let message = message.as_str().expect("a message").to_owned();
    assert!(
        message.contains("needs the header") && !message.contains("not the one"),
        "{message}"
    );
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("it can be written");
        text(&path).to_owned()
    };
    let (no_wasm, plain) = (file("text.wasm", b"no component"), file("plain", b""));
    let hello = std::fs::read(guests::component("hello")).expect("it can be read");
    let bad_name = file("Bad Name.wasm", &hello);
    let same = guests::component("hello");
    let missing = folder.path().join("missing.wasm");
    let rows: [(&[&str], i32, &[&str]); 8] = [
        (
            &["--listen", "0.0.0.0:0"],
            CANNOT_START,
            &["0.0.0.0:0", "loopback", "127.0.0.1"],
        ),
        (&["--listen", "[::]:0"], CANNOT_START, &["loopback"]),
        (&["--listen", "192.0.2.1:0"], CANNOT_START, &["loopback"]),
        (
            &["--listen", "127.0.0.1:0", text(&missing)],
            CANNOT_START,
            &["missing.wasm"],
        ),
        (
            &["--listen", "127.0.0.1:0", &no_wasm],
            CANNOT_START,
            &["text.wasm", "not-wasm"],
        ),
        (
            &["--listen", "127.0.0.1:0", &bad_name],
            CANNOT_START,
            &["Bad Name.wasm", "rename"],
        ),
        (
            &["--listen", "127.0.0.1:0", text(&same), text(&same)],
            USAGE,
            &["hello", "rename"],
        ),
        (
            &["--listen", "127.0.0.1:0", "--data", &plain],
            CANNOT_START,
            &["plain"],
        ),
    ];
    for (arguments, code, words) in rows {
        alone(&[&["serve"], arguments].concat())
            .await
            .assert_failed(code, words);
        let ended = alone(&[&["serve", "--json"], arguments].concat()).await;
        assert_eq!(
            (ended.code, ended.json()["error"]["message"].is_string()),
            (code, true),
            "{ended:?}"
        );
    }

    let holder = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let taken = holder.local_addr().expect("it has an address").to_string();
    alone(&["serve", "--listen", &taken])
        .await
        .assert_failed(CANNOT_START, &[&taken, "--listen", "port 0"]);
    drop(holder);

    // Two servers on one folder would each believe that the tasks are theirs.
    let server = Server::start(Options::default()).await;
    let mut second = command(server.data());
    second.args(["serve", "--listen", "127.0.0.1:0"]);
    Ended::of(second)
        .await
        .assert_failed(CANNOT_START, &[text(server.data())]);
    server.client().result("tools/list", json!({})).await;
}

/// A server as a person starts it, and the line on stderr with which it says that it is ready.
async fn ready(mut command: Command) -> (tokio::process::Child, String) {
    let mut child = command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the server can be started");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
    let found = async {
        loop {
            let line = lines
                .next_line()
                .await
                .expect("stderr is text")
                .expect("the server does not end");
            if line.contains("ready at ") {
                return line;
            }
        }
    };
    let line = tokio::time::timeout(Duration::from_secs(60), found)
        .await
        .expect("the server gets ready");
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, line)
}

#[tokio::test]
async fn the_token_is_made_once_kept_private_and_found() {
    let home = tempfile::tempdir().expect("a temporary folder can be made");
    let data = home.path().join("new/longshore");
    let without_token = || {
        let mut command = command(&data);
        command.env_remove("LONGSHORE_ADMIN_TOKEN");
        command
    };
    // A client before there is a server's token says what is missing.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let mut early = without_token();
    let address = listener.local_addr().expect("it has an address");
    early.args(["tasks", "list", "--server", &format!("http://{address}")]);
    Ended::of(early)
        .await
        .assert_failed(UNREACHABLE, &["admin token", "LONGSHORE_ADMIN_TOKEN"]);
    drop(listener);

    let (mut child, line) = ready(without_token()).await;
    let url = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix("http://")?.split_once("/mcp"))
        .expect("a URL")
        .0
        .to_owned();
    assert!(!url.ends_with(":0"), "the port that it got: {line}");
    let file = data.join("admin-token");
    assert!(line.contains(text(&file)), "{line}");
    // The command in it works as it stands.
    let hint = format!(
        "longshore push --server http://{url} --data {} FILE",
        text(&data)
    );
    assert!(line.contains(&hint), "{line} has no {hint}");
    let mode = |path: &Path| {
        std::fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode(&data), mode(&file)), (0o700, 0o600));
    let token = std::fs::read_to_string(&file).expect("it can be read");
    assert!(token.trim().len() >= 32, "{} characters", token.len());
    assert!(
        !line.contains(token.trim()),
        "the token is not for the terminal"
    );

    let server = format!("http://{url}");
    let mut push = without_token();
    push.args([
        "push",
        text(&guests::component("hello")),
        "--server",
        &server,
    ]);
    let pushed = Ended::of(push).await;
    assert_eq!(pushed.code, 0, "{pushed:?}");
    // The variable goes before the file.
    let mut other = command(&data);
    other.args(["tasks", "list", "--server", &server]);
    assert_ne!(token.trim(), TOKEN);
    Ended::of(other)
        .await
        .assert_failed(UNREACHABLE, &["is not the one of this server", text(&file)]);

    child.kill().await.expect("it can be killed");
    let (mut child, _) = ready(without_token()).await;
    assert_eq!(
        std::fs::read_to_string(&file).expect("it can be read"),
        token,
        "a kept token stays"
    );
    child.kill().await.expect("it can be killed");
}

#[tokio::test]
async fn a_server_goes_down_when_it_is_told_to() {
    let mut server = Server::start(Options::with_guests(&["hello"])).await;
    server.client().call("hello", json!({ "name": "x" })).await;
    assert_eq!(server.terminate().await, Some(0), "{}", server.errors());
}
