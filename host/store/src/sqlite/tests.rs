//! What can be seen only from the inside: which callers share a transaction, and what happens to the
//! others when one fails.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::task::{Context, Waker};

use longshore_tasks::id::{Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::store::{Commit, Output, Segment, StoreError, TaskStore as _};
use longshore_tasks::task::{JournalTail, Lease, Pinned, Reach, State, Status, Task, Usage};
use rusqlite::{Connection, StatementStatus};
use tempfile::TempDir;
use tokio::task::unconstrained;
use uuid::Uuid;

use super::Sqlite;
use super::error::Trouble;

fn store() -> (TempDir, Sqlite) {
    let directory = TempDir::new().unwrap();
    let store = Sqlite::open(&directory.path().join("store.db")).unwrap();
    (directory, store)
}

fn task(n: u128, arguments: &str) -> Task {
    Task {
        id: TaskId(Uuid::from_u128(n)),
        pinned: Pinned {
            tenant: Tenant("local".into()),
            principal: Principal("local".into()),
            component: "text".to_owned(),
            digest: "sha256:00".to_owned(),
            tool: "count".to_owned(),
            arguments: arguments.into(),
            client: "{}".into(),
            revision: "2026-07-28".to_owned(),
            policy: "{}".into(),
            host_abi: 1,
            idempotency_key: None,
        },
        created_at: Millis(1),
        updated_at: Millis(1),
        deadline_at: Millis(2),
        retention_ms: 3,
        version: 1,
        lease: Lease {
            epoch: 1,
            owner: None,
        },
        journal: JournalTail::default(),
        journal_key: None,
        usage: Usage::default(),
        status: Status::default(),
        reach: Reach::Id,
        cancel_requested_at: None,
        wake_at: None,
        stalls: 0,
        questions: Vec::new(),
        state: State::Working,
    }
}

/// Hands over without waiting for the answer.
fn hand_over<F: Future + ?Sized>(mut future: Pin<&mut F>) {
    // One poll of the test hands over many: more than tokio lets one task do at a time.
    let handed = pin!(unconstrained(future.as_mut()));
    assert!(
        handed
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
}

/// A job at which the writer waits until it is told to go on.
fn hold(
    store: &Sqlite,
) -> (
    impl Future<Output = Result<(), Trouble>>,
    mpsc::Receiver<()>,
    mpsc::Sender<()>,
) {
    let (started, has_started) = mpsc::channel();
    let (go_on, told) = mpsc::channel();
    let job = store.0.writer.write(move |_| {
        started.send(()).unwrap();
        told.recv().unwrap();
        Ok(())
    });
    (job, has_started, go_on)
}

fn insert(db: &Connection, digest: &str) -> Result<(), Trouble> {
    db.execute("insert into component values (?1, 0, '', x'')", [digest])?;
    Ok(())
}

fn digests(store: &Sqlite) -> Vec<String> {
    let read = |db: &Connection| {
        let mut select = db.prepare("select digest from component order by digest")?;
        let digests = select
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        Ok(digests)
    };
    store.0.readers.here(read).unwrap()
}

#[tokio::test]
async fn callers_that_come_together_share_a_commit() {
    let (_directory, store) = store();
    let (job, has_started, go_on) = hold(&store);
    let mut job = pin!(job);
    hand_over(job.as_mut());
    has_started.recv().unwrap();
    let mut creates: Vec<_> = (0..64)
        .map(|n| store.create(task(n, "{}"), None, None))
        .collect();
    for create in &mut creates {
        hand_over(create.as_mut());
    }
    assert_eq!(store.0.writer.waiting(), 64);
    assert_eq!(store.0.writer.changes(), 0);
    go_on.send(()).unwrap();
    job.await.unwrap();
    for create in creates {
        create.await.unwrap();
    }
    let figures = store.figures().await.unwrap();
    assert_eq!(
        (figures.changes, figures.commits, figures.unfinished),
        (64, 1, 64)
    );
}

#[tokio::test]
async fn fenced_commits_leave_a_shared_transaction_whole() {
    let (_directory, store) = store();
    let fenced = [0, 31, 63];
    let mut commits = Vec::new();
    for n in 0..64 {
        let mut row = task(n, "{}");
        store.create(row.clone(), None, None).await.unwrap();
        let from_epoch = if fenced.contains(&n) { 0 } else { 1 };
        row.version += 1;
        row.append(n as u64, false, Usage::default());
        commits.push(Commit {
            from_version: 1,
            from_epoch,
            task: row,
            segment: Some(Segment {
                number: 0,
                epoch: from_epoch,
                first_call: 0,
                last_call: n as u64,
                written_at: Millis(4),
                frames: vec![n as u8],
            }),
            output: Some(Output {
                calls: n as u64,
                body: Vec::new(),
            }),
        });
    }
    let before = store.figures().await.unwrap();
    let (job, has_started, go_on) = hold(&store);
    let mut job = pin!(job);
    hand_over(job.as_mut());
    has_started.recv().unwrap();
    let mut commits: Vec<_> = commits
        .into_iter()
        .map(|commit| store.commit(commit))
        .collect();
    for commit in &mut commits {
        hand_over(commit.as_mut());
    }
    go_on.send(()).unwrap();
    job.await.unwrap();
    for (n, commit) in (0..).zip(commits) {
        let answer = commit.await;
        let id = task(n, "").id;
        let row = store.get(id).await.unwrap().unwrap();
        let segments = store.segments(id).await.unwrap().len();
        let output = store.output(id).await.unwrap();
        if fenced.contains(&n) {
            assert!(matches!(answer, Err(StoreError::Fenced)), "{n}: {answer:?}");
            assert_eq!((row, segments, output), (task(n, "{}"), 0, None));
        } else {
            answer.unwrap();
            assert_eq!((row.version, segments, output.is_some()), (2, 1, true));
        }
    }
    let after = store.figures().await.unwrap();
    assert_eq!(after.commits - before.commits, 1);
    assert_eq!(after.changes - before.changes, 61);
}

#[tokio::test]
async fn a_full_queue_holds_callers_back_and_loses_none() {
    let (_directory, store) = store();
    let (job, has_started, go_on) = hold(&store);
    let mut job = pin!(job);
    hand_over(job.as_mut());
    has_started.recv().unwrap();
    let mut creates: Vec<_> = (0..1500)
        .map(|n| store.create(task(n, "{}"), None, None))
        .collect();
    for create in &mut creates {
        hand_over(create.as_mut());
    }
    assert_eq!(store.0.writer.waiting(), 1024);
    go_on.send(()).unwrap();
    job.await.unwrap();
    for create in creates {
        create.await.unwrap();
    }
    assert_eq!(store.figures().await.unwrap().unfinished, 1500);
}

#[tokio::test]
async fn a_job_that_fails_leaves_nothing_and_spoils_no_other() {
    let (_directory, store) = store();
    let writer = &store.0.writer;
    let (job, has_started, go_on) = hold(&store);
    let mut held = pin!(job);
    hand_over(held.as_mut());
    has_started.recv().unwrap();
    let mut before = pin!(writer.write(|db| insert(db, "before")));
    let mut twice = pin!(writer.write(|db| {
        insert(db, "twice")?;
        insert(db, "twice")
    }));
    let mut after = pin!(writer.write(|db| insert(db, "after")));
    hand_over(before.as_mut());
    hand_over(twice.as_mut());
    hand_over(after.as_mut());
    go_on.send(()).unwrap();
    held.await.unwrap();
    before.await.unwrap();
    assert!(matches!(twice.await, Err(Trouble::Corrupt(_))));
    after.await.unwrap();
    assert_eq!(digests(&store), ["after", "before"]);
    assert_eq!((writer.commits(), writer.changes()), (1, 2));
}

#[tokio::test]
async fn a_lost_transaction_is_told_to_those_who_were_in_it() {
    let (_directory, store) = store();
    let writer = &store.0.writer;
    let (job, has_started, go_on) = hold(&store);
    let mut held = pin!(job);
    hand_over(held.as_mut());
    has_started.recv().unwrap();
    let mut before = pin!(writer.write(|db| insert(db, "before")));
    let mut loses = pin!(writer.write(|db| {
        db.execute_batch("rollback")?;
        Err::<(), _>(Trouble::Unavailable("lost".to_owned()))
    }));
    let mut after = pin!(writer.write(|db| insert(db, "after")));
    hand_over(before.as_mut());
    hand_over(loses.as_mut());
    hand_over(after.as_mut());
    go_on.send(()).unwrap();
    held.await.unwrap();
    assert_eq!(before.await, Err(Trouble::Unavailable("lost".to_owned())));
    assert_eq!(loses.await, Err(Trouble::Unavailable("lost".to_owned())));
    after.await.unwrap();
    assert_eq!(digests(&store), ["after"]);
    assert_eq!((writer.commits(), writer.changes()), (1, 1));
}

#[tokio::test]
async fn a_full_disk_is_named_and_passes() {
    let (_directory, store) = store();
    store.create(task(1, "{}"), None, None).await.unwrap();
    let large = "x".repeat(1 << 20);
    let pages = |pages: u32| {
        store.0.writer.write(move |db| {
            db.query_row(&format!("pragma max_page_count = {pages}"), [], |_| Ok(()))?;
            Ok(())
        })
    };
    pages(1).await.unwrap();
    let error = store.create(task(2, &large), None, None).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unavailable(cause) if cause.contains("full")),
        "{error:?}"
    );
    assert_eq!(
        store.get(task(1, "").id).await.unwrap(),
        Some(task(1, "{}"))
    );
    assert_eq!(store.get(task(2, "").id).await.unwrap(), None);
    pages(1 << 20).await.unwrap();
    store.create(task(2, &large), None, None).await.unwrap();
    assert!(store.get(task(2, "").id).await.unwrap() == Some(task(2, &large)));
    assert_eq!(store.figures().await.unwrap().changes, 2);
}

