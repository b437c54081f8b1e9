//! What only a file can do: be somebody else's, be damaged, be in use.

use std::fs;
use std::future::Future as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use longshore_catalog::store::ComponentStore as _;
use longshore_store::sqlite::{OpenError, Sqlite};
use longshore_tasks::event::{Event, NewQuestion};
use longshore_tasks::id::{Millis, NodeId, TaskId};
use longshore_tasks::store::{Query, StoreError, TaskStore as _};
use longshore_tasks::task::{Progress, StateName, Task};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::task::unconstrained;

use crate::kit::{
    all_pages, commit, completed, component, failed, full_task, id, journalled, segment, task,
    unfinished,
};

fn place() -> (TempDir, PathBuf) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.db");
    (directory, path)
}

/// Opens a file that must be refused, and sees that it stays as it is.
fn refused(path: &Path) -> OpenError {
    let before = fs::read(path).unwrap();
    let Err(error) = Sqlite::open(path) else {
        panic!("{} was opened", path.display())
    };
    assert!(
        fs::read(path).unwrap() == before,
        "a file that was refused was changed: {error}"
    );
    let said = error.to_string();
    assert!(
        said.contains(path.to_str().unwrap()),
        "does not name the file: {said}"
    );
    error
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (_directory, path) = place();
    Sqlite::open(&path)
        .unwrap()
        .create(task(1), None, None)
        .await
        .unwrap();
    let raw = Connection::open(&path).unwrap();
    raw.execute("insert into migration values (99)", [])
        .unwrap();
    drop(raw);
    let error = refused(&path);
    assert!(
        matches!(
            error,
            OpenError::Newer {
                found: 99,
                known: 8,
                ..
            }
        ),
        "{error:?}"
    );
    let said = error.to_string();
    assert!(
        said.contains("schema 99") && said.contains("up to 8") && said.contains("newer longshore"),
        "{said}"
    );
}

#[test]
fn what_is_no_database_is_refused() {
    let (_directory, path) = place();
    for content in ["minutes of a meeting\n".to_owned(), "x".repeat(100_000)] {
        fs::write(&path, content).unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::NotOurs { .. }), "{error:?}");
    }
}

