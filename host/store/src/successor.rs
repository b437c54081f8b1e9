//! What makes a row a successor of another, whatever keeps it.

use longshore_tasks::store::Commit;
use longshore_tasks::task::Task;

/// Whether these changes lead forwards: a version that could come twice would let two commits made
/// from the same row both succeed, and an epoch that fell would let a former owner in again.
pub(crate) fn leads_forwards(commit: &Commit) -> bool {
    let Commit {
        from_version,
        from_epoch,
        task,
        segment: _,
    } = commit;
    task.version > *from_version && task.lease.epoch >= *from_epoch
}

/// How many segments there must be before this one, if one comes with the row; as many as the row
/// counts if none does. Nothing fits a row that counts none although one comes with it.
pub(crate) fn segments_before(task: &Task, with_segment: bool) -> Option<u64> {
    task.journal.segments.checked_sub(u64::from(with_segment))
}
