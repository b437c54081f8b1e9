//! What makes a row a successor of another, whatever keeps it.

use longshore_tasks::store::{Commit, Segment};
use longshore_tasks::task::Task;

/// Whether these changes lead forwards: a version that could come twice would let two commits made
/// from the same row both succeed, and an epoch that fell would let a former owner in again.
pub(crate) fn leads_forwards(commit: &Commit) -> bool {
    let Commit {
        from_version,
        from_epoch,
        task,
        segment: _,
        output: _,
    } = commit;
    task.version > *from_version && task.lease.epoch >= *from_epoch
}

/// Whether a segment was written under this lease, if there is one.
pub(crate) fn is_written_under(epoch: u64, segment: Option<&Segment>) -> bool {
    segment.is_none_or(|segment| segment.epoch == epoch)
}

/// How many segments there must be before this row and its segment are kept. Nothing fits a segment that
/// is not the row's newest, nor a base at which no segment can be, unless the row is over and needs none.
pub(crate) fn segments_before(task: &Task, segment: Option<&Segment>) -> Option<u64> {
    let count = task.journal.segments;
    let before = match segment {
        None => count,
        Some(segment) => count
            .checked_sub(1)
            .filter(|newest| segment.number == *newest)?,
    };
    let has_base = task.journal.base < count.max(1);
    (has_base || task.state.name().is_final()).then_some(before)
}
