//! A server that is killed again and again under load, and clients that remember all that they were shown.

mod left;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use longshore_tests::chance::Chance;
use longshore_tests::effort::rounds;
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use self::left::{Cut, Left, Windows};
use super::shown;

/// For the kills of one round.
const TIME: Duration = Duration::from_secs(60);
/// Unfinished tasks that every kill meets.
const UNFINISHED: usize = 10;
/// Clients that start, answer and look at the same time.
const CLIENTS: usize = 4;
/// Kills in each window, if there is time for more than one round.
const EACH: u64 = 20;
/// Long after everything should have ended.
const END: Duration = Duration::from_secs(120);

/// What a client was shown of a task.
#[derive(Clone, Debug, Default)]
struct Memory {
    tool: &'static str,
    /// The number in the newest status.
    step: i64,
    /// Keys of questions that were seen, and of those whose answer was acknowledged.
    asked: Vec<String>,
    answered: Vec<String>,
    result: Option<Value>,
}

#[derive(Clone, Default)]
struct Clients {
    memories: Arc<Mutex<BTreeMap<String, Memory>>>,
    faults: Arc<Mutex<Vec<String>>>,
    /// Requests that the last kill cut off.
    cuts: Arc<Mutex<Vec<Cut>>>,
}

/// A tool and its arguments.
type Tool = (&'static str, fn() -> Value);

const TOOLS: [Tool; 5] = [
    ("long-job", || json!({ "steps": 40, "step-ms": 25 })),
    ("dice", || json!({})),
    ("ask-form", || json!({})),
    ("steps", || json!({ "n": 12 })),
    ("resumable", || json!({ "n": 12 })),
];

impl Clients {
    fn unfinished(&self) -> usize {
        let memories = self.memories.lock().unwrap();
        memories
            .values()
            .filter(|memory| memory.result.is_none())
            .count()
    }

    fn fault(&self, text: String) {
        self.faults.lock().unwrap().push(text);
    }

    /// A request was not answered. It counts if it had a connection to go over.
    fn cut(&self, error: &anyhow::Error, cut: Cut) {
        if !error.to_string().starts_with("connecting") {
            self.cuts.lock().unwrap().push(cut);
        }
    }

    /// One task more, if the server lives.
    async fn start(&self, client: &Client, n: usize) {
        let (tool, arguments) = TOOLS[n % TOOLS.len()];
        let params = json!({ "name": tool, "arguments": arguments() });
        let reply = match client.send("tools/call", params).await {
            Ok(reply) => reply,
            Err(error) => {
                self.cut(&error, Cut::Start);
                return;
            }
        };
        if let Some(id) = reply.json()["result"]["taskId"].as_str() {
            let memory = Memory {
                tool,
                step: -1,
                ..Memory::default()
            };
            self.memories.lock().unwrap().insert(id.to_owned(), memory);
        }
    }

    /// Looks at every task that has not ended, or at the share of one of several, and answers what is asked. False if
    /// the server is gone.
    async fn look(&self, client: &Client, share: usize, of: usize) -> bool {
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
                    self.cut(&error, Cut::Answer { id, key });
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
        if !memory.asked.contains(key) {
            memory.asked.push(key.clone());
        }
        let content = match key.as_str() {
            "bet" => json!({ "bet": 2 }),
            "again" => json!({ "again": true }),
            _ => json!({ "name": "Ada", "age": 36, "choice": "green" }),
        };
        Some((key.clone(), content))
    }

    /// Results that were fetched once are the same bytes for ever.
    async fn verify(&self, client: &Client) {
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
async fn readmit(server: &Server) -> usize {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_every_task_goes_on() {
    let guests: Vec<&str> = TOOLS.iter().map(|(tool, _)| *tool).collect();
    // Half of what waits keeps its memory, half is parked at once.
    let options = Options::with_guests(&guests)
        .set("warm", 4)
        .set("warm_ms", 200)
        .set("early_poll_ms", 0)
        // Whatever goes on comes further before the next kill, however slow the machine.
        .set("journal_every_ms", 20)
        .set("status_every_ms", 20);
    let mut server = Server::start(options).await;
    let clients = Clients::default();
    let mut chance = Chance::new(11);
    let time = TIME * u32::try_from(rounds(1)).unwrap();
    let began = Instant::now();
    let (mut kills, mut met_unfinished, mut untold, mut cut_off) = (0, usize::MAX, 0, 0);
    let mut windows = Windows::default();
    let mut slowest_start = Duration::ZERO;
    let mut set_aside = 0;
    let is_long = rounds(1) > 1;
    while began.elapsed() < time
        || (is_long && windows.least() < EACH && began.elapsed() < 4 * time)
    {
        let client = server.client();
        let mut n = kills;
        while clients.unfinished() < UNFINISHED + 6 {
            clients.start(&client, n).await;
            n += 1;
        }
        let lookers: Vec<_> = (0..CLIENTS)
            .map(|share| {
                let (clients, client) = (clients.clone(), client.clone());
                tokio::spawn(async move {
                    let mut n = share;
                    while clients.look(&client, share, CLIENTS).await {
                        if clients.unfinished() < UNFINISHED + 10 {
                            clients.start(&client, n).await;
                            n += 1;
                        }
                    }
                })
            })
            .collect();
        // Now and then while everything is still being brought back.
        let pause = if kills % 3 == 2 {
            chance.below(15)
        } else {
            150 + chance.below(400)
        };
        tokio::time::sleep(Duration::from_millis(pause as u64)).await;
        server.kill().await;
        for looker in lookers {
            looker.await.unwrap();
        }
        kills += 1;
        let left = Left::of(server.data());
        let told: BTreeSet<String> = clients.memories.lock().unwrap().keys().cloned().collect();
        met_unfinished = met_unfinished.min(left.unfinished.intersection(&told).count());
        let untold_now = left.ids.difference(&told).count();
        let cuts = std::mem::take(&mut *clients.cuts.lock().unwrap());
        windows.count(&left, &cuts, untold_now - untold);
        untold = untold_now;
        cut_off += cuts.len();
        let started = Instant::now();
        server.restart().await;
        slowest_start = slowest_start.max(started.elapsed());
        set_aside += readmit(&server).await;
    }
    let client = server.client();
    let ending = Instant::now();
    while clients.unfinished() > 0 {
        assert!(clients.look(&client, 0, 1).await, "nobody kills any more");
        assert!(
            ending.elapsed() < END,
            "stuck: {:?}",
            clients
                .memories
                .lock()
                .unwrap()
                .iter()
                .filter(|(_, memory)| memory.result.is_none())
                .collect::<Vec<_>>()
        );
    }
    clients.verify(&client).await;
    let tasks = clients.memories.lock().unwrap().len();
    println!(
        "{kills} kills, each with at least {met_unfinished} unfinished tasks: {windows:?}; {tasks} tasks, {cut_off} requests cut off, {untold} tasks of which nobody was told; {set_aside} set aside by four deaths in a row and readmitted; slowest start {slowest_start:?}"
    );
    let faults = clients.faults.lock().unwrap().clone();
    assert!(faults.is_empty(), "{} faults: {faults:#?}", faults.len());
    assert!(kills >= 10, "{kills} kills");
    assert!(met_unfinished >= UNFINISHED, "{met_unfinished}");
    assert!(windows.narrow() >= 5, "{windows:?}");
    assert!(!is_long || windows.least() >= EACH, "{windows:?}");
    let first = clients
        .memories
        .lock()
        .unwrap()
        .keys()
        .next()
        .cloned()
        .unwrap();
    assert_eq!(shown(&server, &first).await["quarantined"], false);
}
