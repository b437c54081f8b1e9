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
