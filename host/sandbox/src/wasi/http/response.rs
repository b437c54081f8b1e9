//! Responses, once they have come: all of one is there.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

use longshore_journal::http::{Blob, Failure};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::exchange::Found;
use super::fields::Fields;
use crate::bindings::wasi_world::wasi::http::types::{self, DnsErrorPayload, ErrorCode};
use crate::host::State;
use crate::wasi::clocks::Pollable;
use crate::wasi::io::Input;

/// A response that may come, by the number of its exchange.
pub struct Future(pub(super) u64);

/// A response that came.
pub struct Incoming {
    status: u16,
    fields: Fields,
    /// Until the guest takes it.
    body: Option<Blob>,
}

/// The body of one.
pub struct IncomingBody {
    /// Until the guest takes it.
    bytes: Option<Blob>,
}

/// The trailers of one: none are kept.
pub struct Trailers {
    is_taken: bool,
}

type Answer<T> = Option<Result<Result<T, ErrorCode>, ()>>;

/// What the guest is told of a failure.
fn code(failure: &Failure) -> ErrorCode {
    match failure {
        Failure::DnsTimeout => ErrorCode::DnsTimeout,
        Failure::DnsError => ErrorCode::DnsError(DnsErrorPayload {
            rcode: None,
            info_code: None,
        }),
        Failure::AddressProhibited(_) => ErrorCode::DestinationIpProhibited,
        Failure::Refused => ErrorCode::ConnectionRefused,
        Failure::ConnectTimeout => ErrorCode::ConnectionTimeout,
        Failure::Terminated => ErrorCode::ConnectionTerminated,
        Failure::Certificate(_) => ErrorCode::TlsCertificateError,
        Failure::Tls(_) => ErrorCode::TlsProtocolError,
        Failure::ResponseTimeout => ErrorCode::HttpResponseTimeout,
        Failure::HeadTooLarge(most) => {
            ErrorCode::HttpResponseHeaderSectionSize(u32::try_from(*most).ok())
        }
        Failure::BodyTooLarge(most) => ErrorCode::HttpResponseBodySize(Some(*most)),
        Failure::Protocol => ErrorCode::HttpProtocolError,
        Failure::ConnectionLimit => ErrorCode::ConnectionLimitReached,
        // No kind of error means this, and one that a guest takes for a failure would be a lie.
        Failure::Secret(_)
        | Failure::OutcomeUnknown
        | Failure::Unfinished
        | Failure::PlainSecret(_) => ErrorCode::InternalError(Some(failure.to_string())),
    }
}

impl types::HostFutureIncomingResponse for State {
    fn subscribe(&mut self, it: Resource<Future>) -> Result<Resource<Pollable>> {
        let import = import!("wasi:http/types.future-incoming-response.subscribe");
        self.passes_on(import, &it, 0)?;
        let Future(number) = *self.wasi.table.get(&it)?;
        Ok(self.wasi.table.push(Pollable::Exchange(number))?)
    }

    async fn get(&mut self, it: Resource<Future>) -> Result<Answer<Resource<Incoming>>> {
        let import = import!("wasi:http/types.future-incoming-response.get");
        self.passes_on(import, &it, 0)?;
        let Future(number) = *self.wasi.table.get(&it)?;
        self.look_for_responses().await?;
        let outcome = match self.wasi.exchanges.take(number) {
            Found::Nothing => return Ok(None),
            Found::TakenBefore => return Ok(Some(Err(()))),
            Found::Outcome(outcome) => outcome,
        };
        Ok(Some(Ok(match outcome {
            Ok(response) => Ok(self.wasi.table.push(Incoming {
                status: response.status,
                fields: Fields::received(&response.fields),
                body: Some(response.body),
            })?),
            Err(failure) => Err(code(&failure)),
        })))
    }

    fn drop(&mut self, it: Resource<Future>) -> Result<()> {
        let import = import!("wasi:http/types.future-incoming-response.drop");
        let Future(number) = self.passes_drop(import, it)?;
        self.wasi.exchanges.drop(number);
        self.note_writes();
        Ok(())
    }
}

impl types::HostIncomingResponse for State {
    fn status(&mut self, it: Resource<Incoming>) -> Result<u16> {
        let import = import!("wasi:http/types.incoming-response.status");
        self.passes_on(import, &it, 0)?;
        Ok(self.wasi.table.get(&it)?.status)
    }

    fn headers(&mut self, it: Resource<Incoming>) -> Result<Resource<Fields>> {
        let import = import!("wasi:http/types.incoming-response.headers");
        self.passes_on(import, &it, 0)?;
        let fields = self.wasi.table.get(&it)?.fields.clone();
        Ok(self.wasi.table.push(fields)?)
    }

    fn consume(&mut self, it: Resource<Incoming>) -> Result<Result<Resource<IncomingBody>, ()>> {
        let import = import!("wasi:http/types.incoming-response.consume");
        self.passes_on(import, &it, 0)?;
        let Some(body) = self.wasi.table.get_mut(&it)?.body.take() else {
            return Ok(Err(()));
        };
        let bytes = Some(body);
        Ok(Ok(self.wasi.table.push(IncomingBody { bytes })?))
    }

    fn drop(&mut self, it: Resource<Incoming>) -> Result<()> {
        let import = import!("wasi:http/types.incoming-response.drop");
        self.passes_drop(import, it).map(drop)
    }
}

impl types::HostIncomingBody for State {
    fn stream(&mut self, it: Resource<IncomingBody>) -> Result<Result<Resource<Input>, ()>> {
        let import = import!("wasi:http/types.incoming-body.stream");
        self.passes_on(import, &it, 0)?;
        let Some(bytes) = self.wasi.table.get_mut(&it)?.bytes.take() else {
            return Ok(Err(()));
        };
        Ok(Ok(self.wasi.table.push(Input::Body { bytes, at: 0 })?))
    }

    fn finish(&mut self, it: Resource<IncomingBody>) -> Result<Resource<Trailers>> {
        let import = import!("wasi:http/types.incoming-body.finish");
        self.passes_on(import, &it, 0)?;
        self.wasi.table.delete(it)?;
        Ok(self.wasi.table.push(Trailers { is_taken: false })?)
    }

    fn drop(&mut self, it: Resource<IncomingBody>) -> Result<()> {
        let import = import!("wasi:http/types.incoming-body.drop");
        self.passes_drop(import, it).map(drop)
    }
}

impl types::HostFutureTrailers for State {
    fn subscribe(&mut self, it: Resource<Trailers>) -> Result<Resource<Pollable>> {
        let import = import!("wasi:http/types.future-trailers.subscribe");
        self.passes_on(import, &it, 0)?;
        Ok(self.wasi.table.push(Pollable::Now)?)
    }

    fn get(&mut self, it: Resource<Trailers>) -> Result<Answer<Option<Resource<Fields>>>> {
        let import = import!("wasi:http/types.future-trailers.get");
        self.passes_on(import, &it, 0)?;
        let trailers = self.wasi.table.get_mut(&it)?;
        if std::mem::replace(&mut trailers.is_taken, true) {
            return Ok(Some(Err(())));
        }
        Ok(Some(Ok(Ok(None))))
    }

    fn drop(&mut self, it: Resource<Trailers>) -> Result<()> {
        let import = import!("wasi:http/types.future-trailers.drop");
        self.passes_drop(import, it).map(drop)
    }
}
