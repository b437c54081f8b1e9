//! Waits that the host sees to: nobody is asked, so nobody sees anything of them.

use std::collections::BTreeMap;

use longshore_tasks::event::{Effect, Event, NewQuestion, Refused};
use longshore_tasks::question::{Fate, OF_HOST};
use longshore_tasks::task::{State, Task};

use super::states::{LATER, NOW, working};

fn key() -> String {
    format!("{OF_HOST}poll")
}

fn asked(key: &str) -> Event {
    Event::Asked {
        questions: vec![NewQuestion {
            key: key.to_owned(),
            request: "{}".into(),
        }],
        wake_at: Some(LATER),
    }
}

fn waiting() -> Task {
    let step = working().apply(asked(&key()), NOW).expect("it can wait");
    assert_eq!(step.effects, [], "nobody is told");
    step.task
}

#[test]
fn a_task_that_waits_for_others_works_and_asks_nobody() {
    let task = waiting();
    assert_eq!(
        (&task.state, task.updated_at),
        (&State::Working, working().updated_at)
    );
    assert_eq!(task.open_questions().count(), 0);
    assert_eq!(
        task.open_waits()
            .map(|wait| wait.key.clone())
            .collect::<Vec<_>>(),
        [key()]
    );
    // It waits, and does nothing else meanwhile.
    for other in [key().as_str(), "who"] {
        assert_eq!(
            task.apply(asked(other), NOW),
            Err(Refused::BadQuestions),
            "{other:?}"
        );
    }
}

#[test]
fn what_it_waited_for_brings_it_back_without_a_word() {
    let answer = Event::Answered(BTreeMap::from([(key(), "1".into())]));
    let step = waiting().apply(answer.clone(), NOW).expect("it comes");
    assert_eq!(step.effects, [Effect::Resume]);
    let wait = step.task.questions.last().expect("it is there");
    assert_eq!(wait.fate, Fate::Answered("1".into()));
    assert_eq!(
        step.task.apply(answer.clone(), NOW),
        Err(Refused::Nothing),
        "only once"
    );
    // Parked, it is due as soon as that is there, and not before.
    let usage = working().usage;
    let parked = Event::Parked {
        wake_at: Some(LATER),
        usage,
    };
    let parked = waiting()
        .apply(parked, NOW)
        .expect("it can be let go of")
        .task;
    assert_eq!(parked.wake_at, Some(LATER));
    let due = parked.apply(answer, NOW).expect("it comes").task;
    assert_eq!(due.wake_at, Some(NOW));
}

#[test]
fn it_is_given_up_and_cancelled_like_a_question() {
    for (event, effects) in [
        (Event::Withdrawn, vec![]),
        (Event::CancelRequested, vec![Effect::Cancel, Effect::Notify]),
    ] {
        let step = waiting().apply(event, NOW).expect("it is open");
        assert_eq!(step.effects, effects);
        let wait = step.task.questions.last().expect("it is there");
        assert_eq!(
            (&wait.fate, step.task.open_waits().count()),
            (&Fate::Withdrawn, 0)
        );
    }
}
