//! How a journal is counted, and what a replay of it costs.

use longshore_tasks::event::Event;
use longshore_tasks::task::{JournalTail, Task, Usage};

use crate::states::{NOW, working};

fn used(task: &Task, cpu_ms: u64) -> Task {
    let usage = Usage {
        active_ms: 100,
        cpu_ms,
    };
    task.apply(Event::Journalled { usage }, NOW).unwrap().task
}

#[test]
fn a_journal_is_counted_from_its_newest_restart_point() {
    let mut task = Task {
        journal: JournalTail::default(),
        ..working()
    };
    let tail = |task: &Task| {
        let JournalTail {
            segments,
            calls,
            base,
            base_cpu_ms,
        } = task.journal;
        (segments, calls, base, base_cpu_ms)
    };
    task = used(&task, 40);
    task.append(7, false);
    assert_eq!((tail(&task), task.replay_debt_ms()), ((1, 7, 0, 0), 40));
    task = used(&task, 90);
    task.append(7, false);
    assert_eq!((tail(&task), task.replay_debt_ms()), ((2, 7, 0, 0), 90));
    task = used(&task, 100);
    task.append(30, true);
    assert_eq!((tail(&task), task.replay_debt_ms()), ((3, 30, 2, 100), 0));
    task = used(&task, 125);
    task.append(31, false);
    assert_eq!((tail(&task), task.replay_debt_ms()), ((4, 31, 2, 100), 25));
    // The first of all can be one.
    let mut first = Task {
        journal: JournalTail::default(),
        ..working()
    };
    first.append(0, true);
    assert_eq!((tail(&first), first.replay_debt_ms()), ((1, 0, 0, 5), 0));
}

#[test]
fn counting_changes_nothing_else() {
    let before = working();
    let mut after = before.clone();
    after.append(12, true);
    assert_eq!(
        Task {
            journal: before.journal,
            ..after
        },
        before
    );
}
