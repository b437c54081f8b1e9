//! Clients at work, and what they were told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use longshore_tests::http::Reply;
use longshore_tests::mcp::Client;
use longshore_tests::wait;
use serde_json::{Value, json};

/// What a client waits for when the plug is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// The id of a new task.
    Create,
    /// The receipt for an answer.
    Update,
    /// The result of a task that is about to end.
    Finish,
}

pub(super) const WINDOWS: [Window; 3] = [Window::Create, Window::Update, Window::Finish];

/// What is known of a task from outside.
#[derive(Clone, Debug, Default)]
struct Known {
    /// What it may answer with, if it ever completes.
    answer: Option<&'static str>,
    /// The whole response that showed its end.
    ended: Option<Bytes>,
}

/// What became of all tasks.
#[derive(Clone, Copy, Debug, Default)]
#[expect(dead_code, reason = "all of it is printed")]
pub(super) struct Sums {
    /// Given to a client.
    pub(super) known: usize,
    /// Ended well.
    pub(super) completed: usize,
    /// Ended well, and nobody had been told before the kill.
    pub(super) completed_unseen: usize,
    /// Ended by a kill.
    pub(super) interrupted: usize,
    /// Created for a client that never got the id.
    pub(super) unheard: usize,
}

/// Clients at work; clones share what they know.
#[derive(Clone, Default)]
pub(super) struct Load(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Mutex<BTreeMap<String, Known>>,
    under_way: [AtomicUsize; WINDOWS.len()],
    creates_broken: AtomicUsize,
    completed_unseen: AtomicUsize,
    unheard: AtomicUsize,
}

const QUICK: &str = "done: 1 steps";
const ASKED: &str = "Ada is 36 and chose green";

impl Load {
    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Known>> {
        self.0.known.lock().expect("nobody panics with it")
    }

    /// Works until the server is gone, and gives back what it was waiting for then.
    pub(super) async fn work(self, client: Client, asks: bool) -> Option<Window> {
        let mut turn = 0;
        loop {
            let worked = if asks {
                self.ask_and_answer(&client).await
            } else {
                self.quick(&client, turn % 30).await
            };
            turn += 7;
            if let Err(broken) = worked {
                if broken == Some(Window::Create) {
                    self.0.creates_broken.fetch_add(1, Ordering::Relaxed);
                }
                return broken;
            }
        }
    }

    /// Tasks that only a kill ends.
    pub(super) async fn start_long_ones(&self, client: &Client) {
        for _ in 0..2 {
            let id = client
                .start("long-job", json!({ "steps": 1_000_000, "step-ms": 100 }))
                .await;
            self.known().insert(id, Known::default());
        }
    }

    /// A task that ends after so many milliseconds, followed to its end.
    async fn quick(&self, client: &Client, ms: u64) -> Result<(), Option<Window>> {
        let id = self
            .create(
                client,
                "long-job",
                json!({ "steps": 1, "step-ms": ms }),
                QUICK,
            )
            .await?;
        self.follow(client, &id).await
    }

    async fn ask_and_answer(&self, client: &Client) -> Result<(), Option<Window>> {
        let id = self.create(client, "ask-form", json!({}), ASKED).await?;
        let key = loop {
            let reply = client
                .send("tasks/get", json!({ "taskId": id }))
                .await
                .map_err(|_| None)?;
            let task = &reply.json()["result"];
            match task["status"].as_str() {
                Some("working") => tokio::time::sleep(Duration::from_millis(1)).await,
                Some("input_required") => {
                    let asked = task["inputRequests"]
                        .as_object()
                        .expect("a task that asks shows what");
                    break asked.keys().next().expect("one question").clone();
                }
                _ => panic!("the task does not ask: {task}"),
            }
        };
        let answer = json!({ "action": "accept", "content": { "name": "Ada", "age": 36, "choice": "green" } });
        let params = json!({ "taskId": id, "inputResponses": { key: answer } });
        let reply = self
            .during(Window::Update, client.send("tasks/update", params))
            .await?;
        assert_eq!(reply.status, 200, "{}", reply.json());
        self.follow(client, &id).await
    }

    async fn create(
        &self,
        client: &Client,
        tool: &str,
        arguments: Value,
        answer: &'static str,
    ) -> Result<String, Option<Window>> {
        let params = json!({ "name": tool, "arguments": arguments });
        let reply = self
            .during(Window::Create, client.send("tools/call", params))
            .await?;
        let id = reply.json()["result"]["taskId"]
            .as_str()
            .expect("a task is created")
            .to_owned();
        self.known().insert(
            id.clone(),
            Known {
                answer: Some(answer),
                ended: None,
            },
        );
        Ok(id)
    }