#[tokio::test]
async fn after_a_failure_of_the_disk_nothing_more_is_written() {
    let (directory, store) = store();
    store.create(task(1, "{}"), None, None).await.unwrap();
    let mut given_up = Box::pin(store.given_up());
    hand_over(given_up.as_mut());
    let failed = store.0.writer.write(|db| {
        insert(db, "half")?;
        db.execute_batch("rollback")?;
        Err::<(), _>(Trouble::Disk(
            "the disk with the database fails: I/O error (1034): see whether it is full, and what the system's log says".to_owned(),
        ))
    });
    assert!(matches!(failed.await, Err(Trouble::Disk(_))));
    let error = store.create(task(2, "{}"), None, None).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unavailable(cause) if cause.contains("restart")),
        "{error:?}"
    );
    assert_eq!(
        store.get(task(1, "").id).await.unwrap(),
        Some(task(1, "{}"))
    );
    assert_eq!(store.get(task(2, "").id).await.unwrap(), None);
    assert!(given_up.await.contains("I/O error (1034)"));
    // Who opens the file anew finds what it holds, and may write.
    drop(store);
    let store = Sqlite::open(&directory.path().join("store.db")).unwrap();
    assert_eq!(digests(&store), [""; 0]);
    store.create(task(2, "{}"), None, None).await.unwrap();
}

