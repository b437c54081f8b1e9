//! A round of a call: questions that go to the client in place of a result, and come back with the same call made again
//! (MCP 2026-07-28, multi round-trip requests). What the client holds meanwhile is sealed: it names the run and the
//! round, for one caller and for a short time.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use longshore_protocol::elicitation;
use longshore_protocol::error::RpcError;
use longshore_protocol::result::write_input_required;
use longshore_protocol::task::InputRequest;
use longshore_tasks::id::{Millis, TaskId};
use longshore_tasks::question::Fate;
use longshore_tasks::task::Task;
use uuid::Uuid;

use crate::clock;
use crate::run::Caller;
use crate::seal::{self, Keys};
use crate::server::Server;

/// The first byte of every state, so that what it holds can change.
const VERSION: u8 = 1;
/// What a state may have, in characters, before anybody looks into it.
const STATE_CHARS: usize = 1_024;

/// Questions that were put to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) id: TaskId,
    /// The place of its first question among all of the run.
    pub(crate) first: usize,
    pub(crate) count: usize,
    expires_at: Millis,
}

impl Round {
    /// The questions that are open now, or none if there are none.
    fn of(task: &Task, lives_ms: u64) -> Option<Self> {
        let first = task
            .questions
            .iter()
            .position(|question| question.fate == Fate::Open)?;
        Some(Self {
            id: task.id,
            first,
            count: task.questions.len() - first,
            expires_at: clock::now().plus(lives_ms),
        })
    }

    fn seal(&self, keys: &Keys, caller: &Caller) -> String {
        let mut bytes = Vec::with_capacity(32);
        bytes.extend(self.id.0.as_bytes());
        bytes.extend((self.first as u32).to_le_bytes());
        bytes.extend((self.count as u32).to_le_bytes());
        bytes.extend(self.expires_at.0.to_le_bytes());
        let mut sealed = vec![VERSION];
        sealed.extend(seal::seal_round(
            keys,
            &caller.tenant,
            &caller.principal,
            &bytes,
        ));
        BASE64_URL_SAFE_NO_PAD.encode(sealed)
    }

    /// The round of that state, if it was given to this caller and its time is not over.
    pub(crate) fn open(keys: &Keys, caller: &Caller, state: &str) -> Result<Self, RpcError> {
        let unknown = || {
            RpcError::invalid_params(
                "params.requestState was not given to this caller by this server, or is damaged: make the call again without it",
            )
        };
        let sealed = Some(state)
            .filter(|state| state.len() <= STATE_CHARS)
            .and_then(|state| BASE64_URL_SAFE_NO_PAD.decode(state).ok());
        let bytes = match sealed.as_deref().and_then(<[u8]>::split_first) {
            Some((&VERSION, sealed)) => {
                seal::open_round(keys, &caller.tenant, &caller.principal, sealed)
                    .map_err(|_| unknown())?
            }
            _ => return Err(unknown()),
        };
        let round = Self::read(&bytes).ok_or_else(unknown)?;
        if round.expires_at < clock::now() {
            return Err(RpcError::invalid_params(
                "the time for these answers is over (round_ms): make the call again without params.requestState",
            ));
        }
        Ok(round)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk::<16>()?;
        let (first, rest) = rest.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let expires_at = i64::from_le_bytes(rest.try_into().ok()?);
        Some(Self {
            id: TaskId(Uuid::from_bytes(*id)),
            first: u32::from_le_bytes(*first) as usize,
            count: u32::from_le_bytes(*count) as usize,
            expires_at: Millis(expires_at),
        })
    }
}

impl Server {
    /// The result that asks what a run asks now, if it asks anything. Only what this request says that its client can
    /// do is asked.
    pub(crate) fn round(&self, task: &Task, caller: &Caller) -> Option<Result<String, RpcError>> {
        let round = Round::of(task, self.settings.round_ms)?;
        let questions: Vec<InputRequest<'_>> = task
            .open_questions()
            .map(|question| InputRequest {
                key: &question.key,
                request: &question.request.0,
            })
            .collect();
        let needed: Result<Vec<_>, _> = questions
            .iter()
            .map(|question| elicitation::read_question(question.request).map(|read| read.needs))
            .collect();
        let needed = match needed {
            Ok(needed) => needed,
            Err(_) => {
                return Some(Err(RpcError::internal("a stored question cannot be read")));
            }
        };
        if let Err(lacks) = caller.capabilities.require(&needed) {
            return Some(Err(lacks));
        }
        let mut out = String::new();
        let state = round.seal(&self.keys, caller);
        write_input_required(&mut out, &questions, &state, &self.info);
        Some(Ok(out))
    }
}

#[cfg(test)]
mod tests {
    use longshore_protocol::capability::ClientCapabilities;
    use longshore_tasks::id::{Principal, Tenant};

    use super::*;

    fn caller(tenant: &str, principal: &str) -> Caller {
        Caller {
            tenant: Tenant(tenant.into()),
            principal: Principal(principal.into()),
            revision: longshore_protocol::version::Revision::R20260728,
            capabilities: ClientCapabilities::default(),
            capabilities_json: "{}".to_owned(),
        }
    }

    #[test]
    fn a_state_opens_for_its_caller_and_in_its_time_only() {
        let keys = Keys::of_this_process();
        let round = Round {
            id: TaskId(Uuid::from_u128(7)),
            first: 2,
            count: 3,
            expires_at: clock::now().plus(60_000),
        };
        let ann = caller("t", "ann");
        let state = round.seal(&keys, &ann);
        assert_eq!(Round::open(&keys, &ann, &state), Ok(round));
        // The same letters, divided otherwise.
        for other in [caller("t", "bob"), caller("ta", "nn"), caller("", "tann")] {
            assert!(Round::open(&keys, &other, &state).is_err());
        }
        assert!(Round::open(&Keys::of_this_process(), &ann, &state).is_err());
        for at in 0..state.len() {
            let changed = if state.as_bytes()[at] == b'A' {
                "B"
            } else {
                "A"
            };
            let text = format!("{}{changed}{}", &state[..at], &state[at + 1..]);
            // The last letter has bits that say nothing, and any but the ones there are refused.
            assert!(Round::open(&keys, &ann, &text).is_err(), "{at}");
            assert!(Round::open(&keys, &ann, &state[..at]).is_err(), "{at}");
        }
        for text in [
            format!("{state}-TAMPERED"),
            format!("{state}="),
            "x".repeat(5_000),
        ] {
            assert!(Round::open(&keys, &ann, &text).is_err());
        }
        let over = Round {
            expires_at: Millis(clock::now().0 - 1),
            ..round
        };
        let error = Round::open(&keys, &ann, &over.seal(&keys, &ann)).unwrap_err();
        assert!(error.message.contains("(round_ms)"), "{}", error.message);
    }
}