#[test]
fn a_database_of_another_program_is_refused() {
    for tables in [
        "create table task (title text)",
        "create table migration (version integer)",
    ] {
        let (_directory, path) = place();
        Connection::open(&path)
            .unwrap()
            .execute_batch(tables)
            .unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::NotOurs { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_damaged_database_is_refused() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    for n in 0..100 {
        let mut large = task(n);
        large.pinned.arguments = "x".repeat(20_000).as_str().into();
        store.create(large, None, None).await.unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = refused(&path);
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");

    let mut overwritten = whole;
    overwritten[100..16_000].fill(0xaa);
    fs::write(&path, overwritten).unwrap();
    let error = refused(&path);
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
}

#[test]
fn an_empty_file_becomes_a_database() {
    let (_directory, path) = place();
    fs::write(&path, "").unwrap();
    Sqlite::open(&path).unwrap();
}

#[test]
fn a_database_has_one_process() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    let clone = store.clone();
    for _ in 0..2 {
        let Err(error) = Sqlite::open(&path) else {
            panic!("opened twice")
        };
        assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
        let said = error.to_string();
        let holder = format!("process {}", std::process::id());
        assert!(
            said.contains("store.db.lock")
                && said.contains("another longshore")
                && said.contains(&holder),
            "{said}"
        );
    }
    drop(store);
    assert!(Sqlite::open(&path).is_err(), "a clone still has it");
    drop(clone);
    Sqlite::open(&path).unwrap();
}

#[test]
fn a_database_has_one_process_also_without_its_lock_file() {
    let (directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    let lock = directory.path().join("store.db.lock");
    for _ in 0..2 {
        fs::remove_file(&lock).unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
        assert!(error.to_string().contains("which holds "), "{error}");
        // It is there again, without the number of somebody who was refused.
        assert_eq!(fs::read_to_string(&lock).unwrap(), "");
    }
    drop(store);
    Sqlite::open(&path).unwrap();
}

#[test]
fn a_missing_directory_is_named() {
    let directory = TempDir::new().unwrap();
    let missing = directory.path().join("no/such");
    let Err(error) = Sqlite::open(&missing.join("store.db")) else {
        panic!("opened")
    };
    assert!(
        matches!(&error, OpenError::NoDirectory(named) if *named == missing),
        "{error:?}"
    );
    assert!(!directory.path().join("no").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_written_is_named() {
    // Not by taking permissions away, which root has anyhow: nobody makes files here.
    let path = Path::new("/proc/self/store.db");
    let Err(error) = Sqlite::open(path) else {
        panic!("opened")
    };
    assert!(matches!(&error, OpenError::Denied { .. }), "{error:?}");
    assert!(error.to_string().contains("/proc/self/store.db"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn its_files_are_private_and_its_pages_large() {
    use std::os::unix::fs::PermissionsExt as _;

    let (directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    store.create(task(1), None, None).await.unwrap();
    let mut names = Vec::new();
    for file in fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap();
        names.push(file.file_name().into_string().unwrap());
        assert_eq!(
            file.metadata().unwrap().permissions().mode() & 0o777,
            0o600,
            "{:?}",
            file.file_name()
        );
    }
    names.sort();
    assert_eq!(
        names,
        ["store.db", "store.db-shm", "store.db-wal", "store.db.lock"]
    );
    let raw = Connection::open(&path).unwrap();
    assert_eq!(
        raw.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))
            .unwrap(),
        16_384
    );
    assert_eq!(
        raw.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0))
            .unwrap(),
        "wal"
    );
}

#[tokio::test]
async fn what_was_handed_over_is_written_before_the_file_is_closed() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    for n in 0..200 {
        // Handed over, and then the caller goes away. More than tokio lets one task do at a time.
        let create = pin!(unconstrained(store.create(task(n), None, None)));
        match create.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => {}
            Poll::Ready(done) => done.unwrap(),
        }
    }
    drop(store);
    let store = Sqlite::open(&path).unwrap();
    for n in 0..200 {
        assert!(store.get(id(n)).await.unwrap().is_some(), "{n}");
    }
}

#[tokio::test]
async fn an_ended_task_has_no_questions_left() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    let ask = ["a", "b"].map(|key| NewQuestion {
        key: key.to_owned(),
        request: "{}".into(),
    });
    let asking = task(1).apply(asked(ask.into()), Millis(1)).unwrap().task;
    store
        .create(asking.clone(), Some(segment(0)), None)
        .await
        .unwrap_err();
    store.create(asking.clone(), None, None).await.unwrap();
    let raw = Connection::open(&path).unwrap();
    let count = || {
        raw.query_row("select count(*) from question", [], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap()
    };
    assert_eq!(count(), 2);
    store
        .commit(commit(&asking, |task| task.state = failed()))
        .await
        .unwrap();
    assert_eq!(count(), 0);
}

#[tokio::test]
async fn a_swept_task_leaves_nothing() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    let mut over = full_task(1);
    over.journal.segments = 1;
    over.state = completed("{}");
    store.create(over, Some(segment(0)), None).await.unwrap();
    assert_eq!(store.sweep(Millis(i64::MAX), 10).await.unwrap(), 1);
    let raw = Connection::open(&path).unwrap();
    for table in ["task", "segment", "question", "output"] {
        let rows: i64 = raw
            .query_row(&format!("select count(*) from {table}"), [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}

#[tokio::test]
async fn a_row_that_this_program_never_writes_is_reported() {
    let damages = [
        "state = 'sleeping'",
        "state = 'completed'",
        "state = 'failed', ended_at = 1",
        "state = 'completed', ended_at = 1",
        "ended_at = 1",
        "version = -1",
        "retention_ms = -5",
        "host_abi = 5000000000",
        "tool = cast(x'ff' as text)",
    ];
    for damage in damages {
        let (_directory, path) = place();
        let store = Sqlite::open(&path).unwrap();
        store.create(task(1), None, None).await.unwrap();
        store.create(task(2), None, None).await.unwrap();
        let raw = Connection::open(&path).unwrap();
        let changed = raw
            .execute(&format!("update task set {damage} where key = 1"), [])
            .unwrap();
        assert_eq!(changed, 1);
        let error = store.get(id(1)).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Corrupt(_)),
            "{damage}: {error:?}"
        );
        // The others are as well as before.
        assert_eq!(store.get(id(2)).await.unwrap(), Some(task(2)));
        store.commit(commit(&task(2), |_| ())).await.unwrap();
    }
}

#[tokio::test]
async fn a_damaged_question_is_reported_and_a_damaged_id_or_component_hides_no_other() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    let ask = vec![NewQuestion {
        key: "a".to_owned(),
        request: "{}".into(),
    }];
    let asking = task(1).apply(asked(ask), Millis(1)).unwrap().task;
    store.create(asking, None, None).await.unwrap();
    store
        .install(component("text", b"one"), b"one".to_vec())
        .await
        .unwrap();
    let raw = Connection::open(&path).unwrap();
    for damage in ["state = 'lost'", "state = 'answered'", "answer = '1'"] {
        raw.execute("update question set state = 'open', answer = null", [])
            .unwrap();
        store.get(id(1)).await.unwrap();
        raw.execute(&format!("update question set {damage}"), [])
            .unwrap();
        let error = store.get(id(1)).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Corrupt(_)),
            "{damage}: {error:?}"
        );
    }
    // Neither a list nor whoever looks after what was left behind stops at it.
    let orphans = |node: &str| store.orphans(NodeId(node.into()), 5);
    assert!(orphans("other").await.unwrap().is_empty());
    raw.execute("update question set state = 'open', answer = null", [])
        .unwrap();
    assert_eq!(orphans("other").await.unwrap().len(), 1);
    store.create(task(2), None, None).await.unwrap();
    raw.execute(
        "update task set id = x'0102' where id = ?1",
        [id(1).0.as_bytes()],
    )
    .unwrap();
    let page = store
        .list(Query {
            limit: 5,
            ..Query::default()
        })
        .await
        .unwrap();
    let listed: Vec<TaskId> = page.tasks.iter().map(|task| task.id).collect();
    assert_eq!(listed, [id(2)]);
    assert_eq!(orphans("other").await.unwrap().len(), 1);
    store
        .install(component("whole", b"two"), b"two".to_vec())
        .await
        .unwrap();
    for damage in [
        "component set meta = '{}' where size = 3 and digest = (select digest from component_name where name = 'text')",
        "component set size = -1 where digest = (select digest from component_name where name = 'text')",
        "component_name set name = 'No Name' where name = 'text'",
    ] {
        assert_eq!(store.installed().await.unwrap().len(), 2);
        raw.execute_batch("begin").unwrap();
        raw.execute(&format!("update {damage}"), []).unwrap();
        raw.execute_batch("commit").unwrap();
        let left = store.installed().await.unwrap();
        let names: Vec<&str> = left.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["whole"], "{damage}");
        raw.execute_batch(
            "update component set size = 3; update component_name set name = 'text' where name = 'No Name'",
        )
        .unwrap();
        let meta = r#"update component set meta = '{"tools":[],"imports":[],"volatile":[]}'"#;
        raw.execute_batch(meta).unwrap();
    }
}

