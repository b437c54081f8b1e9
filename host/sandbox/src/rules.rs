//! What a guest may pass to `longshore:tool`: decided by what it passed before and passes now, and by
//! nothing else, so that a run that is repeated is judged alike.

use longshore_journal::call::{Answer, Ask, AskError, Change, Question, Request};
use longshore_journal::values::{Failure, Operation};
use longshore_policy::limits::Limits;

use crate::fault::Halt;

/// A step's name and a question's key, as the interface says.
const NAME_BYTES: usize = 128;
/// A URI, as the interface says.
const URI_BYTES: usize = 8 * 1024;
/// What a form or a page says to a person, as the interface says.
const PROMPT_BYTES: usize = 4 * 1024;
/// What something that a call leaves is called, and its media type, as the interface says.
const LABEL_BYTES: u64 = 255;
/// The key of what a component keeps, as the interface says.
const KEY_BYTES: usize = 256;

/// What the rules say to a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Settled {
    /// It is to be served.
    Open,
    /// Nobody needs to be asked for the answer to its questions.
    Answered(Result<Vec<Answer>, AskError>),
    /// What it keeps, or is to be found, is refused.
    Refused(Failure),
}

/// What is remembered of one run's requests.
#[derive(Debug)]
pub(crate) struct Rules {
    questions_open: u64,
    questions_left: u64,
    question_bytes: u64,
    step_bytes: u64,
    value_bytes: u64,
    artifact_bytes: u64,
    /// One question over a limit is an error that the guest is told; the next one ends it.
    over_limit_before: bool,
}

impl Rules {
    /// So many questions were asked so far.
    pub(crate) fn new(limits: &Limits, asked: u64) -> Self {
        Self {
            questions_open: limits.questions_open,
            questions_left: limits.questions_in_life.saturating_sub(asked),
            question_bytes: limits.question_bytes,
            step_bytes: limits.step_bytes,
            value_bytes: limits.value_bytes,
            artifact_bytes: limits.artifact_bytes,
            over_limit_before: false,
        }
    }

    /// What is to be done about a request.
    pub(crate) fn settle(&mut self, request: &Request<'_>) -> Result<Settled, Halt> {
        match request {
            Request::Ask { questions, .. } => self.settle_questions(questions),
            Request::Poll { what, .. } => self.settle_wait(what.len()),
            Request::Log {
                logger: Some(logger),
                ..
            } => {
                at_most("a logger's name", logger.len(), NAME_BYTES as u64)?;
                Ok(Settled::Open)
            }
            Request::StepBegin(name) => {
                if name.is_empty() {
                    return Err(Halt::Input("the name of a step is empty".into()));
                }
                at_most("the name of a step", name.len(), NAME_BYTES as u64)?;
                Ok(Settled::Open)
            }
            Request::StepEnd { value, .. } => {
                at_most("the value of a step", value.len(), self.step_bytes)?;
                Ok(Settled::Open)
            }
            Request::Checkpoint(state) => {
                at_most("a restart point", state.len(), self.step_bytes)?;
                Ok(Settled::Open)
            }
            Request::Changed(Change::Resource(uri)) => {
                at_most("the URI of a resource", uri.len(), URI_BYTES as u64)?;
                Ok(Settled::Open)
            }
            Request::Values(operation) => Ok(match self.refusal(operation) {
                Some(failure) => Settled::Refused(failure),
                None => Settled::Open,
            }),
            Request::CallId
            | Request::SetStatus(_)
            | Request::ReportProgress { .. }
            | Request::IsCancelled
            | Request::TimeLeft
            | Request::Sleep { .. }
            | Request::Detach
            | Request::CanAsk(_)
            | Request::Log { logger: None, .. }
            | Request::Changed(Change::Tools | Change::Prompts | Change::Resources) => {
                Ok(Settled::Open)
            }
        }
    }