    /// Asks until it has ended, and remembers what was told.
    async fn follow(&self, client: &Client, id: &str) -> Result<(), Option<Window>> {
        loop {
            let reply = self
                .during(
                    Window::Finish,
                    client.send("tasks/get", json!({ "taskId": id })),
                )
                .await?;
            match reply.json()["result"]["status"].as_str() {
                Some("working" | "input_required") => {}
                Some("completed") => {
                    self.known().get_mut(id).expect("it was created").ended = Some(reply.body);
                    return Ok(());
                }
                _ => panic!("{}", reply.json()),
            }
        }
    }

    /// One request of that kind. Fails with the kind if it was under way when the server went, and
    /// with none if the server was gone before.
    async fn during(
        &self,
        window: Window,
        request: impl Future<Output = anyhow::Result<Reply>>,
    ) -> Result<Reply, Option<Window>> {
        let under_way = &self.0.under_way[window as usize];
        under_way.fetch_add(1, Ordering::AcqRel);
        let outcome = request.await;
        under_way.fetch_sub(1, Ordering::AcqRel);
        outcome.map_err(|error| {
            let refused = error.chain().any(|cause| {
                let cause = cause.downcast_ref::<std::io::Error>();
                cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::ConnectionRefused)
            });
            (!refused).then_some(window)
        })
    }

    /// Waits for a request of that kind.
    pub(super) async fn until_under_way(&self, window: Window) {
        let under_way = &self.0.under_way[window as usize];
        let started = std::time::Instant::now();
        while under_way.load(Ordering::Acquire) == 0 {
            assert!(
                started.elapsed() < Duration::from_secs(10),
                "no client is within {window:?}"
            );
            // Finer than `wait::until`, since a request may be over in a millisecond.
            tokio::task::yield_now().await;
        }
    }

    /// Waits until any task is told of.
    pub(super) async fn first_answer(&self, client: &Client) {
        let id = self.known().keys().next().expect("there is a task").clone();
        wait::until("the first answer", Duration::from_secs(30), || async {
            client
                .send("tasks/get", json!({ "taskId": id }))
                .await
                .ok()
                .map(drop)
        })
        .await;
    }

    /// Asks for every task that a client ever got the id of, after a restart.
    pub(super) async fn verify(&self, client: &Client) {
        let all: Vec<(String, Known)> = self
            .known()
            .iter()
            .map(|(id, known)| (id.clone(), known.clone()))
            .collect();
        for (id, before) in all {
            let reply = client
                .send("tasks/get", json!({ "taskId": id }))
                .await
                .expect("the server answers");
            let told = reply.json();
            if let Some(ended) = before.ended {
                assert_eq!(reply.body, ended, "what was told of {id} is told otherwise");
                continue;
            }
            let task = &told["result"];
            match task["status"].as_str() {
                Some("completed") => {
                    let answer = task["result"]["content"][0]["text"].as_str();
                    assert!(answer.is_some() && answer == before.answer, "{task}");
                    self.0.completed_unseen.fetch_add(1, Ordering::Relaxed);
                }
                Some("failed") => {
                    assert_eq!(task["error"]["data"]["reason"], "interrupted", "{task}");
                    assert!(task.get("inputRequests").is_none(), "{task}");
                }
                _ => panic!("a restart left {told}"),
            }
            self.known().get_mut(&id).expect("it is known").ended = Some(reply.body);
        }
    }

    /// Looks whether the operator is told of the same tasks, and of none that goes on.
    pub(super) fn verify_listing(&self, listing: &BTreeMap<String, Value>) {
        let known = self.known();
        for (id, known) in known.iter() {
            let listed = listing
                .get(id)
                .unwrap_or_else(|| panic!("{id} is not listed"));
            let told: Value =
                serde_json::from_slice(known.ended.as_ref().expect("verified before"))
                    .expect("JSON");
            assert_eq!(listed["status"], told["result"]["status"], "{listed}");
        }
        let unheard: Vec<&Value> = listing
            .iter()
            .filter(|(id, _)| !known.contains_key(*id))
            .map(|(_, task)| task)
            .collect();
        for task in &unheard {
            assert!(
                task["status"] == "failed" || task["status"] == "completed",
                "{task}"
            );
        }
        let broken = self.0.creates_broken.load(Ordering::Relaxed);
        assert!(
            unheard.len() <= broken,
            "{} tasks that nobody asked for, after {broken} broken requests",
            unheard.len()
        );
        self.0.unheard.store(unheard.len(), Ordering::Relaxed);
    }

    /// What became of all tasks.
    pub(super) fn sums(&self) -> Sums {
        let known = self.known();
        let with = |word: &str| {
            let text = format!("\"status\":\"{word}\"");
            let shows = |known: &&Known| {
                let ended = known.ended.as_deref().unwrap_or_default();
                std::str::from_utf8(ended)
                    .expect("answers are text")
                    .contains(&text)
            };
            known.values().filter(shows).count()
        };
        Sums {
            known: known.len(),
            completed: with("completed"),
            completed_unseen: self.0.completed_unseen.load(Ordering::Relaxed),
            interrupted: with("failed"),
            unheard: self.0.unheard.load(Ordering::Relaxed),
        }
    }
}
