//! `wasi:http`: requests that a policy lets be sent are; all others are made up for nothing.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

mod body;
mod exchange;
mod fields;
mod judge;
mod request;
mod response;

pub(crate) use self::body::Content;
pub use self::body::{Body, Response};
pub(crate) use self::exchange::Exchanges;
pub(crate) use self::fields::FORBIDDEN;
pub use self::fields::{Fields, FieldsError};
pub(crate) use self::judge::{Asked, Refused, Terms, Timeouts};
pub use self::request::{Options, Request};
pub use self::response::{Future, Incoming, IncomingBody, Trailers};

use longshore_journal::call::LogLevel;
use wasmtime::Result;
use wasmtime::component::Resource;

use self::body::Stage;
use self::judge::{Judged, Refusal};
use super::io::Failure;
use super::none::{IncomingRequest, ResponseOutparam};
use crate::bindings::wasi_world::wasi::http::outgoing_handler;
use crate::bindings::wasi_world::wasi::http::types::{self, ErrorCode, Method, Scheme};
use crate::host::State;

/// Who says in a run's log that a request was not sent.
pub(crate) const LOGGER: &str = "longshore";

impl outgoing_handler::Host for State {
    async fn handle(
        &mut self,
        request: Resource<Request>,
        options: Option<Resource<Options>>,
    ) -> Result<Result<Resource<Future>, ErrorCode>> {
        let import = import!("wasi:http/outgoing-handler.handle");
        let with = options
            .as_ref()
            .map_or(u64::MAX, |options| u64::from(options.rep()));
        self.passes_on(import, &request, with)?;
        let request = self.wasi.table.delete(request)?;
        let options = match options {
            Some(options) => Some(self.wasi.table.delete(options)?),
            None => None,
        };
        let number = self.world.calls();
        let terms = &self.wasi.exchanges.terms;
        let judged = terms.judge(number, request.asked(options));
        let handed = judged.and_then(|judged| self.hand_over(judged, &request));
        match handed {
            Ok(stage) => {
                if stage == Stage::Finished {
                    self.send(number).await?;
                }
                Ok(Ok(self.wasi.table.push(Future(number))?))
            }
            Err(Refusal { what, why }) => {
                self.tell_refused(&why)?;
                Ok(Err(match what {
                    Refused::Denied => ErrorCode::HttpRequestDenied,
                    Refused::Method => ErrorCode::HttpRequestMethodInvalid,
                    Refused::Uri => ErrorCode::HttpRequestUriInvalid,
                    Refused::Body => ErrorCode::HttpRequestBodySize(None),
                    Refused::TooMany => ErrorCode::ConnectionLimitReached,
                }))
            }
        }
    }
}

impl State {
    /// A request that may be sent waits for its body.
    fn hand_over(
        &mut self,
        judged: Judged,
        request: &Request,
    ) -> std::result::Result<Stage, Refusal> {
        let exchanges = &mut self.wasi.exchanges;
        let content = match &request.content {
            Some(content) => content.clone(),
            None => match request.headers.content_length() {
                Ok(None | Some(0)) => Content::none(exchanges.terms.budget.clone()),
                _ => {
                    let why = format!("{}: it says that it has a body", judged.target());
                    return Err(Refusal::new(Refused::Body, &why));
                }
            },
        };
        let stage = content.stage();
        let target = judged.target();
        let number = judged.outgoing.exchange;
        if exchanges.add(judged, content).is_err() {
            let most = exchanges.terms.at_once;
            let why = format!("{target}: {most} exchanges are under way already");
            return Err(Refusal::new(Refused::TooMany, &why));
        }
        if stage == Stage::Abandoned {
            let outcome = Err(longshore_journal::http::Failure::Unfinished);
            exchanges.set(number, outcome);
        }
        Ok(stage)
    }

    /// Whoever reads the log of a run is told why a request was not sent; the guest is told only that it was not.
    pub(crate) fn tell_refused(&mut self, why: &str) -> Result<()> {
        let said = self.says()?;
        if self.is_news() {
            let message = self.log_line(&format!("a request was not sent: {why}"));
            let logger = Some(LOGGER.to_owned());
            self.outside.log(said, LogLevel::Warning, logger, message);
        }
        Ok(())
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