    /// Why it is not even tried.
    fn refusal(&self, operation: &Operation) -> Option<Failure> {
        let too_long = |what: &str, bytes: usize, most: u64| {
            let is_over = bytes as u64 > most;
            is_over.then(|| {
                Failure::Limit(format!(
                    "{what} is {bytes} bytes; at most {most} are allowed"
                ))
            })
        };
        let key = |key: &str| {
            if key.is_empty() {
                return Some(Failure::Invalid("the key is empty".to_owned()));
            }
            too_long("the key", key.len(), KEY_BYTES as u64)
        };
        let value = |value: &[u8]| too_long("the value", value.len(), self.value_bytes);
        match operation {
            Operation::Get { key: of }
            | Operation::Delete { key: of }
            | Operation::Increment { key: of, .. } => key(of),
            Operation::Set {
                key: of,
                value: new,
            } => key(of).or_else(|| value(new)),
            // What cannot have been kept is only not what is there.
            Operation::Swap { key: of, new, .. } => {
                key(of).or_else(|| new.as_deref().and_then(value))
            }
            Operation::Put {
                name,
                mime_type,
                data,
            } => {
                let is_label = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
                if !is_label(name) {
                    let message = "the name is empty, or has a control character";
                    return Some(Failure::Invalid(message.to_owned()));
                }
                if !is_label(mime_type) || !mime_type.contains('/') {
                    let message = "the media type is none: one is like `text/plain`";
                    return Some(Failure::Invalid(message.to_owned()));
                }
                too_long("the name", name.len(), LABEL_BYTES)
                    .or_else(|| too_long("the media type", mime_type.len(), LABEL_BYTES))
                    .or_else(|| too_long("what is left", data.len(), self.artifact_bytes))
            }
            Operation::List { prefix, after, .. } => {
                too_long("the prefix", prefix.len(), KEY_BYTES as u64).or_else(|| {
                    let after = after.as_ref()?;
                    too_long("what the keys come behind", after.len(), KEY_BYTES as u64)
                })
            }
        }
    }

    fn settle_questions(&mut self, questions: &[Question]) -> Result<Settled, Halt> {
        if questions.is_empty() {
            return Ok(Settled::Answered(Ok(Vec::new())));
        }
        if let Some(over) = self.over_limit(questions) {
            if std::mem::replace(&mut self.over_limit_before, true) {
                return Err(Halt::Input(format!(
                    "{over}, after a question was refused for a limit"
                )));
            }
            return Ok(Settled::Answered(Err(AskError::Limit(over))));
        }
        if let Some(invalid) = questions.iter().find_map(invalid_key) {
            return Ok(Settled::Answered(Err(AskError::Invalid(invalid))));
        }
        self.questions_left -= questions.len() as u64;
        Ok(Settled::Open)
    }

    /// A wait for others is one of the questions of a call, and as large as one at most.
    fn settle_wait(&mut self, bytes: usize) -> Result<Settled, Halt> {
        let over = if self.questions_left == 0 {
            Some("no waits are left in the life of this call".to_owned())
        } else if bytes as u64 > self.question_bytes {
            let most = self.question_bytes;
            Some(format!(
                "what is waited for is {bytes} bytes; at most {most} are allowed"
            ))
        } else {
            None
        };
        match over {
            None => {
                self.questions_left -= 1;
                Ok(Settled::Open)
            }
            Some(over) if std::mem::replace(&mut self.over_limit_before, true) => Err(Halt::Input(
                format!("{over}, after something was refused for a limit"),
            )),
            Some(over) => Ok(Settled::Answered(Err(AskError::Limit(over)))),
        }
    }

    fn over_limit(&self, questions: &[Question]) -> Option<String> {
        let count = questions.len() as u64;
        if count > self.questions_open {
            return Some(format!(
                "{count} questions at once; at most {} may be open",
                self.questions_open
            ));
        }
        if count > self.questions_left {
            return Some(format!(
                "{count} questions; {} are left in the life of this call",
                self.questions_left
            ));
        }
        questions.iter().enumerate().find_map(|(index, question)| {
            let (prompt, rest) = sizes(&question.ask);
            let size = (prompt + rest) as u64;
            if size > self.question_bytes {
                let most = self.question_bytes;
                return Some(format!("question {} is {size} bytes; at most {most} are allowed", index + 1));
            }
            (prompt > PROMPT_BYTES).then(|| {
                format!("the message of question {} is {prompt} bytes; at most {PROMPT_BYTES} are allowed", index + 1)
            })
        })
    }
}

