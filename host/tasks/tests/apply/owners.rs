//! Deaths and what they cost: when a task is suspected, set aside, and tried again.

use longshore_tasks::event::{Event, Outcome};
use longshore_tasks::id::NodeId;
use longshore_tasks::task::{State, Task, Trust};

use crate::outcome::outcome;
use crate::states::{
    MORE, NOW, answered, asked, cancelling, claimed, over, set_aside, status, waiting, working,
};

fn after(task: &Task, event: Event) -> Task {
    task.apply(event, NOW).unwrap().task
}

#[test]
fn trust_is_lost_with_deaths_and_nothing_else() {
    let by_deaths = (0..7).map(Trust::after).collect::<Vec<_>>();
    use Trust::{Quarantined, Suspect, Trusted};
    let expected = [
        Trusted,
        Trusted,
        Trusted,
        Suspect,
        Quarantined,
        Quarantined,
        Quarantined,
    ];
    assert_eq!(by_deaths, expected);
    assert_eq!(Trust::after(u32::MAX), Quarantined);
}

#[test]
fn four_deaths_in_a_row_set_a_task_aside() {
    let mut task = Task {
        stalls: 0,
        ..working()
    };
    for (deaths, trust) in [
        (1, Trust::Trusted),
        (2, Trust::Trusted),
        (3, Trust::Suspect),
    ] {
        let died = task.apply(Event::Died, NOW).unwrap();
        assert_eq!((died.task.stalls, died.task.trust()), (deaths, trust));
        assert_eq!(died.effects, [], "a client sees nothing of death {deaths}");
        assert_eq!(died.task.status, task.status);
        task = after(&died.task, claimed("n2"));
        assert_eq!(
            task.stalls, deaths,
            "whoever runs it next has done nothing yet"
        );
        task.lease.owner = Some(NodeId("n1".into()));
    }
    let said = "set aside after the server died 4 times while this ran; \
                `longshore tasks resume 00000000-0000-0000-0000-000000000007` tries again";
    assert_eq!(
        outcome(&task, Event::Died),
        format!("owner=- message={said} stalls=4 -> notify")
    );
}

#[test]
fn a_task_that_was_set_aside_is_tried_again_only_when_somebody_says_so() {
    let aside = set_aside();
    assert_eq!(outcome(&aside, claimed("n1")), "the task was set aside");
    for late in [Event::Died, status(Some("more"), None), asked(&["c"])] {
        assert_eq!(outcome(&aside, late), "nobody runs the task");
    }
    let tried = "message=tried again after the server died 4 times while this ran wake=5000 stalls=0 -> resume notify";
    assert_eq!(outcome(&aside, Event::Readmitted), tried);
    let tried = after(&aside, Event::Readmitted);
    assert_eq!(outcome(&tried, Event::Readmitted), "nothing changes");
    assert_eq!(outcome(&tried, claimed("n1")), "owner=n1 epoch=3 wake=- ->");
}

#[test]
fn a_task_that_was_set_aside_can_be_cancelled() {
    // Due at once for whoever ends it: its run is not brought back for that.
    assert_eq!(
        outcome(&set_aside(), Event::CancelRequested),
        "cancel=5000 wake=5000 -> cancel notify"
    );
    let suspect = Task {
        stalls: 3,
        ..cancelling()
    };
    let died = after(&suspect, Event::Died);
    assert_eq!(
        (died.trust(), died.wake_at),
        (Trust::Quarantined, Some(NOW))
    );
    let cancelled = after(&died, over(Outcome::Cancelled(None)));
    assert!(cancelled.state.name().is_final());
}

#[test]
fn what_a_run_gets_done_restores_its_trust() {
    let suspect = Task {
        stalls: 3,
        ..working()
    };
    let parked = Event::Parked {
        wake_at: None,
        usage: MORE,
    };
    for (name, event) in [
        ("status", status(Some("more"), None)),
        ("question", asked(&["c"])),
        ("journal", Event::Journalled { usage: MORE }),
        ("parked", parked),
        ("ended", over(Outcome::Completed("1".into()))),
    ] {
        assert_eq!(after(&suspect, event).stalls, 0, "{name}");
    }
    for (name, event) in [
        ("released", Event::Released { usage: MORE }),
        ("used", Event::Used { usage: MORE }),
        ("claimed", claimed("n2")),
        ("cancel", Event::CancelRequested),
    ] {
        assert_eq!(after(&suspect, event).stalls, 3, "{name}");
    }
}

#[test]
fn waiting_for_an_answer_costs_no_trust() {
    let suspect = Task {
        stalls: 3,
        ..waiting(&["a"])
    };
    let died = after(&suspect, Event::Died);
    assert_eq!(died.stalls, 3);
    assert_eq!(died.state, State::InputRequired);
    assert_eq!(
        died.wake_at, suspect.wake_at,
        "the wait ends when it was to end"
    );
    let answered = after(&died, answered(&["a"]));
    assert_eq!((answered.stalls, answered.wake_at), (3, Some(NOW)));
}
