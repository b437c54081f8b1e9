//! The wire shape of what was read, filled in or proposed.

use longshore_protocol::error::RpcError;
use longshore_protocol::guest_meta::GuestMeta;
use longshore_protocol::prompt::{self, Message, Role};
use longshore_protocol::resource::{self, Contents};
use longshore_protocol::result::{CacheHint, CacheScope, ServerInfo};
use longshore_sandbox::ending;

use super::{block, body};
use crate::run::CallFacts;

/// Contents may change at any moment, and only those who subscribed are told.
const READ: CacheHint = CacheHint {
    ttl_ms: 0,
    scope: CacheScope::Private,
};

/// The result of a read, or what is wrong with it.
pub(super) fn read(contents: &[ending::Contents], info: &ServerInfo) -> Result<String, String> {
    let metas: Vec<Option<GuestMeta>> = contents
        .iter()
        .map(|part| part.meta.as_deref().map(GuestMeta::parse).transpose())
        .collect::<Result<_, _>>()
        .map_err(|fault| format!("the meta of what was read {fault}"))?;
    let contents: Vec<Contents<'_>> = contents
        .iter()
        .zip(&metas)
        .map(|(part, meta)| Contents {
            uri: &part.uri,
            mime_type: part.mime_type.as_deref(),
            body: body(&part.body),
            meta: meta.as_ref(),
        })
        .collect();
    Ok(resource::read_result(&contents, READ, info))
}

/// That its component has no such resource.
pub(super) fn not_found(call: &CallFacts) -> RpcError {
    resource::not_found(call.caller.revision, call.target.name())
}

/// A prompt that was filled in, or what is wrong with it.
pub(super) fn prompted(prompt: &ending::Prompt, info: &ServerInfo) -> Result<String, String> {
    let messages: Vec<Message<'_>> = prompt
        .messages
        .iter()
        .map(|message| {
            Ok(Message {
                role: match message.role {
                    ending::Role::User => Role::User,
                    ending::Role::Assistant => Role::Assistant,
                },
                content: block(&message.content)?,
            })
        })
        .collect::<Result<_, String>>()?;
    let description = prompt.description.as_deref();
    Ok(prompt::get_result(description, &messages, info))
}

/// Proposals.
pub(super) fn completed(completion: &ending::Completion, info: &ServerInfo) -> String {
    prompt::Completion {
        values: &completion.values,
        total: completion.total,
        has_more: completion.has_more,
    }
    .to_json(info)
}
