//! What a server finds in its data directory and must not touch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_tests::alive::canary;
use longshore_tests::process::{Options, Server, command, run};
use rusqlite::Connection;
use tempfile::TempDir;

/// The exit code of a server that cannot start.
const CANNOT_START: i32 = 4;

/// Starts a server that must not get ready, and gives back what it says.
async fn refuses(data: &Path) -> String {
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
    let rows: [(&str, Spoil, &str); 4] = [
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
