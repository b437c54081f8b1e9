//! Keeps what a run records, sealed, and reads it again.

use longshore_journal::record::{Record, What};
use longshore_journal::segment::{self, Header, Link, Reader};
use longshore_journal::tape::Tape;
use longshore_journal::world::Begin;
use longshore_sandbox::journal::Entry;
use longshore_tasks::id::{Millis, NodeId, TaskId};
use longshore_tasks::store::Segment;
use longshore_tasks::task::{Task, Usage};

use crate::mutant::Mutant;
use crate::run::HOST_ABI;
use crate::seal::{Keys, TaskKey};

/// One run's records on their way from its tape to the store.
pub(crate) struct Recorder {
    tape: Tape,
    key: TaskKey,
    kept_key: Vec<u8>,
    node: NodeId,
    previous: Link,
    /// Taken off the tape and not kept yet: a commit may have to be tried again.
    fresh: Vec<Record>,
    mutant: Option<Mutant>,
}

/// A segment that is to be kept with a row.
pub(crate) struct Written {
    pub(crate) segment: Segment,
    /// Whoever goes on behind it does not print again what came before it.
    pub(crate) skips: bool,
    link: Link,
    records: usize,
}

/// Whether a commit puts to the client what the guest asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Puts {
    Questions,
    Nothing,
}

impl Recorder {
    /// Begins the journal of a task that is new.
    pub(crate) fn new(keys: &Keys, id: TaskId, node: NodeId, tape: Tape) -> Self {
        let (key, kept_key) = keys.new_task(id);
        Self {
            tape,
            key,
            kept_key,
            node,
            previous: Link::default(),
            fresh: Vec::new(),
            mutant: None,
        }
    }

    /// Goes on with a journal that was read.
    pub(crate) fn resumed(recorded: Recorded, node: NodeId, tape: Tape) -> Self {
        Self {
            tape,
            key: recorded.key,
            kept_key: recorded.kept_key,
            node,
            previous: recorded.last,
            fresh: Vec::new(),
            mutant: None,
        }
    }

    /// The same, with one rule broken.
    pub(crate) fn mutated(self, mutant: Option<Mutant>) -> Self {
        Self { mutant, ..self }
    }

    /// The key as the row keeps it.
    pub(crate) fn kept_key(&self) -> &[u8] {
        &self.kept_key
    }

    pub(crate) fn key(&self) -> &TaskKey {
        &self.key
    }

    /// Where the run records.
    pub(crate) fn tape(&self) -> Tape {
        self.tape.clone()
    }

    /// Whether there is nothing to keep.
    pub(crate) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.tape.is_empty()
    }

    /// What is new, for a row that says so from now on, and by when the guest had used so much. The same again until
    /// it is [`Recorder::kept`].
    ///
    /// That the guest asks is kept together with its questions, and not before: whoever goes on would take
    /// earlier ones for them.
    pub(crate) fn write(
        &mut self,
        row: &mut Task,
        now: Millis,
        used: Usage,
        puts: Puts,
    ) -> Option<Written> {
        let taken = self.tape.take();
        self.fresh.extend(taken.records);
        if self.mutant == Some(Mutant::OutputsUnrecorded) {
            let is_kept = |record: &Record| !matches!(record.what, What::Shown { .. });
            self.fresh.retain(is_kept);
        }
        let restart = self
            .fresh
            .iter()
            .rposition(|record| matches!(record.what, What::Checkpoint { .. }));
        if let Some(at) = restart {
            // A restart point stands for all before it.
            self.fresh.drain(..at);
        }
        let asks =
            matches!(self.fresh.last(), Some(last) if matches!(last.what, What::Asked { .. }));
        let held_back = usize::from(asks && puts == Puts::Nothing);
        let records = self.fresh.len() - held_back;
        let new = &self.fresh[..records];
        let first_call = new.first()?.call;
        let header = Header {
            host_abi: HOST_ABI,
            node: self.node.0.to_string(),
            written_at_ms: now.unsigned(),
            previous: self.previous,
        };
        let (bytes, link) = segment::write(&header, new);
        let number = row.journal.segments;
        let segment = Segment {
            number,
            epoch: row.lease.epoch,
            first_call,
            last_call: taken.calls,
            written_at: now,
            frames: self.key.seal_segment(number, &bytes),
        };
        row.append(taken.calls, restart.is_some(), used);
        let skips = new
            .iter()
            .any(|record| matches!(record.what, What::Step { .. } | What::Checkpoint { .. }));
        Some(Written {
            segment,
            skips,
            link,
            records,
        })
    }

    /// The store has it.
    pub(crate) fn kept(&mut self, written: &Written) {
        self.fresh.drain(..written.records);
        self.previous = written.link;
    }
}

