//! Every example, called over HTTP: one row or more for each, with what a client must see.

mod code;
mod languages;
mod library;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::{guests, wait};
use serde_json::{Map, Value, json};

use rows::{Expected, Problem, Row, accept, rows};

#[tokio::test]
async fn every_example_answers_as_its_rows_say() {
    let components = guests::all();
    let options = Options {
        components: components.values().cloned().collect(),
        ..Options::default()
    }
    // No call becomes a task because the machine is slow, only where its tool or its row says so.
    .set("inline_budget_ms", 120_000)
    .set("limits.cpu_ms", 1_500);
    let server = Server::start(options).await;
    let client = server.client();
    let rows = rows();

    // Row by row and tool by tool, in both directions.
    let served = served(&server).await;
    let with_tools: BTreeSet<&str> = served.iter().map(|(name, _)| name.as_str()).collect();
    let with_rows: BTreeSet<&str> = rows.iter().map(|row| row.component).collect();
    assert_eq!(
        with_rows, with_tools,
        "a component without a row, or a row without its component"
    );
    let in_rows: BTreeSet<(String, String)> = rows
        .iter()
        .map(|row| (row.component.to_owned(), row.tool.to_owned()))
        .collect();
    assert_eq!(
        in_rows, served,
        "a served tool without a row, or a row for a tool that its component does not have"
    );
    let listed = listed(&client).await;
    let tools: BTreeSet<&str> = rows.iter().map(|row| row.tool).collect();
    assert_eq!(
        listed
            .keys()
            .map(String::as_str)
            .collect::<BTreeSet<&str>>(),
        tools,
        "tools/list and the rows differ"
    );

    let started = async || {
        server.figures().await["runs"]["started"]
            .as_u64()
            .expect("runs are counted")
    };
    let before = started().await;
    let mut called: BTreeMap<&str, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let answer = call(&client, row).await;
        *called.entry(row.component).or_default() += 1;
        if let Err(fault) = check(&row.expected, &answer) {
            let arguments: String = row.arguments.to_string().chars().take(100).collect();
            faults.push(format!("row {number}, {} {arguments}: {fault}", row.tool));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(
        called.values().sum::<usize>(),
        rows.len(),
        "a row was not called"
    );
    assert_eq!(
        called.keys().copied().collect::<BTreeSet<&str>>(),
        with_tools,
        "a component was not called"
    );
    // The server's own count: each row was one run, and no answer came from anywhere else.
    assert_eq!(started().await - before, rows.len() as u64);
    server.until_live(0, Duration::from_secs(10)).await;
}

/// Every tool that is served, with the component that it comes from.
async fn served(server: &Server) -> BTreeSet<(String, String)> {
    let components = server.admin("GET", "/v1/components", "").await.json();
    let word = |value: &Value| value["name"].as_str().expect("a name").to_owned();
    let components = components["components"].as_array().expect("a list");
    components
        .iter()
        .flat_map(|component| {
            let tools = component["tools"].as_array().expect("a list");
            tools.iter().map(move |tool| (word(component), word(tool)))
        })
        .collect()
}

/// Every tool as clients see it, over all pages.
async fn listed(client: &Client) -> BTreeMap<String, Value> {
    let mut tools = BTreeMap::new();
    let mut params = json!({});
    loop {
        let page = client.result("tools/list", params).await;
        for tool in page["tools"].as_array().expect("a list") {
            let name = tool["name"].as_str().expect("a name").to_owned();
            assert!(
                tools.insert(name, tool.clone()).is_none(),
                "listed twice: {tool}"
            );
        }
        let Some(cursor) = page.get("nextCursor") else {
            return tools;
        };
        params = json!({ "cursor": cursor });
    }
}

/// What a client sees in the end: the answer to its call, or the task once it has ended.
async fn call(client: &Client, row: &Row) -> Value {
    let params = json!({ "name": row.tool, "arguments": row.arguments });
    let answer = client
        .send("tools/call", params)
        .await
        .expect("the server answers")
        .json();
    let answer = in_rounds(client, row, answer).await;
    match answer["result"]["taskId"].as_str() {
        Some(id) => follow(client, id, &row.answers).await,
        None => answer,
    }
}

/// Makes a call again with the answers to what it asked, until it asks nothing more.
async fn in_rounds(client: &Client, row: &Row, mut answer: Value) -> Value {
    while answer["result"]["resultType"] == "input_required" {
        let asked = answer["result"]["inputRequests"]
            .as_object()
            .expect("it asks something");
        let responses: Map<String, Value> = asked
            .keys()
            .map(|key| (key.clone(), row.answers[key].clone()))
            .collect();
        let params = json!({
            "name": row.tool,
            "arguments": row.arguments,
            "inputResponses": responses,
            "requestState": answer["result"]["requestState"],
        });
        let sent = client.send("tools/call", params).await;
        answer = sent.expect("the server answers").json();
    }
    answer
}

/// Answers all that a task asks, or cancels it if there are no answers, until it has ended.
async fn follow(client: &Client, id: &str, answers: &Value) -> Value {
    loop {
        let task = wait::until(
            &format!("task {id} to ask or to end"),
            Duration::from_secs(60),
            || async {
                let task = client.task(id).await;
                (task["status"] != "working").then_some(task)
            },
        )
        .await;
        if task["status"] != "input_required" {
            return task;
        }
        if answers.is_null() {
            client.result("tasks/cancel", json!({ "taskId": id })).await;
            return client.until_ended(id).await;
        }
        let asked = task["inputRequests"]
            .as_object()
            .expect("it asks something");
        let responses: Map<String, Value> = asked
            .keys()
            .map(|key| {
                let answer = answers
                    .get(key)
                    .unwrap_or_else(|| panic!("no row answers {key:?}"));
                (key.clone(), answer.clone())
            })
            .collect();
        client
            .result(
                "tasks/update",
                json!({ "taskId": id, "inputResponses": responses }),
            )
            .await;
    }
}

fn check(expected: &Expected, answer: &Value) -> Result<(), String> {
    let shown = || {
        let text = answer.to_string();
        text.chars().take(600).collect::<String>()
    };
    let same = |result: &Value, expected: &Value| {
        let bare = bare(result).ok_or_else(shown)?;
        if bare == *expected || with_read_text(bare) == *expected {
            Ok(())
        } else {
            Err(shown())
        }
    };
    match expected {
        Expected::Result(expected) => same(&answer["result"], expected),
        Expected::ResultThat(is_fine) => {
            if bare(&answer["result"]).is_some_and(|result| is_fine(&result)) {
                Ok(())
            } else {
                Err(shown())
            }
        }
        Expected::Error(Problem { code, data, says }) => {
            let error = &answer["error"];
            let is_same = error["code"] == *code
                && error.get("data").unwrap_or(&Value::Null) == data
                && error["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(says));
            if is_same { Ok(()) } else { Err(shown()) }
        }
        Expected::Completed(expected) if answer["status"] == "completed" => {
            same(&answer["result"], expected)
        }
        Expected::Completed(_) => Err(shown()),
        Expected::Cancelled if answer["status"] == "cancelled" => Ok(()),
        Expected::Cancelled => Err(shown()),
        Expected::CompletedThat(is_fine) => {
            let is_fine = answer["status"] == "completed"
                && bare(&answer["result"]).is_some_and(|result| is_fine(&result));
            if is_fine { Ok(()) } else { Err(shown()) }
        }
    }
}

/// A result without what every result must have, or nothing if it lacks that.
fn bare(result: &Value) -> Option<Value> {
    let mut result = result.as_object()?.clone();
    if result.remove("resultType")? != "complete" {
        return None;
    }
    let meta = result.get_mut("_meta")?.as_object_mut()?;
    meta.remove("io.modelcontextprotocol/serverInfo")?;
    if meta.is_empty() {
        result.remove("_meta");
    }
    Some(Value::Object(result))
}

/// A result with its text as the JSON that it is: languages write the same data with other spaces and in another order.
fn with_read_text(mut result: Value) -> Value {
    let text = &mut result["content"][0]["text"];
    if let Some(read) = text
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
    {
        *text = read;
    }
    result
}

#[tokio::test]
async fn nothing_is_done_before_it_is_approved() {
    let server = Server::start(Options::with_guests(&["approve"])).await;
    let client = server.client();
    let log = async |id: &str| {
        wait::until("the log of a run", Duration::from_secs(10), || async {
            let task = server
                .admin("GET", &format!("/v1/tasks/{id}"), "")
                .await
                .json();
            task["output"]["log"].as_array().cloned()
        })
        .await
    };
    let doing = |log: &[Value]| log.iter().any(|line| line["message"] == "doing the launch");

    for (approve, is_done) in [(false, false), (true, true)] {
        let id = client
            .start("approve", json!({ "what": "the launch" }))
            .await;
        client.until_status(&id, "input_required").await;
        assert!(!doing(&log(&id).await), "it went ahead without waiting");
        let answer = accept(&json!({ "approve": approve }));
        client
            .result(
                "tasks/update",
                json!({ "taskId": id, "inputResponses": { "approve": answer } }),
            )
            .await;
        assert_eq!(client.until_ended(&id).await["status"], "completed");
        assert_eq!(doing(&log(&id).await), is_done, "approved: {approve}");
    }
}

#[tokio::test]
async fn what_was_made_is_taken_back_when_the_call_is_cancelled() {
    let server = Server::start(Options::with_guests(&["cleanup"])).await;
    let client = server.client();
    let id = client.start("cleanup", json!({})).await;
    client.until_status(&id, "input_required").await;
    client.result("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(client.until_ended(&id).await["status"], "cancelled");
    let said = wait::until("the log of the run", Duration::from_secs(10), || async {
        let task = server
            .admin("GET", &format!("/v1/tasks/{id}"), "")
            .await
            .json();
        let log = task["output"]["log"].as_array()?.clone();
        let said: Vec<Value> = log.iter().map(|line| line["message"].clone()).collect();
        said.contains(&json!("removed")).then_some(said)
    })
    .await;
    assert_eq!(said, ["made", "removed"]);
}

#[tokio::test]
async fn what_is_printed_is_kept_for_the_operator_up_to_a_bound() {
    let options = Options::with_guests(&["flood"])
        .set("limits.output_ring_kib", 16)
        .set("inline_budget_ms", 0);
    let server = Server::start(options).await;
    let id = server
        .client()
        .start("flood", json!({ "bytes": 512_000 }))
        .await;
    let task = server.client().until_ended(&id).await;
    assert_eq!(task["result"]["content"][0]["text"], "printed 512000 bytes");
    assert!(
        !task.to_string().contains("ooooo"),
        "a client never sees what is printed"
    );
    let output = wait::until("the output to be kept", Duration::from_secs(10), || async {
        let task = server
            .admin("GET", &format!("/v1/tasks/{id}"), "")
            .await
            .json();
        task["output"]["stdout"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
            .then(|| task["output"].clone())
    })
    .await;
    for (stream, letter) in [("stdout", "o"), ("stderr", "e")] {
        let text = output[stream].as_str().expect("text");
        let line = format!("{}\n", letter.repeat(63));
        assert!(
            text.len() <= 16 * 1024 && text.ends_with(&line),
            "{stream}: {} bytes",
            text.len()
        );
        let dropped = output[format!("{stream}Dropped")]
            .as_u64()
            .expect("a count");
        assert_eq!(dropped + text.len() as u64, 512_000, "{stream}");
    }
}
