//! The wire shape of what the store keeps as opaque text: questions, answers, results, failures.
//!
//! Everything that another revision of the protocol would write differently is written here.

mod library;

use longshore_catalog::schema::Compiled;
use longshore_journal::call::{Answer, Ask, AskError};
use longshore_protocol::capability::ClientCapabilities;
use longshore_protocol::content::{Body, Content, Media, RawBlock, ToolResult};
use longshore_protocol::elicitation::{self, InputAnswer, InputKind};
use longshore_protocol::error::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use longshore_protocol::form;
use longshore_protocol::guest_meta::GuestMeta;
use longshore_protocol::notification::TaskMembers;
use longshore_protocol::result::ServerInfo;
use longshore_protocol::task::{InputRequest, Task as WireTask, TaskState};
use longshore_sandbox::control::StopReason;
use longshore_sandbox::ending::{self, Ending, FaultKind, RingText};
use longshore_tasks::event::{NewQuestion, Outcome};
use longshore_tasks::id::Json;
use longshore_tasks::task::{Failure, State, Task};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::reason::{OWN_CODES, RunReason, is_ours, of_stop};
use crate::run::CallFacts;
use crate::run::inquiry::Put;

// Questions and answers

/// A question that may be put to its client.
pub(crate) struct Asked {
    request: String,
    kind: InputKind,
    /// The guest wrote the whole request and reads the whole answer.
    raw: bool,
}

/// The question as its client will see it, or why it cannot be asked.
pub(crate) fn asked(ask: &Ask, capabilities: &ClientCapabilities) -> Result<Asked, AskError> {
    let invalid =
        |fault: &dyn std::fmt::Display| AskError::Invalid(format!("the question {fault}"));
    let json = |text: &str| -> Result<Box<RawValue>, AskError> {
        longshore_protocol::json::strict_value(text).map_err(|fault| invalid(&fault))?;
        RawValue::from_string(text.trim().to_owned()).map_err(|_| invalid(&"is not JSON"))
    };
    let request = match ask {
        // Nobody is asked, so nobody has to be able to answer.
        Ask::Wait(what) => return Ok(Asked::of_host(what)),
        Ask::Form { message, schema } => elicitation::form_request(message, &json(schema)?),
        Ask::Url { message, url } => {
            elicitation::url_request(message, url).map_err(|fault| invalid(&fault))?
        }
        Ask::Sample(params) => elicitation::sampling_request(&json(params)?),
        Ask::Roots(None) => elicitation::roots_request(None),
        Ask::Roots(Some(params)) => elicitation::roots_request(Some(&json(params)?)),
        Ask::Raw(text) => json(text)?.get().to_owned(),
    };
    let question = elicitation::read_question(&request).map_err(|fault| invalid(&fault))?;
    if !capabilities.has(question.needs) {
        return Err(AskError::Unsupported(format!(
            "the client does not offer {}",
            question.needs.word()
        )));
    }
    if let Some(schema) = question.schema {
        form::check(schema).map_err(|fault| invalid(&fault))?;
    }
    let kind = question.kind;
    Ok(Asked {
        request,
        kind,
        raw: matches!(ask, Ask::Raw(_)),
    })
}

impl Asked {
    /// A wait that the host sees to.
    fn of_host(what: &str) -> Self {
        Self {
            request: what.to_owned(),
            kind: InputKind::Roots,
            raw: true,
        }
    }

    /// What is asked or waited for, one text.
    pub(crate) fn request(&self) -> &str {
        &self.request
    }

    /// The question for the row.
    pub(crate) fn as_new(&self, key: &str) -> NewQuestion {
        NewQuestion {
            key: key.to_owned(),
            request: Json::from(self.request.as_str()),
        }
    }

    /// Whether an answer fits; see [`check_answer`].
    pub(crate) fn check(&self, key: &str, answer: &RawValue) -> Result<Json, RpcError> {
        check_answer(key, &self.request, answer)
    }

