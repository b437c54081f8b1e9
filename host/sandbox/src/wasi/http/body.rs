//! Bodies of messages, and responses.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::Result;
use wasmtime::component::Resource;

use super::fields::Fields;
use crate::bindings::wasi_world::wasi::http::types::{self, ErrorCode};
use crate::host::State;
use crate::wasi::io::Output;

/// What one body may take. Nothing of it is kept, since nothing of it is sent.
const BODY_BYTES: u64 = 1024 * 1024;

/// A response, which can be made up and given to nobody.
pub struct Response {
    status: u16,
    headers: Fields,
    has_body: bool,
}

/// The body of either.
pub struct Body {
    room: Room,
    /// What the headers promise.
    promised: Option<u64>,
    has_stream: bool,
}

/// How much a body took; its stream and itself share it.
#[derive(Clone, Default)]
pub(crate) struct Room(Arc<AtomicU64>);

impl Room {
    /// Whether nothing more fits.
    pub(crate) fn is_full(&self) -> bool {
        self.taken() >= BODY_BYTES
    }

    /// Takes so many bytes if they fit.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        // One run has one thread at a time, and nothing else looks here.
        let taken = self.taken() + bytes;
        let fits = taken <= BODY_BYTES;
        if fits {
            self.0.store(taken, Ordering::Relaxed);
        }
        fits
    }

    fn taken(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Body {
    pub(super) fn of(headers: &Fields) -> std::result::Result<Self, ()> {
        Ok(Self {
            room: Room::default(),
            promised: headers.content_length()?,
            has_stream: false,
        })
    }
}

impl types::HostOutgoingResponse for State {
    fn new(&mut self, headers: Resource<Fields>) -> Result<Resource<Response>> {
        let import = import!("wasi:http/types.outgoing-response.new");
        self.passes_on(import, &headers, 0)?;
        let headers = self.take_fields(headers)?;
        Ok(self.wasi.table.push(Response {
            status: 200,
            headers,
            has_body: false,
        })?)
    }

    fn status_code(&mut self, response: Resource<Response>) -> Result<u16> {
        let import = import!("wasi:http/types.outgoing-response.status-code");
        self.passes_on(import, &response, 0)?;
        Ok(self.wasi.table.get(&response)?.status)
    }

    fn set_status_code(&mut self, response: Resource<Response>, to: u16) -> Result<Result<(), ()>> {
        let import = import!("wasi:http/types.outgoing-response.set-status-code");
        self.passes_on(import, &response, u64::from(to))?;
        let response = self.wasi.table.get_mut(&response)?;
        if http::StatusCode::from_u16(to).is_err() {
            return Ok(Err(()));
        }
        response.status = to;
        Ok(Ok(()))
    }

    fn headers(&mut self, response: Resource<Response>) -> Result<Resource<Fields>> {
        let import = import!("wasi:http/types.outgoing-response.headers");
        self.passes_on(import, &response, 0)?;
        let headers = self.wasi.table.get(&response)?.headers.clone();
        Ok(self.wasi.table.push(headers)?)
    }

    fn body(&mut self, response: Resource<Response>) -> Result<Result<Resource<Body>, ()>> {
        let import = import!("wasi:http/types.outgoing-response.body");
        self.passes_on(import, &response, 0)?;
        let response = self.wasi.table.get_mut(&response)?;
        let Ok(body) = Body::of(&response.headers) else {
            return Ok(Err(()));
        };
        if std::mem::replace(&mut response.has_body, true) {
            return Ok(Err(()));
        }
        Ok(Ok(self.wasi.table.push(body)?))
    }

    fn drop(&mut self, response: Resource<Response>) -> Result<()> {
        self.passes_drop(import!("wasi:http/types.outgoing-response.drop"), response)
            .map(drop)
    }
}

impl types::HostOutgoingBody for State {
    fn write(&mut self, body: Resource<Body>) -> Result<Result<Resource<Output>, ()>> {
        self.passes_on(import!("wasi:http/types.outgoing-body.write"), &body, 0)?;
        let body = self.wasi.table.get_mut(&body)?;
        if std::mem::replace(&mut body.has_stream, true) {
            return Ok(Err(()));
        }
        let room = body.room.clone();
        Ok(Ok(self.wasi.table.push(Output::Body(room))?))
    }

    fn finish(
        &mut self,
        body: Resource<Body>,
        trailers: Option<Resource<Fields>>,
    ) -> Result<Result<(), ErrorCode>> {
        let import = import!("wasi:http/types.outgoing-body.finish");
        let with = trailers.as_ref().map_or(u64::MAX, |it| u64::from(it.rep()));
        self.passes_on(import, &body, with)?;
        let body = self.wasi.table.delete(body)?;
        if let Some(trailers) = trailers {
            self.take_fields(trailers)?;
        }
        let taken = body.room.taken();
        if body.promised.is_some_and(|promised| promised != taken) {
            return Ok(Err(ErrorCode::HttpRequestBodySize(Some(taken))));
        }
        Ok(Ok(()))
    }

    fn drop(&mut self, body: Resource<Body>) -> Result<()> {
        self.passes_drop(import!("wasi:http/types.outgoing-body.drop"), body)
            .map(drop)
    }
}
