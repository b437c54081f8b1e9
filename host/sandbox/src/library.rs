//! What a guest lists, and what it hands back for a resource, a prompt or a completion: out of the engine's types, and
//! checked where whoever gets it could not.

use longshore_policy::limits::Limits;

use crate::bindings::exports::longshore::tool::{completions, prompts, resources, tools};
use crate::ending::{Completion, Contents, Ending, Fault, FaultKind, Message, Prompt, Role};
use crate::json::Shape;
use crate::offer;
use crate::output::{self, Budget, ERROR_BYTES, NAME_BYTES, TEXT_BYTES};

/// What a read returns.
pub(crate) type Read = Result<Vec<resources::Contents>, resources::ReadError>;
/// What a prompt returns.
pub(crate) type Prompted = Result<prompts::PromptResult, prompts::PromptError>;

/// How a read of that URI ended.
pub(crate) fn read(asked: &str, returned: Read, limits: &Limits) -> Ending {
    let checked = match returned {
        Ok(contents) => contents_of(asked, contents, limits).map(Ending::Read),
        Err(resources::ReadError::NotFound) => Ok(Ending::NotFound),
        Err(resources::ReadError::Protocol(error)) => {
            output::rpc_error(error, limits).map(Ending::Protocol)
        }
        Err(resources::ReadError::Cancelled) => Ok(Ending::Cancelled),
    };
    checked.unwrap_or_else(Ending::Fault)
}

fn contents_of(
    asked: &str,
    given: Vec<resources::Contents>,
    limits: &Limits,
) -> Result<Vec<Contents>, Fault> {
    let mut budget = Budget::of(limits);
    given
        .into_iter()
        .enumerate()
        .map(|(index, part)| {
            let resources::Contents {
                uri,
                mime_type,
                body,
                meta,
            } = part;
            let place = |field: &str| format!("contents[{index}].{field}");
            budget.text(&place("uri"), &uri, TEXT_BYTES)?;
            // A client shows what it got under that name: it must not be the name of another's.
            if !is_at_or_below(&uri, asked) {
                return Err(Fault {
                    kind: FaultKind::BadOutput,
                    message: format!(
                        "{} is neither the one asked for nor one below it",
                        place("uri")
                    ),
                });
            }
            budget.text(
                &place("mime-type"),
                mime_type.as_deref().unwrap_or_default(),
                NAME_BYTES,
            )?;
            budget.json(&place("meta"), meta.as_deref(), Shape::Object)?;
            Ok(Contents {
                uri,
                mime_type,
                body: output::body(body, &mut budget)?,
                meta,
            })
        })
        .collect()
}

fn is_at_or_below(uri: &str, asked: &str) -> bool {
    let below = uri.strip_prefix(asked.trim_end_matches('/'));
    uri == asked || below.is_some_and(|rest| rest.starts_with('/'))
}

/// How filling in a prompt ended.
pub(crate) fn prompted(returned: Prompted, limits: &Limits) -> Ending {
    let checked = match returned {
        Ok(prompt) => prompt_of(prompt, limits).map(Ending::Prompted),
        Err(prompts::PromptError::Invalid(text)) => Budget::of(limits)
            .text("what is wrong with an argument", &text, ERROR_BYTES)
            .map(|()| Ending::BadArgument(text)),
        Err(prompts::PromptError::Protocol(error)) => {
            output::rpc_error(error, limits).map(Ending::Protocol)
        }
        Err(prompts::PromptError::Cancelled) => Ok(Ending::Cancelled),
    };
    checked.unwrap_or_else(Ending::Fault)
}

