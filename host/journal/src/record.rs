//! What is written down of a run: what it saw from outside, and what it let out.
//!
//! A record stands at the number of the call in which the guest saw it or let it out. What a guest
//! could compute again is not written down.

use serde::{Deserialize, Serialize};

use crate::call::{Answer, AskError, Question};
use crate::http::{Failure, Outcome, Sent};
use crate::values;

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The call at which it happened; several may share one, and keep their order.
    pub call: u64,
    /// What happened.
    pub what: What,
}

/// What happened. New kinds are only ever added at the end: the place of a kind is its number in a
/// journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// The guest saw the clock move: milliseconds since the call was made.
    Clock(u64),
    /// The guest saw that it is cancelled.
    Cancelled,
    /// The guest began to wait.
    Waited {
        /// Until then, by its clock.
        until: u64,
        /// The way to here.
        path: u32,
    },
    /// The wait was over, and the clock stood there.
    Woke(u64),
    /// The guest asked.
    Asked {
        /// What, under the author's own keys.
        questions: Vec<Question>,
        /// When it stops waiting, by its clock.
        until: Option<u64>,
        /// The way to here.
        path: u32,
    },
    /// What came back.
    Answered(Result<Vec<Answer>, AskError>),
    /// What the guest said of itself, as it may have been seen. Nothing if it printed or logged.
    Shown {
        /// What.
        shown: Shown,
        /// The way to here.
        path: u32,
    },
    /// A step was done.
    Step {
        /// The call that began it.
        began: u64,
        /// Its name.
        name: String,
        /// What it left.
        value: Bytes,
        /// Where the guest stood at its end.
        at: Position,
    },
    /// A point to start from, in place of all before it.
    Checkpoint {
        /// What the guest wants to know then.
        state: Bytes,
        /// Where the guest stood.
        at: Position,
    },
    /// The guest returned.
    Ended {
        /// A hash of what it returned.
        result: [u8; 16],
        /// The way to here.
        path: u32,
    },
    /// A request was complete, and was sent after this was kept if it may change something.
    Sent {
        /// Which.
        sent: Sent,
        /// The way to here.
        path: u32,
    },
    /// The guest could see what came of an exchange.
    Came {
        /// Which.
        exchange: u64,
        /// What.
        outcome: Outcome,
    },
    /// The guest changes what its component keeps, or leaves something. This is kept before it is done.
    Changes {
        /// The way to here.
        path: u32,
    },
    /// What came of that, or what the guest read of what its component keeps.
    Found {
        /// What.
        outcome: values::Outcome,
        /// The way to here.
        path: u32,
    },
}

impl What {
    /// One word or two for a person.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Clock(_) => "clock",
            Self::Cancelled => "cancelled",
            Self::Waited { .. } => "wait",
            Self::Woke(_) => "wake",
            Self::Asked { questions, .. } if questions.iter().all(Question::is_wait) => {
                "wait for others"
            }
            Self::Asked { .. } => "question",
            Self::Answered(_) => "answer",
            Self::Shown { shown, .. } if shown.is_empty() => "output",
            Self::Shown { .. } => "status",
            Self::Step { .. } => "step",
            Self::Checkpoint { .. } => "restart point",
            Self::Ended { .. } => "end",
            Self::Sent { .. } => "request",
            Self::Came { outcome: Ok(_), .. } => "response",
            Self::Came {
                outcome: Err(_), ..
            } => "no response",
            Self::Changes { .. } => "change",
            Self::Found { .. } => "found",
        }
    }

    /// About how much memory it takes, besides its own size.
    pub(crate) fn bytes(&self) -> usize {
        let question = |question: &Question| {
            use crate::call::Ask;
            question.key.len()
                + match &question.ask {
                    Ask::Form { message, schema } => message.len() + schema.len(),
                    Ask::Url { message, url } => message.len() + url.len(),
                    Ask::Sample(json) | Ask::Raw(json) | Ask::Wait(json) => json.len(),
                    Ask::Roots(json) => json.as_ref().map_or(0, String::len),
                }
        };
        let answer = |answer: &Answer| match answer {
            Answer::Accepted(json) => json.as_ref().map_or(0, String::len),
            Answer::Sampled(json) | Answer::Roots(json) | Answer::Raw(json) => json.len(),
            Answer::Declined | Answer::Dismissed => 0,
        };
        match self {
            Self::Clock(_)
            | Self::Cancelled
            | Self::Waited { .. }
            | Self::Woke(_)
            | Self::Ended { .. }
            | Self::Changes { .. } => 0,
            Self::Asked { questions, .. } => questions.iter().map(question).sum(),
            Self::Answered(Ok(answers)) => answers.iter().map(answer).sum(),
            Self::Answered(Err(_)) => 64,
            Self::Shown { shown, .. } => shown.message.as_ref().map_or(0, String::len),
            Self::Step { name, value, .. } => name.len() + value.0.len(),
            Self::Checkpoint { state, .. } => state.0.len(),
            Self::Sent { sent, .. } => sent.method.len() + sent.url.len(),
            Self::Came { outcome, .. } => match outcome {
                Ok(response) => response.bytes(),
                Err(_) => Failure::BYTES,
            },
            Self::Found { outcome, .. } => match outcome {
                Ok(found) => found.bytes(),
                Err(_) => 64,
            },
        }
    }
}

/// What a guest said of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// A line of status, if it said one.
    pub message: Option<String>,
    /// Units done, and units in all if known.
    pub progress: Option<(f64, Option<f64>)>,
}

impl Shown {
    /// Whether it says nothing of the guest but that it came so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.message.is_none() && self.progress.is_none()
    }
}

/// Where a guest stood, for whoever goes on from there without what came before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Its clock.
    pub clock: u64,
    /// Bytes that it took of its random stream.
    pub random: u64,
    /// Bytes that it took of its insecure random stream.
    pub insecure: u64,
    /// Whether it had seen that it is cancelled.
    pub cancelled: bool,
    /// The way to here, whole.
    pub path: u64,
    /// Questions that it had asked.
    pub asked: u64,
    /// How far it had said that it was.
    pub progress: Option<f64>,
}

/// Bytes, which are written as such and not one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }
        }

        deserializer.deserialize_byte_buf(Visitor)
    }
}
