//! Everything that a server says to a client that asks it for all that it can.

use std::collections::BTreeMap;
use std::path::Path;

use longshore_tests::guests;
use longshore_tests::pipes::Pipes;
use rustix::process::Signal;
use serde_json::{Value, json};

/// The revision without sessions.
pub(super) const MODERN: &str = "2026-07-28";

/// Components that between them have something of every kind.
const GUESTS: [&str; 4] = ["conformance", "ask-any", "count-words", "panic"];
/// A resource of theirs that is told to change.
const WATCHED: &str = "test://watched-resource";

/// A client that writes down all that it hears.
pub(super) struct Ear {
    revision: &'static str,
    pipes: Pipes,
    /// The method under each id.
    asked: BTreeMap<String, String>,
    heard: Vec<Value>,
}

impl Ear {
    pub(super) async fn open(data: &Path, revision: &'static str) -> Self {
        let arguments = GUESTS.map(|name| guests::component(name).display().to_string());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut ear = Self {
            revision,
            pipes: Pipes::start_with(data, &arguments),
            asked: BTreeMap::new(),
            heard: Vec::new(),
        };
        if revision != MODERN {
            let able = json!({
                "elicitation": { "form": {}, "url": {} },
                "sampling": { "tools": {} },
                "roots": {},
            });
            let opened = ear.pipes.open(revision, able).await;
            ear.asked.insert("0".to_owned(), "initialize".to_owned());
            ear.write_down(&opened);
        }
        ear
    }

    /// What it has heard, and what is still said to somebody who leaves.
    pub(super) async fn close(mut self) -> Vec<Value> {
        self.pipes.signal(Signal::TERM);
        while let Some(message) = self.pipes.next().await {
            self.write_down(&message);
        }
        assert_eq!(self.pipes.exit().await, Some(0), "{}", self.pipes.errors());
        self.heard
    }

    fn write_down(&mut self, message: &Value) {
        let id = message["id"].to_string();
        let (kind, method) = match message["method"].as_str() {
            Some(method) if message.get("id").is_some() => ("request", Some(method.to_owned())),
            Some(method) => ("notification", Some(method.to_owned())),
            None if message.get("error").is_some() => ("error", self.asked.get(&id).cloned()),
            None => ("result", self.asked.get(&id).cloned()),
        };
        self.heard.push(json!({
            "revision": self.revision,
            "kind": kind,
            "method": method,
            "message": message,
        }));
    }

    async fn next(&mut self) -> Value {
        let message = self.pipes.next().await.expect("it goes on");
        self.write_down(&message);
        message
    }

    async fn ask(&mut self, method: &str, params: Value) -> u64 {
        let id = self.pipes.ask(method, params).await;
        self.asked.insert(id.to_string(), method.to_owned());
        id
    }

