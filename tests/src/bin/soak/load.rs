//! Many clients that do everything there is to do, well and badly.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use longshore_tests::chance::Chance;
use longshore_tests::component::Made;
use longshore_tests::events;
use longshore_tests::kept::{Kept, Prepared};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Server, TOKEN};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The examples that it uses.
pub(crate) const GUESTS: [&str; 13] = [
    "hello",
    "spin",
    "sleep",
    "ask-form",
    "ask-two",
    "long-job",
    "count-words",
    "hog",
    "large",
    "flood",
    "panic",
    "tool-error",
    "content",
];

/// How many clients do each of it.
const LANES: [(Kind, usize); 7] = [
    (Kind::Calls, 12),
    (Kind::Sleeps, 72),
    (Kind::Asks, 16),
    (Kind::Cancels, 8),
    (Kind::Leaves, 8),
    (Kind::Listens, 8),
    (Kind::Uploads, 1),
];

/// What a client does, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Calls tools that end at once, in every way in which they can.
    Calls,
    /// Has tasks that wait, and looks after them until they end.
    Sleeps,
    /// Is asked, and answers, declines or lets it be.
    Asks,
    /// Cancels what computes or waits.
    Cancels,
    /// Goes away in the middle of a held call.
    Leaves,
    /// Listens for a while.
    Listens,
    /// Uploads a component, calls it, and takes it away.
    Uploads,
}

/// The clients.
pub(crate) struct Load {
    lanes: Vec<JoinHandle<Result<()>>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    refused: AtomicUsize,
    rounds: Mutex<BTreeMap<Kind, usize>>,
}

impl Shared {
    /// How often each was done.
    fn rounds(&self) -> MutexGuard<'_, BTreeMap<Kind, usize>> {
        self.rounds.lock().expect("nobody panics with it")
    }
}

/// What was done.
pub(crate) struct Report {
    rounds: BTreeMap<Kind, usize>,
    refused: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in &self.rounds {
            write!(f, "{kind:?}: {count}, ")?;
        }
        write!(f, "refused for want of a place: {}", self.refused)
    }
}

impl Load {
    /// Lets them begin.
    pub(crate) fn start(server: &Server) -> Self {
        let shared = Arc::new(Shared::default());
        let mut lanes = Vec::new();
        for (kind, count) in LANES {
            for number in 0..count {
                let lane = Lane {
                    client: server.client(),
                    shared: Arc::clone(&shared),
                    chance: Chance::new(lanes.len() as u64 + 1),
                    number,
                };
                lanes.push(tokio::spawn(lane.work(kind)));
            }
        }
        Self { lanes, shared }
    }

    /// Whether one of them has given up.
    pub(crate) fn is_broken(&self) -> bool {
        self.lanes.iter().any(JoinHandle::is_finished)
    }

    /// Lets each finish what it is doing.
    pub(crate) async fn stop(self) -> Result<Report> {
        self.shared.stop.store(true, Ordering::Release);
        for lane in self.lanes {
            lane.await??;
        }
        Ok(Report {
            rounds: self.shared.rounds().clone(),
            refused: self.shared.refused.load(Ordering::Acquire),
        })
    }
}

struct Lane {
    client: Client,
    shared: Arc<Shared>,
    chance: Chance,
    number: usize,
}

impl Lane {
    async fn work(mut self, kind: Kind) -> Result<()> {
        let mut kept = Kept::open(self.client.address).await?;
        while !self.shared.stop.load(Ordering::Acquire) {
            let done = match kind {
                Kind::Calls => self.call(&mut kept).await,
                Kind::Sleeps => self.sleep(&mut kept).await,
                Kind::Asks => self.ask(&mut kept).await,
                Kind::Cancels => self.cancel(&mut kept).await,
                Kind::Leaves => self.leave().await,
                Kind::Listens => self.listen().await,
                Kind::Uploads => self.upload(&mut kept).await,
            };
            done.with_context(|| format!("{kind:?}"))?;
            *self.shared.rounds().entry(kind).or_default() += 1;
        }
        Ok(())
    }

    /// The body of the answer to a request that is served or has no place.
    async fn send(&self, kept: &mut Kept, method: &str, params: Value) -> Result<Option<Value>> {
        let reply = kept
            .send(&Prepared::of(&self.client, method, params))
            .await?;
        if reply.status == 429 || reply.status == 503 {
            self.refused().await;
            return Ok(None);
        }
        ensure!(reply.status == 200, "{} {:?}", reply.status, reply.body);
        Ok(Some(serde_json::from_slice(&reply.body)?))
    }

