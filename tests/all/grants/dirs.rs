//! Directories of the host: a guest stays in them, does there what it was granted, and its runs are not resumed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longshore_tests::guests;
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{GRANT, NAME, granted, refused};

/// What no guest may see, and what every guest must leave as it is.
const SECRET: &str = "canary outside";

/// A directory that is granted, and one beside it that is not.
struct Tree {
    whole: TempDir,
}

impl Tree {
    fn new() -> Self {
        let whole = tempfile::tempdir().expect("a temporary folder can be made");
        let tree = Self { whole };
        for folder in ["inside/deep", "read-only", "outside"] {
            fs::create_dir_all(tree.path(folder)).expect("it can be made");
        }
        for (file, text) in [
            ("inside/note", "inside"),
            ("inside/deep/note", "deep"),
            ("read-only/note", "read"),
            ("outside/canary", SECRET),
        ] {
            fs::write(tree.path(file), text).expect("it can be written");
        }
        let absolute = tree.path("outside");
        for (link, target) in [
            ("inside/up", Path::new("../outside")),
            ("inside/up-file", Path::new("../outside/canary")),
            ("inside/absolute", absolute.as_path()),
            ("inside/chain", Path::new("up")),
            ("inside/loop", Path::new("loop")),
            ("inside/root", Path::new("/")),
            ("inside/proc", Path::new("/proc/self")),
            ("inside/fine", Path::new("deep/note")),
            ("read-only/up", Path::new("../outside")),
        ] {
            symlink(target, tree.path(link)).expect("a link can be made");
        }
        let fifo = tree.path("inside/fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a pipe can be made");
        std::os::unix::net::UnixListener::bind(tree.path("inside/socket"))
            .expect("a socket can be made");
        tree
    }

    fn path(&self, below: &str) -> PathBuf {
        // Granted paths are those that nothing resolves any further.
        let real = self.whole.path().canonicalize().expect("it is there");
        real.join(below)
    }

    fn grant(&self) -> Value {
        json!({ "dirs": [
            { "guest": "/data", "host": self.path("inside"), "access": "read-write" },
            { "guest": "/look", "host": self.path("read-only") },
        ] })
    }

    /// Every file outside, with its contents.
    fn outside(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.path("outside")).expect("it is there") {
            let path = entry.expect("it can be read").path();
            let text = fs::read_to_string(&path).unwrap_or_default();
            found.push((path, text));
        }
        found
    }
}

async fn served(tree: &Tree) -> Server {
    let server = Server::start(Options::with_guests(&[NAME])).await;
    let shown = granted(&server, &tree.grant()).await;
    assert_eq!(
        shown["inForce"]["dirs"].as_array().map(Vec::len),
        Some(2),
        "{shown}"
    );
    server
}

/// What the guest says of one thing that it does.
async fn touch(server: &Server, what: &str, path: &str, to: &str) -> String {
    let arguments = json!({ "what": what, "path": path, "to": to });
    // Whoever waits gets the result, however long a list takes.
    let result = Client::plain(server.address).call("touch", arguments).await;
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{what} {path}: {result}"))
        .to_owned()
}

#[tokio::test]
async fn what_is_granted_can_be_used() {
    let tree = Tree::new();
    let server = served(&tree).await;
    for (what, path, to, expected) in [
        ("read", "/data/note", "", "read inside"),
        ("read", "/data/deep/../note", "", "read inside"),
        ("read", "/data/fine", "", "read deep"),
        ("read", "/look/note", "", "read read"),
        ("list", "/look", "", "listed note up"),
        ("write", "/data/new", "written", "written"),
        ("rename", "/data/new", "/data/deep/newer", "renamed"),
        ("mkdir", "/data/folder", "", "made"),
        ("link", "/data/note", "/data/folder/same", "linked"),
        ("truncate", "/data/deep/newer", "", "truncated"),
        ("remove", "/data/folder/same", "", "removed"),
        ("rmdir", "/data/folder", "", "removed"),
    ] {
        assert_eq!(
            touch(&server, what, path, to).await,
            expected,
            "{what} {path}"
        );
    }
    assert_eq!(
        fs::read_to_string(tree.path("inside/deep/newer")).expect("it is there"),
        ""
    );
}

