//! `tasks`: what a person sees of them and does with them.

use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::{FAILED, USAGE, against, json_of};

#[tokio::test]
async fn tasks_are_listed_shown_answered_and_cancelled() {
    let server = Server::start(Options::with_guests(&["ask-form", "long-job"])).await;
    let client = server.client();
    let empty = against(&server, &["tasks", "list"]).await;
    assert_eq!(
        (empty.code, empty.out.as_str(), empty.err.as_str()),
        (0, "no tasks\n", "")
    );

    let asking = client.start("ask-form", json!({})).await;
    client.until_status(&asking, "input_required").await;
    let working = client
        .start("long-job", json!({ "steps": 1_000, "step-ms": 100 }))
        .await;

    let listed = against(&server, &["tasks", "list"]).await;
    assert_eq!((listed.code, listed.err.as_str()), (0, ""), "{listed:?}");
    let lines: Vec<&str> = listed.out.lines().collect();
    assert!(
        lines[0].starts_with("ID ")
            && lines[1].starts_with(&working)
            && lines[2].starts_with(&asking),
        "{listed:?}"
    );
    assert!(
        lines[1].contains(" working ") && lines[2].contains(" input_required "),
        "{listed:?}"
    );
    let only = json_of(&server, &["tasks", "list", "--status", "input_required"]).await;
    assert_eq!(only["tasks"].as_array().map(Vec::len), Some(1), "{only}");
    assert_eq!(
        (&only["tasks"][0]["id"], &only["tasks"][0]["tool"]),
        (&json!(asking), &json!("ask-form"))
    );
    let first = json_of(&server, &["tasks", "list", "--limit", "1"]).await;
    assert_eq!(first["tasks"][0]["id"], working.as_str());
    let cursor = first["cursor"].to_string();
    let second = json_of(
        &server,
        &["tasks", "list", "--limit", "1", "--cursor", &cursor],
    )
    .await;
    assert_eq!(
        (&second["tasks"][0]["id"], &second["cursor"]),
        (&json!(asking), &Value::Null)
    );
    against(&server, &["tasks", "list", "--status", "asleep"])
        .await
        .assert_failed(USAGE, &["input_required"]);

    let shown = against(&server, &["tasks", "show", &asking]).await;
    assert_eq!((shown.code, shown.err.as_str()), (0, ""), "{shown:?}");
    for words in [
        asking.as_str(),
        "input_required",
        "question person",
        "Who are you?",
        "age (integer",
        "--field NAME=VALUE",
    ] {
        assert!(
            shown.out.contains(words),
            "{words:?} is missing: {}",
            shown.out
        );
    }
    // In the order of the form's author.
    let at = |words: &str| shown.out.find(words).expect("it is there");
    assert!(at("name (string") < at("age (integer") && at("age (integer") < at("choice ("));
    // A beginning is enough if no other task begins so.
    let short = against(&server, &["tasks", "show", &asking[..8]]).await;
    assert_eq!((short.code, &short.out), (0, &shown.out), "{short:?}");
    for (id, words) in [
        ("00000000-0000-4000-8000-00000000000", "begins with"),
        ("xyzxyz", "no such task"),
        ("000000-", "begins with"),
    ] {
        against(&server, &["tasks", "show", id])
            .await
            .assert_failed(FAILED, &[words]);
    }
    against(&server, &["tasks", "show", &asking[..5]])
        .await
        .assert_failed(USAGE, &["too short", "at least 6"]);
    let shown = json_of(&server, &["tasks", "show", &asking]).await;
    assert_eq!(
        (&shown["status"], &shown["result"]),
        (&json!("input_required"), &Value::Null)
    );
    assert_eq!(
        shown["questions"]["person"]["params"]["message"],
        "Who are you?"
    );

    // What does not fit is told, and the question stays.
    let answer = |more: &[&'static str]| [&["tasks", "answer", asking.as_str()], more].concat();
    let rows: [(&[&str], i32, &[&str]); 6] = [
        (&[], USAGE, &["the answer is missing", "question person"]),
        (&["nobody", "--decline"], USAGE, &["nobody", "person"]),
        (&["--field", "nam=Ada"], USAGE, &["is name meant?"]),
        (&["--field", "name"], USAGE, &["NAME=VALUE"]),
        (&["--accept", "{"], USAGE, &["not JSON"]),
        (
            &[
                "--field",
                "name=Ada",
                "--field",
                "age=151",
                "--field",
                "choice=green",
            ],
            FAILED,
            &["age"],
        ),
    ];
    for (more, code, words) in rows {
        against(&server, &answer(more))
            .await
            .assert_failed(code, words);
    }
    assert_eq!(client.task(&asking).await["status"], "input_required");
    let fields = [
        "--field",
        "name=Ada",
        "--field",
        "age=36",
        "--field",
        "choice=green",
    ];
    let answered = against(&server, &answer(&fields)).await;
    assert_eq!(
        (answered.code, answered.err.as_str()),
        (0, ""),
        "{answered:?}"
    );
    assert!(answered.out.starts_with("answered; "), "{answered:?}");
    client.until_ended(&asking).await;
    let shown = against(&server, &["tasks", "show", &asking]).await;
    assert!(
        shown.out.contains("completed") && shown.out.contains("Ada is 36 and chose green"),
        "{}",
        shown.out
    );
    against(&server, &answer(&["--decline"]))
        .await
        .assert_failed(FAILED, &["asks nothing", "completed"]);

    // Whole answers, and the other two words.
    let rows: [(&[&str], &str); 3] = [
        (
            &[
                "person",
                "--accept",
                r#"{"name":"Bo","age":1,"choice":"red"}"#,
            ],
            "Bo is 1 and chose red",
        ),
        (&["--decline"], "the person declined to answer"),
        (&["person", "--dismiss"], "the person closed the question"),
    ];
    for (more, expected) in rows {
        let id = client.start("ask-form", json!({})).await;
        client.until_status(&id, "input_required").await;
        let answered = json_of(&server, &[&["tasks", "answer", id.as_str()], more].concat()).await;
        assert_eq!(answered["id"], id.as_str());
        let ended = client.until_ended(&id).await;
        assert_eq!(ended["result"]["content"][0]["text"], expected);
    }

    let cancelled = against(&server, &["tasks", "cancel", &working]).await;
    assert_eq!(
        (cancelled.code, cancelled.out.as_str()),
        (0, "the task is asked to stop\n"),
        "{cancelled:?}"
    );
    assert_eq!(client.until_ended(&working).await["status"], "cancelled");
    against(&server, &["tasks", "cancel", &working])
        .await
        .assert_failed(FAILED, &["cancelled"]);

    for verb in ["show", "cancel"] {
        for id in [
            "3f2c1a44-0000-4000-8000-000000000000",
            "none",
            "../components",
        ] {
            against(&server, &["tasks", verb, id])
                .await
                .assert_failed(FAILED, &["no such task"]);
            let ended = against(&server, &["tasks", verb, id, "--json"]).await;
            assert_eq!(
                (ended.code, &ended.json()["error"]["reason"]),
                (FAILED, &json!("not-found")),
                "{ended:?}"
            );
        }
    }
}