#[tokio::test]
async fn a_journal_that_is_not_whole_is_reported() {
    let damages = [
        "delete from segment where number = 0",
        "delete from segment where number = 1",
        "delete from segment where number = 2",
        "delete from segment",
        "update segment set number = 7 where number = 1",
        "update task set segments = 2",
        "update task set base = 1; delete from segment where number = 1",
        "update segment set epoch = -1 where number = 2",
    ];
    for damage in damages {
        let (_directory, path) = place();
        let store = Sqlite::open(&path).unwrap();
        let mut row = task(1);
        store.create(row.clone(), None, None).await.unwrap();
        for n in 0..3 {
            let change = journalled(&row, segment(n));
            row = change.task.clone();
            store.commit(change).await.unwrap();
        }
        assert_eq!(store.segments(id(1)).await.unwrap().len(), 3);
        let raw = Connection::open(&path).unwrap();
        raw.execute_batch(damage).unwrap();
        let error = store.segments(id(1)).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Corrupt(_)),
            "{damage}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_damaged_row_hides_no_other_from_those_who_look_through_all() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    for n in 0..9 {
        store.create(task(n), None, None).await.unwrap();
    }
    let raw = Connection::open(&path).unwrap();
    // The first of a page, the last of one, and the last of all.
    for damage in [
        "state = 'sleeping' where key = 1",
        "stalls = -1 where key = 6",
        "id = x'0102' where key = 9",
    ] {
        raw.execute(&format!("update task set {damage}"), [])
            .unwrap();
    }
    for limit in [1, 2, 3, 9] {
        let left = unfinished(&store, limit).await;
        let ids: Vec<_> = left.iter().map(|task| task.id).collect();
        assert_eq!(ids, [1, 2, 3, 4, 6, 7].map(id), "in pages of {limit}");
        let query = Query {
            limit,
            ..Query::default()
        };
        let listed = all_pages(&store, query).await;
        let ids: Vec<_> = listed.iter().map(|task| task.id).collect();
        assert_eq!(ids, [7, 6, 5, 4, 3, 2, 1].map(id), "in pages of {limit}");
    }
}

