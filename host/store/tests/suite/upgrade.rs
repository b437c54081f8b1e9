//! A database that an older program made is taken to today's schema with all that it holds.

use std::path::Path;

use longshore_catalog::store::ComponentStore as _;
use longshore_store::sqlite::Sqlite;
use longshore_tasks::id::{Millis, NodeId};
use longshore_tasks::question::{Fate, Question};
use longshore_tasks::store::{Segment, TaskStore as _};
use longshore_tasks::task::{JournalTail, Reach, State, Task, Usage};
use rusqlite::{Connection, params};
use tempfile::TempDir;

use crate::kit::{
    commit, completed, component, full_task, id, journalled, output, task, unfinished,
};

const FIRST: &str = include_str!("../../src/sqlite/migrations/0001_tasks_and_components.sql");

/// A database as the first schema had it, with these rows and one component.
fn first_schema(path: &Path, tasks: &[Task]) {
    let db = Connection::open(path).unwrap();
    db.execute_batch(FIRST).unwrap();
    db.execute("insert into migration (version) values (1)", [])
        .unwrap();
    for task in tasks {
        insert(&db, task);
    }
    let text = component("text", b"bytes");
    let meta = r#"{"tools":[],"imports":["one"],"volatile":[]}"#;
    db.execute(
        "insert into component values (?1, 5, ?2, ?3)",
        params![text.digest.as_str(), meta, b"bytes"],
    )
    .unwrap();
    db.execute(
        "insert into component_name values ('text', ?1, 9)",
        [text.digest.as_str()],
    )
    .unwrap();
}

/// Written by hand, since the program that wrote such rows is gone.
fn insert(db: &Connection, task: &Task) {
    let result = match &task.state {
        State::Completed { result, .. } => Some(result.0.as_ref()),
        State::Working | State::InputRequired => None,
        State::Failed { .. } | State::Cancelled { .. } => panic!("not among these rows"),
    };
    db.execute(
        "insert into task (id, version, epoch, owner, state, created_at, updated_at, deadline_at, \
         retention_ms, ended_at, forget_at, cancel_requested_at, wake_at, stalls, segments, calls, \
         base, active_ms, cpu_ms, progress_done, progress_total, tenant, principal, component, \
         digest, tool, revision, host_abi, idempotency_key, status_message, client, policy, \
         arguments, result) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
         ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34)",
        params![
            task.id.0.as_bytes(),
            task.version as i64,
            task.lease.epoch as i64,
            task.lease.owner.as_ref().map(|owner| &owner.0),
            task.state.name().as_str(),
            task.created_at.0,
            task.updated_at.0,
            task.deadline_at.0,
            task.retention_ms as i64,
            task.state.ended_at().map(|at| at.0),
            task.forget_at().map(|at| at.0),
            task.cancel_requested_at.map(|at| at.0),
            task.wake_at.map(|at| at.0),
            task.stalls,
            task.journal.segments as i64,
            task.journal.calls as i64,
            task.journal.base as i64,
            task.usage.active_ms as i64,
            task.usage.cpu_ms as i64,
            task.status.progress.map(|progress| progress.done),
            task.status.progress.and_then(|progress| progress.total),
            task.pinned.tenant.0,
            task.pinned.principal.0,
            task.pinned.component,
            task.pinned.digest,
            task.pinned.tool,
            task.pinned.revision,
            task.pinned.host_abi,
            task.pinned.idempotency_key,
            task.status.message,
            task.pinned.client.0,
            task.pinned.policy.0,
            task.pinned.arguments.0,
            result,
        ],
    )
    .unwrap();
    let key = db.last_insert_rowid();
    for (ordinal, question) in (0_i64..).zip(&task.questions) {
        db.execute(
            "insert into question values (?1, ?2, ?3, 'open', ?4, null)",
            params![key, ordinal, question.key, question.request.0],
        )
        .unwrap();
    }
    for number in 0..task.journal.segments {
        let old = old_segment(number);
        db.execute(
            "insert into segment (task, number, epoch, first_call, last_call, frames) \
             values (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                key,
                number as i64,
                old.epoch as i64,
                old.first_call as i64,
                old.last_call as i64,
                old.frames
            ],
        )
        .unwrap();
    }
}

fn old_segment(number: u64) -> Segment {
    Segment {
        number,
        epoch: 1,
        first_call: number * 2,
        last_call: number * 2 + 1,
        written_at: Millis(0),
        frames: vec![9, number as u8],
    }
}

/// Nothing of what the first schema could not hold.
fn old(mut task: Task) -> Task {
    task.journal.base_cpu_ms = 0;
    task.journal.used = match task.journal.segments {
        0 => Usage::default(),
        _ => task.usage,
    };
    task.journal_key = None;
    task.reach = Reach::Id;
    task
}

#[tokio::test]
async fn a_database_of_the_first_schema_keeps_everything() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.db");
    let asking = Task {
        state: State::InputRequired,
        questions: vec![Question {
            key: "größer".to_owned(),
            request: r#"{"asks":1}"#.into(),
            fate: Fate::Open,
        }],
        ..full_task(1)
    };
    let running = Task {
        journal: JournalTail {
            segments: 3,
            calls: 6,
            ..JournalTail::default()
        },
        ..task(2)
    };
    let ended = Task {
        state: completed(r#"{"is":"result"}"#),
        retention_ms: 50_000,
        ..full_task(3)
    };
    let rows = [asking, running, ended].map(old);
    first_schema(&path, &rows);

    // Twice, since the second finds what the first has made of it.
    for _ in 0..2 {
        let store = Sqlite::open(&path).unwrap();
        for row in &rows {
            assert_eq!(store.get(row.id).await.unwrap().as_ref(), Some(row));
            assert_eq!(store.output(row.id).await.unwrap(), None);
        }
        let segments: Vec<_> = (0..3).map(old_segment).collect();
        assert_eq!(store.segments(id(2)).await.unwrap(), segments);
        assert_eq!(store.segments(id(1)).await.unwrap(), []);
        let left = unfinished(&store, 1).await;
        let ids: Vec<_> = left.iter().map(|task| task.id).collect();
        assert_eq!(ids, [id(1), id(2)]);
        assert_eq!(left[1].owner, Some(NodeId("node".into())));
        let installed = store.installed().await.unwrap();
        assert_eq!(installed.len(), 1);
        assert_eq!(installed[0].imports, ["one"]);
        let bytes = store.bytes(installed[0].digest.clone()).await.unwrap();
        assert_eq!(bytes.as_deref(), Some(b"bytes".as_slice()));
    }

    // It goes on like any other.
    let store = Sqlite::open(&path).unwrap();
    let next = Segment {
        written_at: Millis(70),
        ..old_segment(3)
    };
    let mut change = journalled(&rows[1], next.clone());
    change.output = Some(output(8));
    let row = change.task.clone();
    store.commit(change).await.unwrap();
    assert_eq!(store.segment(id(2), 3).await.unwrap(), Some(next));
    assert_eq!(store.output(id(2)).await.unwrap(), Some(output(8)));
    let restart = Segment {
        number: 4,
        ..old_segment(4)
    };
    let mut change = commit(&row, |task| task.append(9, true, task.usage));
    change.segment = Some(restart.clone());
    store.commit(change).await.unwrap();
    assert_eq!(store.segments(id(2)).await.unwrap(), [restart]);
    assert_eq!(store.sweep(Millis(i64::MAX), 9).await.unwrap(), 1);
}