    /// The question for whoever holds the call.
    pub(crate) fn as_put(&self, key: &str) -> Put {
        Put {
            key: key.to_owned(),
            request: self.request.clone(),
        }
    }

    /// The answer for the guest, from the text that [`check_answer`] let through.
    pub(crate) fn answer(&self, stored: &str) -> Option<Answer> {
        if self.raw {
            return Some(Answer::Raw(stored.to_owned()));
        }
        let raw: &RawValue = serde_json::from_str(stored).ok()?;
        let answer = elicitation::read_answer("", self.kind, raw).ok()?;
        Some(match answer {
            InputAnswer::Accepted(content) => {
                Answer::Accepted(content.map(|content| content.get().to_owned()))
            }
            InputAnswer::Declined => Answer::Declined,
            InputAnswer::Cancelled => Answer::Dismissed,
            InputAnswer::Sampled(result) => Answer::Sampled(result.get().to_owned()),
            InputAnswer::Roots(result) => Answer::Roots(result.get().to_owned()),
        })
    }
}

/// Whether an answer fits the question that is stored under that key; -32602 naming the key if not.
pub(crate) fn check_answer(key: &str, request: &str, answer: &RawValue) -> Result<Json, RpcError> {
    let damaged = || RpcError::internal(format!("the stored question {key:?} cannot be read"));
    let question = elicitation::read_question(request).map_err(|_| damaged())?;
    let read = elicitation::read_answer(key, question.kind, answer)?;
    if let (InputAnswer::Accepted(Some(content)), Some(schema)) = (read, question.schema) {
        let schema = Compiled::compile(schema.get()).map_err(|_| damaged())?;
        let value = serde_json::from_str(content.get()).map_err(|_| damaged())?;
        if let Err(problems) = schema.check(&value) {
            let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(RpcError::invalid_params(format!(
                "inputResponses: the answer to `{key}` does not fit the form: {}",
                list.join("; ")
            )));
        }
    }
    Ok(Json::from(answer.get()))
}

// Results and failures

/// A failure of that reason.
pub(crate) fn failure(reason: RunReason, message: &str) -> Failure {
    Failure {
        code: reason.code(),
        message: message.to_owned(),
        data: Some(Json::from(format!(
            "{{\"reason\":\"{}\"}}",
            reason.as_str()
        ))),
    }
}

/// How a call ends, from how its run ended. `why` says why it was cancelled, if it was.
pub(crate) fn outcome(
    call: &CallFacts,
    ending: Ending,
    why: Option<StopReason>,
    stderr: &RingText,
    info: &ServerInfo,
) -> Outcome {
    // A deadline is one: what comes after it is too late, whatever it is.
    if why == Some(StopReason::Expired) {
        return stopped(StopReason::Expired);
    }
    let most = call.policy.limits.result_bytes;
    match ending {
        Ending::Returned(result) => tool_result(call, &result, false, info),
        Ending::ToolFailed(result) => tool_result(call, &result, true, info),
        Ending::Read(contents) => completed(most, library::read(&contents, info)),
        Ending::NotFound => Outcome::Failed(of_error(library::not_found(call))),
        Ending::Prompted(prompt) => completed(most, library::prompted(&prompt, info)),
        Ending::BadArgument(text) => Outcome::Failed(of_error(RpcError::invalid_params(text))),
        Ending::Completed(values) => completed(most, Ok(library::completed(&values, info))),
        Ending::Protocol(error) => Outcome::Failed(guest_error(error)),
        Ending::Cancelled => match why {
            Some(reason) => stopped(reason),
            None => Outcome::Failed(failure(
                RunReason::BadOutput,
                "the tool says that it was cancelled, but nobody cancelled it",
            )),
        },
        Ending::Stopped(reason) => stopped(reason),
        Ending::RecordsEnd { call } => Outcome::Failed(failure(
            RunReason::HostFault,
            &format!("a call was only repeated, up to its import call {call}"),
        )),
        // A guest that fails over its own cancel is cancelled all the same.
        Ending::Fault(fault) if fault.kind != FaultKind::Host && why.is_some() => {
            stopped(why.unwrap_or(StopReason::Cancelled))
        }
        Ending::Fault(fault) => {
            let mut message = fault.message;
            if let Some(line) = last_line(&stderr.text).filter(|line| !message.contains(line)) {
                message = format!("{message}; its last words: {line}");
            }
            Outcome::Failed(failure(fault.kind.into(), &message))
        }
    }
}

