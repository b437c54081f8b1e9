//! The line between a guest and everything else.

use crate::call::{Request, Response};

/// One run's view of the outside. Every import passes [`World::begin`] and [`World::end`], so that
/// calls are counted in one place and an answer can come from a record instead of from outside.
/// The waiting between the two is not done here.
#[derive(Debug, Default)]
pub struct World {
    calls: u64,
    open_step: Option<String>,
}

/// The number of an import call within its run, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallNumber(pub u64);

/// What to do about a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Begun {
    /// Ask the outside, then tell [`World::end`].
    Live(CallNumber),
    /// The outside was asked before: this is what it said.
    Replayed(Response),
}

/// The guest broke a rule of the interface; its run ends with a trap that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// `step-begin` within a step.
    NestedStep {
        /// The step that is open.
        open: String,
    },
    /// `step-end` of a step that is not open.
    UnmatchedStepEnd {
        /// The step that was to end.
        name: String,
    },
    /// A question within a step.
    AskInStep {
        /// The step that is open.
        open: String,
    },
}

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NestedStep { open } => {
                write!(f, "step-begin within the step {open:?}: end that one first")
            }
            Self::UnmatchedStepEnd { name } => {
                write!(
                    f,
                    "step-end of {name:?}, which is not the step that is open"
                )
            }
            Self::AskInStep { open } => {
                write!(
                    f,
                    "a question within the step {open:?}: ask before it begins or after it ends"
                )
            }
        }
    }
}

impl std::error::Error for Misuse {}

impl World {
    /// Counts the call and says where its answer comes from.
    pub fn begin(&mut self, request: &Request<'_>) -> Result<Begun, Misuse> {
        self.calls += 1;
        match (request, &self.open_step) {
            (Request::StepBegin(_), Some(open)) => {
                return Err(Misuse::NestedStep { open: open.clone() });
            }
            (Request::Ask { .. }, Some(open)) => {
                return Err(Misuse::AskInStep { open: open.clone() });
            }
            (Request::StepBegin(name), None) => self.open_step = Some((*name).to_owned()),
            (Request::StepEnd { name, .. }, open) => {
                if open.as_deref() != Some(*name) {
                    return Err(Misuse::UnmatchedStepEnd {
                        name: (*name).to_owned(),
                    });
                }
                self.open_step = None;
            }
            _ => {}
        }
        Ok(Begun::Live(CallNumber(self.calls)))
    }

    /// Takes the answer to a live call.
    pub fn end(&mut self, call: CallNumber, _response: &Response) {
        debug_assert_eq!(
            call,
            CallNumber(self.calls),
            "a guest has one call open at a time"
        );
    }

    /// Calls begun so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Answer, Ask, AskError, AskKind, Change, LogLevel, Question};

    fn end_step(name: &'static str) -> Request<'static> {
        Request::StepEnd { name, value: b"" }
    }

    #[test]
    fn every_request_is_counted_from_one() {
        let mut world = World::default();
        let questions = [Question {
            key: "q".into(),
            ask: Ask::Roots(None),
        }];
        let requests = [
            Request::CallId,
            Request::SetStatus("s"),
            Request::ReportProgress {
                done: 1.0,
                total: None,
                message: None,
            },
            Request::IsCancelled,
            Request::TimeLeft,
            Request::Sleep { ms: 1 },
            Request::Detach,
            Request::CanAsk(AskKind::Form),
            Request::Ask {
                questions: &questions,
                wait_ms: None,
            },
            Request::Log {
                level: LogLevel::Info,
                logger: None,
                message: "m",
            },
            Request::StepBegin("a"),
            end_step("a"),
            Request::Changed(Change::Tools),
        ];
        for (before, request) in requests.iter().enumerate() {
            let expected = CallNumber(before as u64 + 1);
            assert_eq!(
                world.begin(request),
                Ok(Begun::Live(expected)),
                "{request:?}"
            );
            let response = Response::Answers(Err::<Vec<Answer>, _>(AskError::TimedOut));
            world.end(expected, &response);
        }
        assert_eq!(world.calls(), requests.len() as u64);
    }

    #[test]
    fn steps_pair_and_do_not_nest() {
        let questions = [Question {
            key: "q".into(),
            ask: Ask::Roots(None),
        }];
        let ask = Request::Ask {
            questions: &questions,
            wait_ms: None,
        };
        let refused: [(&[Request<'_>], Misuse); 4] = [
            (
                &[end_step("a")],
                Misuse::UnmatchedStepEnd { name: "a".into() },
            ),
            (
                &[Request::StepBegin("a"), end_step("b")],
                Misuse::UnmatchedStepEnd { name: "b".into() },
            ),
            (
                &[Request::StepBegin("a"), Request::StepBegin("b")],
                Misuse::NestedStep { open: "a".into() },
            ),
            (
                &[Request::StepBegin("a"), ask],
                Misuse::AskInStep { open: "a".into() },
            ),
        ];
        for (requests, misuse) in refused {
            let mut world = World::default();
            let (last, before) = requests.split_last().unwrap();
            for request in before {
                world.begin(request).unwrap();
            }
            assert_eq!(world.begin(last), Err(misuse));
        }
    }
}
