//! What a server finds in its data directory and must not touch.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longshore_tests::alive::canary;
use longshore_tests::guests;
use longshore_tests::process::{Options, Server, command, run};
use longshore_tests::wait;
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

/// The exit code of a server that cannot start.
const CANNOT_START: i32 = 4;

/// Starts a server that must not get ready, and gives back what it says.
pub(super) async fn refuses(data: &Path) -> String {
    let mut serve = command(data);
    serve.args(["serve", "--listen", "127.0.0.1:0"]);
    let (code, out, err) = run(serve).await;
    assert_eq!(code, CANNOT_START, "{out}{err}");
    assert!(
        !out.contains("ready") && !err.contains("ready at"),
        "{out}{err}"
    );
    err
}

/// The database of a server that ran and was stopped.
async fn used_database(data: &Arc<TempDir>) -> PathBuf {
    let mut server = Server::start_in(Arc::clone(data), Options::default()).await;
    assert_eq!(server.terminate().await, Some(0));
    data.path().join("longshore.db")
}

#[tokio::test]
async fn a_second_server_on_the_same_data_names_the_lock_and_leaves() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let said = refuses(server.data()).await;
    assert!(said.contains("longshore.db.lock"), "{said}");
    assert!(said.contains(&server.pid().to_string()), "{said}");
    canary(&server).await;
}

#[tokio::test]
async fn a_damaged_foreign_or_newer_database_is_left_as_it_is() {
    type Spoil = fn(&Path);
    let rows: [(&str, Spoil, &str); 5] = [
        (
            "not a database",
            |path| {
                let mut bytes = std::fs::read(path).expect("it can be read");
                bytes[..4096].fill(0x55);
                std::fs::write(path, bytes).expect("it can be written");
            },
            "is not a database of longshore",
        ),
        (
            "damaged behind its header",
            |path| {
                let mut bytes = std::fs::read(path).expect("it can be read");
                let end = bytes.len();
                bytes[100..end].fill(0x55);
                std::fs::write(path, bytes).expect("it can be written");
            },
            "is damaged",
        ),
        (
            "damaged where its components are named",
            |path| {
                let db = Connection::open(path).expect("it can be opened");
                let size: u32 = db
                    .query_row("pragma page_size", [], |row| row.get(0))
                    .expect("it is SQL");
                let mut roots = db
                    .prepare("select rootpage from sqlite_schema where tbl_name like 'component%'")
                    .expect("it is SQL");
                let roots: Vec<u32> = roots
                    .query_map([], |row| row.get(0))
                    .and_then(Iterator::collect)
                    .expect("it is SQL");
                assert!(roots.len() > 1, "{roots:?}");
                let mut bytes = std::fs::read(path).expect("it can be read");
                let place = |page: u32| usize::try_from(page * size).expect("it is small");
                for root in roots {
                    bytes[place(root - 1)..place(root)].fill(0x55);
                }
                std::fs::write(path, bytes).expect("it can be written");
            },
            "is damaged: restore it from a backup",
        ),
        (
            "another program's",
            |path| {
                std::fs::remove_file(path).expect("it can be removed");
                let db = Connection::open(path).expect("it can be made");
                db.execute_batch(
                    "create table note (text text); insert into note values ('mine');",
                )
                .expect("it is SQL");
            },
            "is not a database of longshore",
        ),
        (
            "newer",
            |path| {
                let db = Connection::open(path).expect("it can be opened");
                db.execute_batch("insert into migration (version) values (999);")
                    .expect("it is SQL");
            },
            "schema 999",
        ),
    ];
    for (what, spoil, says) in rows {
        let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
        let database = used_database(&data).await;
        spoil(&database);
        let before = std::fs::read(&database).expect("it can be read");
        let said = refuses(data.path()).await;
        assert!(said.contains(says), "{what}: {said}");
        assert!(said.contains("longshore.db"), "{what}: {said}");
        assert!(
            std::fs::read(&database).expect("it can be read") == before,
            "{what}: the file was changed"
        );
    }
}

#[tokio::test]
async fn a_component_whose_bytes_are_damaged_is_named_and_healed_by_its_upload() {
    let data = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
    let bytes = std::fs::read(guests::component("hello")).expect("the example is there");
    let mut server = Server::start_in(Arc::clone(&data), Options::default()).await;
    assert_eq!(server.upload("hello", bytes.clone()).await.status, 201);
    assert_eq!(server.terminate().await, Some(0));
    let db = Connection::open(data.path().join("longshore.db")).expect("it can be opened");
    db.execute_batch("update component set bytes = zeroblob(length(bytes));")
        .expect("it is SQL");
    drop(db);
    server.restart().await;
    let broken = wait::until("it to be examined", Duration::from_secs(30), || async {
        let list = server.admin("GET", "/v1/components", "").await.json();
        list["broken"].get(0).cloned()
    })
    .await;
    assert_eq!(broken["reason"], "damaged", "{broken}");
    let message = broken["message"].as_str().expect("it is said why");
    assert!(message.contains("upload it again"), "{message}");
    assert_eq!(server.upload("hello", bytes).await.status, 200);
    server.restart().await;
    let answer = server
        .client()
        .call("hello", json!({ "name": "Ada" }))
        .await;
    assert_eq!(answer["content"][0]["text"], "Hello, Ada!", "{answer}");
}
