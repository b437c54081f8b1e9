//! Clients that remember all that they were shown, and all that they sent without an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use longshore_tests::mcp::Client;
use longshore_tests::process::Server;
use serde_json::{Value, json};

use super::windows::{Left, Unanswered};

/// A tool and its arguments.
type Tool = (&'static str, fn() -> Value);

pub(super) const TOOLS: [Tool; 6] = [
    ("long-job", || json!({ "steps": 40, "step-ms": 25 })),
    ("dice", || json!({})),
    ("ask-form", || json!({})),
    ("steps", || json!({ "n": 12 })),
    ("resumable", || json!({ "n": 12 })),
    // It has a past that takes as long to repeat as it took, so that a kill can meet that.
    (SLOW, || json!({ "seconds": 3 })),
];
const SLOW: &str = "spin";
/// A person takes so long to answer, in which a task is parked or not.
const THOUGHT: Duration = Duration::from_millis(250);
/// It keeps a core busy, and all others must come further too.
const SLOW_MOST: usize = 1;

/// What a client was shown of a task.
#[derive(Clone, Debug, Default)]
struct Memory {
    tool: &'static str,
    /// The number in the newest status.
    step: i64,
    /// The newest question, and since when it is known.
    asked: Option<(String, Instant)>,
    /// Keys of questions whose answer was acknowledged.
    answered: Vec<String>,
    result: Option<Value>,
}

/// What a call came to.
enum Came {
    Task(String),
    Ended(Value),
}

#[derive(Clone, Default)]
pub(super) struct Clients {
    memories: Arc<Mutex<BTreeMap<String, Memory>>>,
    faults: Arc<Mutex<Vec<String>>>,
    unanswered: Arc<Mutex<Vec<Unanswered>>>,
    calls: Arc<AtomicUsize>,
}

impl Clients {
    fn count(&self, is_counted: impl Fn(&Memory) -> bool) -> usize {
        let memories = self.memories.lock().unwrap();
        memories
            .values()
            .filter(|memory| memory.result.is_none() && is_counted(memory))
            .count()
    }

    pub(super) fn unfinished(&self) -> usize {
        self.count(|_| true)
    }

    /// Every task that a client was told of.
    pub(super) fn told(&self) -> BTreeSet<String> {
        self.memories.lock().unwrap().keys().cloned().collect()
    }

    pub(super) fn faults(&self) -> Vec<String> {
        self.faults.lock().unwrap().clone()
    }

    fn fault(&self, text: String) {
        self.faults.lock().unwrap().push(text);
    }

    /// What was sent since the last time and not answered.
    pub(super) fn take_unanswered(&self) -> Vec<Unanswered> {
        std::mem::take(&mut *self.unanswered.lock().unwrap())
    }

    /// What is still open, for a person.
    pub(super) fn open(&self) -> String {
        let memories = self.memories.lock().unwrap();
        let open = memories
            .iter()
            .filter(|(_, memory)| memory.result.is_none());
        format!("{:#?}", open.collect::<Vec<_>>())
    }

    /// One task more, if the server lives.
    pub(super) async fn start(&self, client: &Client) {
        let n = self.calls.fetch_add(1, Ordering::Relaxed);
        let mut tool = n % TOOLS.len();
        if TOOLS[tool].0 == SLOW && self.count(|memory| memory.tool == SLOW) >= SLOW_MOST {
            tool = 0;
        }
        if let Some(Came::Ended(result)) = self.call(client, &format!("call-{n}"), tool).await {
            self.fault(format!("call-{n} is new and has ended: {result}"));
        }
    }

    /// A call under that key, and what it came to. Nothing if the server is gone.
    async fn call(&self, client: &Client, key: &str, tool: usize) -> Option<Came> {
        let (name, arguments) = TOOLS[tool];
        let meta = json!({ "longshore/idempotencyKey": key });
        let params = json!({ "name": name, "arguments": arguments(), "_meta": meta });
        let reply = match client.send("tools/call", params).await {
            Ok(reply) => reply,
            Err(error) => {
                // Without a connection nothing was sent.
                if error.downcast_ref::<std::io::Error>().is_none() {
                    let key = key.to_owned();
                    self.unanswered
                        .lock()
                        .unwrap()
                        .push(Unanswered::Start { key, tool });
                }
                return None;
            }
        };
        let body = reply.json();
        if body["result"]["resultType"] == "complete" {
            return Some(Came::Ended(body["result"].clone()));
        }
        let Some(id) = body["result"]["taskId"].as_str() else {
            self.fault(format!("no task came of a call of {name}: {body}"));
            return None;
        };
        self.memories
            .lock()
            .unwrap()
            .entry(id.to_owned())
            .or_insert(Memory {
                tool: name,
                step: -1,
                ..Memory::default()
            });
        Some(Came::Task(id.to_owned()))
    }

    /// Makes calls again that were not answered. What was kept of one is what comes of it.
    pub(super) async fn call_again(&self, client: &Client, unanswered: &[Unanswered], left: &Left) {
        for sent in unanswered {
            let Unanswered::Start { key, tool } = sent else {
                continue;
            };
            let kept = left.task_of(key);
            let is_the_same = match (self.call(client, key, *tool).await, &kept) {
                (Some(Came::Task(id)), Some(kept)) => id == *kept,
                // It had its end before it was called again.
                (Some(Came::Ended(result)), Some(kept)) => {
                    client.task(kept).await["result"]["content"] == result["content"]
                }
                (Some(Came::Task(_)), None) => true,
                (Some(Came::Ended(_)) | None, _) => false,
            };
            if !is_the_same {
                self.fault(format!("{key} was {kept:?}, and now it is another"));
            }
        }
    }

    /// Looks at every task that has not ended, or at the share of one of several, and answers what is asked. False if
    /// the server is gone.
    pub(super) async fn look(&self, client: &Client, share: usize, of: usize) -> bool {
        let open: Vec<String> = {
            let memories = self.memories.lock().unwrap();
            memories
                .iter()
                .filter(|(_, memory)| memory.result.is_none())
                .map(|(id, _)| id.clone())
                // Always to the same client: what two are told at once may reach this memory in either order.
                .filter(|id| id.bytes().map(usize::from).sum::<usize>() % of == share)
                .collect()
        };
        for id in open {
            let Ok(reply) = client.send("tasks/get", json!({ "taskId": id })).await else {
                return false;
            };
            let task = reply.json()["result"].clone();
            if task.is_null() {
                self.fault(format!("{id} is lost: {}", reply.json()));
                continue;
            }
            let question = self.remember(&id, &task);
            let Some((key, content)) = question else {
                continue;
            };
            let responses = json!({ &key: { "action": "accept", "content": content } });
            let params = json!({ "taskId": id, "inputResponses": responses });
            match client.send("tasks/update", params).await {
                Ok(_) => {
                    let mut memories = self.memories.lock().unwrap();
                    memories.get_mut(&id).unwrap().answered.push(key);
                }
                Err(error) => {
                    if error.downcast_ref::<std::io::Error>().is_none() {
                        self.unanswered
                            .lock()
                            .unwrap()
                            .push(Unanswered::Answer { id, key });
                    }
                    return false;
                }
            }
        }
        true
    }

    /// Compares what is shown now with what was shown before. Gives back what is asked.
    fn remember(&self, id: &str, task: &Value) -> Option<(String, Value)> {
        let mut memories = self.memories.lock().unwrap();
        let memory = memories.get_mut(id).unwrap();
        let status = task["status"].as_str().unwrap_or_default();
        let message = task["statusMessage"].as_str().unwrap_or_default();
        // What the host says of a task that was set aside has a number too.
        let is_guests = !message.contains("after the server died");
        if is_guests && matches!(memory.tool, "long-job" | "steps" | "resumable") {
            let digits: String = message
                .chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(char::is_ascii_digit)
                .collect();
            if let Ok(step) = digits.parse::<i64>() {
                if step < memory.step {
                    self.fault(format!(
                        "{id} went back from {} to {message:?}",
                        memory.step
                    ));
                }
                memory.step = step;
            }
        }
        match status {
            "completed" => memory.result = Some(task["result"].clone()),
            "working" | "input_required" => {}
            other => {
                self.fault(format!("{id} of {} is {other}: {task}", memory.tool));
                memory.result = Some(Value::Null);
            }
        }
        let (key, _) = task["inputRequests"].as_object()?.iter().next()?;
        if memory.answered.contains(key) {
            self.fault(format!("{id} asks {key} again, which was answered"));
        }
        let (asked, since) = memory
            .asked
            .get_or_insert_with(|| (key.clone(), Instant::now()));
        if asked != key {
            memory.asked = Some((key.clone(), Instant::now()));
            return None;
        }
        if since.elapsed() < THOUGHT {
            return None;
        }
        let content = match key.as_str() {
            "bet" => json!({ "bet": 2 }),
            "again" => json!({ "again": true }),
            _ => json!({ "name": "Ada", "age": 36, "choice": "green" }),
        };
        Some((key.clone(), content))
    }

    /// Results that were fetched once are the same bytes for ever.
    pub(super) async fn verify(&self, client: &Client) {
        let ended: Vec<(String, Value)> = {
            let memories = self.memories.lock().unwrap();
            memories
                .iter()
                .filter_map(|(id, memory)| Some((id.clone(), memory.result.clone()?)))
                .filter(|(_, result)| !result.is_null())
                .collect()
        };
        for (id, result) in ended {
            let task = client.task(&id).await;
            if task["result"] != result {
                self.fault(format!("{id} had the result {result}, and now {task}"));
            }
        }
    }
}

/// Says that what was set aside is to be tried again, as an operator does who knows why the server died.
pub(super) async fn readmit(server: &Server) -> usize {
    let page = server
        .admin("GET", "/v1/tasks?status=working&limit=500", "")
        .await
        .json();
    let mut count = 0;
    for task in page["tasks"].as_array().unwrap() {
        let message = task["statusMessage"].as_str().unwrap_or_default();
        if message.starts_with("set aside") {
            let id = task["id"].as_str().unwrap();
            let path = format!("/v1/tasks/{id}/resume");
            assert_eq!(server.admin("POST", &path, "{}").await.status, 200);
            count += 1;
        }
    }
    count
}