/// How a call ends whose run was stopped.
pub(crate) fn stopped(reason: StopReason) -> Outcome {
    match of_stop(reason) {
        Some(RunReason::WallLimit) => Outcome::Failed(failure(
            RunReason::WallLimit,
            "the run took longer than it may",
        )),
        Some(RunReason::Expired) => Outcome::Failed(failure(
            RunReason::Expired,
            "the deadline passed before the tool ended",
        )),
        Some(reason) => Outcome::Failed(failure(
            reason,
            "the server went down while it ran this call",
        )),
        None if reason == StopReason::Abandoned => Outcome::Cancelled(Some(
            "abandoned: the caller went away before it could be told the task's id".to_owned(),
        )),
        None => Outcome::Cancelled(None),
    }
}

/// The longest part of a guest's last line that goes into an error.
const LAST_LINE_CHARS: usize = 300;

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(
        line.trim()
            .chars()
            .filter(|c| !c.is_control())
            .take(LAST_LINE_CHARS)
            .collect(),
    )
}

/// The guest's own error, kept out of the numbers that JSON-RPC and MCP keep for themselves, and told from the host's own.
fn guest_error(error: ending::RpcError) -> Failure {
    let reserved = (-32_768..=-32_000).contains(&error.code)
        && !matches!(error.code, INVALID_PARAMS | INTERNAL_ERROR);
    let like_ours =
        OWN_CODES.contains(&error.code) || error.data.as_deref().is_some_and(has_a_word_of_ours);
    if !reserved && !like_ours {
        return Failure {
            code: error.code,
            message: error.message,
            data: error.data.map(Json::from),
        };
    }
    let data = match error.data {
        Some(data) => format!("{{\"code\":{},\"data\":{data}}}", error.code),
        None => format!("{{\"code\":{}}}", error.code),
    };
    Failure {
        code: if reserved { INTERNAL_ERROR } else { error.code },
        message: error.message,
        data: Some(Json::from(data)),
    }
}

/// Whether data of a guest says why in a word of the host's; whoever reads the first or the last of two may see it.
fn has_a_word_of_ours(data: &str) -> bool {
    let Ok(value) = longshore_protocol::json::strict_value(data) else {
        return true;
    };
    value["reason"].as_str().is_some_and(is_ours)
}

fn tool_result(
    call: &CallFacts,
    result: &ending::ToolResult,
    is_error: bool,
    info: &ServerInfo,
) -> Outcome {
    let most = call.policy.limits.result_bytes;
    let schema = call.output_schema.as_deref();
    completed(most, result_text(result, is_error, schema, most, info))
}

/// The end of a run that returned: with its result, or with what is wrong with that.
fn completed(most: u64, result: Result<String, String>) -> Outcome {
    match result {
        // A control character is one byte of the guest's and six of JSON: what is kept and sent is measured as it is.
        Ok(text) if text.len() as u64 > most => {
            let size = text.len();
            let message =
                format!("the result has {size} bytes as JSON; at most {most} are allowed");
            Outcome::Failed(failure(RunReason::OutputLimit, &message))
        }
        Ok(text) => Outcome::Completed(Json::from(text)),
        Err(fault) => Outcome::Failed(failure(RunReason::BadOutput, &fault)),
    }
}