/// A journal as it was read.
pub(crate) struct Recorded {
    pub(crate) begin: Begin,
    pub(crate) entry: Entry,
    key: TaskKey,
    kept_key: Vec<u8>,
    last: Link,
}

impl Recorded {
    pub(crate) fn key(&self) -> &TaskKey {
        &self.key
    }
}

/// One segment, opened.
pub(crate) struct Opened {
    pub(crate) number: u64,
    pub(crate) epoch: u64,
    pub(crate) read: segment::Segment,
}

/// Why a journal is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// The run was made by a server that did not record.
    #[error("nothing was recorded of this run")]
    NotRecorded,
    /// The guest would see another host than it began with.
    #[error(
        "this run began with version {0} of what a tool sees of its host; this server has {HOST_ABI}"
    )]
    HostAbi(u32),
    /// It cannot be opened.
    #[error("the journal cannot be opened: {0}")]
    Sealed(#[from] crate::seal::Unsealed),
    /// It cannot be read.
    #[error("the journal cannot be read: {0}")]
    Unreadable(#[from] segment::Unreadable),
    /// It has another number of segments than its row says.
    #[error("the journal has {there} of {said} segments")]
    Short {
        /// How many there are.
        there: u64,
        /// How many there should be.
        said: u64,
    },
    /// What stands for all that is not kept any more is not there.
    #[error("the journal begins at its segment {0}, and that has no restart point")]
    NoStart(u64),
}

/// Opens every segment of a task.
pub(crate) fn open(
    keys: &Keys,
    row: &Task,
    segments: &[Segment],
) -> Result<(TaskKey, Vec<Opened>, Link), Unusable> {
    let kept_key = row.journal_key.as_deref().ok_or(Unusable::NotRecorded)?;
    let key = keys.open_task(row.id, kept_key)?;
    let said = row.journal.segments.saturating_sub(row.journal.base);
    if segments.len() as u64 != said {
        return Err(Unusable::Short {
            there: segments.len() as u64,
            said,
        });
    }
    let mut reader = Reader::new(row.journal.base == 0);
    let mut opened = Vec::with_capacity(segments.len());
    for segment in segments {
        let number = segment.number;
        let bytes = key.open_segment(number, &segment.frames)?;
        opened.push(Opened {
            number,
            epoch: segment.epoch,
            read: reader.read(number, &bytes)?,
        });
    }
    let begins = opened
        .first()
        .and_then(|segment| segment.read.records.first());
    let is_start = matches!(begins, Some(first) if matches!(first.what, What::Checkpoint { .. }));
    if row.journal.base > 0 && !is_start {
        return Err(Unusable::NoStart(row.journal.base));
    }
    Ok((key, opened, reader.last()))
}

/// Reads the journal of a task, for whoever goes on with it.
pub(crate) fn read(keys: &Keys, row: &Task, segments: &[Segment]) -> Result<Recorded, Unusable> {
    if row.pinned.host_abi != HOST_ABI {
        return Err(Unusable::HostAbi(row.pinned.host_abi));
    }
    let (key, opened, last) = open(keys, row, segments)?;
    let records = opened
        .into_iter()
        .flat_map(|segment| segment.read.records)
        .collect();
    let (begin, entry) = beginning(records);
    Ok(Recorded {
        begin,
        entry,
        key,
        kept_key: row.journal_key.clone().unwrap_or_default(),
        last,
    })
}

/// Where a run begins that has these records: at its start, or at its newest restart point.
pub(crate) fn beginning(mut records: Vec<Record>) -> (Begin, Entry) {
    let restart = records
        .iter()
        .rposition(|record| matches!(record.what, What::Checkpoint { .. }));
    let after = restart.map_or(0, |at| at + 1);
    let rest = records.split_off(after);
    let (from, entry) = match records.pop() {
        Some(Record {
            call,
            what: What::Checkpoint { state, at },
        }) => (Some((call, at)), Entry::Resume(state.0)),
        _ => (None, Entry::Call),
    };
    let begin = Begin {
        from,
        records: rest,
    };
    (begin, entry)
}
