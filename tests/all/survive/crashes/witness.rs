//! A client that does what the example needs of it, and remembers all that it was shown.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use longshore_tests::crash::Watcher;
use longshore_tests::http::send;
use longshore_tests::mcp::Client;
use longshore_tests::process::TOKEN;
use serde_json::{Value, json};

use super::examples::Example;

/// What was sent in answer to one key.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// Every try, in order.
    pub(super) tries: Vec<Value>,
    /// Tries that there were when one was acknowledged for the first time.
    pub(super) acknowledged: Option<usize>,
}

/// A client with a memory.
pub(super) struct Witness {
    example: &'static Example,
    /// The task, once its id was given out.
    pub(super) id: Option<String>,
    /// Each line of status that differed from the one before.
    pub(super) statuses: Vec<String>,
    /// Keys in the order in which they were first asked.
    pub(super) asked: Vec<String>,
    pub(super) sent: BTreeMap<String, Sent>,
    /// The whole task as it was when it had ended.
    pub(super) end: Option<Value>,
    updated_at: String,
    /// How far it said that it was, and what it had used.
    done: f64,
    cpu_ms: u64,
    /// The most that it was seen to have logged and printed.
    pub(super) logged: Vec<String>,
    pub(super) printed: String,
    /// What was shown and contradicts what was shown before.
    pub(super) faults: Vec<(&'static str, String)>,
    pub(super) looks: u64,
}

impl Witness {
    pub(super) fn of(example: &'static Example) -> Self {
        Self {
            example,
            id: None,
            statuses: Vec::new(),
            asked: Vec::new(),
            sent: BTreeMap::new(),
            end: None,
            updated_at: String::new(),
            done: f64::NEG_INFINITY,
            cpu_ms: 0,
            logged: Vec::new(),
            printed: String::new(),
            faults: Vec::new(),
            looks: 0,
        }
    }

    fn fault(&mut self, invariant: &'static str, what: String) {
        // One that goes on for ever is said once.
        if self.faults.iter().all(|(_, said)| *said != what) {
            self.faults.push((invariant, what));
        }
    }

    /// The task as it is shown now. None if it is not to be had at the moment.
    async fn see(&mut self, address: SocketAddr) -> Result<Option<Value>> {
        let Some(id) = self.id.clone() else {
            return Ok(None);
        };
        let reply = Client::able(address)
            .send("tasks/get", json!({ "taskId": id }))
            .await?
            .json();
        self.looks += 1;
        if reply["error"]["data"]["reason"] == "store-unavailable" {
            return Ok(None);
        }
        let task = reply["result"].clone();
        if task.is_null() {
            self.fault(super::judge::LOST, format!("the task is gone: {reply}"));
            return Ok(None);
        }
        self.remember(&task);
        let shown = admin(address, &format!("/v1/tasks/{id}")).await?;
        self.remember_numbers(&shown);
        self.remember_output(&shown["output"]);
        Ok(Some(task))
    }

    /// What only ever grows.
    fn remember_numbers(&mut self, shown: &Value) {
        // If they are not to be had at the moment, nothing was shown.
        let done = shown["progress"]["done"].as_f64().unwrap_or(self.done);
        let cpu_ms = shown["cpuMs"].as_u64().unwrap_or(self.cpu_ms);
        if done < self.done || cpu_ms < self.cpu_ms {
            let what = format!(
                "it was at {} and had used {} ms, and then {done} and {cpu_ms} ms",
                self.done, self.cpu_ms
            );
            self.fault(super::judge::CONTRADICTED, what);
        }
        (self.done, self.cpu_ms) = (done, cpu_ms);
    }