/// An error of the protocol as a row keeps it.
fn of_error(error: RpcError) -> Failure {
    Failure {
        code: error.code,
        message: error.message,
        data: error.data.map(Json::from),
    }
}

fn result_text(
    result: &ending::ToolResult,
    is_error: bool,
    schema: Option<&Compiled>,
    most: u64,
    info: &ServerInfo,
) -> Result<String, String> {
    let structured = result.structured.as_deref().map(structured).transpose()?;
    if let (Some(schema), false) = (schema, is_error) {
        let Some((_, value)) = &structured else {
            return Err(
                "the tool has an output schema and returned no structured result".to_owned(),
            );
        };
        schema.check(value).map_err(|problems| {
            let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
            format!(
                "the structured result does not fit the tool's output schema: {}",
                list.join("; ")
            )
        })?;
    }
    let structured = structured.map(|(text, _)| text);
    let meta = result
        .meta
        .as_ref()
        .map(|text| GuestMeta::parse(text))
        .transpose()
        .map_err(|fault| format!("the result's meta {fault}"))?;
    let mut content: Vec<Content<'_>> = result
        .content
        .iter()
        .map(block)
        .collect::<Result<_, String>>()?;
    let written = |content: &[Content<'_>]| {
        let result = ToolResult {
            content,
            structured: structured.as_deref(),
            meta: meta.as_ref(),
            is_error,
        };
        result.to_json(info)
    };
    if let (Some(structured), true) = (&structured, content.is_empty()) {
        // Clients that know no structured results read the text (MCP 2026-07-28, Tools, structured content). A result
        // that has room for its data only once is better than none.
        content.push(Content::Text(structured.get()));
        let twice = written(&content);
        if twice.len() as u64 <= most {
            return Ok(twice);
        }
        content.clear();
    }
    Ok(written(&content))
}

/// Data as the guest wrote it, and as it is read: without members that stand twice, since the client may read another one
/// than was checked.
fn structured(text: &str) -> Result<(Box<RawValue>, Value), String> {
    let value = longshore_protocol::json::strict_value(text)
        .map_err(|fault| format!("the structured result {fault}"))?;
    let text = RawValue::from_string(text.trim().to_owned())
        .map_err(|_| "the structured result is not JSON".to_owned())?;
    Ok((text, value))
}

fn block(block: &ending::Block) -> Result<Content<'_>, String> {
    Ok(match block {
        ending::Block::Text(text) => Content::Text(text),
        ending::Block::Image(media) => Content::Image(as_media(media)),
        ending::Block::Audio(media) => Content::Audio(as_media(media)),
        ending::Block::ResourceLink {
            uri,
            name,
            mime_type,
            description,
        } => Content::ResourceLink {
            uri,
            name,
            mime_type: mime_type.as_deref(),
            description: description.as_deref(),
        },
        ending::Block::Embedded {
            uri,
            mime_type,
            body,
        } => Content::Resource {
            uri,
            mime_type: mime_type.as_deref(),
            body: self::body(body),
        },
        ending::Block::Raw(text) => Content::Raw(
            RawBlock::parse(text).map_err(|fault| format!("a raw content block {fault}"))?,
        ),
    })
}

fn body(body: &ending::Body) -> Body<'_> {
    match body {
        ending::Body::Text(text) => Body::Text(text),
        ending::Body::Bytes(bytes) => Body::Blob(bytes),
    }
}

fn as_media(media: &ending::Media) -> Media<'_> {
    Media {
        data: &media.data,
        mime_type: &media.mime_type,
    }
}

/// What the caller of a held call gets.
pub(crate) fn held_result(outcome: Outcome) -> Result<String, RpcError> {
    match outcome {
        Outcome::Completed(result) => Ok(result.0.as_ref().to_owned()),
        Outcome::Failed(failure) => Err(rpc_error(&failure)),
        Outcome::Cancelled(message) => {
            let message = message.unwrap_or_else(|| "the call was cancelled".to_owned());
            Err(rpc_error(&failure(RunReason::Abandoned, &message)))
        }
    }
}

