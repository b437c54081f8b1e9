//! Requests that a guest makes up.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

use longshore_journal::import::Import;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::body::{Body, Content};
use super::fields::Fields;
use super::judge::{Asked, Timeouts};
use crate::bindings::wasi_world::wasi::http::types::{self, Method, Scheme};
use crate::host::State;

/// Method, scheme, authority and path of one request, for the reason that lists of fields have.
const TEXT_BYTES: usize = 8 * 1024;
/// A request.
pub struct Request {
    method: Method,
    path_with_query: Option<String>,
    scheme: Option<Scheme>,
    authority: Option<String>,
    pub(super) headers: Fields,
    /// Its body, once the guest has taken it to write to.
    pub(super) content: Option<Content>,
}

/// How long to wait for its response.
#[derive(Default)]
pub struct Options(pub(super) Timeouts);

fn method_text(method: &Method) -> &str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Connect => "CONNECT",
        Method::Options => "OPTIONS",
        Method::Trace => "TRACE",
        Method::Patch => "PATCH",
        Method::Other(other) => other,
    }
}

fn scheme_text(scheme: &Scheme) -> &str {
    match scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
        Scheme::Other(other) => other,
    }
}

impl Request {
    /// It, as it is judged.
    pub(super) fn asked(&self, options: Option<Options>) -> Asked<'_> {
        Asked {
            method: method_text(&self.method),
            scheme: self.scheme.as_ref().map(scheme_text),
            authority: self.authority.as_deref().unwrap_or_default(),
            path: self.path_text(),
            fields: self.headers.entries().to_vec(),
            timeouts: options.unwrap_or_default().0,
        }
    }

    /// Path and query as they are sent.
    fn path_text(&self) -> String {
        match self.path_with_query.as_deref() {
            None | Some("") => "/".to_owned(),
            Some(path) if path.starts_with('/') || path == "*" => path.to_owned(),
            // Whatever else it looks like, it is a path at the host that was judged.
            Some(path) => format!("/{path}"),
        }
    }

    /// Whether its texts, with one of them replaced by so many bytes, are as short as they must be.
    fn is_short(&self, before: Option<&str>, after: Option<&str>) -> bool {
        let length = |text: Option<&str>| text.map_or(0, str::len);
        let all = method_text(&self.method).len()
            + length(self.path_with_query.as_deref())
            + length(self.scheme.as_ref().map(scheme_text))
            + length(self.authority.as_deref());
        all - length(before) + length(after) <= TEXT_BYTES
    }
}

impl State {
    fn passes_text(
        &mut self,
        import: Import,
        request: &Resource<Request>,
        text: Option<&str>,
    ) -> Result<&mut Request> {
        self.passes_on(import, request, u64::from(text.is_some()))?;
        self.world.passed(text.unwrap_or_default().as_bytes());
        Ok(self.wasi.table.get_mut(request)?)
    }

    fn options(
        &mut self,
        import: Import,
        options: &Resource<Options>,
        given: Option<u64>,
    ) -> Result<&mut Options> {
        self.passes_on(import, options, given.map_or(0, |ns| ns.saturating_add(1)))?;
        Ok(self.wasi.table.get_mut(options)?)
    }
}

impl types::HostOutgoingRequest for State {
    fn new(&mut self, headers: Resource<Fields>) -> Result<Resource<Request>> {
        self.passes_on(import!("wasi:http/types.outgoing-request.new"), &headers, 0)?;
        let headers = self.take_fields(headers)?;
        Ok(self.wasi.table.push(Request {
            method: Method::Get,
            path_with_query: None,
            scheme: None,
            authority: None,
            headers,
            content: None,
        })?)
    }

    fn body(&mut self, request: Resource<Request>) -> Result<Result<Resource<Body>, ()>> {
        let import = import!("wasi:http/types.outgoing-request.body");
        self.passes_on(import, &request, 0)?;
        let budget = self.wasi.exchanges.terms.budget.clone();
        let request = self.wasi.table.get_mut(&request)?;
        if request.content.is_some() {
            return Ok(Err(()));
        }
        let Ok(body) = Body::of(&request.headers, Content::kept(budget)) else {
            return Ok(Err(()));
        };
        request.content = Some(body.content());
        Ok(Ok(self.wasi.table.push(body)?))
    }

    fn method(&mut self, request: Resource<Request>) -> Result<Method> {
        let import = import!("wasi:http/types.outgoing-request.method");
        self.passes_on(import, &request, 0)?;
        Ok(self.wasi.table.get(&request)?.method.clone())
    }

    fn set_method(&mut self, request: Resource<Request>, to: Method) -> Result<Result<(), ()>> {
        let import = import!("wasi:http/types.outgoing-request.set-method");
        let text = method_text(&to);
        let request = self.passes_text(import, &request, Some(text))?;
        let before = method_text(&request.method);
        if http::Method::from_bytes(text.as_bytes()).is_err()
            || !request.is_short(Some(before), Some(text))
        {
            return Ok(Err(()));
        }
        request.method = to;
        Ok(Ok(()))
    }

    fn path_with_query(&mut self, request: Resource<Request>) -> Result<Option<String>> {
        let import = import!("wasi:http/types.outgoing-request.path-with-query");
        self.passes_on(import, &request, 0)?;
        Ok(self.wasi.table.get(&request)?.path_with_query.clone())
    }

