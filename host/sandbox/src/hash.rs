//! One short name for what a run returned, by which a repetition is compared with what it repeats.

use crate::bindings::exports::longshore::tool::prompts::{PromptError, Role};
use crate::bindings::exports::longshore::tool::resources::ReadError;
use crate::bindings::longshore::tool::types as wit;
use crate::link::Returned;

/// What most results take.
const USUAL_BYTES: usize = 256;

/// A hash of what a run returned, whole and unchecked: the same for the same, whoever computes it.
pub(crate) fn of(returned: &Returned) -> [u8; 16] {
    let mut form = Form(Vec::with_capacity(USUAL_BYTES));
    match returned {
        Returned::Tool(Ok(result)) => form.result(0, result),
        Returned::Tool(Err(wit::CallError::Failed(result))) => form.result(1, result),
        Returned::Tool(Err(wit::CallError::Protocol(error)))
        | Returned::Read(Err(ReadError::Protocol(error)))
        | Returned::Prompted(Err(PromptError::Protocol(error))) => {
            form.number(2);
            form.bytes(&error.code.to_le_bytes());
            form.bytes(error.message.as_bytes());
            form.option(error.data.as_deref());
        }
        Returned::Tool(Err(wit::CallError::Cancelled))
        | Returned::Read(Err(ReadError::Cancelled))
        | Returned::Prompted(Err(PromptError::Cancelled)) => form.number(3),
        Returned::Read(Ok(contents)) => {
            form.number(4);
            form.number(contents.len() as u64);
            for part in contents {
                form.bytes(part.uri.as_bytes());
                form.option(part.mime_type.as_deref());
                form.body(&part.body);
                form.option(part.meta.as_deref());
            }
        }
        Returned::Read(Err(ReadError::NotFound)) => form.number(5),
        Returned::Prompted(Ok(prompt)) => {
            form.number(6);
            form.option(prompt.description.as_deref());
            form.number(prompt.messages.len() as u64);
            for message in &prompt.messages {
                form.number(match message.role {
                    Role::User => 0,
                    Role::Assistant => 1,
                });
                form.block(&message.content);
            }
        }
        Returned::Prompted(Err(PromptError::Invalid(text))) => {
            form.number(7);
            form.bytes(text.as_bytes());
        }
        Returned::Completed(completion) => {
            form.number(8);
            form.number(completion.values.len() as u64);
            for value in &completion.values {
                form.bytes(value.as_bytes());
            }
            form.number(completion.total.map_or(u64::MAX, u64::from));
            form.number(completion.has_more.into());
        }
        Returned::Answered(Ok(answer)) => {
            form.number(9);
            form.number(answer.is_error.into());
            form.bytes(answer.json.as_bytes());
            form.option(answer.text.as_deref());
        }
        Returned::Answered(Err(fault)) => {
            form.number(10);
            form.bytes(fault.message.as_bytes());
        }
    }
    let hash = blake3::hash(&form.0);
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

/// What is hashed: every part with its length, every choice with its number. As one text, since most are short, and
/// those are hashed in a fraction of the time that their parts would take.
struct Form(Vec<u8>);

impl Form {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn option(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.bytes(text.as_bytes()),
            None => self.number(u64::MAX),
        }
    }

    fn result(&mut self, kind: u64, result: &wit::ToolResult) {
        self.number(kind);
        self.number(result.content.len() as u64);
        for block in &result.content {
            self.block(block);
        }
        self.option(result.structured.as_deref());
        self.option(result.meta.as_deref());
    }

    fn body(&mut self, body: &wit::Body) {
        match body {
            wit::Body::Text(text) => {
                self.number(0);
                self.bytes(text.as_bytes());
            }
            wit::Body::Bytes(bytes) => {
                self.number(1);
                self.bytes(bytes);
            }
        }
    }

    fn block(&mut self, block: &wit::Block) {
        match block {
            wit::Block::Text(text) => {
                self.number(0);
                self.bytes(text.as_bytes());
            }
            wit::Block::Image(media) | wit::Block::Audio(media) => {
                self.number(if matches!(block, wit::Block::Image(_)) {
                    1
                } else {
                    2
                });
                self.bytes(&media.data);
                self.bytes(media.mime_type.as_bytes());
            }
            wit::Block::ResourceLink(link) => {
                self.number(3);
                self.bytes(link.uri.as_bytes());
                self.bytes(link.name.as_bytes());
                self.option(link.mime_type.as_deref());
                self.option(link.description.as_deref());
            }
            wit::Block::Embedded(embedded) => {
                self.number(4);
                self.bytes(embedded.uri.as_bytes());
                self.option(embedded.mime_type.as_deref());
                self.body(&embedded.body);
            }
            wit::Block::Raw(json) => {
                self.number(5);
                self.bytes(json.as_bytes());
            }
        }
    }
}