#[tokio::test]
async fn nothing_leads_out_of_what_is_granted() {
    let tree = Tree::new();
    let server = served(&tree).await;
    let before = tree.outside();
    let long = format!("/data/{}", "a/../".repeat(800));
    let name = format!("/data/{}", "n".repeat(4096));
    let outside = tree.path("outside/canary").display().to_string();
    let rows = [
        ("read", "/data/../outside/canary", ""),
        ("read", "/data/deep/../../outside/canary", ""),
        ("read", "/data/./.././outside//canary", ""),
        ("read", &format!("{long}../outside/canary"), ""),
        ("read", &name, ""),
        ("read", &outside, ""),
        ("read", "/etc/passwd", ""),
        ("read", "/data/up/canary", ""),
        ("read", "/data/up-file", ""),
        ("read", "/data/absolute/canary", ""),
        ("read", "/data/chain/canary", ""),
        ("read", "/data/loop", ""),
        ("read", "/data/root/etc/passwd", ""),
        ("read", "/data/proc/environ", ""),
        ("read", "/look/up/canary", ""),
        ("list", "/", ""),
        ("list", "/data/..", ""),
        ("list", "/data/up", ""),
        ("list", "/data/root", ""),
        ("write", "/data/../outside/new", "x"),
        ("write", "/data/up/new", "x"),
        ("write", "/data/up-file", "x"),
        ("write", "/data/absolute/canary", "x"),
        ("truncate", "/data/up-file", ""),
        ("truncate", "/data/up/canary", ""),
        ("mkdir", "/data/up/folder", ""),
        ("remove", "/data/up/canary", ""),
        ("rename", "/data/note", "/data/../outside/note"),
        ("rename", "/data/note", "/data/up/note"),
        ("rename", "/data/up/canary", "/data/canary"),
        ("rename", "/data/note", "/look/moved"),
        ("link", "/data/up/canary", "/data/canary"),
        ("link", "/data/note", "/data/up/note"),
        ("link", &outside, "/data/canary"),
        ("symlink", &outside, "/data/made"),
        ("symlink", "/", "/data/made"),
    ];
    for (what, path, to) in rows {
        let said = touch(&server, what, path, to).await;
        assert!(said.starts_with("refused: "), "{what} {path} {to}: {said}");
        assert!(!said.contains(SECRET), "{what} {path}: {said}");
    }
    // A link that says where it does not lead is made at most, and not followed.
    for (target, link) in [
        ("../outside/canary", "/data/made"),
        ("../../outside", "/data/deep/made"),
    ] {
        let _made_or_refused = touch(&server, "symlink", target, link).await;
        for path in [link.to_owned(), format!("{link}/canary")] {
            let said = touch(&server, "read", &path, "").await;
            assert!(said.starts_with("refused: "), "{path}: {said}");
        }
    }
    assert_eq!(tree.outside(), before);
    assert_eq!(
        fs::read_to_string(tree.path("inside/note")).expect("it is there"),
        "inside"
    );
}

#[tokio::test]
async fn what_is_to_be_looked_at_is_not_changed() {
    let tree = Tree::new();
    let server = served(&tree).await;
    for (what, path, to) in [
        ("write", "/look/note", "x"),
        ("write", "/look/new", "x"),
        ("truncate", "/look/note", ""),
        ("mkdir", "/look/folder", ""),
        ("remove", "/look/note", ""),
        ("rename", "/look/note", "/look/other"),
        ("rename", "/look/note", "/data/other"),
        ("link", "/look/note", "/look/other"),
        ("link", "/look/note", "/data/other"),
        ("link", "/data/note", "/look/other"),
        ("symlink", "note", "/look/other"),
    ] {
        let said = touch(&server, what, path, to).await;
        assert!(said.starts_with("refused: "), "{what} {path} {to}: {said}");
    }
    let names: Vec<_> = fs::read_dir(tree.path("read-only"))
        .expect("it is there")
        .collect();
    assert_eq!(names.len(), 2);
    assert_eq!(
        fs::read_to_string(tree.path("read-only/note")).expect("it is there"),
        "read"
    );
}

#[tokio::test]
async fn what_only_looks_like_a_file_is_not_opened_and_holds_nobody_up() {
    let tree = Tree::new();
    let server = served(&tree).await;
    // More of them than there are threads for waiting.
    let (client, mut held) = (server.client(), Vec::new());
    for _ in 0..40 {
        for (what, path) in [
            ("read", "/data/fifo"),
            ("write", "/data/fifo"),
            ("read", "/data/socket"),
        ] {
            held.push(touch(&server, what, path, "x").await);
        }
    }
    assert!(
        held.iter().all(|said| said.starts_with("refused: ")),
        "{held:?}"
    );
    assert_eq!(
        client.call("environment", json!({})).await["content"][0]["text"],
        "{}"
    );
    server.until_live(0, Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_becomes_a_pipe_while_it_is_opened_holds_nobody_up() {
    let tree = Tree::new();
    let server = served(&tree).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (is_over, note, fifo) = (
            Arc::clone(&is_over),
            tree.path("inside/note"),
            tree.path("inside/fifo"),
        );
        tokio::task::spawn_blocking(move || {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &note, CWD, &fifo, RenameFlags::EXCHANGE)
                    .expect("both are there");
            }
        })
    };
    let mut opened = 0;
    for _ in 0..400 {
        let said = touch(&server, "read", "/data/note", "").await;
        assert!(
            said == "read inside" || said.starts_with("refused: "),
            "{said}"
        );
        opened += usize::from(said == "read inside");
    }
    is_over.store(true, Ordering::Relaxed);
    swapping.await.expect("it swaps to its end");
    assert!(opened > 0, "it was never a file");
    server.until_live(0, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a_run_with_a_directory_of_the_host_is_volatile_and_says_so() {
    let tree = Tree::new();
    let mut server = Server::start(Options::default()).await;
    let bytes = fs::read(guests::component(NAME)).expect("it is built");
    assert_eq!(server.upload(NAME, bytes).await.status, 201);
    let volatile = async |server: &Server| {
        let component = server
            .admin("GET", "/v1/components/explore", "")
            .await
            .json();
        component["volatile"].as_array().map(Vec::len)
    };
    assert_eq!(volatile(&server).await, Some(0));
    granted(&server, &tree.grant()).await;
    assert_eq!(volatile(&server).await, Some(2));
    let client = server.client();
    let id = client.start("environment", json!({ "ask": true })).await;
    client.until_status(&id, "input_required").await;
    server.kill().await;
    server.restart().await;
    server.prepared().await;
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["error"]["data"]["reason"], "interrupted", "{task}");
    // Without it, all is as before.
    granted(&server, &json!({})).await;
    assert_eq!(volatile(&server).await, Some(0));
}

