//! The records that are still to be repeated.

use super::After;
use crate::record::{Record, What};

#[derive(Debug)]
pub(super) struct Replay {
    records: Vec<Record>,
    at: usize,
    after: After,
}

impl Replay {
    pub(super) fn new(records: Vec<Record>, after: After) -> Self {
        Self {
            records,
            at: 0,
            after,
        }
    }

    pub(super) fn after(&self) -> After {
        self.after
    }

    pub(super) fn is_over(&self) -> bool {
        self.at == self.records.len()
    }

    /// The next record, wherever it stands.
    pub(super) fn next(&self) -> Option<&Record> {
        self.records.get(self.at)
    }

    /// The next record, if it stands at that call.
    pub(super) fn at(&self, call: u64) -> Option<&What> {
        self.next()
            .filter(|record| record.call == call)
            .map(|record| &record.what)
    }

    /// The next record was used.
    pub(super) fn took(&mut self) {
        self.at += 1;
        if self.is_over() {
            // They can be many, and the run may be long.
            self.records = Vec::new();
            self.at = 0;
        }
    }

    /// The step that began at that call, if it was done; all that it did is left out.
    pub(super) fn step(&mut self, began_at: u64) -> Option<Record> {
        let ahead = &self.records[self.at..];
        let index = ahead
            .iter()
            .position(|record| matches!(record.what, What::Step { .. }))?;
        let What::Step { began, .. } = ahead[index].what else {
            return None;
        };
        if began != began_at {
            return None;
        }
        self.at += index;
        let record = self.records[self.at].clone();
        self.took();
        Some(record)
    }
}
