//! Questions to the client (elicitation, sampling, roots) and the answers to them.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::capability::Capability;
use crate::error::RpcError;
use crate::json::{self, JsonFault, is_object, shown};
use crate::write::Object;

/// The longest URL to visit, in bytes.
pub const MAX_URL_BYTES: usize = 8 * 1024;

/// The kinds of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// A form for the person.
    Form,
    /// A page for the person to visit.
    Url,
    /// A request to the client's model.
    Sampling,
    /// The client's folders.
    Roots,
}

/// Writes a form. The schema is one that [`crate::form::check`] accepts.
#[must_use]
pub fn form_request(message: &str, requested_schema: &RawValue) -> String {
    request("elicitation/create", |params| {
        params.text("mode", "form");
        params.text("message", message);
        params.raw("requestedSchema", requested_schema.get());
    })
}

/// Writes a page to visit, or says what is wrong with its URL.
pub fn url_request(message: &str, url: &str) -> Result<String, JsonFault> {
    check_url(url)?;
    Ok(request("elicitation/create", |params| {
        params.text("mode", "url");
        params.text("message", message);
        params.text("url", url);
    }))
}

/// Writes a request to the client's model. The parameters are an object from the guest, read strictly before.
#[must_use]
pub fn sampling_request(params: &RawValue) -> String {
    with_params("sampling/createMessage", params.get())
}

/// Writes a request for the client's folders.
#[must_use]
pub fn roots_request(params: Option<&RawValue>) -> String {
    with_params("roots/list", params.map_or("{}", RawValue::get))
}

fn request(method: &str, write: impl FnOnce(&mut Object<'_>)) -> String {
    let mut out = String::new();
    let mut request = Object::open(&mut out);
    request.text("method", method);
    let mut params = request.object("params");
    write(&mut params);
    params.close();
    request.close();
    out
}

fn with_params(method: &str, params: &str) -> String {
    let mut out = String::with_capacity(64 + params.len());
    let mut request = Object::open(&mut out);
    request.text("method", method);
    request.raw("params", params);
    request.close();
    out
}

fn check_url(url: &str) -> Result<(), JsonFault> {
    let fault = |text: &str| Err(JsonFault(format!("url {text}")));
    if url.len() > MAX_URL_BYTES {
        return fault(&format!(
            "has {} bytes; at most {MAX_URL_BYTES} are accepted",
            url.len()
        ));
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return fault("has characters that must be percent-encoded");
    }
    let Some(rest) = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
    else {
        return fault("is not an absolute https or http URL");
    };
    if rest.split(['/', '?', '#']).next().is_none_or(str::is_empty) {
        return fault("names no host");
    }
    Ok(())
}

/// A question as it was written: what it is, and what its answer is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What it asks for.
    pub kind: InputKind,
    /// The schema of a form.
    pub schema: Option<&'a RawValue>,
    /// What its client must have declared.
    pub needs: Capability,
}

/// Reads a question: one written above and kept, or one that a guest wrote as JSON. Only the three methods of MCP
/// 2026-07-28 are questions. The text is read strictly; the schema of a form is given back unchecked.
pub fn read_question(text: &str) -> Result<Question<'_>, JsonFault> {
    let fault = |text: &str| JsonFault(text.to_owned());
    json::strict_value(text)?;
    let picked =
        json::pick(text, &["method", "params"]).map_err(|_| fault("is not a JSON object"))?;
    let [method, params] = picked.values;
    let method = method
        .and_then(json::string)
        .ok_or_else(|| fault("has no string `method`"))?;
    let params = params.map_or("{}", RawValue::get);
    let keys = [
        "mode",
        "message",
        "requestedSchema",
        "url",
        "tools",
        "toolChoice",
        "includeContext",
        "messages",
    ];
    let picked = json::pick(params, &keys).map_err(|_| fault("has `params` that are no object"))?;
    let [
        mode,
        message,
        schema,
        url,
        tools,
        tool_choice,
        context,
        messages,
    ] = picked.values;
    match method.as_ref() {
        "elicitation/create" => {
            message
                .and_then(json::string)
                .ok_or_else(|| fault("has no string `message`"))?;
            match mode.map(json::string) {
                None => form_question(schema),
                Some(Some(mode)) if mode == "form" => form_question(schema),
                Some(Some(mode)) if mode == "url" => {
                    check_url(
                        &url.and_then(json::string)
                            .ok_or_else(|| fault("has no string `url`"))?,
                    )?;
                    Ok(Question {
                        kind: InputKind::Url,
                        schema: None,
                        needs: Capability::ElicitationUrl,
                    })
                }
                Some(_) => Err(fault("has a `mode` other than `form` and `url`")),
            }
        }
        "sampling/createMessage" => {
            if messages.is_none_or(|messages| !messages.get().starts_with('[')) {
                return Err(fault("has no list of `messages`"));
            }
            let needs = if tools.is_some() || tool_choice.is_some() {
                Capability::SamplingTools
            } else if context.is_some_and(|context| context.get() != "\"none\"") {
                Capability::SamplingContext
            } else {
                Capability::Sampling
            };
            Ok(Question {
                kind: InputKind::Sampling,
                schema: None,
                needs,
            })
        }
        "roots/list" => Ok(Question {
            kind: InputKind::Roots,
            schema: None,
            needs: Capability::Roots,
        }),
        other => Err(JsonFault(format!(
            "has the method `{}`, which is no question to a client",
            shown(other)
        ))),
    }
}