fn prompt_of(given: prompts::PromptResult, limits: &Limits) -> Result<Prompt, Fault> {
    let mut budget = Budget::of(limits);
    let description = given.description.as_deref().unwrap_or_default();
    budget.text("the description", description, TEXT_BYTES)?;
    let mut messages = Vec::with_capacity(given.messages.len());
    for (index, message) in given.messages.into_iter().enumerate() {
        let place = format!("messages[{index}].content");
        messages.push(Message {
            role: match message.role {
                prompts::Role::User => Role::User,
                prompts::Role::Assistant => Role::Assistant,
            },
            content: output::block(message.content, &place, &mut budget)?,
        });
    }
    Ok(Prompt {
        description: given.description,
        messages,
    })
}

/// How a completion ended.
pub(crate) fn completed(returned: completions::Completion, limits: &Limits) -> Ending {
    let completions::Completion {
        values,
        total,
        has_more,
    } = returned;
    let mut budget = Budget::of(limits);
    match values.iter().try_for_each(|value| budget.take(value.len())) {
        Ok(()) => Ending::Completed(Completion {
            values,
            total,
            has_more,
        }),
        Err(fault) => Ending::Fault(fault),
    }
}

/// A tool as its component lists it.
pub(crate) fn tool(tool: tools::Tool) -> offer::Tool {
    offer::Tool {
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema: tool.input_schema,
        output_schema: tool.output_schema,
        task_mode: match tool.task_mode {
            tools::TaskMode::Never => offer::Mode::Never,
            tools::TaskMode::OnDetach => offer::Mode::OnDetach,
            tools::TaskMode::Auto => offer::Mode::Auto,
            tools::TaskMode::Always => offer::Mode::Always,
        },
        requires: tool.requires,
        extra: tool.extra,
    }
}

/// A resource as its component lists it.
pub(crate) fn resource(resource: resources::ResourceInfo) -> offer::Resource {
    let resources::ResourceInfo {
        uri,
        name,
        mime_type,
        description,
        extra,
    } = resource;
    offer::Resource {
        uri,
        name,
        mime_type,
        description,
        extra,
    }
}

/// A template as its component lists it.
pub(crate) fn template(template: resources::Template) -> offer::Template {
    let resources::Template {
        uri_template,
        name,
        mime_type,
        description,
        extra,
    } = template;
    offer::Template {
        uri_template,
        name,
        mime_type,
        description,
        extra,
    }
}

