//! `longshore:tool/wait`: what a run waits for without being there.

use longshore_journal::call::{Answer, Ask, AskError, Question, Request};
use longshore_journal::world::Asked;
use serde_json::Value;
use wasmtime::Result;

use crate::bindings::longshore::tool::wait as wit;
use crate::fault::Halt;
use crate::host::State;
use crate::poll::{Met, NotSent, Poll, Until, mark};
use crate::rules::Settled;

/// The author's own keys never begin so, since they have no control characters.
pub const POLL_KEY: &str = "\u{1}poll";

impl wit::Host for State {
    async fn poll(
        &mut self,
        request: wit::Request,
        every_ms: u64,
        until: wit::Condition,
        give_up_ms: Option<u64>,
    ) -> Result<std::result::Result<wit::Response, wit::PollError>> {
        let what = as_text(&request, every_ms, &until);
        let settled = self.request(&Request::Poll {
            what: &what,
            wait_ms: give_up_ms,
        })?;
        if let Settled::Answered(answers) = settled {
            return Ok(Err(unanswered(answers.err())));
        }
        let (poll, changed) = match poll_of(request, every_ms, until) {
            Ok(poll) => poll,
            Err(fault) => return Ok(Err(wit::PollError::Invalid(fault))),
        };
        if let Some(fault) = poll.fault() {
            return Ok(Err(wit::PollError::Invalid(fault)));
        }
        if let Err(NotSent { told, why }) = poll.judged(&self.wasi.exchanges.terms) {
            self.tell_refused(&why)?;
            return Ok(Err(wit::PollError::Denied(told)));
        }
        if self.cancelled()? {
            return Ok(Err(wit::PollError::CallCancelled));
        }
        let began = self.clock()?;
        let met = match self.wait_for(&poll, give_up_ms).await? {
            Ok(met) => met,
            Err(error) => return Ok(Err(unanswered(Some(error)))),
        };
        let Some(pointer) = changed else {
            return Ok(Ok(response(met)?));
        };
        // What it was at first is known and kept now, so that a change is noticed whoever looks for it.
        let from = mark(&met.bytes().unwrap_or_default(), pointer.as_deref());
        let poll = Poll {
            first_ms: poll.every_ms,
            until: Until::Differs { pointer, from },
            ..poll
        };
        let now = self.clock()?;
        let left = give_up_ms.map(|ms| ms.saturating_sub(now.saturating_sub(began)));
        match self.wait_for(&poll, left).await? {
            Ok(met) => Ok(Ok(response(met)?)),
            Err(error) => Ok(Err(unanswered(Some(error)))),
        }
    }
}

impl State {
    async fn wait_for(
        &mut self,
        poll: &Poll,
        wait_ms: Option<u64>,
    ) -> Result<std::result::Result<Met, AskError>> {
        let questions = vec![Question {
            key: POLL_KEY.to_owned(),
            ask: Ask::Wait(serde_json::to_string(poll)?),
        }];
        let answers = match self.world.ask(&questions, wait_ms)? {
            Asked::Answered(answers) => answers,
            Asked::Live { until, before } => self.put(questions, until, before).await?,
        };
        Ok(match answers {
            Ok(answers) => match answers.into_iter().next() {
                Some(Answer::Raw(met)) => Ok(serde_json::from_str(&met)?),
                _ => {
                    return Err(
                        Halt::Bug("a wait was answered by something else".to_owned()).into(),
                    );
                }
            },
            Err(error) => Err(error),
        })
    }
}

fn response(met: Met) -> Result<wit::Response> {
    let Some(body) = met.bytes() else {
        return Err(Halt::Bug("a response was not kept as it came".to_owned()).into());
    };
    Ok(wit::Response {
        status: met.status,
        headers: met.headers,
        body,
    })
}

fn unanswered(error: Option<AskError>) -> wit::PollError {
    match error {
        Some(AskError::Unsupported(text)) => wit::PollError::Denied(text),
        Some(AskError::Invalid(text)) => wit::PollError::Invalid(text),
        Some(AskError::Limit(text)) => wit::PollError::Limit(text),
        Some(AskError::CallCancelled) => wit::PollError::CallCancelled,
        Some(AskError::TimedOut) | None => wit::PollError::GaveUp,
    }
}

/// What is waited for, and whether a change is, at a pointer or of all.
type Wanted = (Poll, Option<Option<String>>);

fn poll_of(
    request: wit::Request,
    every_ms: u64,
    until: wit::Condition,
) -> std::result::Result<Wanted, String> {
    let wit::Request {
        method,
        url,
        headers,
    } = request;
    let (until, changed) = match until {
        wit::Condition::Status(statuses) => (Until::Status(statuses), None),
        wit::Condition::Equals(wit::Expected { pointer, one_of }) => {
            let values = one_of.iter().map(|text| {
                serde_json::from_str::<Value>(text)
                    .map_err(|error| format!("a value to wait for is no JSON: {error}"))
            });
            let values = values.collect::<std::result::Result<_, _>>()?;
            (Until::Equals { pointer, values }, None)
        }
        wit::Condition::Changed(pointer) => {
            // The pointer is looked at as that of the second half.
            let probe = Until::Differs {
                pointer: pointer.clone(),
                from: String::new(),
            };
            let probe = Poll {
                method: method.clone(),
                url: url.clone(),
                headers: headers.clone(),
                every_ms,
                first_ms: 0,
                until: probe,
            };
            if let Some(fault) = probe.fault() {
                return Err(fault);
            }
            (Until::Success, Some(pointer))
        }
    };
    let poll = Poll {
        method,
        url,
        headers,
        every_ms,
        first_ms: 0,
        until,
    };
    Ok((poll, changed))
}

/// All that a guest passed, for its size and its path.
fn as_text(request: &wit::Request, every_ms: u64, until: &wit::Condition) -> String {
    let until = match until {
        wit::Condition::Status(statuses) => format!("status {statuses:?}"),
        wit::Condition::Equals(wit::Expected { pointer, one_of }) => {
            format!("equals {pointer:?} {one_of:?}")
        }
        wit::Condition::Changed(pointer) => format!("changed {pointer:?}"),
    };
    let wit::Request {
        method,
        url,
        headers,
    } = request;
    format!("{method:?} {url:?} {headers:?} every {every_ms} until {until}")
}
