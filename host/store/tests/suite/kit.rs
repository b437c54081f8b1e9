//! What the tests of stores share: places to open, and tasks and components to put there.

use std::sync::Arc;

use longshore_catalog::component::{Component, Digest, LeftOut, Shape};
use longshore_catalog::library::{Argument, Library, Prompt, Resource};
use longshore_catalog::store::ComponentStore;
use longshore_catalog::tool::{Requirement, TaskMode, Tool};
use longshore_store::memory::Memory;
use longshore_store::sqlite::Sqlite;
use longshore_tasks::artifacts::ArtifactStore;
use longshore_tasks::id::{Millis, NodeId, Principal, TaskId, Tenant};
use longshore_tasks::store::{
    Commit, Output, Query, Segment, StoreError, Summary, TaskStore, Unfinished,
};
use longshore_tasks::task::{
    Failure, JournalTail, Lease, Pinned, Progress, Reach, State, Status, Task, Usage,
};
use longshore_tasks::values::ValueStore;
use tempfile::TempDir;
use uuid::Uuid;

/// Where a store is kept, so that a test can close it and open it again.
pub(crate) enum Place {
    /// Keeps nothing, so that opening it again is the same store.
    Memory(Memory),
    Sqlite(TempDir),
}

pub(crate) struct Stores {
    pub(crate) tasks: Arc<dyn TaskStore>,
    pub(crate) components: Arc<dyn ComponentStore>,
    pub(crate) values: Arc<dyn ValueStore>,
    pub(crate) artifacts: Arc<dyn ArtifactStore>,
}

impl Place {
    pub(crate) fn memory() -> Self {
        Self::Memory(Memory::default())
    }

    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().unwrap())
    }

    pub(crate) fn open(&self) -> Stores {
        match self {
            Self::Memory(memory) => all(memory.clone()),
            Self::Sqlite(directory) => {
                all(Sqlite::open(&directory.path().join("store.db")).unwrap())
            }
        }
    }
}

fn all(
    store: impl TaskStore + ComponentStore + ValueStore + ArtifactStore + Clone + 'static,
) -> Stores {
    Stores {
        tasks: Arc::new(store.clone()),
        components: Arc::new(store.clone()),
        values: Arc::new(store.clone()),
        artifacts: Arc::new(store),
    }
}

pub(crate) fn id(n: u64) -> TaskId {
    // Spread like random ids, so that their order is not that in which they are made.
    TaskId(Uuid::from_u128(
        u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835),
    ))
}

/// A task as it is made: every column holds a value of its own, so that two that are swapped show.
pub(crate) fn task(n: u64) -> Task {
    Task {
        id: id(n),
        pinned: Pinned {
            tenant: Tenant("tenant".into()),
            principal: Principal("principal".into()),
            component: "component".to_owned(),
            digest: "sha256:11".to_owned(),
            tool: "tool".to_owned(),
            arguments: r#"{"is":"arguments"}"#.into(),
            client: r#"{"is":"client"}"#.into(),
            revision: "2026-07-28".to_owned(),
            policy: r#"{"is":"policy"}"#.into(),
            host_abi: 12,
            idempotency_key: None,
        },
        created_at: Millis(1_001),
        updated_at: Millis(1_002),
        deadline_at: Millis(1_003),
        retention_ms: 1_004,
        version: 1,
        lease: Lease {
            epoch: 1,
            owner: Some(NodeId("node".into())),
        },
        journal: JournalTail {
            segments: 0,
            calls: 1_005,
            base: 0,
            base_cpu_ms: 1_006,
            used: Usage {
                active_ms: 1_011,
                cpu_ms: 1_012,
            },
        },
        journal_key: None,
        usage: Usage {
            active_ms: 1_007,
            cpu_ms: 1_008,
        },
        status: Status::default(),
        reach: Reach::Id,
        cancel_requested_at: None,
        wake_at: None,
        stalls: 2,
        questions: Vec::new(),
        state: State::Working,
    }
}

/// The same with a value wherever there may be none.
pub(crate) fn full_task(n: u64) -> Task {
    let mut task = task(n);
    task.pinned.idempotency_key = Some(format!("key {n}"));
    task.status = Status {
        message: Some("message".to_owned()),
        progress: Some(Progress {
            done: 0.1,
            total: Some(1e300),
        }),
    };
    task.journal_key = Some(vec![0, 255, 7]);
    task.cancel_requested_at = Some(Millis(1_009));
    task.wake_at = Some(Millis(1_010));
    task.reach = Reach::Again;
    task
}

pub(crate) fn completed(result: &str) -> State {
    State::Completed {
        at: Millis(2_000),
        result: result.into(),
    }
}

