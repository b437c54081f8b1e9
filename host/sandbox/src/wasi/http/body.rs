//! Bodies of messages, and responses.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use longshore_journal::http::Failure;
use parking_lot::Mutex;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::fields::Fields;
use crate::bindings::wasi_world::wasi::http::types::{self, ErrorCode};
use crate::host::State;
use crate::wasi::io::Output;

/// What one body of a response may take that a guest makes up. Nothing of it is kept, since nobody gets it.
const BODY_BYTES: u64 = 1024 * 1024;

/// A response, which can be made up and given to nobody.
pub struct Response {
    status: u16,
    headers: Fields,
    has_body: bool,
}

/// The body of either.
pub struct Body {
    content: Content,
    /// What the headers promise.
    promised: Option<u64>,
    has_stream: bool,
}

/// What the bodies of a run's requests may take, each and all of them.
#[derive(Clone)]
pub(crate) struct Budget {
    pub(crate) each: u64,
    all: u64,
    taken: Arc<AtomicU64>,
}

impl Budget {
    pub(super) fn new(each: u64, at_once: u64) -> Self {
        Self {
            each,
            all: each.saturating_mul(at_once),
            taken: Arc::default(),
        }
    }
}

/// What was written to a body; its stream, its request and itself share it.
#[derive(Clone)]
pub(crate) struct Content(Arc<Mutex<Written>>);

struct Written {
    length: u64,
    /// The bytes, if they are for anybody.
    bytes: Vec<u8>,
    budget: Option<Budget>,
    stage: Stage,
}

/// How far a body is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is written to.
    Open,
    /// It is whole.
    Finished,
    /// It never will be.
    Abandoned,
}

impl Written {
    fn free(&mut self) {
        if let Some(budget) = &self.budget {
            // One run has one thread at a time, and nothing else looks here.
            budget
                .taken
                .fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
        }
        self.bytes = Vec::new();
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        self.free();
    }
}

impl Content {
    fn new(budget: Option<Budget>) -> Self {
        Self(Arc::new(Mutex::new(Written {
            length: 0,
            bytes: Vec::new(),
            budget,
            stage: Stage::Open,
        })))
    }

    /// That of a request.
    pub(super) fn kept(budget: Budget) -> Self {
        Self::new(Some(budget))
    }

    /// That of a request whose body nobody writes.
    pub(super) fn none(budget: Budget) -> Self {
        let content = Self::kept(budget);
        content.0.lock().stage = Stage::Finished;
        content
    }

    /// Whether nothing more fits.
    pub(crate) fn is_full(&self) -> bool {
        !self.0.lock().has_room(1)
    }

    /// Takes these bytes if they fit.
    pub(crate) fn take(&self, bytes: &[u8]) -> bool {
        let mut written = self.0.lock();
        let more = bytes.len() as u64;
        let fits = written.has_room(more);
        if fits {
            written.length += more;
            if let Some(budget) = &written.budget {
                budget.taken.fetch_add(more, Ordering::Relaxed);
                written.bytes.extend_from_slice(bytes);
            }
        }
        fits
    }

    pub(super) fn length(&self) -> u64 {
        self.0.lock().length
    }

    pub(super) fn stage(&self) -> Stage {
        self.0.lock().stage
    }

    pub(super) fn copy(&self) -> Bytes {
        Bytes::copy_from_slice(&self.0.lock().bytes)
    }

    /// Nobody needs the bytes any more.
    pub(super) fn clear(&self) {
        self.0.lock().free();
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Written {
    fn has_room(&self, more: u64) -> bool {
        match &self.budget {
            None => self.length + more <= BODY_BYTES,
            Some(budget) => {
                self.length + more <= budget.each
                    && budget.taken.load(Ordering::Relaxed) + more <= budget.all
            }
        }
    }
}

impl Body {
    pub(super) fn of(headers: &Fields, content: Content) -> std::result::Result<Self, ()> {
        Ok(Self {
            content,
            promised: headers.content_length()?,
            has_stream: false,
        })
    }

    pub(super) fn content(&self) -> Content {
        self.content.clone()
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
        let Ok(body) = Body::of(&response.headers, Content::new(None)) else {
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
        let content = body.content();
        Ok(Ok(self.wasi.table.push(Output::Body(content))?))
    }

    async fn finish(
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
        let length = body.content.length();
        if body.promised.is_some_and(|promised| promised != length) {
            self.abandon(&body.content);
            return Ok(Err(ErrorCode::HttpRequestBodySize(Some(length))));
        }
        body.content.0.lock().stage = Stage::Finished;
        if let Some(number) = self.wasi.exchanges.of_body(&body.content) {
            self.send(number).await?;
        }
        Ok(Ok(()))
    }

    fn drop(&mut self, body: Resource<Body>) -> Result<()> {
        let import = import!("wasi:http/types.outgoing-body.drop");
        let body = self.passes_drop(import, body)?;
        self.abandon(&body.content);
        Ok(())
    }
}

impl State {
    /// A body is let go of before it is whole, and the request that waits for it is not sent.
    fn abandon(&mut self, content: &Content) {
        content.0.lock().stage = Stage::Abandoned;
        let exchanges = &mut self.wasi.exchanges;
        if let Some(number) = exchanges.of_body(content) {
            exchanges.set(number, Err(Failure::Unfinished));
        }
    }
}
