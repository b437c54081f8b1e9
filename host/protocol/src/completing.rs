//! `completion/complete`: what is typed, and of what.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::json::{self, is_object, shown};
use crate::request::{Param, Params, members_of, must_be, texts};

/// Texts by name.
pub type Texts<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// What is typed while somebody fills in a prompt or a template.
#[derive(Debug)]
pub struct Completing<'a> {
    /// Of what.
    pub of: Reference<'a>,
    /// The name of the argument or the variable.
    pub argument: Cow<'a, str>,
    /// What was typed so far.
    pub value: Cow<'a, str>,
    /// What was chosen before.
    pub context: Texts<'a>,
}

/// What an argument belongs to.
#[derive(Debug, PartialEq, Eq)]
pub enum Reference<'a> {
    /// The prompt of that name.
    Prompt(Cow<'a, str>),
    /// The template of resources with that text.
    Template(Cow<'a, str>),
}

impl<'a> Completing<'a> {
    pub(crate) fn read(params: &Params<'a>) -> Result<Self, RpcError> {
        let object = |param| {
            params
                .optional_object(param)?
                .ok_or_else(|| must_be(param, "there, an object"))
        };
        let text = |path: &str, raw: Option<&'a RawValue>| {
            raw.and_then(json::string)
                .ok_or_else(|| RpcError::invalid_params(format!("{path} must be there, a string")))
        };
        let [kind, name, uri] =
            members_of("params.ref", object(Param::Ref)?, &["type", "name", "uri"])?;
        let of = match text("params.ref.type", kind)?.as_ref() {
            "ref/prompt" => Reference::Prompt(text("params.ref.name", name)?),
            "ref/resource" => Reference::Template(text("params.ref.uri", uri)?),
            other => {
                return Err(RpcError::invalid_params(format!(
                    "params.ref.type must be ref/prompt or ref/resource, not {}",
                    shown(other)
                )));
            }
        };
        let [name, value] = members_of(
            "params.argument",
            object(Param::Argument)?,
            &["name", "value"],
        )?;
        let chosen = match params.optional_object(Param::Context)? {
            Some(context) => members_of("params.context", context, &["arguments"])?[0],
            None => None,
        };
        Ok(Self {
            of,
            argument: text("params.argument.name", name)?,
            value: text("params.argument.value", value)?,
            context: match chosen {
                Some(chosen) if is_object(chosen) => texts("params.context.arguments", chosen)?,
                Some(_) => {
                    return Err(RpcError::invalid_params(
                        "params.context.arguments must be an object",
                    ));
                }
                None => Vec::new(),
            },
        })
    }
}