/// What a person reads of it, and all the rest.
fn sizes(ask: &Ask) -> (usize, usize) {
    match ask {
        Ask::Form { message, schema } => (message.len(), schema.len()),
        Ask::Url { message, url } => (message.len(), url.len()),
        Ask::Sample(json) | Ask::Raw(json) | Ask::Wait(json) => (0, json.len()),
        Ask::Roots(json) => (0, json.as_ref().map_or(0, String::len)),
    }
}

fn invalid_key(question: &Question) -> Option<String> {
    let key = &question.key;
    if key.is_empty() || key.len() > NAME_BYTES {
        return Some(format!(
            "a key of {} bytes; it has 1 to {NAME_BYTES}",
            key.len()
        ));
    }
    key.chars()
        .any(char::is_control)
        .then(|| format!("the key {key:?} has a control character"))
}

fn at_most(what: &str, bytes: usize, most: u64) -> Result<(), Halt> {
    if bytes as u64 > most {
        return Err(Halt::Input(format!(
            "{what} is {bytes} bytes; at most {most} are allowed"
        )));
    }
    Ok(())
}

/// The text, or its beginning and an ellipsis within `most` bytes.
pub(crate) fn shorten(text: &str, most: u64) -> String {
    const ELLIPSIS: &str = "…";
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if text.len() <= most {
        return text.to_owned();
    }
    match most.checked_sub(ELLIPSIS.len()) {
        Some(room) => format!("{}{ELLIPSIS}", &text[..text.floor_char_boundary(room)]),
        None => text[..text.floor_char_boundary(most)].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        rules_after(0)
    }

    fn rules_after(asked: u64) -> Rules {
        let limits = Limits {
            questions_open: 2,
            questions_in_life: 3,
            question_bytes: 10,
            ..Limits::default()
        };
        Rules::new(&limits, asked)
    }

    #[test]
    fn keys_and_values_have_a_size() {
        let mut rules = Rules::new(
            &Limits {
                value_bytes: 3,
                artifact_bytes: 4,
                ..Limits::default()
            },
            0,
        );
        let long = |bytes: usize| "k".repeat(bytes);
        let set = |key: usize, value: usize| Operation::Set {
            key: long(key),
            value: vec![0; value],
        };
        let swap = |expected: usize, new: Option<usize>| Operation::Swap {
            key: long(1),
            expected: Some(vec![0; expected]),
            new: new.map(|new| vec![0; new]),
        };
        let list = |prefix: usize, after: Option<usize>| Operation::List {
            prefix: long(prefix),
            after: after.map(long),
            limit: 1,
        };
        let put = |name: &str, mime_type: &str, size: usize| Operation::Put {
            name: name.to_owned(),
            mime_type: mime_type.to_owned(),
            data: vec![0; size],
        };
        let get = |key: usize| Operation::Get { key: long(key) };
        let (fits, is_over, is_empty) = (None, Some("at most"), Some("is empty"));
        let (label, type_of) = (long(255), |bytes: usize| format!("a/{}", long(bytes - 2)));
        let rows = [
            (get(1), fits),
            (get(256), fits),
            (get(257), is_over),
            (get(0), is_empty),
            (Operation::Delete { key: long(257) }, is_over),
            (
                Operation::Increment {
                    key: long(257),
                    delta: 1,
                },
                is_over,
            ),
            (set(256, 3), fits),
            (set(257, 3), is_over),
            (set(256, 4), is_over),
            (set(0, 0), is_empty),
            (swap(4, Some(3)), fits),
            (swap(0, Some(4)), is_over),
            (swap(0, None), fits),
            (list(0, None), fits),
            (list(256, Some(256)), fits),
            (list(257, None), is_over),
            (list(0, Some(257)), is_over),
            (put(&label, &type_of(255), 4), fits),
            (put(&long(256), "a/b", 0), is_over),
            (put("n", &type_of(256), 0), is_over),
            (put("n", "a/b", 5), is_over),
            (put("", "a/b", 0), is_empty),
            (put("a\nb", "a/b", 0), Some("control")),
            (put("n", "a/b\r\n", 0), Some("media type")),
            (put("n", "text", 0), Some("media type")),
        ];
        for (operation, expected) in rows {
            let settled = rules.settle(&Request::Values(&operation)).unwrap();
            match (settled, expected) {
                (Settled::Open, None) => {}
                (
                    Settled::Refused(Failure::Limit(text) | Failure::Invalid(text)),
                    Some(expected),
                ) => assert!(text.contains(expected), "{operation:?}: {text}"),
                (settled, _) => panic!("{operation:?}: {settled:?}"),
            }
        }
    }

    #[test]
    fn what_was_asked_before_a_restart_point_counts() {
        let one = [raw("a", 1)];
        let ask = Request::Ask {
            questions: &one,
            wait_ms: None,
        };
        let mut rules = rules_after(2);
        assert_eq!(rules.settle(&ask), Ok(Settled::Open));
        let Ok(Settled::Answered(Err(AskError::Limit(text)))) = rules.settle(&ask) else {
            panic!("the fourth is one too many");
        };
        assert!(text.contains("0 are left"), "{text}");
    }

    fn raw(key: &str, bytes: usize) -> Question {
        Question {
            key: key.into(),
            ask: Ask::Raw("x".repeat(bytes)),
        }
    }

    fn ask(rules: &mut Rules, questions: &[Question]) -> Result<Settled, Halt> {
        rules.settle(&Request::Ask {
            questions,
            wait_ms: None,
        })
    }

    fn is_limit(settled: &Result<Settled, Halt>) -> bool {
        matches!(settled, Ok(Settled::Answered(Err(AskError::Limit(_)))))
    }

    #[test]
    fn questions_are_limited_in_size_at_once_and_in_life() {
        assert_eq!(
            ask(&mut rules(), &[raw("a", 10), raw("b", 10)]).unwrap(),
            Settled::Open
        );
        assert!(is_limit(&ask(
            &mut rules(),
            &[raw("a", 1), raw("b", 1), raw("c", 1)]
        )));
        assert!(is_limit(&ask(&mut rules(), &[raw("a", 11)])));
        let mut used = rules();
        ask(&mut used, &[raw("a", 1), raw("b", 1)]).unwrap();
        assert!(
            is_limit(&ask(&mut used, &[raw("a", 1), raw("b", 1)])),
            "two and two are four"
        );
        assert_eq!(
            ask(&mut rules(), &[]).unwrap(),
            Settled::Answered(Ok(Vec::new()))
        );
    }

    #[test]
    fn the_second_question_over_a_limit_ends_the_run() {
        let mut rules = rules();
        assert!(is_limit(&ask(&mut rules, &[raw("a", 11)])));
        assert_eq!(
            ask(&mut rules, &[raw("a", 1)]).unwrap(),
            Settled::Open,
            "a good one is still asked"
        );
        assert!(matches!(
            ask(&mut rules, &[raw("a", 11)]),
            Err(Halt::Input(_))
        ));
    }

    #[test]
    fn a_bad_key_is_an_error_and_uses_up_no_question() {
        let mut rules = rules();
        let bad_keys = [String::new(), "a\nb".into(), "k".repeat(129)];
        for key in &bad_keys {
            let settled = ask(&mut rules, &[raw(key, 1)]).unwrap();
            assert!(
                matches!(settled, Settled::Answered(Err(AskError::Invalid(_)))),
                "{key:?}"
            );
        }
        assert_eq!(ask(&mut rules, &[raw("a", 1)]).unwrap(), Settled::Open);
        assert_eq!(
            ask(&mut rules, &[raw("a", 1), raw("b", 1)]).unwrap(),
            Settled::Open
        );
    }

    #[test]
    fn texts_are_shortened_at_a_character() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcdefg", 6), "abc…");
        assert_eq!(shorten("ääää", 6), "ä…");
        assert_eq!(shorten("abc", 2), "ab");
        assert_eq!(shorten("", 0), "");
    }

    #[test]
    fn names_and_values_over_their_limit_end_the_run() {
        let long = "n".repeat(129);
        let requests = [
            Request::StepBegin(&long),
            Request::StepBegin(""),
            Request::Log {
                level: longshore_journal::call::LogLevel::Info,
                logger: Some(&long),
                message: "",
            },
            Request::StepEnd {
                name: "n",
                value: &vec![0; 1024 * 1024 + 1],
            },
            Request::Checkpoint(&vec![0; 1024 * 1024 + 1]),
        ];
        for request in requests {
            assert!(matches!(rules().settle(&request), Err(Halt::Input(_))));
        }
        assert!(rules().settle(&Request::StepBegin(&long[..128])).is_ok());
    }
}