#[tokio::test]
async fn nobody_waits_for_a_writer_that_has_died() {
    let (_directory, store) = store();
    let writer = &store.0.writer;
    let (job, has_started, go_on) = hold(&store);
    let mut held = pin!(job);
    hand_over(held.as_mut());
    has_started.recv().unwrap();
    let mut waits = pin!(writer.write(|db| insert(db, "waits")));
    hand_over(waits.as_mut());
    // The job cannot hear any more whether it may go on, and panics.
    drop(go_on);
    assert!(matches!(held.await, Err(Trouble::Unavailable(_))));
    assert!(matches!(waits.await, Err(Trouble::Unavailable(_))));
    let later = writer.write(|db| insert(db, "later")).await;
    assert!(matches!(later, Err(Trouble::Unavailable(_))));
    assert_eq!(digests(&store), [""; 0]);
}

#[test]
fn frequent_statements_read_no_table_from_end_to_end() {
    let (_directory, store) = store();
    let plan = |sql: &str| {
        let explain = format!("explain query plan {sql}");
        store
            .0
            .readers
            .here(|db| {
                let mut plan = db.prepare(&explain)?;
                let unbound = plan.parameter_count();
                let none = rusqlite::params_from_iter((0..unbound).map(|_| 0));
                let steps = plan
                    .query_map(none, |row| row.get::<_, String>(3))?
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(steps.join("; "))
            })
            .unwrap()
    };
    let get = plan(super::tasks::GET);
    assert!(
        get.contains("task_id") && !get.contains("SCAN") && !get.contains("TEMP"),
        "{get}"
    );
    let orphans = plan(super::lists::ORPHANS);
    assert!(
        orphans.contains("task_unfinished") && !orphans.contains("SCAN t;"),
        "{orphans}"
    );
    let unfinished = plan(super::lists::UNFINISHED);
    assert!(
        unfinished.contains("COVERING INDEX task_unfinished") && !unfinished.contains("TEMP"),
        "{unfinished}"
    );
    let segments = plan(super::journal::SEGMENTS);
    assert!(
        segments.contains("task_id") && !segments.contains("SCAN") && !segments.contains("TEMP"),
        "{segments}"
    );
    for of_one in [
        super::journal::SEGMENT,
        super::journal::OUTPUT,
        super::journal::DELETE_BELOW,
    ] {
        let of_one = plan(of_one);
        assert!(!of_one.contains("SCAN"), "{of_one}");
    }
    let sweep = plan(super::tasks::SWEEP);
    assert!(
        sweep.contains("task_forget") && !sweep.contains("TEMP"),
        "{sweep}"
    );
    let count = plan(super::lists::COUNT_UNFINISHED);
    assert!(count.contains("COVERING INDEX task_unfinished"), "{count}");
}

