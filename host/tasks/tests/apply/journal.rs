//! How a journal is counted, and what a replay of it costs.

use longshore_tasks::event::{Event, Outcome, Refused};
use longshore_tasks::task::{JournalTail, Task, Usage};

use crate::states::{NOW, over, working};

fn usage(cpu_ms: u64) -> Usage {
    Usage {
        active_ms: 2 * cpu_ms,
        cpu_ms,
    }
}

fn used(task: &Task, cpu_ms: u64) -> Task {
    let usage = usage(cpu_ms);
    task.apply(Event::Used { usage }, NOW).unwrap().task
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
            used,
        } = task.journal;
        assert_eq!(used, usage(used.cpu_ms));
        (segments, calls, base, base_cpu_ms, used.cpu_ms)
    };
    task.append(7, false, usage(40));
    assert_eq!((tail(&task), task.replay_debt_ms()), ((1, 7, 0, 0, 40), 40));
    task.append(7, false, usage(90));
    assert_eq!((tail(&task), task.replay_debt_ms()), ((2, 7, 0, 0, 90), 90));
    task.append(30, true, usage(100));
    let restarted = (3, 30, 2, 100, 100);
    assert_eq!((tail(&task), task.replay_debt_ms()), (restarted, 0));
    // What it computes without a record has to be done again as well.
    task = used(&task, 125);
    assert_eq!((tail(&task), task.replay_debt_ms()), (restarted, 25));
    task.append(31, false, usage(130));
    let after = (4, 31, 2, 100, 130);
    assert_eq!((tail(&task), task.replay_debt_ms()), (after, 30));
    // The first of all can be one.
    let mut first = Task {
        journal: JournalTail::default(),
        ..working()
    };
    first.append(0, true, usage(5));
    assert_eq!((tail(&first), first.replay_debt_ms()), ((1, 0, 0, 5, 5), 0));
}

#[test]
fn what_is_done_again_is_not_used_again() {
    let mut task = used(&working(), 400);
    // Whoever goes on begins at the last record, and has used less by the next one than was used once.
    task.append(10, false, usage(150));
    assert_eq!((task.usage, task.journal.used), (usage(400), usage(150)));
    let less = Event::Used { usage: usage(300) };
    assert_eq!(task.apply(less, NOW), Err(Refused::Nothing));
    let ended = over(Outcome::Completed("1".into()));
    assert_eq!(task.apply(ended, NOW).unwrap().task.usage, usage(400));
    task.append(11, false, usage(450));
    assert_eq!((task.usage, task.journal.used), (usage(450), usage(450)));
}

#[test]
fn counting_changes_nothing_else() {
    let before = working();
    let mut after = before.clone();
    after.append(12, true, before.usage);
    assert_eq!(
        Task {
            journal: before.journal,
            ..after
        },
        before
    );
}