fn form_question(schema: Option<&RawValue>) -> Result<Question<'_>, JsonFault> {
    let schema = schema.ok_or_else(|| JsonFault("has no `requestedSchema`".to_owned()))?;
    Ok(Question {
        kind: InputKind::Form,
        schema: Some(schema),
        needs: Capability::ElicitationForm,
    })
}

/// An answer of the right shape. Whether a form's content matches its schema is another question.
#[derive(Clone, Copy, Debug)]
pub enum InputAnswer<'a> {
    /// The person said yes. A form has its content, an object; a page has nothing.
    Accepted(Option<&'a RawValue>),
    /// The person said no.
    Declined,
    /// The person closed the question.
    Cancelled,
    /// What the model said, an object.
    Sampled(&'a RawValue),
    /// The folders, an object.
    Roots(&'a RawValue),
}

/// Reads the answer to an open question; -32602, naming the key, if it has not the shape for that kind.
pub fn read_answer<'a>(
    key: &str,
    kind: InputKind,
    answer: &'a RawValue,
) -> Result<InputAnswer<'a>, RpcError> {
    let malformed = |fault: &str| {
        RpcError::invalid_params(format!(
            "inputResponses: the answer to `{}` {fault}",
            shown(key)
        ))
    };
    let strict = |raw: &'a RawValue| {
        json::strict_value(raw.get()).map_err(|fault| malformed(&fault.to_string()))
    };
    match kind {
        InputKind::Form | InputKind::Url => {
            strict(answer)?;
            let picked = json::pick(answer.get(), &["action", "content"])
                .map_err(|_| malformed("is no object"))?;
            let [action, content] = picked.values;
            match action.and_then(json::string).as_deref() {
                Some("accept") if kind == InputKind::Url => Ok(InputAnswer::Accepted(None)),
                Some("accept") => match content {
                    Some(content) if is_object(content) => Ok(InputAnswer::Accepted(Some(content))),
                    Some(_) => Err(malformed("has a `content` that is no object")),
                    None => Err(malformed("accepts the form without its `content`")),
                },
                Some("decline") => Ok(InputAnswer::Declined),
                Some("cancel") => Ok(InputAnswer::Cancelled),
                _ => Err(malformed(
                    "has no `action` of `accept`, `decline` or `cancel`",
                )),
            }
        }
        InputKind::Sampling => {
            let value = strict(answer)?;
            let is_role = matches!(value["role"].as_str(), Some("user" | "assistant"));
            let has_content = value["content"].is_object() || value["content"].is_array();
            if !(is_role && has_content && value["model"].is_string()) {
                return Err(malformed(
                    "is no sampling result: it needs `role`, `content` and `model`",
                ));
            }
            Ok(InputAnswer::Sampled(answer))
        }
        InputKind::Roots => {
            let value = strict(answer)?;
            let is_root = |root: &Value| {
                root["uri"]
                    .as_str()
                    .is_some_and(|uri| uri.starts_with("file://"))
            };
            if !value["roots"]
                .as_array()
                .is_some_and(|roots| roots.iter().all(is_root))
            {
                return Err(malformed(
                    "is no roots result: it needs `roots`, each with a `uri` of `file://`",
                ));
            }
            Ok(InputAnswer::Roots(answer))
        }
    }
}
