//! The client of the TypeScript SDK with ext-tasks, the strictest about the shape of tasks. It can be told of a task's
//! changes instead of asking.

use longshore_tests::process::Options;

use super::cases::{self, GUESTS};
use super::script::{Language, Script, Way, count, names};

const NAME: &str = "@modelcontextprotocol/client 2.4.0 with ext-tasks 0.2.2";
const NO_TASKS: &str = "tasks of its own: without ext-tasks it throws UNSUPPORTED_RESULT_TYPE";

const SCRIPT: Script = Script {
    language: Language::JavaScript,
    file: "ext_tasks.mjs",
    name: NAME,
    lacks: &[NO_TASKS],
};

/// The same, where it listens to each of its tasks.
const LISTENING: Script = Script {
    lacks: &[
        "the task ids that a subscription was granted: honoredFilter leaves them out",
        NO_TASKS,
    ],
    ..SCRIPT
};

fn options() -> Options {
    // It waits for the whole interval before its first poll.
    Options::with_guests(&GUESTS).set("poll_interval_ms", 100)
}

#[tokio::test]
async fn lists_calls_polls_answers_and_cancels() {
    let said = SCRIPT.poll(options()).await;
    for (name, id) in names(&said) {
        assert_eq!(name, id);
    }
    assert_eq!(count(&said, "subscriptions/listen"), 0);
}

#[tokio::test]
async fn is_told_of_its_tasks_and_never_polls() {
    // Nobody who waited for the interval would see the end of anything.
    let hour_ms = 3_600_000;
    let options = Options::with_guests(&GUESTS).set("poll_interval_ms", hour_ms);
    let way = Way {
        listens: true,
        ..Way::POLLING
    };
    let said = LISTENING.drive(way, options).await;
    let cases = cases::all();
    assert_eq!(count(&said, "tasks/get"), 0);
    assert_eq!(count(&said, "tasks/update"), cases::questions(&cases));
    assert_eq!(count(&said, "tasks/cancel"), 1);
    assert_eq!(count(&said, "subscriptions/listen"), cases::tasks(&cases));
}

#[tokio::test]
async fn holds_a_session_and_answers_in_it() {
    SCRIPT.hold_a_session(options()).await;
}

#[tokio::test]
async fn does_the_same_over_pipes() {
    SCRIPT.talk_over_pipes(&options()).await;
}