    fn set_path_with_query(
        &mut self,
        request: Resource<Request>,
        to: Option<String>,
    ) -> Result<Result<(), ()>> {
        let import = import!("wasi:http/types.outgoing-request.set-path-with-query");
        let request = self.passes_text(import, &request, to.as_deref())?;
        let breaks = |text: &str| text.parse::<http::uri::PathAndQuery>().is_err();
        if to.as_deref().is_some_and(breaks)
            || !request.is_short(request.path_with_query.as_deref(), to.as_deref())
        {
            return Ok(Err(()));
        }
        request.path_with_query = to;
        Ok(Ok(()))
    }

    fn scheme(&mut self, request: Resource<Request>) -> Result<Option<Scheme>> {
        let import = import!("wasi:http/types.outgoing-request.scheme");
        self.passes_on(import, &request, 0)?;
        Ok(self.wasi.table.get(&request)?.scheme.clone())
    }

    fn set_scheme(
        &mut self,
        request: Resource<Request>,
        to: Option<Scheme>,
    ) -> Result<Result<(), ()>> {
        let import = import!("wasi:http/types.outgoing-request.set-scheme");
        let text = to.as_ref().map(scheme_text);
        let request = self.passes_text(import, &request, text)?;
        let before = request.scheme.as_ref().map(scheme_text);
        if text.is_some_and(|text| text.parse::<http::uri::Scheme>().is_err())
            || !request.is_short(before, text)
        {
            return Ok(Err(()));
        }
        request.scheme = to;
        Ok(Ok(()))
    }

    fn authority(&mut self, request: Resource<Request>) -> Result<Option<String>> {
        let import = import!("wasi:http/types.outgoing-request.authority");
        self.passes_on(import, &request, 0)?;
        Ok(self.wasi.table.get(&request)?.authority.clone())
    }

    fn set_authority(
        &mut self,
        request: Resource<Request>,
        to: Option<String>,
    ) -> Result<Result<(), ()>> {
        let import = import!("wasi:http/types.outgoing-request.set-authority");
        let request = self.passes_text(import, &request, to.as_deref())?;
        let breaks = |text: &str| text.parse::<http::uri::Authority>().is_err();
        if to.as_deref().is_some_and(breaks)
            || !request.is_short(request.authority.as_deref(), to.as_deref())
        {
            return Ok(Err(()));
        }
        request.authority = to;
        Ok(Ok(()))
    }

    fn headers(&mut self, request: Resource<Request>) -> Result<Resource<Fields>> {
        let import = import!("wasi:http/types.outgoing-request.headers");
        self.passes_on(import, &request, 0)?;
        let headers = self.wasi.table.get(&request)?.headers.clone();
        Ok(self.wasi.table.push(headers)?)
    }

    fn drop(&mut self, request: Resource<Request>) -> Result<()> {
        self.passes_drop(import!("wasi:http/types.outgoing-request.drop"), request)
            .map(drop)
    }
}

impl types::HostRequestOptions for State {
    fn new(&mut self) -> Result<Resource<Options>> {
        self.passes(import!("wasi:http/types.request-options.new"), 0, 0)?;
        Ok(self.wasi.table.push(Options::default())?)
    }

    fn connect_timeout(&mut self, options: Resource<Options>) -> Result<Option<u64>> {
        let import = import!("wasi:http/types.request-options.connect-timeout");
        Ok(self.options(import, &options, None)?.0.connect)
    }

    fn set_connect_timeout(
        &mut self,
        options: Resource<Options>,
        to: Option<u64>,
    ) -> Result<Result<(), ()>> {
        let import = import!("wasi:http/types.request-options.set-connect-timeout");
        self.options(import, &options, to)?.0.connect = to;
        Ok(Ok(()))
    }

    fn first_byte_timeout(&mut self, options: Resource<Options>) -> Result<Option<u64>> {
        let import = import!("wasi:http/types.request-options.first-byte-timeout");
        Ok(self.options(import, &options, None)?.0.first_byte)
    }

    fn set_first_byte_timeout(
        &mut self,
        options: Resource<Options>,
        to: Option<u64>,
    ) -> Result<Result<(), ()>> {
        let import = import!("wasi:http/types.request-options.set-first-byte-timeout");
        self.options(import, &options, to)?.0.first_byte = to;
        Ok(Ok(()))
    }

    fn between_bytes_timeout(&mut self, options: Resource<Options>) -> Result<Option<u64>> {
        let import = import!("wasi:http/types.request-options.between-bytes-timeout");
        Ok(self.options(import, &options, None)?.0.between_bytes)
    }

    fn set_between_bytes_timeout(
        &mut self,
        options: Resource<Options>,
        to: Option<u64>,
    ) -> Result<Result<(), ()>> {
        let import = import!("wasi:http/types.request-options.set-between-bytes-timeout");
        self.options(import, &options, to)?.0.between_bytes = to;
        Ok(Ok(()))
    }

    fn drop(&mut self, options: Resource<Options>) -> Result<()> {
        self.passes_drop(import!("wasi:http/types.request-options.drop"), options)
            .map(drop)
    }
}
