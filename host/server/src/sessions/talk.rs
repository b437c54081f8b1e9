//! What is said on the stream of one request until it is answered: notifications, questions to the client, and the
//! response.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::FutureExt as _;
use longshore_journal::call::AskError;
use longshore_protocol::envelope::{RequestId, ResponseEnvelope};
use longshore_protocol::error::RpcError;
use longshore_protocol::response;
use longshore_protocol::session::{self, out};

use super::Session;
use super::tasks::Following;
use crate::dispatch::{DispatchError, Held, Said};
use crate::errors::{self, Era};
use crate::presence::Presence;
use crate::requests::Ticket;
use crate::run::inquiry::{By, Inquiry, Put};
use crate::server::Server;
use crate::wire;

/// A question that its client has not answered.
pub(crate) struct Asked {
    /// Its key.
    pub(crate) key: String,
    /// The request that an answer has to fit.
    pub(crate) request: String,
    /// Who asks.
    pub(crate) by: By,
}

/// Open questions of a session, by the numbers of their requests.
#[derive(Default)]
pub(super) struct Questions {
    put: u64,
    open: HashMap<u64, Asked>,
}

impl Questions {
    pub(super) fn put(&mut self, asked: Asked) -> u64 {
        self.put += 1;
        self.open.insert(self.put, asked);
        self.put
    }

    /// Gives back one that was taken.
    pub(super) fn put_back(&mut self, number: u64, asked: Asked) {
        self.open.insert(number, asked);
    }

    pub(super) fn take(&mut self, number: u64) -> Option<Asked> {
        self.open.remove(&number)
    }

    pub(super) fn clear(&mut self) {
        self.open.clear();
    }
}

/// Where there is something to say.
pub(super) enum Origin {
    /// A call that its client waits for.
    Call(Held),
    /// A task whose result its client waits for.
    Task(Box<Following>),
}

/// A request that is being answered. Letting go of it cancels it.
pub(crate) struct Talk {
    session: Arc<Session>,
    _ticket: Ticket,
    presence: Presence,
    id: RequestId,
    origin: Origin,
    /// Questions that were put, with their keys.
    asked: Vec<(u64, String)>,
    ready: VecDeque<Spoken>,
}

/// What is said next, each one whole message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// What does no harm if it is not heard.
    Aside(String),
    /// What has to be heard.
    Question(String),
    /// The response, and nothing after it; none if nobody wants it any more.
    End(Option<String>),
}

impl Drop for Talk {
    fn drop(&mut self) {
        for (number, _) in &self.asked {
            self.session.take(*number);
        }
    }
}

impl Talk {
    pub(super) fn new(
        session: &Arc<Session>,
        ticket: Ticket,
        presence: Presence,
        id: &RequestId,
        origin: Origin,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            _ticket: ticket,
            presence,
            id: id.clone(),
            origin,
            asked: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// What can be said at once, which is heard again by [`Self::next`] unless it is the end.
    pub(super) fn first(&mut self) -> Option<&Spoken> {
        let first = self.next().now_or_never()?;
        self.ready.push_front(first);
        self.ready.front()
    }

    /// What comes next.
    pub(crate) async fn next(&mut self) -> Spoken {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return ready;
            }
            let said = async {
                match &mut self.origin {
                    Origin::Call(held) => held.next().await,
                    Origin::Task(following) => following.next().await,
                }
            };
            let said = tokio::select! {
                biased;
                () = self.presence.gone() => return Spoken::End(None),
                said = said => said,
            };
            match said {
                Said::Aside(text) => return Spoken::Aside(text),
                Said::Inquiry(Inquiry::Put(questions)) => self.put(questions),
                Said::Inquiry(Inquiry::Withdrawn(keys)) => self.withdraw(&keys),
                Said::End(result) => return Spoken::End(Some(answer(&self.id, result))),
            }
        }
    }

    fn put(&mut self, questions: Vec<Put>) {
        let (by, task) = match &self.origin {
            Origin::Call(held) => match held.asks() {
                Some(by) => (by, None),
                None => return,
            },
            Origin::Task(following) => {
                let id = following.task_id();
                (By::Row(id), Some(id.to_string()))
            }
        };
        for Put { key, request } in questions {
            let number = self.session.put(Asked {
                key: key.clone(),
                request: request.clone(),
                by: by.clone(),
            });
            let question = out::Question {
                id: number,
                request: &request,
                elicitation_id: &format!("{}-{number}", self.session.id),
                task: task.as_deref(),
            };
            let text = question.to_json(self.session.revision);
            self.ready.push_back(Spoken::Question(text));
            self.asked.push((number, key));
        }
    }

    fn withdraw(&mut self, keys: &[String]) {
        for (number, key) in &self.asked {
            if keys.contains(key) && self.session.take(*number).is_some() {
                let text = out::cancelled(*number, "nobody waits for the answer any more");
                self.ready.push_back(Spoken::Question(text));
            }
        }
    }
}

/// The response of a session's request.
pub(super) fn answer(id: &RequestId, result: Result<String, DispatchError>) -> String {
    match result {
        Ok(result) => response::result(id, &out::plain(&result)),
        Err(error) => response::error(Some(id), &errors::told(error, Era::Sessions).error),
    }
}

impl Server {
    /// What a client says to a question. An answer to what is not asked, or not any more, is no fault.
    pub(crate) async fn take_answer(
        &self,
        session: &Session,
        response: &ResponseEnvelope<'_>,
    ) -> Result<(), RpcError> {
        let Some(number) = out::number_of(&response.id) else {
            return Ok(());
        };
        let Some(Asked { key, request, by }) = session.take(number) else {
            return Ok(());
        };
        match (by, response.outcome) {
            (By::Call(answers), Ok(answer)) => {
                let most = self.settings.limits.answer_bytes;
                let checked = if answer.get().len() as u64 > most {
                    Err(RpcError::invalid_params(format!(
                        "the answer to `{key}` has {} bytes; at most {most} are taken (limits.answer_kib)",
                        answer.get().len()
                    )))
                } else {
                    wire::check_answer(&key, &request, answer)
                };
                // The client cannot be asked to say it again, so the guest has to know as well.
                let for_guest = checked
                    .clone()
                    .map_err(|error| AskError::Invalid(error.message));
                answers.hand_in(key, for_guest);
                checked.map(drop)
            }
            (By::Call(answers), Err(error)) => {
                let message = format!("the client refused: {}", session::refusal(error));
                answers.hand_in(key, Err(AskError::Unsupported(message)));
                Ok(())
            }
            (By::Row(id), Ok(answer)) => {
                // Whose it is was looked at before it was asked here.
                let answered = self.answer_task(id, None, &[(key.as_str(), answer)]).await;
                if answered.is_err() {
                    // It is still asked, and may be answered once more.
                    let by = By::Row(id);
                    session.put_back(number, Asked { key, request, by });
                }
                answered
                    .map(drop)
                    .map_err(|error| errors::told(error.into(), Era::Sessions).error)
            }
            // Somebody else may answer it.
            (By::Row(_), Err(_)) => Ok(()),
        }
    }
}