fn asked(questions: Vec<NewQuestion>) -> Event {
    Event::Asked {
        questions,
        wake_at: None,
    }
}

/// A successor whose parts, read at different moments, would not fit together.
fn nth(n: u64, before: &Task) -> Task {
    let mut task = before.clone();
    task.version = n;
    task.status.progress = Some(Progress {
        done: n as f64,
        total: None,
    });
    let ask = vec![NewQuestion {
        key: format!("key-{n}"),
        request: "{}".into(),
    }];
    let answers = [(format!("key-{n}"), n.to_string().as_str().into())].into();
    let asked = task.apply(asked(ask), Millis(1)).unwrap().task;
    let answered = asked
        .apply(Event::Answered(answers), Millis(1))
        .unwrap()
        .task;
    Task {
        version: n,
        ..answered
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_see_whole_rows_and_never_older_ones() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    let mut row = nth(1, &task(1));
    store.create(row.clone(), None, None).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (store, done) = (store.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let (mut last, mut reads) = (0, 0_u64);
                // Once more after the end, so that each has read at least once.
                loop {
                    let finished = done.load(Ordering::Acquire);
                    let read = store.get(id(1)).await.unwrap().unwrap();
                    assert!(read.version >= last);
                    assert_eq!(read.questions.len() as u64, read.version);
                    let progress = read.status.progress.unwrap();
                    assert!((progress.done - read.version as f64).abs() < 0.5);
                    last = read.version;
                    reads += 1;
                    if finished {
                        return (last, reads);
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for n in 2..=150 {
        let change = commit(&row, |task| *task = nth(n, task));
        row = change.task.clone();
        store.commit(change).await.unwrap();
        // Whoever is told that it is written reads it.
        assert_eq!(store.get(id(1)).await.unwrap().as_ref(), Some(&row));
    }
    done.store(true, Ordering::Release);
    for reader in readers {
        let (last, reads) = reader.await.unwrap();
        assert_eq!(last, 150);
        assert!(reads > 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rare_task_is_found_behind_very_many() {
    let (_directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    store
        .create(
            Task {
                state: failed(),
                ..task(0)
            },
            None,
            None,
        )
        .await
        .unwrap();
    // More than two pages look at; written by hand, since it is the reading that is tested.
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "with recursive n(n) as (select 1 union all select n + 1 from n where n < 25000) \
             insert into task select key + n, randomblob(16), version, epoch, owner, 'cancelled', \
             created_at, updated_at, deadline_at, retention_ms, ended_at, forget_at, \
             cancel_requested_at, wake_at, stalls, segments, calls, base, active_ms, cpu_ms, \
             progress_done, progress_total, tenant, principal, component, digest, tool, revision, \
             host_abi, idempotency_key, status_message, failure_code, failure_message, failure_data, \
             client, policy, arguments, result, base_cpu_ms, journal_key, reach, kept_active_ms, \
             kept_cpu_ms from task, n",
        )
        .unwrap();
    let query = Query {
        state: Some(StateName::Failed),
        limit: 10,
        ..Query::default()
    };
    let first = store.list(query.clone()).await.unwrap();
    assert_eq!(first.tasks, []);
    assert!(
        first.next.is_some(),
        "a page that looked at some of the rows says that there are more"
    );
    let found = all_pages(&store, query).await;
    assert_eq!(
        found.iter().map(|summary| summary.id).collect::<Vec<_>>(),
        [id(0)]
    );
}

#[tokio::test]
async fn a_place_that_vanishes_is_no_panic() {
    let (directory, path) = place();
    let store = Sqlite::open(&path).unwrap();
    store.create(task(1), None, None).await.unwrap();
    directory.close().unwrap();
    // Whatever it answers, it answers; the file that was open is still there for this process.
    let _either = store.create(task(2), None, None).await;
    let _either = store.get(id(1)).await;
    let _either = store.orphans(NodeId("n".into()), 10).await;
    assert!(matches!(fs::metadata(&path), Err(error) if error.kind() == ErrorKind::NotFound));
}
