//! What a guest hands back: checked, and out of the engine's types.

use longshore_policy::limits::Limits;

use crate::bindings::longshore::tool::types as wit;
use crate::ending::{Block, Body, Ending, Fault, FaultKind, Media, RpcError, ToolResult};
use crate::json::{self, Shape};

/// A media type or a name, as the interface says.
pub(crate) const NAME_BYTES: usize = 255;
/// A URI or a description, as the interface says.
pub(crate) const TEXT_BYTES: usize = 8 * 1024;
/// The line of a protocol error, as the interface says.
pub(crate) const ERROR_BYTES: usize = 1024;

/// How a call that returned ended.
pub(crate) fn ending(returned: Result<wit::ToolResult, wit::CallError>, limits: &Limits) -> Ending {
    let checked = match returned {
        Ok(result) => tool_result(result, limits).map(Ending::Returned),
        Err(wit::CallError::Failed(result)) => tool_result(result, limits).map(Ending::ToolFailed),
        Err(wit::CallError::Protocol(error)) => rpc_error(error, limits).map(Ending::Protocol),
        Err(wit::CallError::Cancelled) => Ok(Ending::Cancelled),
    };
    checked.unwrap_or_else(Ending::Fault)
}

/// What a component returned that is no tool by itself, as JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// It says that it failed.
    pub(crate) is_error: bool,
    /// An object.
    pub(crate) json: String,
    /// For people, where that is more than the object as it is.
    pub(crate) text: Option<String>,
}

impl Answer {
    /// It was called with what it cannot be called with.
    pub(crate) fn refused(why: String) -> Self {
        Self {
            is_error: true,
            json: serde_json::json!({ "error": why }).to_string(),
            text: Some(why),
        }
    }

    /// How a call ended that came to this.
    pub(crate) fn ending(self) -> Ending {
        let result = ToolResult {
            content: self.text.map(Block::Text).into_iter().collect(),
            structured: Some(self.json),
            meta: None,
        };
        if self.is_error {
            Ending::ToolFailed(result)
        } else {
            Ending::Returned(result)
        }
    }
}

fn tool_result(result: wit::ToolResult, limits: &Limits) -> Result<ToolResult, Fault> {
    let mut budget = Budget::of(limits);
    // Empty blocks are free here; how many there can be is bounded by what one host call carries.
    let mut content = Vec::with_capacity(result.content.len());
    for (index, given) in result.content.into_iter().enumerate() {
        content.push(block(given, &format!("content[{index}]"), &mut budget)?);
    }
    budget.json("structured", result.structured.as_deref(), Shape::Any)?;
    budget.json("meta", result.meta.as_deref(), Shape::Object)?;
    Ok(ToolResult {
        content,
        structured: result.structured,
        meta: result.meta,
    })
}

/// One block; `place` names it in faults.
pub(crate) fn block(given: wit::Block, place: &str, budget: &mut Budget) -> Result<Block, Fault> {
    let part = |field: &str| format!("{place}{field}");
    Ok(match given {
        wit::Block::Text(text) => {
            budget.take(text.len())?;
            Block::Text(text)
        }
        wit::Block::Image(media) => Block::Image(self::media(media, &part(""), budget)?),
        wit::Block::Audio(media) => Block::Audio(self::media(media, &part(""), budget)?),
        wit::Block::ResourceLink(wit::Link {
            uri,
            name,
            mime_type,
            description,
        }) => {
            budget.text(&part(".uri"), &uri, TEXT_BYTES)?;
            budget.text(&part(".name"), &name, NAME_BYTES)?;
            budget.text(
                &part(".mime-type"),
                mime_type.as_deref().unwrap_or_default(),
                NAME_BYTES,
            )?;
            budget.text(
                &part(".description"),
                description.as_deref().unwrap_or_default(),
                TEXT_BYTES,
            )?;
            Block::ResourceLink {
                uri,
                name,
                mime_type,
                description,
            }
        }
        wit::Block::Embedded(wit::Embedded {
            uri,
            mime_type,
            body,
        }) => {
            budget.text(&part(".uri"), &uri, TEXT_BYTES)?;
            budget.text(
                &part(".mime-type"),
                mime_type.as_deref().unwrap_or_default(),
                NAME_BYTES,
            )?;
            Block::Embedded {
                uri,
                mime_type,
                body: self::body(body, budget)?,
            }
        }
        wit::Block::Raw(json) => {
            budget.json(&part(""), Some(&json), Shape::Typed)?;
            Block::Raw(json)
        }
    })
}

/// What a resource holds.
pub(crate) fn body(given: wit::Body, budget: &mut Budget) -> Result<Body, Fault> {
    Ok(match given {
        wit::Body::Text(text) => {
            budget.take(text.len())?;
            Body::Text(text)
        }
        wit::Body::Bytes(bytes) => {
            budget.take(in_base64(bytes.len()))?;
            Body::Bytes(bytes)
        }
    })
}

fn media(given: wit::Media, part: &str, budget: &mut Budget) -> Result<Media, Fault> {
    budget.take(in_base64(given.data.len()))?;
    budget.text(&format!("{part}.mime-type"), &given.mime_type, NAME_BYTES)?;
    Ok(Media {
        data: given.data,
        mime_type: given.mime_type,
    })
}

