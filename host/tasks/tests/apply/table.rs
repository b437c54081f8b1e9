//! The table.

use longshore_tasks::event::{Event, Outcome, Refused};
use longshore_tasks::id::Millis;
use longshore_tasks::task::{Reach, Task};

use crate::outcome::outcome;
use crate::states::{
    LATER, MORE, NOW, answered, asked, claimed, failure, finals, living, over, status, working,
};

/// One event, and what it does to a task that is working, being cancelled, waits for `a`, and waits for
/// `a` and `b`: first while a node runs it, then while nobody does.
struct Row {
    name: &'static str,
    event: Event,
    owned: [&'static str; 4],
    unowned: [&'static str; 4],
}

/// A row in which it makes no difference whether somebody runs the task.
fn alike(name: &'static str, event: Event, cells: [&'static str; 4]) -> Row {
    Row {
        name,
        event,
        owned: cells,
        unowned: cells,
    }
}

/// A row in which it does.
fn unlike(
    name: &'static str,
    event: Event,
    owned: [&'static str; 4],
    unowned: [&'static str; 4],
) -> Row {
    Row {
        name,
        event,
        owned,
        unowned,
    }
}

/// A row of something that only a run, or its death, can say.
fn by_run(name: &'static str, event: Event, cells: [&'static str; 4]) -> Row {
    unlike(name, event, cells, [UNOWNED; 4])
}

const NOTHING: &str = "nothing changes";
const UNOWNED: &str = "nobody runs the task";
const BAD: &str = "the questions cannot be asked now";
const CANCELLING: &str = "the task is being cancelled";

fn table() -> Vec<Row> {
    let mut rows = told();
    rows.extend(asking());
    rows.extend(owners());
    rows.extend(ends());
    rows
}

fn told() -> Vec<Row> {
    let not_a_number = status(None, Some((f64::NAN, None)));
    let endless = status(None, Some((f64::INFINITY, None)));
    let endless_total = status(None, Some((2.0, Some(f64::INFINITY))));
    let total_not_a_number = status(None, Some((2.0, Some(f64::NAN))));
    vec![
        by_run(
            "a message",
            status(Some("more"), None),
            ["message=more stalls=0 -> notify"; 4],
        ),
        by_run(
            "the same message",
            status(Some("begun"), None),
            [NOTHING; 4],
        ),
        by_run(
            "progress grows",
            status(None, Some((2.0, None))),
            ["progress=2/? stalls=0 -> notify"; 4],
        ),
        by_run(
            "progress stays",
            status(None, Some((1.0, Some(8.0)))),
            [NOTHING; 4],
        ),
        by_run(
            "progress shrinks",
            status(None, Some((0.5, Some(4.0)))),
            [NOTHING; 4],
        ),
        by_run("progress is no number", not_a_number, [NOTHING; 4]),
        by_run("progress has no end", endless, [NOTHING; 4]),
        by_run("a total without end", endless_total, [NOTHING; 4]),
        by_run(
            "a total that is no number",
            total_not_a_number,
            [NOTHING; 4],
        ),
        by_run(
            "a message with bad progress",
            status(Some("more"), Some((f64::NAN, None))),
            ["message=more stalls=0 -> notify"; 4],
        ),
        by_run(
            "both",
            status(Some("more"), Some((4.0, Some(4.0)))),
            ["message=more progress=4/4 stalls=0 -> notify"; 4],
        ),
        by_run("neither", status(None, None), [NOTHING; 4]),
    ]
}

fn asking() -> Vec<Row> {
    let mut endless = asked(&["c"]);
    if let Event::Asked { wake_at, .. } = &mut endless {
        *wake_at = None;
    }
    vec![
        by_run(
            "asks one",
            asked(&["c"]),
            [
                "wake=9000 stalls=0 c=open state=input_required -> notify",
                CANCELLING,
                BAD,
                BAD,
            ],
        ),
        by_run(
            "asks one for as long as it takes",
            endless,
            [
                "stalls=0 c=open state=input_required -> notify",
                CANCELLING,
                BAD,
                BAD,
            ],
        ),
        by_run(
            "asks two",
            asked(&["d", "c"]),
            [
                "wake=9000 stalls=0 d=open c=open state=input_required -> notify",
                CANCELLING,
                BAD,
                BAD,
            ],
        ),
        by_run(
            "asks under a used key",
            asked(&["c", "old"]),
            [BAD, CANCELLING, BAD, BAD],
        ),
        by_run(
            "asks twice under one key",
            asked(&["c", "c"]),
            [BAD, CANCELLING, BAD, BAD],
        ),
        by_run("asks nothing", asked(&[]), [BAD, CANCELLING, BAD, BAD]),
        unlike(
            "a is answered",
            answered(&["a"]),
            [
                NOTHING,
                NOTHING,
                "wake=- a=2 state=working -> resume notify",
                "a=2 -> notify",
            ],
            [
                NOTHING,
                NOTHING,
                "wake=5000 a=2 state=working -> resume notify",
                "a=2 -> notify",
            ],
        ),
        unlike(
            "a and b are answered",
            answered(&["b", "a"]),
            [
                NOTHING,
                NOTHING,
                "wake=- a=2 state=working -> resume notify",
                "wake=- a=2 b=2 state=working -> resume notify",
            ],
            [
                NOTHING,
                NOTHING,
                "wake=5000 a=2 state=working -> resume notify",
                "wake=5000 a=2 b=2 state=working -> resume notify",
            ],
        ),
        alike(
            "b and a stranger are answered",
            answered(&["b", "x"]),
            [NOTHING, NOTHING, NOTHING, "b=2 -> notify"],
        ),
        alike("a stranger is answered", answered(&["x"]), [NOTHING; 4]),
        alike("a second answer", answered(&["old"]), [NOTHING; 4]),
        alike("no answer", answered(&[]), [NOTHING; 4]),
        unlike(
            "withdrawn",
            Event::Withdrawn,
            [
                NOTHING,
                NOTHING,
                "wake=- a=withdrawn state=working -> notify",
                "wake=- a=withdrawn b=withdrawn state=working -> notify",
            ],
            [
                NOTHING,
                NOTHING,
                "wake=5000 a=withdrawn state=working -> notify",
                "wake=5000 a=withdrawn b=withdrawn state=working -> notify",
            ],
        ),
        unlike(
            "cancel",
            Event::CancelRequested,
            [
                "cancel=5000 -> cancel notify",
                NOTHING,
                "cancel=5000 wake=- a=withdrawn state=working -> cancel notify",
                "cancel=5000 wake=- a=withdrawn b=withdrawn state=working -> cancel notify",
            ],
            [
                "cancel=5000 wake=5000 -> cancel notify",
                NOTHING,
                "cancel=5000 wake=5000 a=withdrawn state=working -> cancel notify",
                "cancel=5000 wake=5000 a=withdrawn b=withdrawn state=working -> cancel notify",
            ],
        ),
    ]
}

fn owners() -> Vec<Row> {
    vec![
        unlike(
            "claimed by another",
            claimed("n2"),
            ["owner=n2 epoch=3 ->"; 4],
            [
                "owner=n2 epoch=3 wake=- ->",
                "owner=n2 epoch=3 wake=- ->",
                "owner=n2 epoch=3 ->",
                "owner=n2 epoch=3 ->",
            ],
        ),
        unlike(
            "claimed by the same",
            claimed("n1"),
            ["this node has the task already"; 4],
            [
                "owner=n1 epoch=3 wake=- ->",
                "owner=n1 epoch=3 wake=- ->",
                "owner=n1 epoch=3 ->",
                "owner=n1 epoch=3 ->",
            ],
        ),
        by_run(
            "journalled",
            Event::Journalled { usage: MORE },
            ["usage=20/15 stalls=0 ->"; 4],
        ),
        by_run("used", Event::Used { usage: MORE }, ["usage=20/15 ->"; 4]),
        by_run(
            "parked",
            Event::Parked {
                wake_at: Some(LATER),
                usage: MORE,
            },
            [
                "owner=- usage=20/15 wake=9000 stalls=0 ->",
                "owner=- usage=20/15 wake=5000 stalls=0 ->",
                "owner=- usage=20/15 stalls=0 ->",
                "owner=- usage=20/15 stalls=0 ->",
            ],
        ),
        by_run(
            "parked until another time",
            Event::Parked {
                wake_at: Some(Millis(7_000)),
                usage: MORE,
            },
            [
                "owner=- usage=20/15 wake=7000 stalls=0 ->",
                "owner=- usage=20/15 wake=5000 stalls=0 ->",
                "owner=- usage=20/15 wake=7000 stalls=0 ->",
                "owner=- usage=20/15 wake=7000 stalls=0 ->",
            ],
        ),
        by_run(
            "parked for as long as it takes",
            Event::Parked {
                wake_at: None,
                usage: MORE,
            },
            [
                "owner=- usage=20/15 wake=5000 stalls=0 ->",
                "owner=- usage=20/15 wake=5000 stalls=0 ->",
                "owner=- usage=20/15 wake=- stalls=0 ->",
                "owner=- usage=20/15 wake=- stalls=0 ->",
            ],
        ),
        by_run(
            "released",
            Event::Released { usage: MORE },
            [
                "owner=- usage=20/15 wake=5000 ->",
                "owner=- usage=20/15 wake=5000 ->",
                "owner=- usage=20/15 ->",
                "owner=- usage=20/15 ->",
            ],
        ),
        by_run(
            "died",
            Event::Died,
            [
                "owner=- wake=5000 stalls=2 ->",
                "owner=- wake=5000 stalls=2 ->",
                "owner=- ->",
                "owner=- ->",
            ],
        ),
        alike("readmitted", Event::Readmitted, [NOTHING; 4]),
        alike(
            "shown, though its id is known",
            Event::Shown { retention_ms: 9 },
            [NOTHING; 4],
        ),
    ]
}

fn ends() -> Vec<Row> {
    // Each with what it ends: an owner, a time, questions.
    macro_rules! row {
        ($name:literal, $outcome:expr, $message:literal, $state:literal) => {
            unlike(
                $name,
                over($outcome),
                [
                    concat!(
                        "owner=- usage=20/15 ",
                        $message,
                        "stalls=0 questions=- ",
                        $state
                    ),
                    concat!(
                        "owner=- usage=20/15 ",
                        $message,
                        "stalls=0 questions=- ",
                        $state
                    ),
                    concat!(
                        "owner=- usage=20/15 ",
                        $message,
                        "wake=- stalls=0 questions=- ",
                        $state
                    ),
                    concat!(
                        "owner=- usage=20/15 ",
                        $message,
                        "wake=- stalls=0 questions=- ",
                        $state
                    ),
                ],
                [concat!(
                    "usage=20/15 ",
                    $message,
                    "wake=- stalls=0 questions=- ",
                    $state
                ); 4],
            )
        };
    }
    let stopped = Outcome::Cancelled(Some("stopped".to_owned()));
    vec![
        row!(
            "completed",
            Outcome::Completed("[1]".into()),
            "",
            "state=completed at 5000: [1] -> notify"
        ),
        row!(
            "failed",
            Outcome::Failed(failure()),
            "message=too slow ",
            "state=failed at 5000: 1003 too slow {} -> notify"
        ),
        row!(
            "cancelled",
            Outcome::Cancelled(None),
            "",
            "state=cancelled at 5000 -> notify"
        ),
        row!(
            "cancelled with a word",
            stopped,
            "message=stopped ",
            "state=cancelled at 5000 -> notify"
        ),
    ]
}

/// Every event of the table, by name.
pub(crate) fn events() -> Vec<(&'static str, Event)> {
    let named = |row: Row| (row.name, row.event);
    table().into_iter().map(named).collect()
}

#[test]
fn every_event_does_to_every_state_what_the_table_says() {
    for row in table() {
        let cells = row.owned.into_iter().chain(row.unowned);
        for ((state, task), expected) in living().iter().zip(cells) {
            let got = outcome(task, row.event.clone());
            assert_eq!(got, expected, "{}, {state}", row.name);
        }
    }
}

#[test]
fn what_has_ended_never_changes() {
    for task in finals() {
        for (name, event) in events() {
            assert_eq!(
                task.apply(event, NOW),
                Err(Refused::Ended),
                "{name}, {:?}",
                task.state
            );
        }
    }
}

/// A task whose id nobody knows.
fn hidden(task: Task) -> Task {
    Task {
        reach: Reach::Again,
        ..task
    }
}

#[test]
fn a_task_is_shown_once_and_then_kept_for_as_long_as_others() {
    let shown = Event::Shown { retention_ms: 99 };
    for (state, task) in living() {
        let got = outcome(&hidden(task), shown.clone());
        assert_eq!(got, "retention=99 reach=id -> notify", "{state}");
    }
}

#[test]
fn a_call_that_can_be_made_again_keeps_its_answers_after_its_end() {
    let done = over(Outcome::Completed("[1]".into()));
    let end = |task: Task| task.apply(done.clone(), NOW).unwrap().task;
    assert_eq!(end(working()).questions, []);
    assert_eq!(end(hidden(working())).questions, working().questions);
}