/// A prompt as its component lists it.
pub(crate) fn prompt(prompt: prompts::Prompt) -> offer::Prompt {
    let prompts::Prompt {
        name,
        title,
        description,
        arguments,
        extra,
    } = prompt;
    offer::Prompt {
        name,
        title,
        description,
        arguments: arguments
            .into_iter()
            .map(
                |prompts::Argument {
                     name,
                     description,
                     required,
                 }| offer::Argument {
                    name,
                    description,
                    required,
                },
            )
            .collect(),
        extra,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::longshore::tool::types as wit;

    fn limits() -> Limits {
        Limits {
            result_bytes: 100,
            ..Limits::default()
        }
    }

    fn text(uri: &str, bytes: usize) -> resources::Contents {
        resources::Contents {
            uri: uri.to_owned(),
            mime_type: None,
            body: wit::Body::Text("x".repeat(bytes)),
            meta: None,
        }
    }

    fn fault(ending: Ending) -> (FaultKind, String) {
        match ending {
            Ending::Fault(Fault { kind, message }) => (kind, message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_read_is_limited_over_all_its_parts_with_bytes_as_base64() {
        let read = |given| read("t:a", Ok(given), &limits());
        // Each has three bytes of URI.
        assert!(matches!(
            read(vec![text("t:a", 47), text("t:a", 47)]),
            Ending::Read(_)
        ));
        let bytes = |count| resources::Contents {
            body: wit::Body::Bytes(vec![0; count]),
            ..text("t:a", 0)
        };
        assert!(matches!(read(vec![bytes(72)]), Ending::Read(_)));
        for given in [vec![text("t:a", 47), text("t:a", 48)], vec![bytes(73)]] {
            assert_eq!(fault(read(given)).0, FaultKind::OutputLimit);
        }
        let meta = resources::Contents {
            meta: Some("[]".to_owned()),
            ..text("t:a", 0)
        };
        let (kind, message) = fault(read(vec![text("t:a", 0), meta]));
        assert_eq!(kind, FaultKind::BadOutput);
        assert!(
            message.starts_with("contents[1].meta is not a JSON object"),
            "{message}"
        );
    }

    #[test]
    fn what_was_read_is_what_was_asked_for_or_below_it() {
        let rows = [
            ("t:a", "t:a", true),
            ("t:a", "t:a/b", true),
            ("t:a/", "t:a/b", true),
            ("t:a", "t:ab", false),
            ("t:a", "t:b", false),
            ("t:a/b", "t:a", false),
            ("t:a", "", false),
        ];
        for (asked, uri, fits) in rows {
            let ending = read(asked, Ok(vec![text(uri, 1)]), &limits());
            if fits {
                assert!(matches!(ending, Ending::Read(_)), "{uri} of {asked}");
            } else {
                assert_eq!(fault(ending).0, FaultKind::BadOutput, "{uri} of {asked}");
            }
        }
    }

    #[test]
    fn the_ways_in_which_there_is_nothing_to_read_are_kept_apart() {
        let ended = |error| read("t:a", Err(error), &limits());
        assert_eq!(ended(resources::ReadError::NotFound), Ending::NotFound);
        assert_eq!(ended(resources::ReadError::Cancelled), Ending::Cancelled);
        let error = wit::RpcError {
            code: 7,
            message: "no".to_owned(),
            data: None,
        };
        assert!(matches!(
            ended(resources::ReadError::Protocol(error)),
            Ending::Protocol(_)
        ));
    }

    #[test]
    fn a_prompt_is_limited_and_its_blocks_are_checked() {
        let say = |content| prompts::Message {
            role: prompts::Role::Assistant,
            content,
        };
        let prompted = |description: usize, messages| {
            let returned = prompts::PromptResult {
                description: Some("x".repeat(description)),
                messages,
            };
            prompted(Ok(returned), &limits())
        };
        let plain = |bytes: usize| say(wit::Block::Text("x".repeat(bytes)));
        assert!(matches!(
            prompted(50, vec![plain(25), plain(25)]),
            Ending::Prompted(_)
        ));
        let over = prompted(50, vec![plain(25), plain(26)]);
        assert_eq!(fault(over).0, FaultKind::OutputLimit);
        let raw = vec![plain(0), say(wit::Block::Raw("{}".to_owned()))];
        let (kind, message) = fault(prompted(0, raw));
        assert_eq!(kind, FaultKind::BadOutput);
        assert!(
            message.starts_with("messages[1].content is not"),
            "{message}"
        );
    }

    #[test]
    fn what_is_wrong_with_an_argument_is_one_short_line() {
        let wrong = |bytes: usize| {
            let error = prompts::PromptError::Invalid("x".repeat(bytes));
            super::prompted(Err(error), &Limits::default())
        };
        assert_eq!(
            wrong(ERROR_BYTES),
            Ending::BadArgument("x".repeat(ERROR_BYTES))
        );
        assert_eq!(fault(wrong(ERROR_BYTES + 1)).0, FaultKind::OutputLimit);
    }

    #[test]
    fn proposals_are_limited_together() {
        let completed = |values: Vec<String>| {
            let returned = completions::Completion {
                values,
                total: Some(3),
                has_more: true,
            };
            completed(returned, &limits())
        };
        let values = vec!["x".repeat(50), "y".repeat(50)];
        assert_eq!(
            completed(values.clone()),
            Ending::Completed(Completion {
                values,
                total: Some(3),
                has_more: true
            })
        );
        let over = completed(vec!["x".repeat(50), "y".repeat(51)]);
        assert_eq!(fault(over).0, FaultKind::OutputLimit);
    }
}
