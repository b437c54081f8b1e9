//! `wasi:http`: requests can be made up and are never sent.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

mod body;
mod fields;
mod request;

pub(crate) use self::body::Room;
pub use self::body::{Body, Response};
pub use self::fields::{Fields, FieldsError};
pub use self::request::{Options, Request};

use wasmtime::Result;
use wasmtime::component::Resource;

use super::clocks::Pollable;
use super::io::{Failure, Input};
use super::none::{
    FutureIncomingResponse, FutureTrailers, IncomingBody, IncomingRequest, IncomingResponse,
    ResponseOutparam,
};
use crate::bindings::wasi_world::wasi::http::outgoing_handler;
use crate::bindings::wasi_world::wasi::http::types::{self, ErrorCode, Method, Scheme};
use crate::host::State;

impl outgoing_handler::Host for State {
    fn handle(
        &mut self,
        request: Resource<Request>,
        options: Option<Resource<Options>>,
    ) -> Result<Result<Resource<FutureIncomingResponse>, ErrorCode>> {
        let import = import!("wasi:http/outgoing-handler.handle");
        let with = options
            .as_ref()
            .map_or(u64::MAX, |options| u64::from(options.rep()));
        self.passes_on(import, &request, with)?;
        self.wasi.table.delete(request)?;
        if let Some(options) = options {
            self.wasi.table.delete(options)?;
        }
        Ok(Err(ErrorCode::HttpRequestDenied))
    }
}

impl types::Host for State {
    fn convert_header_error(&mut self, error: FieldsError) -> Result<types::HeaderError> {
        match error {
            FieldsError::Header(error) => Ok(error),
            FieldsError::Trap(error) => Err(error),
        }
    }

    fn http_error_code(&mut self, error: Resource<Failure>) -> Result<Option<ErrorCode>> {
        self.passes_on(import!("wasi:http/types.http-error-code"), &error, 0)?;
        Ok(match self.wasi.table.get(&error)? {
            Failure::BodyFull => Some(ErrorCode::HttpRequestBodySize(None)),
            Failure::File(_) => None,
        })
    }
}

type Answer<T> = Option<Result<Result<T, ErrorCode>, ()>>;

impl types::HostFutureIncomingResponse for State {
    fn subscribe(&mut self, it: Resource<FutureIncomingResponse>) -> Result<Resource<Pollable>> {
        let import = import!("wasi:http/types.future-incoming-response.subscribe");
        self.on_none(import, &it)
    }

    fn get(
        &mut self,
        it: Resource<FutureIncomingResponse>,
    ) -> Result<Answer<Resource<IncomingResponse>>> {
        let import = import!("wasi:http/types.future-incoming-response.get");
        self.on_none(import, &it)
    }

    fn drop(&mut self, it: Resource<FutureIncomingResponse>) -> Result<()> {
        let import = import!("wasi:http/types.future-incoming-response.drop");
        self.on_none(import, &it)
    }
}

impl types::HostIncomingResponse for State {
    fn status(&mut self, it: Resource<IncomingResponse>) -> Result<u16> {
        self.on_none(import!("wasi:http/types.incoming-response.status"), &it)
    }

    fn headers(&mut self, it: Resource<IncomingResponse>) -> Result<Resource<Fields>> {
        self.on_none(import!("wasi:http/types.incoming-response.headers"), &it)
    }

    fn consume(
        &mut self,
        it: Resource<IncomingResponse>,
    ) -> Result<Result<Resource<IncomingBody>, ()>> {
        self.on_none(import!("wasi:http/types.incoming-response.consume"), &it)
    }

    fn drop(&mut self, it: Resource<IncomingResponse>) -> Result<()> {
        self.on_none(import!("wasi:http/types.incoming-response.drop"), &it)
    }
}

impl types::HostIncomingBody for State {
    fn stream(&mut self, it: Resource<IncomingBody>) -> Result<Result<Resource<Input>, ()>> {
        self.on_none(import!("wasi:http/types.incoming-body.stream"), &it)
    }

    fn finish(&mut self, it: Resource<IncomingBody>) -> Result<Resource<FutureTrailers>> {
        self.on_none(import!("wasi:http/types.incoming-body.finish"), &it)
    }

    fn drop(&mut self, it: Resource<IncomingBody>) -> Result<()> {
        self.on_none(import!("wasi:http/types.incoming-body.drop"), &it)
    }
}

impl types::HostFutureTrailers for State {
    fn subscribe(&mut self, it: Resource<FutureTrailers>) -> Result<Resource<Pollable>> {
        self.on_none(import!("wasi:http/types.future-trailers.subscribe"), &it)
    }

    fn get(&mut self, it: Resource<FutureTrailers>) -> Result<Answer<Option<Resource<Fields>>>> {
        self.on_none(import!("wasi:http/types.future-trailers.get"), &it)
    }

    fn drop(&mut self, it: Resource<FutureTrailers>) -> Result<()> {
        self.on_none(import!("wasi:http/types.future-trailers.drop"), &it)
    }
}

impl types::HostIncomingRequest for State {
    fn method(&mut self, it: Resource<IncomingRequest>) -> Result<Method> {
        self.on_none(import!("wasi:http/types.incoming-request.method"), &it)
    }

    fn path_with_query(&mut self, it: Resource<IncomingRequest>) -> Result<Option<String>> {
        let import = import!("wasi:http/types.incoming-request.path-with-query");
        self.on_none(import, &it)
    }

    fn scheme(&mut self, it: Resource<IncomingRequest>) -> Result<Option<Scheme>> {
        self.on_none(import!("wasi:http/types.incoming-request.scheme"), &it)
    }

    fn authority(&mut self, it: Resource<IncomingRequest>) -> Result<Option<String>> {
        self.on_none(import!("wasi:http/types.incoming-request.authority"), &it)
    }

    fn headers(&mut self, it: Resource<IncomingRequest>) -> Result<Resource<Fields>> {
        self.on_none(import!("wasi:http/types.incoming-request.headers"), &it)
    }

    fn consume(
        &mut self,
        it: Resource<IncomingRequest>,
    ) -> Result<Result<Resource<IncomingBody>, ()>> {
        self.on_none(import!("wasi:http/types.incoming-request.consume"), &it)
    }

    fn drop(&mut self, it: Resource<IncomingRequest>) -> Result<()> {
        self.on_none(import!("wasi:http/types.incoming-request.drop"), &it)
    }
}

impl types::HostResponseOutparam for State {
    fn send_informational(
        &mut self,
        it: Resource<ResponseOutparam>,
        _: u16,
        _: Resource<Fields>,
    ) -> Result<Result<(), ErrorCode>> {
        let import = import!("wasi:http/types.response-outparam.send-informational");
        self.on_none(import, &it)
    }

    fn set(
        &mut self,
        it: Resource<ResponseOutparam>,
        _: Result<Resource<Response>, ErrorCode>,
    ) -> Result<()> {
        self.on_none(import!("wasi:http/types.response-outparam.set"), &it)
    }

    fn drop(&mut self, it: Resource<ResponseOutparam>) -> Result<()> {
        self.on_none(import!("wasi:http/types.response-outparam.drop"), &it)
    }
}
