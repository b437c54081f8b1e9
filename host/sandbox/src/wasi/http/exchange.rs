//! Requests that are under way, and what came of them.
//!
//! A request is sent once it is complete: handed over, and its body finished. One that may change something is
//! written down before it is sent. What comes of it is seen by the guest when it next looks, and written down there;
//! whoever repeats the run shows it the same at the same call. Where the records end and an exchange has no outcome,
//! an earlier process may have sent it: what only reads is sent again, and what may change something is in doubt.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_journal::call::{Answer, Ask, AskError, AskKind, Question};
use longshore_journal::http::{Failure, Outcome, Sent};
use longshore_journal::world::Asked;
use longshore_policy::http::InDoubt;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use wasmtime::Result;

use super::body::Content;
use super::judge::{Judged, Terms};
use crate::fault::Halt;
use crate::grants::Grants;
use crate::host::State;

/// The exchanges of one run that it still holds.
pub(crate) struct Exchanges {
    pub(crate) terms: Terms,
    held: BTreeMap<u64, Exchange>,
    /// Most runs send nothing, and this takes kilobytes.
    mail: Option<Box<Mail>>,
    /// What was taken from there and not looked at yet.
    news: Vec<(u64, Outcome)>,
}

/// Where what comes of them is handed in.
struct Mail {
    comes: UnboundedSender<(u64, Outcome)>,
    come: UnboundedReceiver<(u64, Outcome)>,
}

impl Default for Mail {
    fn default() -> Self {
        let (comes, come) = unbounded_channel();
        Self { comes, come }
    }
}

struct Exchange {
    judged: Judged,
    content: Content,
    stage: Stage,
}

enum Stage {
    /// Its body is not finished.
    Building,
    /// An earlier process came so far with it.
    SentEarlier,
    /// This process has sent it.
    Sent { _under_way: Sending },
    /// The guest can have this.
    Came(Outcome),
    /// The guest has it.
    Taken,
}

