//! What passes between a guest and the outside, without a guest.

use std::sync::Arc;

use longshore_journal::call::{Answer, Ask, Question};
use longshore_journal::world::{Fault, World};
use longshore_policy::limits::Limits;

use super::kit::{Remembers, origin, until};
use super::script::nothing;
use crate::bindings::longshore::tool::changes::Host as _;
use crate::bindings::longshore::tool::task::{self as wit, Host as _};
use crate::control::{Control, StopReason};
use crate::fault::Halt;
use crate::host::State;
use crate::journal::Journal;
use crate::outside::OwnedChange;
use crate::run::Trail;
use crate::sandbox::WasiKind;

struct Talk {
    state: State,
    outside: Arc<Remembers>,
    control: Control,
    trail: Trail,
}

fn talk(outside: Remembers) -> Talk {
    let limits = Limits {
        status_bytes: 8,
        ..Limits::default()
    };
    let journal = Journal::fresh(origin());
    let (outside, control) = (Arc::new(outside), Control::default());
    let trail = Trail::new(&limits, &journal);
    let world = World::new(&origin(), journal.begin, journal.after, journal.tape);
    let state = State::new(
        WasiKind::Virtual,
        &nothing(limits),
        &trail,
        world,
        0,
        Arc::clone(&outside) as _,
        control.clone(),
    )
    .unwrap();
    Talk {
        state,
        outside,
        control,
        trail,
    }
}

fn form() -> wit::Question {
    wit::Question::Form(wit::Form {
        message: "who?".into(),
        schema: "{}".into(),
    })
}

#[tokio::test]
async fn what_the_guest_says_reaches_the_outside_within_its_limits() {
    let Talk {
        mut state,
        outside,
        trail,
        ..
    } = talk(Remembers::default());
    assert_eq!(state.call_id().await.unwrap(), "the-call");
    let left = state.time_left().await.unwrap().unwrap();
    assert!((3_500_000..=3_600_000).contains(&left), "{left}");
    state.set_status("12345678".into()).await.unwrap();
    state.set_status("äääää".into()).await.unwrap();
    assert_eq!(*outside.statuses.lock(), ["12345678", "ää…"]);
    for (done, total) in [
        (1.0, Some(f64::INFINITY)),
        (1.0, None),
        (f64::NAN, None),
        (2.0, Some(4.0)),
    ] {
        state.report_progress(done, total, None).await.unwrap();
    }
    assert_eq!(*outside.progress.lock(), [(1.0, None), (2.0, Some(4.0))]);
    state
        .log(wit::Level::Info, None, "x".repeat(9_000))
        .await
        .unwrap();
    assert_eq!(outside.logs.lock()[0].len(), 8 * 1024);
    assert!(state.can_ask(wit::AskKind::Form).await.unwrap());
    assert!(!state.can_ask(wit::AskKind::Url).await.unwrap());
    state.tools_changed().await.unwrap();
    state.resource_updated("file:///a".into()).await.unwrap();
    assert_eq!(
        *outside.changes.lock(),
        [
            OwnedChange::Tools,
            OwnedChange::Resource("file:///a".into())
        ]
    );
    assert_eq!(state.step_begin("a".into()).await.unwrap(), None);
    state.step_end("a".into(), vec![1]).await.unwrap();
    assert_eq!(trail.tape.calls(), 15, "every call is counted");
}

#[tokio::test]
async fn misuse_ends_the_run_with_its_text() {
    let mut state = talk(Remembers::default()).state;
    state.step_begin("a".into()).await.unwrap();
    let error = state.ask("k".into(), form(), None).await.unwrap_err();
    assert!(
        matches!(error.downcast_ref(), Some(Fault::Misuse(misuse)) if misuse.to_string().contains("within the step \"a\""))
    );
}

#[tokio::test]
async fn questions_are_asked_and_answered_in_order() {
    let answers = vec![Answer::Accepted(Some("{}".into())), Answer::Declined];
    let Talk {
        mut state,
        outside,
        control,
        ..
    } = talk(Remembers {
        answers: Some(answers),
        ..Default::default()
    });
    let keyed = |key: &str| wit::KeyedQuestion {
        key: key.into(),
        question: form(),
    };
    let answers = state
        .ask_all(vec![keyed("a"), keyed("b")], Some(5))
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(
        &answers[..],
        [wit::Answer::Accepted(Some(_)), wit::Answer::Declined]
    ));
    let question = |key: &str| {
        let ask = Ask::Form {
            message: "who?".into(),
            schema: "{}".into(),
        };
        Question {
            key: key.into(),
            ask,
        }
    };
    assert_eq!(*outside.asked.lock(), [[question("a"), question("b")]]);
    assert!(control.cooperates());
    let error = state.ask("c".into(), form(), None).await.unwrap_err();
    assert!(
        matches!(error.downcast_ref(), Some(Halt::Bug(_))),
        "two answers to one question are our mistake"
    );
}

#[tokio::test]
async fn too_large_a_question_is_an_error_once() {
    let Talk {
        mut state, outside, ..
    } = talk(Remembers::default());
    let large = || wit::Question::Raw("x".repeat(17 * 1024));
    let refused = state.ask("k".into(), large(), None).await.unwrap();
    assert!(matches!(refused, Err(wit::AskError::Limit(_))));
    let error = state.ask("k".into(), large(), None).await.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(Halt::Input(_))));
    assert!(outside.asked.lock().is_empty());
}

#[tokio::test]
async fn a_cancel_ends_a_question_and_a_stop_ends_the_guest() {
    let Talk {
        mut state,
        control,
        outside,
        ..
    } = talk(Remembers::default());
    let cancel = async {
        until("the question", || outside.asked.lock().len() == 1).await;
        assert!(control.cooperates());
        control.cancel();
    };
    let (answer, ()) = tokio::join!(state.ask("k".into(), form(), None), cancel);
    assert!(matches!(answer.unwrap(), Err(wit::AskError::CallCancelled)));

    let Talk {
        mut state,
        control,
        outside,
        ..
    } = talk(Remembers::default());
    let stop = async {
        until("the question", || outside.asked.lock().len() == 1).await;
        control.stop(StopReason::Expired);
    };
    let (answer, ()) = tokio::join!(state.ask("k".into(), form(), None), stop);
    assert_eq!(
        answer.unwrap_err().downcast_ref(),
        Some(&Halt::Stopped(StopReason::Expired))
    );
    let error = state.sleep(1).await.unwrap_err();
    assert_eq!(
        error.downcast_ref(),
        Some(&Halt::Stopped(StopReason::Expired))
    );
}