#[tokio::test]
async fn only_a_directory_that_is_what_it_says_is_granted() {
    let tree = Tree::new();
    let server = Server::start(Options::with_guests(&[NAME])).await;
    let own = server.data().canonicalize().expect("it is there");
    let above = own.parent().expect("it lies somewhere").to_owned();
    symlink(tree.path("inside"), tree.path("link")).expect("a link can be made");
    for (path, word) in [
        (tree.path("nowhere"), "cannot be opened"),
        (tree.path("inside/note"), "is no directory"),
        (tree.path("link"), "over a link"),
        (tree.path("link/deep"), "over a link"),
        (own.clone(), "the server's own"),
        (own.join("artifacts"), "the server's own"),
        (above, "the server's own"),
    ] {
        let grant = json!({ "dirs": [{ "guest": "/data", "host": path }] });
        let reply = server.admin("PUT", GRANT, grant.to_string()).await;
        if path.exists() || word == "cannot be opened" {
            refused(&reply, 422, "grant", word);
        } else {
            assert_eq!(reply.status, 422, "{}", reply.json());
        }
    }
    // One that goes later is no reason to run without it.
    granted(&server, &tree.grant()).await;
    fs::rename(tree.path("read-only"), tree.path("gone")).expect("it can be renamed");
    let (_, error) = server
        .client()
        .error(
            "tools/call",
            json!({ "name": "touch", "arguments": { "what": "list", "path": "/" } }),
        )
        .await;
    let message = error["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("cannot be opened") && !message.contains("read-only"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_becomes_a_link_while_it_is_opened_is_not_followed() {
    let tree = Tree::new();
    let server = served(&tree).await;
    let nested = json!({ "dirs": [
        { "guest": "/data", "host": tree.path("inside"), "access": "read-write" },
        { "guest": "/in", "host": tree.path("inside/deep") },
    ] });
    granted(&server, &nested).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (is_over, deep, away) = (
            Arc::clone(&is_over),
            tree.path("inside/deep"),
            tree.path("inside/away"),
        );
        tokio::task::spawn_blocking(move || {
            // What a guest can do as well that may change the directory above.
            while !is_over.load(Ordering::Relaxed) {
                fs::rename(&deep, &away).expect("it is there");
                symlink("../outside", &deep).expect("there is nothing now");
                fs::remove_file(&deep).expect("it is a link");
                fs::rename(&away, &deep).expect("there is nothing now");
            }
        })
    };
    let mut opened = 0;
    for _ in 0..300 {
        let call = json!({ "name": "touch", "arguments": { "what": "list", "path": "/in" } });
        let reply = server.client().send("tools/call", call).await;
        let reply = reply.expect("the server answers").json().to_string();
        assert!(!reply.contains("canary"), "{reply}");
        opened += usize::from(reply.contains("note"));
    }
    is_over.store(true, Ordering::Relaxed);
    swapping.await.expect("it swaps to its end");
    assert!(opened > 0, "it was never there");
}

#[tokio::test]
async fn a_directory_of_more_names_than_a_list_may_have_is_not_listed() {
    let tree = Tree::new();
    for n in 0..10_000 {
        fs::write(tree.path(&format!("read-only/{n}")), "").expect("it can be written");
    }
    // With those that were there it has two more.
    let server = served(&tree).await;
    let told = touch(&server, "list", "/look", "").await;
    assert!(told.contains("memory"), "{told}");
    for n in 0..2 {
        fs::remove_file(tree.path(&format!("read-only/{n}"))).expect("it is there");
    }
    let told = touch(&server, "list", "/look", "").await;
    assert!(told.contains("note"), "{told}");
}

#[tokio::test]
async fn where_components_come_from_is_the_servers_own() {
    let tree = Tree::new();
    let options =
        Options::with_guests(&[NAME]).set("components.dir", tree.path("inside/deep").display());
    let server = Server::start(options).await;
    server.prepared().await;
    let reply = server.admin("PUT", GRANT, tree.grant().to_string()).await;
    refused(&reply, 422, "grant", "the server's own");
}
