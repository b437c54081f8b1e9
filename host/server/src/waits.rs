//! What runs wait for without being there: requests that are sent again and again until their response is what is waited
//! for. However often one is sent, nothing is written but what came of it.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use longshore_journal::http::Outcome;
use longshore_policy::policy::Policy;
use longshore_sandbox::outside::Outgoing;
use longshore_sandbox::poll::{Met, Poll};
use longshore_tasks::event::Event;
use longshore_tasks::id::{Json, TaskId};
use longshore_tasks::question::Question;
use longshore_tasks::task::Task;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::egress::Egress;
use crate::run::inquiry::Answers;
use crate::server::Server;

/// Requests that are under way at the same time, of all that wait. The rest waits for its turn, which is short.
const AT_ONCE: usize = 32;
/// How long a wait that nobody wants any more is kept at most, however rarely it is looked for.
const LOOK: Duration = Duration::from_secs(300);
/// After the store refused what came of a wait.
const AGAIN: Duration = Duration::from_secs(5);

/// What is waited for on this node.
pub(crate) struct Waits {
    going: Mutex<HashSet<(TaskId, String)>>,
    places: Semaphore,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            going: Mutex::default(),
            places: Semaphore::new(AT_ONCE),
        }
    }
}

/// A wait that is over when this is dropped.
pub(crate) struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How requests get out, and how time passes until the next.
#[async_trait]
trait Way: Sync {
    async fn send(&self, outgoing: Outgoing) -> Outcome;

    async fn pause(&self, time: Duration);

    /// Whether anybody still waits.
    async fn is_wanted(&self) -> bool;
}

/// The response that is waited for, or none if nobody waits any more.
async fn until_met(
    poll: &Poll,
    outgoing: &Outgoing,
    every: Duration,
    way: &impl Way,
) -> Option<Met> {
    if poll.first_ms > 0 {
        way.pause(every).await;
    }
    loop {
        if !way.is_wanted().await {
            return None;
        }
        // One that fails is followed by the next.
        if let Ok(response) = way.send(outgoing.clone()).await
            && poll.is_met(&response)
        {
            return Some(Met::of(&response));
        }
        way.pause(every).await;
    }
}

/// The way out of this node.
struct Out<'a> {
    server: &'a Server,
    call: TaskId,
    /// The wait in the row, if there is one.
    key: Option<&'a str>,
}

#[async_trait]
impl Way for Out<'_> {
    async fn send(&self, outgoing: Outgoing) -> Outcome {
        // It is never closed.
        let _place = self.server.waits.places.acquire().await;
        let egress: &Egress = &self.server.egress;
        egress.send(&self.call.to_string(), outgoing).await
    }

    async fn pause(&self, time: Duration) {
        let mut left = time;
        loop {
            let part = left.min(LOOK);
            tokio::time::sleep(part).await;
            left -= part;
            if left.is_zero() || !self.is_wanted().await {
                return;
            }
        }
    }

    async fn is_wanted(&self) -> bool {
        let Some(key) = self.key else { return true };
        if self.server.is_leaving() {
            return false;
        }
        match self.server.tasks.get(self.call).await {
            Ok(Some(row)) => row.open_waits().any(|wait| wait.key == key),
            Ok(None) => false,
            // It may be there all the same.
            Err(_) => true,
        }
    }
}

/// What is waited for, in a line. Its fields may be private.
pub(crate) fn describe(wait: &Question) -> Option<String> {
    let poll: Poll = serde_json::from_str(&wait.request.0).ok()?;
    let Poll {
        method,
        url,
        every_ms,
        ..
    } = poll;
    Some(format!("{method} {url}, looked for every {every_ms} ms"))
}

impl Server {
    /// Sees to all that a row waits for.
    pub(crate) fn see_to_waits(&self, row: &Task) {
        for wait in row.open_waits() {
            self.see_to(row, wait);
        }
    }

    fn see_to(&self, row: &Task, wait: &Question) {
        let Ok(poll) = serde_json::from_str::<Poll>(&wait.request.0) else {
            return;
        };
        let Some(outgoing) = Policy::of_kept(&row.pinned.policy.0)
            .ok()
            .and_then(|policy| poll.outgoing(&policy).ok())
        else {
            tracing::error!(task = %row.id, "what a task waits for is not sent by its policy");
            return;
        };
        let going = (row.id, wait.key.clone());
        if !self.waits.going.lock().insert(going.clone()) {
            return;
        }
        let server = self.clone();
        let every = self.every(&poll);
        tokio::spawn(async move {
            let (id, key) = &going;
            let way = Out {
                server: &server,
                call: *id,
                key: Some(key),
            };
            if let Some(met) = until_met(&poll, &outgoing, every, &way).await {
                server.tell(*id, key, &met).await;
            }
            server.waits.going.lock().remove(&going);
        });
    }

    /// What was waited for is there: whoever waits goes on, here or wherever its run is brought back.
    async fn tell(&self, id: TaskId, key: &str, met: &Met) {
        let Ok(met) = serde_json::to_string(met) else {
            return;
        };
        let answer = BTreeMap::from([(key.to_owned(), Json::from(met))]);
        let event = Event::Answered(answer);
        while let Err(error) = self.change_row(id, None, &event).await {
            if self.is_leaving() || self.tasks.get(id).await.is_ok_and(|row| row.is_none()) {
                return;
            }
            tracing::warn!(task = %id, ?error, "what a task waited for is there and cannot be kept; it is tried again");
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The same for a call that has no row to wait in.
    pub(crate) fn watch_call(
        &self,
        call: TaskId,
        policy: &Policy,
        (key, what): (String, &str),
        answers: Answers,
    ) -> Option<Watch> {
        let poll: Poll = serde_json::from_str(what).ok()?;
        let outgoing = poll.outgoing(policy).ok()?;
        let every = self.every(&poll);
        let server = self.clone();
        Some(Watch(tokio::spawn(async move {
            let way = Out {
                server: &server,
                call,
                key: None,
            };
            if let Some(met) = until_met(&poll, &outgoing, every, &way).await
                && let Ok(met) = serde_json::to_string(&met)
            {
                answers.hand_in(key, Ok(Json::from(met)));
            }
        })))
    }

    fn every(&self, poll: &Poll) -> Duration {
        Duration::from_millis(poll.every_ms.max(self.settings.poll_least_ms))
    }
}

#[cfg(test)]
mod tests;