#[tokio::test]
async fn a_statement_is_compiled_once() {
    let (_directory, store) = store();
    for n in 0..5 {
        store.create(task(n, "{}"), None, None).await.unwrap();
        store.get(task(n, "").id).await.unwrap().unwrap();
        store.orphans(NodeId("n".into()), 3).await.unwrap();
        store.unfinished(Some(n as u64), 3).await.unwrap();
        store.segments(task(n, "").id).await.unwrap();
        store.sweep(Millis(9), 3).await.unwrap();
        store.figures().await.unwrap();
    }
    let compiled = |db: &Connection, sql: &str| {
        let statement = db.prepare_cached(sql)?;
        let status = |of| statement.get_status(of);
        Ok((
            status(StatementStatus::Run),
            status(StatementStatus::RePrepare),
        ))
    };
    for sql in [
        super::tasks::GET,
        super::lists::ORPHANS,
        super::lists::UNFINISHED,
        super::lists::COUNT_UNFINISHED,
        super::journal::SEGMENTS,
    ] {
        let (runs, again) = store.0.readers.here(|db| compiled(db, sql)).unwrap();
        assert_eq!((runs, again), (5, 0), "{sql}");
    }
    let sweep = store
        .0
        .writer
        .write(move |db| compiled(db, super::tasks::SWEEP));
    assert_eq!(sweep.await, Ok((5, 0)));
}