pub(crate) fn failed() -> State {
    let failure = Failure {
        code: -7,
        message: "too slow".to_owned(),
        data: Some("{}".into()),
    };
    State::Failed {
        at: Millis(2_001),
        failure,
    }
}

/// The commit that turns `before` into what `change` makes of it.
pub(crate) fn commit(before: &Task, change: impl FnOnce(&mut Task)) -> Commit {
    let mut task = before.clone();
    task.version += 1;
    change(&mut task);
    Commit {
        from_version: before.version,
        from_epoch: before.lease.epoch,
        task,
        segment: None,
        output: None,
    }
}

/// The same with a segment of the journal.
pub(crate) fn journalled(before: &Task, segment: Segment) -> Commit {
    let mut commit = commit(before, |task| {
        task.append(segment.last_call, false, task.usage)
    });
    commit.segment = Some(segment);
    commit
}

pub(crate) fn segment(number: u64) -> Segment {
    Segment {
        number,
        epoch: 1,
        first_call: number * 10,
        last_call: number * 10 + 9,
        written_at: Millis(6_000 + number as i64),
        frames: vec![0, 255, number as u8],
    }
}

/// A first segment that differs from others.
pub(crate) fn first_segment(mark: u64) -> Segment {
    Segment {
        frames: mark.to_be_bytes().into(),
        ..segment(0)
    }
}

pub(crate) fn output(calls: u64) -> Output {
    Output {
        calls,
        body: format!("printed after {calls} calls\n\0").into_bytes(),
    }
}

/// The name of an error, to compare.
pub(crate) fn refusal<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> &'static str {
    match answer {
        Ok(answer) => panic!("not refused but {answer:?}"),
        Err(StoreError::Conflict) => "conflict",
        Err(StoreError::Fenced) => "fenced",
        Err(StoreError::Exists) => "exists",
        Err(StoreError::Missing) => "missing",
        Err(StoreError::Unavailable(_)) => "unavailable",
        Err(StoreError::Corrupt(_)) => "corrupt",
    }
}

/// Every page of a list.
pub(crate) async fn all_pages(store: &dyn TaskStore, mut query: Query) -> Vec<Summary> {
    let mut all = Vec::new();
    loop {
        let page = store.list(query.clone()).await.unwrap();
        assert!(page.tasks.len() <= query.limit);
        all.extend(page.tasks);
        match page.next {
            None => return all,
            Some(next) => {
                assert!(
                    query.after.is_none_or(|after| next < after),
                    "a list that never ends"
                );
                query.after = Some(next);
            }
        }
    }
}

/// Every page of the tasks that have not ended.
pub(crate) async fn unfinished(store: &dyn TaskStore, limit: usize) -> Vec<Unfinished> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let page = store.unfinished(after, limit).await.unwrap();
        assert!(page.tasks.len() <= limit);
        all.extend(page.tasks);
        assert!(
            page.next.is_none() || page.next > after,
            "pages that never end"
        );
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

pub(crate) fn component(name: &str, bytes: &[u8]) -> Component {
    let tool = Tool {
        name: format!("{name}.tool"),
        title: Some("title".to_owned()),
        description: "größer".to_owned(),
        input_schema: r#"{"type":"object"}"#.to_owned(),
        output_schema: None,
        task_mode: TaskMode::OnDetach,
        requires: vec![Requirement::Tasks, Requirement::SamplingTools],
        extra: None,
        deadline_ms: Some(5),
    };
    let library = Library {
        resources: vec![Resource {
            uri: format!("test://{name}"),
            name: "r".to_owned(),
            mime_type: Some("text/plain".to_owned()),
            description: None,
            extra: Some("{}".to_owned()),
        }],
        templates: Vec::new(),
        prompts: vec![Prompt {
            name: format!("{name}.prompt"),
            title: None,
            description: Some("größer".to_owned()),
            arguments: vec![Argument {
                name: "a".to_owned(),
                description: None,
                required: true,
            }],
            extra: None,
        }],
        completes: true,
    };
    Component {
        name: name.parse().unwrap(),
        digest: Digest::of(bytes),
        size: bytes.len() as u64,
        tools: vec![tool],
        shape: Shape::Library,
        left_out: vec![LeftOut {
            function: "a:b/c#d".to_owned(),
            why: "it is async".to_owned(),
        }],
        library,
        imports: vec!["wasi:cli/stdout@0.2.6".to_owned()],
        manifest: Some("cleanup = false".to_owned()),
        volatile: vec!["it reads a directory".to_owned()],
        installed_at_ms: 77,
    }
}