pub(crate) fn rpc_error(error: wit::RpcError, limits: &Limits) -> Result<RpcError, Fault> {
    let mut budget = Budget::of(limits);
    budget.text(
        "the message of a protocol error",
        &error.message,
        ERROR_BYTES,
    )?;
    budget.json(
        "the data of a protocol error",
        error.data.as_deref(),
        Shape::Any,
    )?;
    Ok(RpcError {
        code: error.code,
        message: error.message,
        data: error.data,
    })
}

fn in_base64(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// The bytes of one result, before they are JSON: whoever writes them measures what comes of it, which is more.
pub(crate) struct Budget {
    used: u64,
    most: u64,
}

impl Budget {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self {
            used: 0,
            most: limits.result_bytes,
        }
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Fault> {
        self.used += bytes as u64;
        if self.used > self.most {
            let message = format!("the result has more than {} bytes", self.most);
            return Err(Fault {
                kind: FaultKind::OutputLimit,
                message,
            });
        }
        Ok(())
    }

    pub(crate) fn text(&mut self, part: &str, text: &str, most: usize) -> Result<(), Fault> {
        if text.len() > most {
            let message = format!("{part} is {} bytes; at most {most} are allowed", text.len());
            return Err(Fault {
                kind: FaultKind::OutputLimit,
                message,
            });
        }
        self.take(text.len())
    }

    pub(crate) fn json(
        &mut self,
        part: &str,
        text: Option<&str>,
        shape: Shape,
    ) -> Result<(), Fault> {
        let Some(text) = text else { return Ok(()) };
        self.take(text.len())?;
        json::check(text, shape).map_err(|error| {
            let wanted = match shape {
                Shape::Any => "JSON",
                Shape::Object => "a JSON object",
                Shape::Typed => "a JSON object with a string `type`",
            };
            Fault {
                kind: FaultKind::BadOutput,
                message: format!("{part} is not {wanted}: {error}"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(content: Vec<wit::Block>) -> wit::ToolResult {
        wit::ToolResult {
            content,
            structured: None,
            meta: None,
        }
    }

    fn fault(returned: Result<wit::ToolResult, wit::CallError>) -> (FaultKind, String) {
        match ending(
            returned,
            &Limits {
                result_bytes: 100,
                ..Limits::default()
            },
        ) {
            Ending::Fault(Fault { kind, message }) => (kind, message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_is_passed_on_whole() {
        let given = wit::ToolResult {
            content: vec![
                wit::Block::Text("hi".into()),
                wit::Block::Raw("{\"type\":\"x\"}".into()),
            ],
            structured: Some("[1]".into()),
            meta: Some("{}".into()),
        };
        let expected = ToolResult {
            content: vec![
                Block::Text("hi".into()),
                Block::Raw("{\"type\":\"x\"}".into()),
            ],
            structured: Some("[1]".into()),
            meta: Some("{}".into()),
        };
        let limits = Limits::default();
        assert_eq!(
            ending(Ok(given.clone()), &limits),
            Ending::Returned(expected.clone())
        );
        assert_eq!(
            ending(Err(wit::CallError::Failed(given)), &limits),
            Ending::ToolFailed(expected)
        );
        assert_eq!(
            ending(Err(wit::CallError::Cancelled), &limits),
            Ending::Cancelled
        );
    }

    #[test]
    fn a_result_is_limited_over_all_its_parts_with_bytes_as_base64() {
        let text = |bytes: usize| wit::Block::Text("x".repeat(bytes));
        let image = |bytes| {
            wit::Block::Image(wit::Media {
                data: vec![0; bytes],
                mime_type: String::new(),
            })
        };
        let limits = Limits {
            result_bytes: 100,
            ..Limits::default()
        };
        assert!(matches!(
            ending(Ok(result(vec![text(50), text(50)])), &limits),
            Ending::Returned(_)
        ));
        assert!(matches!(
            ending(Ok(result(vec![image(75)])), &limits),
            Ending::Returned(_)
        ));
        let over = [
            result(vec![text(50), text(51)]),
            result(vec![image(76)]),
            wit::ToolResult {
                structured: Some(format!("\"{}\"", "x".repeat(99))),
                ..result(vec![])
            },
            result(vec![wit::Block::ResourceLink(wit::Link {
                uri: "u".repeat(101),
                name: String::new(),
                mime_type: None,
                description: None,
            })]),
        ];
        for given in over {
            assert_eq!(
                fault(Ok(given.clone())).0,
                FaultKind::OutputLimit,
                "{given:?}"
            );
        }
    }

    #[test]
    fn what_is_not_json_is_named_and_placed() {
        let structured = wit::ToolResult {
            structured: Some("{\"a\":NaN}".into()),
            ..result(vec![])
        };
        let meta = wit::ToolResult {
            meta: Some("[]".into()),
            ..result(vec![])
        };
        let raw = result(vec![
            wit::Block::Text(String::new()),
            wit::Block::Raw("{}".into()),
        ]);
        let protocol = wit::RpcError {
            code: 1,
            message: "m".into(),
            data: Some("x".into()),
        };
        let cases = [
            (
                Ok(structured),
                "structured is not JSON: expected value at line 1 column 6",
            ),
            (Ok(meta), "meta is not a JSON object: not an object"),
            (
                Ok(raw),
                "content[1] is not a JSON object with a string `type`: no member `type`",
            ),
            (
                Err(wit::CallError::Protocol(protocol)),
                "the data of a protocol error is not JSON: expected value",
            ),
        ];
        for (given, says) in cases {
            let (kind, message) = fault(given);
            assert_eq!(kind, FaultKind::BadOutput);
            assert!(message.starts_with(says), "{message}");
        }
    }
}