/// A request on its way. It is broken off when this is let go of.
struct Sending(JoinHandle<()>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a guest finds where it asks for a response.
pub(super) enum Found {
    /// Nothing yet.
    Nothing,
    /// This, for the first time.
    Outcome(Outcome),
    /// It was there before.
    TakenBefore,
}

impl Exchanges {
    pub(crate) fn new(grants: &Grants) -> Self {
        Self {
            terms: Terms::of(grants),
            held: BTreeMap::new(),
            mail: None,
            news: Vec::new(),
        }
    }

    /// Whether the guest could see something of that exchange.
    pub(crate) fn is_ready(&self, number: u64) -> bool {
        // Of one that it has let go of there is nothing to wait for.
        self.held
            .get(&number)
            .is_none_or(|exchange| matches!(exchange.stage, Stage::Came(_) | Stage::Taken))
    }

    /// Whether something may still come of any of them.
    pub(crate) fn is_open(&self) -> bool {
        self.held
            .values()
            .any(|exchange| !matches!(exchange.stage, Stage::Came(_) | Stage::Taken))
    }

    /// Whether something comes of one of them without the guest doing more.
    pub(crate) fn may_come(&self) -> bool {
        let sent =
            |exchange: &Exchange| matches!(exchange.stage, Stage::Sent { .. } | Stage::SentEarlier);
        self.held.values().any(sent)
    }

    fn under_way(&self) -> u64 {
        let open = |exchange: &&Exchange| !matches!(exchange.stage, Stage::Came(_) | Stage::Taken);
        self.held.values().filter(open).count() as u64
    }

    /// Whether this process waits for something.
    pub(crate) fn is_waiting(&self) -> bool {
        self.held
            .values()
            .any(|exchange| matches!(exchange.stage, Stage::Sent { .. }))
    }

    /// Returns once something has come.
    pub(crate) async fn until_news(&mut self) {
        let waits_for = |held: &BTreeMap<u64, Exchange>, number| {
            held.get(&number)
                .is_some_and(|exchange| matches!(exchange.stage, Stage::Sent { .. }))
        };
        // What comes of one that the guest has let go of is none.
        self.news
            .retain(|(number, _)| waits_for(&self.held, *number));
        let Some(mail) = &mut self.mail else {
            return std::future::pending().await;
        };
        while self.news.is_empty() {
            match mail.come.recv().await {
                Some(came) if waits_for(&self.held, came.0) => self.news.push(came),
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// One more, unless there are too many.
    pub(super) fn add(&mut self, judged: Judged, content: Content) -> Result<u64, ()> {
        if self.under_way() >= self.terms.at_once {
            return Err(());
        }
        let number = judged.outgoing.exchange;
        let stage = Stage::Building;
        let exchange = Exchange {
            judged,
            content,
            stage,
        };
        self.held.insert(number, exchange);
        Ok(number)
    }

    /// The one whose body that is.
    pub(super) fn of_body(&self, content: &Content) -> Option<u64> {
        let same = |(_, exchange): &(&u64, &Exchange)| {
            matches!(exchange.stage, Stage::Building) && exchange.content.is(content)
        };
        self.held.iter().find(same).map(|(number, _)| *number)
    }

    /// What is there of one.
    pub(super) fn take(&mut self, number: u64) -> Found {
        let Some(exchange) = self.held.get_mut(&number) else {
            return Found::TakenBefore;
        };
        match std::mem::replace(&mut exchange.stage, Stage::Taken) {
            Stage::Came(outcome) => Found::Outcome(outcome),
            Stage::Taken => Found::TakenBefore,
            open => {
                exchange.stage = open;
                Found::Nothing
            }
        }
    }

    /// Those of this process that may change something.
    fn writes(&self) -> u64 {
        let writes = |exchange: &&Exchange| {
            exchange.judged.is_write && matches!(exchange.stage, Stage::Sent { .. })
        };
        self.held.values().filter(writes).count() as u64
    }

    /// The guest has let go of one.
    pub(super) fn drop(&mut self, number: u64) {
        self.held.remove(&number);
    }

    /// Something came of one, if it is still held.
    pub(super) fn set(&mut self, number: u64, outcome: Outcome) {
        if let Some(exchange) = self.held.get_mut(&number) {
            exchange.stage = Stage::Came(outcome);
            // Nobody sends it again.
            exchange.content.clear();
        }
    }

    fn waits_for(&self, number: u64) -> bool {
        self.held
            .get(&number)
            .is_some_and(|exchange| matches!(exchange.stage, Stage::Sent { .. }))
    }

    /// Those that an earlier process may have sent.
    fn sent_earlier(&self) -> Vec<u64> {
        let earlier =
            |(_, exchange): &(&u64, &Exchange)| matches!(exchange.stage, Stage::SentEarlier);
        self.held
            .iter()
            .filter(earlier)
            .map(|(number, _)| *number)
            .collect()
    }
}

/// What its client can say to an exchange that is in doubt.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Choice {
    SendAgain,
    TellTheTool,
    EndTheTask,
}

#[derive(Deserialize)]
struct Decision {
    choice: Choice,
}

impl Choice {
    /// What was answered. Whoever does not want to decide lets nothing happen.
    fn of(answers: &Result<Vec<Answer>, AskError>) -> Self {
        match answers {
            Ok(answers) => match answers.first() {
                Some(Answer::Accepted(Some(json))) => serde_json::from_str(json)
                    .map_or(Self::EndTheTask, |Decision { choice }| choice),
                _ => Self::EndTheTask,
            },
            // The tool may clean up, and has to know.
            Err(AskError::CallCancelled) => Self::TellTheTool,
            Err(_) => Self::EndTheTask,
        }
    }
}

/// What the keys of such questions begin with.
const KEY: &str = "http-";

fn question(number: u64, target: &str) -> Question {
    let schema = json!({
        "type": "object",
        "properties": {
            "choice": {
                "type": "string",
                "title": "What to do",
                "oneOf": [
                    { "const": "send-again", "title": "Send it again: it may then have been carried out twice" },
                    { "const": "tell-the-tool", "title": "Tell the tool that the outcome is not known" },
                    { "const": "end-the-task", "title": "End the task" },
                ],
            },
        },
        "required": ["choice"],
    });
    Question {
        key: format!("{KEY}{number}"),
        ask: Ask::Form {
            message: format!(
                "The server stopped while this request was under way: {target}. It may have been carried out, and it may be yet; nobody here knows."
            ),
            schema: schema.to_string(),
        },
    }
}

impl State {
    /// The request is handed over and its body finished.
    pub(super) async fn send(&mut self, number: u64) -> Result<()> {
        let Some(exchange) = self.wasi.exchanges.held.get_mut(&number) else {
            return Ok(());
        };
        let sent = Sent {
            exchange: number,
            method: exchange.judged.outgoing.method.to_string(),
            url: exchange.judged.url(),
            body_bytes: exchange.content.length(),
            is_write: exchange.judged.is_write,
        };
        if self.world.sends(&sent)? {
            exchange.stage = Stage::SentEarlier;
            return Ok(());
        }
        if sent.is_write {
            self.outside.settle().await;
            self.go_on()?;
        }
        self.dispatch(number);
        Ok(())
    }

    fn dispatch(&mut self, number: u64) {
        let exchanges = &mut self.wasi.exchanges;
        let Some(exchange) = exchanges.held.get_mut(&number) else {
            return;
        };
        let outside = Arc::clone(&self.outside);
        let comes = exchanges.mail.get_or_insert_default().comes.clone();
        let mut outgoing = exchange.judged.outgoing.clone();
        outgoing.body = exchange.content.copy();
        let sending = tokio::spawn(async move {
            let outcome = outside.send(outgoing).await;
            let _run_is_over = comes.send((number, outcome));
        });
        exchange.stage = Stage::Sent {
            _under_way: Sending(sending),
        };
        self.note_writes();
    }

    /// Whoever would let go of the run now has to know.
    pub(super) fn note_writes(&self) {
        self.world.note_writes(self.wasi.exchanges.writes());
    }

    /// Lets the guest see what came of its requests. Every function in which it looks for that begins with this.
    pub(crate) async fn look_for_responses(&mut self) -> Result<()> {
        loop {
            if let Some((number, outcome)) = self.world.comes() {
                self.wasi.exchanges.set(number, outcome);
            } else if let Some(number) = self.doubted_here() {
                self.decide(number).await?;
            } else {
                break;
            }
        }
        if !self.wasi.exchanges.is_open() || !self.world.is_live()? {
            return Ok(());
        }
        self.settle_earlier().await?;
        let exchanges = &mut self.wasi.exchanges;
        let mut news = std::mem::take(&mut exchanges.news);
        if let Some(mail) = &mut exchanges.mail {
            while let Ok(came) = mail.come.try_recv() {
                news.push(came);
            }
        }
        for (number, outcome) in news {
            // It may have let go of it since.
            if self.wasi.exchanges.waits_for(number) {
                self.world.came(number, &outcome)?;
                self.wasi.exchanges.set(number, outcome);
            }
        }
        self.note_writes();
        Ok(())
    }

    /// The exchange that was asked about in this call, by the records.
    fn doubted_here(&self) -> Option<u64> {
        let number = self.world.asks_here()?.strip_prefix(KEY)?.parse().ok()?;
        self.wasi
            .exchanges
            .held
            .contains_key(&number)
            .then_some(number)
    }

    /// The records end: what becomes of those that an earlier process may have sent. Whether any of that is recorded.
    pub(crate) async fn settle_earlier(&mut self) -> Result<bool> {
        let mut is_recorded = false;
        for number in self.wasi.exchanges.sent_earlier() {
            let judged = &self.wasi.exchanges.held[&number].judged;
            match judged.in_doubt {
                _ if !judged.is_write => self.dispatch(number),
                InDoubt::Resend => self.dispatch(number),
                InDoubt::Tell => {
                    self.tell_unknown(number)?;
                    is_recorded = true;
                }
                InDoubt::Ask if self.outside.can_ask(AskKind::Form) => {
                    self.decide(number).await?;
                    is_recorded = true;
                }
                InDoubt::Ask | InDoubt::Fail => return Err(self.ends_in_doubt(number)),
            }
        }
        Ok(is_recorded)
    }

    fn tell_unknown(&mut self, number: u64) -> Result<()> {
        let outcome = Err(Failure::OutcomeUnknown);
        self.world.came(number, &outcome)?;
        self.wasi.exchanges.set(number, outcome);
        Ok(())
    }

    fn ends_in_doubt(&self, number: u64) -> wasmtime::Error {
        let exchange = self.wasi.exchanges.held.get(&number);
        let target = exchange.map_or_else(String::new, |exchange| exchange.judged.target());
        Halt::InDoubt(format!(
            "nobody knows whether this request was carried out, and it may be yet: {target}"
        ))
        .into()
    }

    /// Asks whoever called what is to be done, or repeats what was said.
    async fn decide(&mut self, number: u64) -> Result<()> {
        let Some(exchange) = self.wasi.exchanges.held.get(&number) else {
            return Ok(());
        };
        let questions = [question(number, &exchange.judged.target())];
        let answers = match self.world.ask(&questions, None)? {
            Asked::Answered(answers) => {
                return match Choice::of(&answers) {
                    // It was, perhaps.
                    Choice::SendAgain => Ok(()),
                    // That follows in the records, unless they end here.
                    Choice::TellTheTool if !self.world.is_live()? => Ok(()),
                    Choice::TellTheTool => self.tell_unknown(number),
                    Choice::EndTheTask => Err(self.ends_in_doubt(number)),
                };
            }
            Asked::Live { until, before } => self.put(questions.to_vec(), until, before).await?,
        };
        match Choice::of(&answers) {
            Choice::SendAgain => {
                // Whoever comes next has to know that it was sent once more.
                self.outside.settle().await;
                self.go_on()?;
                self.dispatch(number);
                Ok(())
            }
            Choice::TellTheTool => self.tell_unknown(number),
            Choice::EndTheTask => Err(self.ends_in_doubt(number)),
        }
    }
}