    /// Does not come again at once.
    async fn refused(&self) {
        self.shared.refused.fetch_add(1, Ordering::AcqRel);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    async fn start(&self, kept: &mut Kept, tool: &str, arguments: Value) -> Result<Option<String>> {
        let call = json!({ "name": tool, "arguments": arguments });
        let Some(created) = self.send(kept, "tools/call", call).await? else {
            return Ok(None);
        };
        let id = created["result"]["taskId"].as_str();
        Ok(Some(id.with_context(|| created.to_string())?.to_owned()))
    }

    /// Looks after a task until it is in a state that is not this.
    async fn until_not(&self, kept: &mut Kept, id: &str, state: &str) -> Result<Value> {
        let mut asked = Instant::now();
        loop {
            let sent = self.send(kept, "tasks/get", json!({ "taskId": id }));
            let body = sent
                .await
                .with_context(|| format!("{:?} after the poll before", asked.elapsed()))?;
            asked = Instant::now();
            // So many may come early; one more is told to come again.
            let Some(mut body) = body else {
                continue;
            };
            let task = body["result"].take();
            if task["status"] != state {
                return Ok(task);
            }
        }
    }

    async fn call(&mut self, kept: &mut Kept) -> Result<()> {
        let (tool, arguments) = match self.chance.below(12) {
            0 => ("panic", json!({})),
            1 => ("tool-error", json!({ "message": "no" })),
            2 => ("large", json!({ "bytes": self.chance.below(500_000) })),
            3 => ("large", json!({ "bytes": 2_000_000 })),
            4 => ("hog", json!({ "mib": self.chance.below(32) })),
            5 => ("hog", json!({ "mib": 200 })),
            6 => ("flood", json!({ "bytes": self.chance.below(600_000) })),
            7 => (
                "count-words",
                json!({ "text": "one two three\n".repeat(self.chance.below(2_000)) }),
            ),
            8 => ("content", json!({})),
            _ => ("hello", json!({ "name": "Ada" })),
        };
        let call = json!({ "name": tool, "arguments": arguments });
        if let Some(body) = self.send(kept, "tools/call", call).await?
            && let Some(id) = body["result"]["taskId"].as_str()
        {
            // It took long enough to become one.
            self.until_not(kept, id, "working").await?;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(())
    }

    async fn sleep(&mut self, kept: &mut Kept) -> Result<()> {
        let seconds = 1.0 + self.chance.below(2_000) as f64 / 1e3;
        if let Some(id) = self
            .start(kept, "sleep", json!({ "seconds": seconds }))
            .await?
        {
            let task = self.until_not(kept, &id, "working").await?;
            ensure!(task["status"] == "completed", "{task}");
        }
        Ok(())
    }

    async fn ask(&mut self, kept: &mut Kept) -> Result<()> {
        let (tool, keys) = [
            ("ask-form", vec!["person"]),
            ("ask-two", vec!["name", "confirm"]),
        ][self.chance.below(2)]
        .clone();
        let Some(id) = self.start(kept, tool, json!({})).await? else {
            return Ok(());
        };
        let task = self.until_not(kept, &id, "working").await?;
        ensure!(task["status"] == "input_required", "{task}");
        if self.chance.below(4) == 0 {
            self.send(kept, "tasks/cancel", json!({ "taskId": id }))
                .await?;
        } else {
            let answers: serde_json::Map<String, Value> = keys
                .iter()
                .map(|key| ((*key).to_owned(), json!({ "action": "decline" })))
                .collect();
            let update = json!({ "taskId": id, "inputResponses": answers });
            let answered = self.send(kept, "tasks/update", update).await?;
            ensure!(
                answered.is_some_and(|body| body.get("error").is_none()),
                "it is taken"
            );
        }
        self.until_not(kept, &id, "input_required").await?;
        self.until_not(kept, &id, "working").await?;
        Ok(())
    }

    async fn cancel(&mut self, kept: &mut Kept) -> Result<()> {
        let (tool, arguments) = match self.number % 2 {
            0 => ("spin", json!({ "seconds": 60 })),
            _ => ("long-job", json!({ "steps": 1_000, "step-ms": 20 })),
        };
        if let Some(id) = self.start(kept, tool, arguments).await? {
            tokio::time::sleep(Duration::from_millis(self.chance.below(500) as u64)).await;
            self.send(kept, "tasks/cancel", json!({ "taskId": id }))
                .await?;
            let task = self.until_not(kept, &id, "working").await?;
            ensure!(task["status"] == "cancelled", "{task}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    async fn leave(&mut self) -> Result<()> {
        // Without tasks it is held for as long as it takes.
        let client = Client::plain(self.client.address);
        let mut kept = Kept::open(client.address).await?;
        let call = json!({ "name": "sleep", "arguments": { "seconds": 60 } });
        let request = Prepared::of(&client, "tools/call", call);
        let patience = Duration::from_millis(100 + self.chance.below(400) as u64);
        // It has no place, or none yet, or waits.
        if let Ok(reply) = tokio::time::timeout(patience, kept.send(&request)).await {
            let status = reply?.status;
            ensure!(status == 429 || status == 503, "{status}");
            self.refused().await;
        }
        Ok(())
    }

    async fn listen(&mut self) -> Result<()> {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        let request = self.client.request("subscriptions/listen", filter);
        let mut stream = events::open(self.client.address, &request).await;
        ensure!(stream.next().await.is_some(), "it is acknowledged");
        let patience = Duration::from_millis(self.chance.below(1_000) as u64);
        // Either way it has heard enough.
        let _news_or_none = tokio::time::timeout(patience, stream.next()).await;
        Ok(())
    }

    async fn upload(&mut self, kept: &mut Kept) -> Result<()> {
        let made = Made {
            answer: format!("{}", self.chance.below(1_000_000)),
            ..Made::with_tool("uploaded")
        };
        let authorization = format!("Bearer {TOKEN}");
        let headers = [("authorization", authorization.as_str())];
        let path = "/v1/components/uploaded";
        let address = self.client.address;
        let put = longshore_tests::http::send(address, "PUT", path, &headers, made.bytes()).await?;
        ensure!(
            put.status == 201 || put.status == 200,
            "{} {:?}",
            put.status,
            put.body
        );
        self.send(
            kept,
            "tools/call",
            json!({ "name": "uploaded", "arguments": {} }),
        )
        .await?;
        let gone = longshore_tests::http::send(address, "DELETE", path, &headers, "").await?;
        ensure!(gone.status < 300, "{} {:?}", gone.status, gone.body);
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(())
    }
}
