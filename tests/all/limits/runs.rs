//! What a run may use.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_tests::process::Server;
use longshore_tests::wait;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Outcome, Reaching};

/// The task of a call, once it has ended.
async fn ended(server: &Server, tool: &str, arguments: Value) -> Value {
    let client = server.client();
    let id = client.start(tool, arguments).await;
    client.until_ended(&id).await
}

/// What became of a call.
pub(super) fn outcome(task: &Value) -> Outcome {
    if let Some(reason) = task["error"]["data"]["reason"].as_str() {
        return Err(reason.to_owned());
    }
    if task["status"] != "completed" {
        return Err(task.to_string());
    }
    let text = task["result"]["content"][0]["text"].as_str();
    match (task["result"]["isError"] == true, text) {
        (true, Some(text)) if text.starts_with("no ") => Err("told no".to_owned()),
        (true, _) => Err(task["result"].to_string()),
        (false, _) => Ok(()),
    }
}

async fn reach(server: &Server, what: &str, amount: u64) -> Value {
    ended(server, "reach", json!({ "what": what, "amount": amount })).await
}

/// Reached, and nothing to see of it but how the call ends.
macro_rules! by_the_end {
    ($($name:ident: $what:literal),* $(,)?) => {
        $(pub(super) fn $name(server: &Server, amount: u64) -> Reaching<'_> {
            Box::pin(async move { outcome(&reach(server, $what, amount).await) })
        })*
    };
}

by_the_end! {
    memory: "memory",
    handles: "handles",
    hostcall: "log",
    random: "random",
    questions: "questions",
    questions_in_life: "questions-in-life",
    question: "question",
    step: "step",
    scratch: "scratch",
    value: "value",
    values: "values",
    values_bytes: "values-bytes",
    artifact: "artifact",
    artifacts: "artifacts",
    artifacts_bytes: "artifacts-bytes",
}

/// Every wait is recorded.
pub(super) fn waits(server: &Server, count: u64) -> Reaching<'_> {
    Box::pin(async move {
        let arguments = json!({ "steps": count, "step-ms": 1 });
        outcome(&ended(server, "long-job", arguments).await)
    })
}

pub(super) fn result(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move {
        let answer = async |bytes: u64| {
            let call = json!({ "name": "large", "arguments": { "bytes": bytes } });
            let reply = server.client().send("tools/call", call).await;
            reply.expect("the server answers")
        };
        // What stands around the text counts as well.
        let empty: BTreeMap<String, Box<RawValue>> =
            serde_json::from_slice(&answer(0).await.body).expect("it is one message");
        let around = empty["result"].get().len() as u64;
        match answer(bytes - around).await.json()["error"]["data"]["reason"].as_str() {
            Some(reason) => Err(reason.to_owned()),
            None => Ok(()),
        }
    })
}

pub(super) fn spin(server: &Server, ms: u64) -> Reaching<'_> {
    Box::pin(async move {
        let seconds = Duration::from_millis(ms).as_secs_f64();
        outcome(&ended(server, "spin", json!({ "seconds": seconds })).await)
    })
}

/// What the operator sees of a call that ended well.
async fn shown(server: &Server, what: &str, amount: u64) -> Value {
    let task = reach(server, what, amount).await;
    assert_eq!(outcome(&task), Ok(()), "{task}");
    let path = format!("/v1/tasks/{}", task["taskId"].as_str().expect("an id"));
    wait::until("the output of a call", Duration::from_secs(20), || async {
        let shown = server.admin("GET", &path, "").await.json();
        (!shown["output"].is_null()).then_some(shown)
    })
    .await
}

fn whole(is_whole: bool) -> Outcome {
    if is_whole {
        Ok(())
    } else {
        Err("cut".to_owned())
    }
}

pub(super) fn output(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move {
        let output = shown(server, "print", bytes).await["output"].take();
        let kept = output["stdout"].as_str().expect("text").len() as u64;
        let dropped = output["stdoutDropped"].as_u64().expect("a count");
        assert_eq!(kept + dropped, bytes, "{dropped} are dropped");
        whole(dropped == 0)
    })
}

/// What a line takes in the log beside its text.
const LINE: u64 = 64;

pub(super) fn log(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move {
        let output = shown(server, "log", bytes.saturating_sub(LINE)).await["output"].take();
        whole(output["logDropped"] == 0)
    })
}

pub(super) fn log_line(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move {
        let output = shown(server, "log", bytes).await["output"].take();
        whole(is_all(&output["log"][0]["message"], bytes))
    })
}

pub(super) fn status(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move {
        let task = reach(server, "status", bytes).await;
        assert_eq!(outcome(&task), Ok(()), "{task}");
        whole(is_all(&task["statusMessage"], bytes))
    })
}

fn is_all(text: &Value, bytes: u64) -> bool {
    text.as_str()
        .is_some_and(|text| text.len() as u64 == bytes && !text.contains('…'))
}

pub(super) fn answer(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move {
        let client = server.client();
        let arguments = json!({ "what": "answer", "amount": 0 });
        let id = client.start("reach", arguments).await;
        client.until_status(&id, "input_required").await;
        let answer = |text: String| json!({ "action": "accept", "content": { "text": text } });
        let least = answer(String::new()).to_string().len();
        let filling = usize::try_from(bytes)
            .expect("it is small")
            .saturating_sub(least);
        let said = answer("a".repeat(filling));
        let params = json!({ "taskId": id, "inputResponses": { "said": said } });
        let reply = client.send("tasks/update", params).await;
        let reply = reply.expect("the server answers").json();
        if let Some(reason) = reply["error"]["data"]["reason"].as_str() {
            return Err(reason.to_owned());
        }
        assert!(reply.get("result").is_some(), "{reply}");
        outcome(&client.until_ended(&id).await)
    })
}
