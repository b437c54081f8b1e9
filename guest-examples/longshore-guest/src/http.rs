//! Requests over HTTP, to hosts that the operator lets this tool send them to.
//!
//! ```no_run
//! use longshore_guest::{http, tool};
//!
//! /// Says what the weather is like.
//! #[tool]
//! fn weather(/** Where. */ city: String) -> Result<String, http::Error> {
//!     http::get("https://weather.example.org/now").query("city", &city).send()?.text()
//! }
//! # fn main() {}
//! ```
//!
//! A request that may change something is sent once at most, also if the server dies meanwhile. What became of it is then
//! asked of whoever called, or told as [`Error::OutcomeUnknown`]. Nothing here sends a request again by itself;
//! [`Error::may_have_happened`] says whether a tool may do so.

mod error;
mod url;
mod wasi;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::error::Error;

use self::error::failure;
use self::url::{Parts, parts, with_query};
use self::wasi::wasi::http::outgoing_handler::handle;
use self::wasi::wasi::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method,
    OutgoingBody, OutgoingRequest, RequestOptions, http_error_code,
};
use self::wasi::wasi::io::streams::StreamError;

/// What one read asks for.
const CHUNK: u64 = 64 * 1024;

/// A request that is still to be sent.
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    method: Method,
    url: String,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    timeout: Option<Duration>,
    fault: Option<Error>,
}

/// A request that reads something.
pub fn get(url: impl Into<String>) -> Request {
    Request::new(Method::Get, url)
}

/// A request that does something.
pub fn post(url: impl Into<String>) -> Request {
    Request::new(Method::Post, url)
}

/// A request by any method.
pub fn request(method: &str, url: impl Into<String>) -> Request {
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    };
    Request::new(method, url)
}

impl Request {
    fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            fields: Vec::new(),
            body: Vec::new(),
            timeout: None,
            fault: None,
        }
    }

    /// With this beside what stands behind the `?` of the URL, whatever letters are in it.
    pub fn query(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.url = with_query(&self.url, name, value.as_ref());
        self
    }

    /// With this field beside the others. `{secret:NAME}` in its value stands for a secret, which is filled in when the
    /// request is sent.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref().to_vec();
        self.fields.push((name.to_ascii_lowercase(), value));
        self
    }

    /// With this body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// With this value as its body, in JSON.
    pub fn json(mut self, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => self.header("content-type", "application/json").body(body),
            Err(error) => {
                let why = format!("the body is no JSON: {error}");
                self.fault = Some(Error::Invalid(why));
                self
            }
        }
    }

    /// Waits for at most so long, for the connection and for each part of the response. The operator's limits hold as
    /// well.
    pub fn timeout(mut self, most: Duration) -> Self {
        self.timeout = Some(most);
        self
    }

    /// Sends it, and waits until its whole response is there.
    pub fn send(self) -> Result<Response, Error> {
        self.start()?.wait()
    }

    /// Sends it, and does not wait: several can be under way at once.
    pub fn start(self) -> Result<Pending, Error> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let Parts { scheme, host, path } = parts(&self.url)?;
        let invalid = |what: &str| Error::Invalid(format!("{what} of a request to {host}"));
        let fields = Fields::from_list(&self.fields)
            .map_err(|_| invalid("there is something wrong with the fields"))?;
        let request = OutgoingRequest::new(fields);
        let is_set = request
            .set_method(&self.method)
            .and_then(|()| request.set_scheme(Some(&scheme)))
            .and_then(|()| request.set_authority(Some(&host)))
            .and_then(|()| request.set_path_with_query(Some(&path)));
        is_set.map_err(|()| invalid("there is something wrong with the method or the URL"))?;
        let body = if self.body.is_empty() {
            None
        } else {
            Some(request.body().map_err(|()| invalid("there is no body"))?)
        };
        let options = self.timeout.map(|most| {
            let ns = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
            let options = RequestOptions::new();
            for set in [
                RequestOptions::set_connect_timeout,
                RequestOptions::set_first_byte_timeout,
                RequestOptions::set_between_bytes_timeout,
            ] {
                // A host that does not keep one of them has its own.
                let _ = set(&options, Some(ns));
            }
            options
        });
        let future = handle(request, options).map_err(|code| failure(&host, code))?;
        if let Some(body) = body {
            write(body, &self.body).map_err(|why| Error::Invalid(format!("{why} to {host}")))?;
        }
        Ok(Pending { future, host })
    }
}

/// A request that was sent. Letting go of it breaks it off.
#[derive(Debug)]
#[must_use = "a request that nobody waits for is broken off"]
pub struct Pending {
    future: FutureIncomingResponse,
    host: String,
}

impl Pending {
    /// Waits until its whole response is there.
    pub fn wait(self) -> Result<Response, Error> {
        let Self { future, host } = self;
        let response = wait(&future).map_err(|code| failure(&host, code))?;
        Response::read(&response, host)
    }
}

/// Writes all of a body.
fn write(body: OutgoingBody, mut bytes: &[u8]) -> Result<(), &'static str> {
    const TOO_LARGE: &str = "the body is larger than it may be in a request";
    let stream = body.write().map_err(|()| "the body is written already")?;
    while !bytes.is_empty() {
        let room = stream.check_write().map_err(|_| TOO_LARGE)?;
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        if room == 0 {
            stream.subscribe().block();
            continue;
        }
        let (piece, rest) = bytes.split_at(room);
        stream.write(piece).map_err(|_| TOO_LARGE)?;
        bytes = rest;
    }
    stream.flush().map_err(|_| TOO_LARGE)?;
    drop(stream);
    OutgoingBody::finish(body, None).map_err(|_| "the body could not be finished")
}

fn wait(future: &FutureIncomingResponse) -> Result<IncomingResponse, ErrorCode> {
    loop {
        match future.get() {
            Some(outcome) => return outcome.expect("it is taken once"),
            None => future.subscribe().block(),
        }
    }
}

/// A response, all of it.
#[derive(Clone, Debug)]
pub struct Response {
    status: u16,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    host: String,
}

impl Response {
    fn read(response: &IncomingResponse, host: String) -> Result<Self, Error> {
        let gone = || Error::Unreadable(format!("what {host} answered cannot be read"));
        let status = response.status();
        let fields = response.headers().entries();
        let body = response.consume().map_err(|()| gone())?;
        let stream = body.stream().map_err(|()| gone())?;
        let mut bytes = Vec::new();
        loop {
            match stream.blocking_read(CHUNK) {
                Ok(piece) => bytes.extend(piece),
                Err(StreamError::Closed) => break,
                Err(StreamError::LastOperationFailed(error)) => {
                    let code = http_error_code(&error);
                    return Err(code.map_or_else(gone, |code| failure(&host, code)));
                }
            }
        }
        drop(stream);
        IncomingBody::finish(body);
        Ok(Self {
            status,
            fields,
            body: bytes,
            host,
        })
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether its status says that all went well.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first value of a field.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let same = |field: &&(String, Vec<u8>)| field.0.eq_ignore_ascii_case(name);
        let (_, value) = self.fields.iter().find(same)?;
        std::str::from_utf8(value).ok()
    }

    /// All of its fields, names in lower case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let fields = self.fields.iter();
        fields.map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Its body.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// Its body as text.
    pub fn text(self) -> Result<String, Error> {
        String::from_utf8(self.body)
            .map_err(|_| Error::Unreadable(format!("what {} answered is no text", self.host)))
    }

    /// Its body, which is JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Error::Unreadable(format!(
                "what {} answered is not the JSON that is wanted: {error}",
                self.host
            ))
        })
    }
}