    /// Hears until the response to a request, answering what it is asked meanwhile.
    async fn until(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            if message.get("method").is_none() && message["id"] == json!(id) {
                return message;
            }
            self.answer(&message).await;
        }
    }

    async fn answer(&mut self, question: &Value) {
        let result = match (question["method"].as_str(), question.get("id")) {
            (Some("elicitation/create"), Some(_)) => json!({ "action": "decline" }),
            (Some("sampling/createMessage"), Some(_)) => json!({
                "role": "assistant",
                "model": "m",
                "content": { "type": "text", "text": "so" },
            }),
            (Some("roots/list"), Some(_)) => json!({ "roots": [] }),
            _ => return,
        };
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
        self.pipes.say(&answer).await;
    }

    async fn response(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.until(id).await
    }

    async fn result(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.response(method, params).await;
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].take()
    }

    /// Hears what is told under that method.
    async fn until_told(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    /// What is no request.
    pub(super) async fn speak_nonsense(&mut self) {
        for nonsense in ["nonsense", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#] {
            self.pipes.write(format!("{nonsense}\n")).await;
            while self.next().await.get("error").is_none() {}
        }
    }

    /// What both eras have to list, to read and to fill in, with `more` in each request's parameters.
    async fn hear_the_library(&mut self, more: &Value) {
        let with = |mut params: Value| {
            for (key, value) in more.as_object().expect("an object") {
                params[key] = value.clone();
            }
            params
        };
        for method in [
            "tools/list",
            "resources/list",
            "resources/templates/list",
            "prompts/list",
        ] {
            self.result(method, with(json!({}))).await;
        }
        for uri in [
            "test://static-text",
            "test://static-binary",
            "test://template/7/data",
        ] {
            self.result("resources/read", with(json!({ "uri": uri })))
                .await;
        }
        let missing = with(json!({ "uri": "test://nothing" }));
        assert!(self.response("resources/read", missing).await["error"].is_object());
        for (name, arguments) in [
            ("test_simple_prompt", json!({})),
            (
                "test_prompt_with_arguments",
                json!({ "arg1": "a", "arg2": "b" }),
            ),
            (
                "test_prompt_with_embedded_resource",
                json!({ "resourceUri": "test://x" }),
            ),
            ("test_prompt_with_image", json!({})),
        ] {
            let params = json!({ "name": name, "arguments": arguments });
            self.result("prompts/get", with(params)).await;
        }
        for (of, argument) in [
            (
                json!({ "type": "ref/prompt", "name": "test_prompt_with_arguments" }),
                "arg1",
            ),
            (
                json!({ "type": "ref/resource", "uri": "test://template/{id}/data" }),
                "id",
            ),
        ] {
            let params = json!({ "ref": of, "argument": { "name": argument, "value": "" } });
            self.result("completion/complete", with(params)).await;
        }
        for (tool, arguments) in [
            ("test_multiple_content_types", json!({})),
            ("test_audio_content", json!({})),
            ("test_embedded_resource", json!({})),
            ("test_error_handling", json!({})),
            ("count-words", json!({ "text": "one" })),
            ("count-words", json!({ "text": 1 })),
            ("longshore_task_list", json!({})),
        ] {
            let params = json!({ "name": tool, "arguments": arguments });
            self.result("tools/call", with(params)).await;
        }
        for (method, params) in [
            ("tools/call", json!({ "name": "panic" })),
            ("tools/call", json!({ "name": "none" })),
            ("no/method", json!({})),
        ] {
            let response = self.response(method, with(params)).await;
            assert!(response["error"].is_object(), "{response}");
        }
    }

    /// A session, in whose revision there are no tasks.
    pub(super) async fn hear_a_session(&mut self) {
        self.result("ping", json!({})).await;
        self.result("logging/setLevel", json!({ "level": "debug" }))
            .await;
        self.hear_the_library(&json!({})).await;
        self.result("resources/subscribe", json!({ "uri": WATCHED }))
            .await;
        self.hear_changes(&json!({})).await;
        self.result("resources/unsubscribe", json!({ "uri": WATCHED }))
            .await;
        for (tool, arguments) in [
            ("test_tool_with_logging", json!({})),
            ("ask-any", json!({ "way": "form" })),
            ("ask-any", json!({ "way": "page" })),
            ("ask-any", json!({ "way": "model" })),
            ("ask-any", json!({ "way": "model-with-tools" })),
            ("ask-any", json!({ "way": "folders" })),
            ("test_elicitation_sep1034_defaults", json!({})),
            ("test_elicitation_sep1330_enums", json!({})),
        ] {
            let params = json!({ "name": tool, "arguments": arguments });
            self.result("tools/call", params).await;
        }
        let token = json!({ "name": "test_tool_with_progress", "_meta": { "progressToken": 1 } });
        self.result("tools/call", token).await;
        // What is asked in vain is taken back.
        let waits = json!({ "name": "ask-any", "arguments": { "way": "form", "wait_ms": 1 } });
        let id = self.ask("tools/call", waits).await;
        self.until_told("notifications/cancelled").await;
        self.until(id).await;
    }

    /// What is told of lists and resources.
    async fn hear_changes(&mut self, more: &Value) {
        for (tool, told) in [
            ("test_trigger_tool_change", "tools/list_changed"),
            ("test_trigger_prompt_change", "prompts/list_changed"),
            ("test_trigger_resource_change", "resources/list_changed"),
            ("test_trigger_resource_update", "resources/updated"),
        ] {
            let mut params = more.clone();
            params["name"] = json!(tool);
            self.ask("tools/call", params).await;
            self.until_told(&format!("notifications/{told}")).await;
        }
    }

    /// Polls until a task has that status.
    async fn until_status(&mut self, params: &Value, status: &str) {
        while self.result("tasks/get", params.clone()).await["status"] != status {}
    }

    /// The experiment of 2025-11-25.
    pub(super) async fn hear_tasks_of_a_session(&mut self) {
        let ends = [
            ("slow_compute", json!({ "seconds": 0.2 }), "completed"),
            ("protocol_error_job", json!({}), "failed"),
            ("slow_compute", json!({ "seconds": 600 }), "cancelled"),
        ];
        for (tool, arguments, end) in ends {
            let params = json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } });
            let created = self.result("tools/call", params).await;
            let task = json!({ "taskId": created["task"]["taskId"] });
            self.result("tasks/get", task.clone()).await;
            if end == "cancelled" {
                self.result("tasks/cancel", task.clone()).await;
            }
            // Answered once it has ended.
            self.response("tasks/result", task.clone()).await;
            assert_eq!(self.result("tasks/get", task).await["status"], end);
        }
        let asks =
            json!({ "name": "confirm_delete", "arguments": { "filename": "f" }, "task": {} });
        let created = self.result("tools/call", asks).await;
        let task = json!({ "taskId": created["task"]["taskId"] });
        self.result("tasks/result", task).await;
        self.result("tasks/list", json!({})).await;
    }

    /// Requests that say all that is needed, of a client that knows no tasks.
    pub(super) async fn hear_requests(&mut self) {
        let able = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
        let plain = meta(&able);
        self.result("server/discover", json!({ "_meta": plain }))
            .await;
        self.hear_the_library(&json!({ "_meta": plain })).await;
        for (tool, arguments) in [
            ("test_input_required_result_multiple_inputs", json!({})),
            ("ask-any", json!({ "way": "page" })),
        ] {
            let params = json!({ "name": tool, "arguments": arguments, "_meta": plain });
            let asked = self.result("tools/call", params).await;
            assert_eq!(asked["resultType"], "input_required", "{asked}");
        }
        let prompt = json!({ "name": "test_input_required_result_prompt", "_meta": plain });
        self.result("prompts/get", prompt).await;
        let mut told = plain.clone();
        told["progressToken"] = json!("p");
        told["io.modelcontextprotocol/logLevel"] = json!("debug");
        for tool in ["test_tool_with_progress", "test_tool_with_logging"] {
            self.result("tools/call", json!({ "name": tool, "_meta": told }))
                .await;
        }
        let needs = json!({ "name": "test_missing_capability", "_meta": meta(&json!({})) });
        assert_eq!(
            self.response("tools/call", needs).await["error"]["code"],
            -32021
        );
        let mut other = plain;
        other["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
        let response = self.response("tools/list", json!({ "_meta": other })).await;
        assert_eq!(response["error"]["code"], -32022, "{response}");
    }

    /// The extension, and what is told to those who listen.
    pub(super) async fn hear_tasks(&mut self) {
        let meta = meta(&json!({
            "elicitation": { "form": {} },
            "sampling": {},
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        }));
        let more = json!({ "_meta": meta });
        let mut tasks = Vec::new();
        for (tool, arguments) in [
            ("slow_compute", json!({ "seconds": 600 })),
            ("slow_compute", json!({ "seconds": 1 })),
            ("protocol_error_job", json!({})),
            ("confirm_delete", json!({ "filename": "f" })),
        ] {
            let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
            let created = self.result("tools/call", params).await;
            assert_eq!(created["resultType"], "task", "{created}");
            tasks.push(created["taskId"].clone());
        }
        let filter = json!({
            "taskIds": tasks,
            "toolsListChanged": true,
            "promptsListChanged": true,
            "resourcesListChanged": true,
            "resourceSubscriptions": [WATCHED],
        });
        self.ask(
            "subscriptions/listen",
            json!({ "notifications": filter, "_meta": meta }),
        )
        .await;
        self.until_told("notifications/subscriptions/acknowledged")
            .await;
        self.hear_changes(&more).await;
        let of = |task: &Value| json!({ "taskId": task, "_meta": meta });
        self.result("tasks/get", of(&tasks[0])).await;
        self.result("tasks/cancel", of(&tasks[0])).await;
        for (task, status) in [
            (0, "cancelled"),
            (1, "completed"),
            (2, "failed"),
            (3, "input_required"),
        ] {
            self.until_status(&of(&tasks[task]), status).await;
        }
        let mut update = of(&tasks[3]);
        update["inputResponses"] = json!({ "confirm": { "action": "decline" } });
        self.result("tasks/update", update).await;
        self.until_status(&of(&tasks[3]), "completed").await;
    }
}

/// What every request says of its client.
fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}