    fn remember(&mut self, task: &Value) {
        let word = |name: &str| task[name].as_str().unwrap_or_default().to_owned();
        let (message, updated_at) = (word("statusMessage"), word("lastUpdatedAt"));
        if !message.is_empty() && self.statuses.last() != Some(&message) {
            self.statuses.push(message);
        }
        if updated_at < self.updated_at {
            let what = format!(
                "it was changed at {}, then at {updated_at}",
                self.updated_at
            );
            self.fault(super::judge::CONTRADICTED, what);
        }
        self.updated_at = updated_at;
        if let Some(end) = &self.end {
            if (&end["status"], &end["result"]) != (&task["status"], &task["result"]) {
                let what = format!("it ended with {end}, and now with {task}");
                self.fault(super::judge::CONTRADICTED, what);
            }
        } else if matches!(
            word("status").as_str(),
            "completed" | "failed" | "cancelled"
        ) {
            self.end = Some(task.clone());
        }
        for (key, _) in task["inputRequests"].as_object().into_iter().flatten() {
            let is_taken = self
                .sent
                .get(key)
                .is_some_and(|sent| sent.acknowledged.is_some());
            if is_taken {
                let what = format!("`{key}` is asked again, the answer to which was acknowledged");
                self.fault(super::judge::ANSWERED, what);
            }
            if !self.asked.contains(key) {
                self.asked.push(key.clone());
            }
        }
    }

    /// Whoever goes on with a run comes again to what it had said, so that it may be less for a while, but nothing else.
    fn remember_output(&mut self, output: &Value) {
        let logged: Vec<String> = lines(&output["log"]);
        let printed = output["stdout"].as_str().unwrap_or_default();
        let is_same = logged.starts_with(&self.logged) || self.logged.starts_with(&logged);
        if !is_same || !(printed.starts_with(&self.printed) || self.printed.starts_with(printed)) {
            let what = format!(
                "it had said {:?} and {:?}, and then {logged:?} and {printed:?}",
                self.logged, self.printed
            );
            self.fault(super::judge::CONTRADICTED, what);
        }
        if logged.len() > self.logged.len() {
            self.logged = logged;
        }
        if printed.len() > self.printed.len() {
            printed.clone_into(&mut self.printed);
        }
    }

    /// Answers one question, and remembers to have done so before anybody can know.
    async fn answer(&mut self, address: SocketAddr, key: &str) -> Result<()> {
        let sent = self.sent.entry(key.to_owned()).or_default();
        let content = (self.example.answer)(key, sent.tries.len() as u64);
        sent.tries.push(content.clone());
        let tries = sent.tries.len();
        let responses = json!({ key: { "action": "accept", "content": content } });
        let params = json!({ "taskId": self.id, "inputResponses": responses });
        let reply = Client::able(address).send("tasks/update", params).await?;
        if reply.json().get("result").is_some() {
            let sent = self.sent.get_mut(key).context("it was noted above")?;
            sent.acknowledged.get_or_insert(tries);
        }
        Ok(())
    }
}

impl Watcher for Witness {
    async fn step(&mut self, address: SocketAddr) -> Result<bool> {
        if self.id.is_none() {
            let params =
                json!({ "name": self.example.name, "arguments": (self.example.arguments)() });
            let reply = Client::able(address).send("tools/call", params).await?;
            self.id = reply.json()["result"]["taskId"].as_str().map(str::to_owned);
            return Ok(false);
        }
        let Some(task) = self.see(address).await? else {
            return Ok(false);
        };
        if self.end.is_some() {
            return Ok(true);
        }
        let open = task["inputRequests"].as_object();
        let key = open.and_then(|open| open.keys().next().cloned());
        if let Some(key) = key {
            self.answer(address, &key).await?;
        }
        Ok(false)
    }

    async fn look(&mut self, address: SocketAddr) -> Result<()> {
        self.see(address).await.map(drop)
    }
}

/// The texts of a log.
pub(super) fn lines(log: &Value) -> Vec<String> {
    let lines = log.as_array().into_iter().flatten();
    lines
        .filter_map(|line| line["message"].as_str().map(str::to_owned))
        .collect()
}

/// What the admin API says.
pub(super) async fn admin(address: SocketAddr, path: &str) -> Result<Value> {
    let authorization = format!("Bearer {TOKEN}");
    let headers = [("authorization", authorization.as_str())];
    Ok(send(address, "GET", path, &headers, "").await?.json())
}
