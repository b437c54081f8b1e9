//! The order of all checks on a request. Where several things are wrong at once, clients and the conformance suite
//! depend on which is reported, so the order stands here and nowhere else:
//!
//! required `_meta` (-32602) → version header = `_meta` (-32020) → version spoken (-32022) → `Mcp-Method`,
//! `Mcp-Name` (-32020) → method known (-32601) → capability the method needs (-32021) → parameters (-32602).
//!
//! Before it, the transport: host, origin, authentication, content type, size, [`crate::envelope`]. After it, the
//! server: does the tool or task exist, are its arguments right.

use crate::envelope::Envelope;
use crate::error::RpcError;
use crate::headers::Headers;
use crate::json;
use crate::meta::{Meta, Opening};
use crate::request::{Method, Param, Params, Request};
use crate::version::Revision;

/// Reads a request that came over HTTP.
pub fn over_http<'a>(
    headers: &Headers<'_>,
    envelope: &Envelope<'a>,
) -> Result<(Meta<'a>, Request<'a>), RpcError> {
    decode(Some(headers), envelope)
}

/// Reads a request that came over a transport without headers.
pub fn over_stdio<'a>(envelope: &Envelope<'a>) -> Result<(Meta<'a>, Request<'a>), RpcError> {
    decode(None, envelope)
}

fn decode<'a>(
    headers: Option<&Headers<'_>>,
    envelope: &Envelope<'a>,
) -> Result<(Meta<'a>, Request<'a>), RpcError> {
    let params = Params::read(envelope.params)?;
    let opening = Opening::read(params.get(Param::Meta)?)?;

    if let Some(headers) = headers {
        headers.check_version(&opening.version)?;
    }
    let revision = Revision::parse(&opening.version)
        .filter(|revision| !revision.has_sessions())
        .ok_or_else(|| RpcError::unsupported_version(&opening.version))?;

    let method = Method::parse(&envelope.method);
    if let Some(headers) = headers {
        headers.check_method(&envelope.method)?;
        if let Some(source) = method.and_then(Method::name_source) {
            let body = params
                .get(source.param)
                .ok()
                .flatten()
                .and_then(json::string);
            headers.check_name(body.as_deref(), source.required)?;
        }
    }
    let method = method.ok_or_else(|| RpcError::method_not_found(&envelope.method))?;

    let capabilities = opening.capabilities()?;
    capabilities.require(method.requires())?;

    let meta = opening.finish(revision, capabilities)?;
    let request = Request::read(method, &params, &capabilities)?;
    Ok((meta, request))
}
