//! What the operator sees of a journal, and the file that repeats a task elsewhere.

use longshore_tests::process::{Options, Server, TOKEN, command, run};
use serde_json::{Value, json};

use super::answer;

async fn told(server: &Server, arguments: &[&str]) -> (i32, Value, String) {
    let mut command = command(server.data());
    command
        .env("LONGSHORE_ADMIN_TOKEN", TOKEN)
        .env("LONGSHORE_SERVER", format!("http://{}", server.address))
        .args(arguments)
        .arg("--json");
    let (code, out, errors) = run(command).await;
    let document = serde_json::from_str(&out).unwrap_or(Value::Null);
    (code, document, errors)
}

#[tokio::test]
async fn a_journal_tells_what_a_task_saw_and_its_file_repeats_it() {
    let server = Server::start(Options::with_guests(&["dice"])).await;
    let client = server.client();
    let id = client.start("dice", json!({})).await;
    client.until_status(&id, "input_required").await;
    answer(&client, &id, "bet", json!({ "bet": 3 })).await;
    client.until_status(&id, "input_required").await;

    let folder = tempfile::tempdir().unwrap();
    let half = folder.path().join("half").display().to_string();
    let (code, ..) = told(&server, &["tasks", "export", &id, "--output", &half]).await;
    assert_eq!(code, 0);
    answer(&client, &id, "again", json!({ "again": true })).await;
    client.until_ended(&id).await;

    let (code, journal, errors) = told(&server, &["tasks", "journal", &id]).await;
    assert_eq!(code, 0, "{errors}");
    let records: Vec<&Value> = journal["segments"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|segment| segment["records"].as_array().unwrap())
        .collect();
    let kinds: Vec<&str> = records
        .iter()
        .map(|record| record["what"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "question").count(), 2);
    assert_eq!(kinds.last(), Some(&"end"), "{kinds:?}");
    let answered = records
        .iter()
        .find(|record| record["what"] == "answer")
        .unwrap();
    assert_eq!(answered["detail"]["answers"][0]["accepted"]["bet"], 3);
    let calls: Vec<u64> = records
        .iter()
        .map(|record| record["call"].as_u64().unwrap())
        .collect();
    assert!(calls.is_sorted(), "{calls:?}");

    let whole = folder.path().join("whole").display().to_string();
    let (code, document, errors) =
        told(&server, &["tasks", "export", &id, "--output", &whole]).await;
    assert_eq!(code, 0, "{errors}");
    assert!(document["warning"].as_str().unwrap().contains("arguments"));
    let (code, ..) = told(&server, &["tasks", "export", &id, "--output", &whole]).await;
    assert_eq!(code, 1, "a file that is there is not written over");

    for (file, ending) in [
        (&whole, "returned a result"),
        (&half, "end of what was recorded"),
    ] {
        let (code, replayed, errors) = told(&server, &["replay", file]).await;
        assert_eq!(code, 0, "{replayed} {errors}");
        assert_eq!(replayed["same"], true);
        let ended = replayed["ending"].as_str().unwrap();
        assert!(ended.contains(ending), "{ended}");
        assert!(
            replayed["stdout"]
                .as_str()
                .unwrap()
                .contains("on the table")
        );
    }

    // A file in which anything was changed is found out.
    let text = std::fs::read_to_string(&whole).unwrap();
    let mut changed: Value = serde_json::from_str(&text).unwrap();
    changed["arguments"] = "{\"other\":1}".into();
    changed["randomKey"] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".into();
    let other = folder.path().join("other").display().to_string();
    std::fs::write(&other, changed.to_string()).unwrap();
    let (code, replayed, _) = told(&server, &["replay", &other]).await;
    assert_eq!(code, 1, "{replayed}");
    assert_eq!(replayed["same"], false);
    assert!(
        replayed["ending"]
            .as_str()
            .unwrap()
            .contains("nondeterminism"),
        "{replayed}"
    );
    std::fs::write(&other, "{}").unwrap();
    assert_eq!(told(&server, &["replay", &other]).await.0, 1);
}

/// Whoever wrote the file does not say what it may take from the machine on which it is repeated.
#[tokio::test]
async fn a_repetition_uses_no_more_than_is_allowed_where_it_happens() {
    let options = Options::with_guests(&["dice"]).set("limits.memory_mib", 200);
    let server = Server::start(options).await;
    let client = server.client();
    let id = client.start("dice", json!({})).await;
    client.until_status(&id, "input_required").await;
    answer(&client, &id, "bet", json!({ "bet": 3 })).await;
    client.until_status(&id, "input_required").await;
    answer(&client, &id, "again", json!({ "again": true })).await;
    client.until_ended(&id).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file").display().to_string();
    assert_eq!(
        told(&server, &["tasks", "export", &id, "--output", &file])
            .await
            .0,
        0
    );
    let text = std::fs::read_to_string(&file).unwrap();
    let exported: Value = serde_json::from_str(&text).unwrap();
    // That it might have used more says nothing of itself.
    let (code, replayed, errors) = told(&server, &["replay", &file]).await;
    assert_eq!(
        (code, &replayed["same"]),
        (0, &json!(true)),
        "{replayed} {errors}"
    );

    let edited = |member: &str, value: Value| {
        let mut edited = exported.clone();
        edited[member] = value;
        std::fs::write(&file, edited.to_string()).unwrap();
    };
    let mut limits = exported["limits"].clone();
    limits["memory_bytes"] = json!(1_u64 << 40);
    limits["cpu_ms"] = json!(1_u64 << 60);
    edited("limits", limits);
    assert_eq!(told(&server, &["replay", &file]).await.0, 0);
    // If it does not do the same, that may be why.
    let mut greedy: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    greedy["randomKey"] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".into();
    std::fs::write(&file, greedy.to_string()).unwrap();
    let (code, replayed, errors) = told(&server, &["replay", &file]).await;
    assert_eq!(code, 1, "{replayed} {errors}");
    let ending = replayed["ending"].as_str().unwrap();
    assert!(
        ending.contains("by limits.memory_mib, limits.cpu_ms"),
        "{ending}"
    );

    for capabilities in ["", "[]", "nothing", "{\"sampling\":1}"] {
        edited("capabilities", capabilities.into());
        let (code, replayed, errors) = told(&server, &["replay", &file]).await;
        assert_eq!(code, 1, "{capabilities}: {replayed}");
        assert!(
            errors.contains("what its client could do"),
            "{capabilities}: {errors}"
        );
    }
}