/// A failure as the protocol writes it.
pub(crate) fn rpc_error(failure: &Failure) -> RpcError {
    RpcError {
        code: failure.code,
        message: failure.message.clone(),
        data: failure.data.as_ref().map(|data| data.0.as_ref().to_owned()),
    }
}

// Tasks

/// Writes a task: as the result of the call that made it, or in full.
pub(crate) fn write_task(
    out: &mut String,
    task: &Task,
    form: TaskForm,
    poll_interval_ms: u64,
    info: &ServerInfo,
) {
    on_wire(task, poll_interval_ms, |wire| match form {
        TaskForm::Created => wire.write_created(out, info),
        TaskForm::Detailed => wire.write_detailed(out, info),
    });
}

/// What those who listen to a task are told of it.
pub(crate) fn task_members(task: &Task, poll_interval_ms: u64) -> TaskMembers {
    on_wire(task, poll_interval_ms, TaskMembers::of)
}

/// Writes a task in whatever form.
pub(crate) fn on_wire<T>(
    task: &Task,
    poll_interval_ms: u64,
    write: impl FnOnce(&WireTask<'_>) -> T,
) -> T {
    let id = task.id.to_string();
    let questions: Vec<InputRequest<'_>> = task
        .open_questions()
        .map(|question| InputRequest {
            key: &question.key,
            request: &question.request.0,
        })
        .collect();
    let error;
    let state = match &task.state {
        State::Working => TaskState::Working,
        State::InputRequired => TaskState::InputRequired(&questions),
        State::Completed { result, .. } => TaskState::Completed(&result.0),
        State::Failed { failure, .. } => {
            error = rpc_error(failure);
            TaskState::Failed(&error)
        }
        State::Cancelled { .. } => TaskState::Cancelled,
    };
    write(&WireTask {
        id: &id,
        status_message: task.status.message.as_deref(),
        created_at_ms: task.created_at.0,
        updated_at_ms: task.updated_at.0,
        ttl_ms: Some(task.ttl_ms()),
        poll_interval_ms: Some(poll_interval_ms),
        state,
    })
}

/// Which form of a task is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskForm {
    /// `CreateTaskResult`
    Created,
    /// The result of `tasks/get`
    Detailed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(code: i32, data: Option<&str>) -> Failure {
        guest_error(ending::RpcError {
            code,
            message: "m".to_owned(),
            data: data.map(str::to_owned),
        })
    }

    #[test]
    fn a_guest_cannot_speak_with_the_protocols_numbers() {
        let rows = [
            (7, None, 7, None),
            (-1, Some("1"), -1, Some("1")),
            (-32602, Some("{}"), -32602, Some("{}")),
            (-32603, None, -32603, None),
            (-32021, None, -32603, Some("{\"code\":-32021}")),
            (
                -32000,
                Some("[1]"),
                -32603,
                Some("{\"code\":-32000,\"data\":[1]}"),
            ),
            (-32768, None, -32603, Some("{\"code\":-32768}")),
            (-32769, None, -32769, None),
            // Nor with the host's.
            (999, None, 999, None),
            (1002, None, 1002, Some("{\"code\":1002}")),
            (1999, Some("1"), 1999, Some("{\"code\":1999,\"data\":1}")),
            (2000, None, 2000, None),
            (
                7,
                Some(r#"{"reason":"quota"}"#),
                7,
                Some(r#"{"reason":"quota"}"#),
            ),
            (
                -32603,
                Some(r#"{"reason":"host-fault"}"#),
                -32603,
                Some(r#"{"code":-32603,"data":{"reason":"host-fault"}}"#),
            ),
            (
                7,
                Some(r#"{"reason":"too-large"}"#),
                7,
                Some(r#"{"code":7,"data":{"reason":"too-large"}}"#),
            ),
            (
                7,
                Some(r#"{"reason":"trap","reason":"x"}"#),
                7,
                Some(r#"{"code":7,"data":{"reason":"trap","reason":"x"}}"#),
            ),
        ];
        for (code, data, expected_code, expected_data) in rows {
            let failure = guest(code, data);
            assert_eq!(failure.code, expected_code, "{code}");
            assert_eq!(
                failure.data.as_ref().map(|data| data.0.as_ref()),
                expected_data,
                "{code}"
            );
        }
    }

    fn result(text: &str, structured: Option<&str>) -> ending::ToolResult {
        ending::ToolResult {
            content: match text {
                "" => vec![],
                text => vec![ending::Block::Text(text.to_owned())],
            },
            structured: structured.map(str::to_owned),
            meta: None,
        }
    }

    fn written(result: &ending::ToolResult, most: usize) -> Result<String, String> {
        let info = ServerInfo::new("longshore", "0");
        let most = most as u64;
        match completed(most, result_text(result, false, None, most, &info)) {
            Outcome::Completed(Json(text)) => Ok(text.as_ref().to_owned()),
            Outcome::Failed(failure) => Err(failure.message),
            other @ Outcome::Cancelled(_) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_is_measured_as_it_is_kept_and_sent() {
        let around = written(&result("x", None), 1_000).unwrap().len() - 1;
        for (text, size) in [("\u{1}\u{1}", 12), ("\"\"\"", 6), ("\n", 2), ("é", 2)] {
            let fits = written(&result(text, None), around + size).unwrap();
            assert_eq!(fits.len(), around + size, "{text:?}");
            let over = written(&result(text, None), around + size - 1).unwrap_err();
            assert!(over.contains("bytes as JSON; at most"), "{over}");
        }
    }

    #[test]
    fn data_is_sent_as_it_was_checked() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#;
        let schema = Compiled::compile(schema).unwrap();
        let info = ServerInfo::new("longshore", "0");
        let text = |data: &str, is_error| {
            result_text(
                &result("", Some(data)),
                is_error,
                Some(&schema),
                1_000,
                &info,
            )
        };
        assert!(
            text(" {\"a\":2} ", false)
                .unwrap()
                .contains("\"structuredContent\":{\"a\":2}")
        );
        for data in [r#"{"a":"text","a":2}"#, r#"{"b":{"c":1,"c":1}}"#] {
            for is_error in [false, true] {
                let fault = text(data, is_error).unwrap_err();
                assert!(
                    fault.contains("structured result") && fault.contains("stands twice"),
                    "{fault}"
                );
            }
        }
        let fault = text(r#"{"a":"text"}"#, false).unwrap_err();
        assert!(fault.contains("does not fit"), "{fault}");
    }

    #[test]
    fn data_is_repeated_as_text_where_there_is_room_for_it() {
        let given = result("", Some("{\"a\":\"b\"}"));
        let twice = written(&given, 1_000).unwrap();
        assert!(
            twice.contains(r#""content":[{"type":"text","text":"{\"a\":\"b\"}"}]"#),
            "{twice}"
        );
        assert_eq!(written(&given, twice.len()).unwrap(), twice);
        let once = written(&given, twice.len() - 1).unwrap();
        assert!(
            once.contains(r#""content":[],"structuredContent":{"a":"b"}"#),
            "{once}"
        );
        assert!(written(&given, once.len() - 1).is_err());
    }

    #[test]
    fn the_last_line_is_one_harmless_line() {
        assert_eq!(last_line("a\nb\n\n").as_deref(), Some("b"));
        assert_eq!(last_line(""), None);
        assert_eq!(last_line(" \n \n"), None);
        assert_eq!(
            last_line("x\u{1b}]0;title\u{7}y").as_deref(),
            Some("x]0;titley")
        );
        assert_eq!(
            last_line(&"é".repeat(1000)).unwrap().chars().count(),
            LAST_LINE_CHARS
        );
    }
}
