//! The engine's own WASI 0.2: everything is there, and nothing leads outside but to directories and hosts that were granted. Its clocks and random numbers are the machine's, so that a run cannot be repeated.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use longshore_journal::call::LogLevel;
use longshore_journal::http::Failure;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView,
};

use crate::dirs;
use crate::grants::Grants;
use crate::host::State;
use crate::outside::{Outgoing, Outside, Said};
use crate::ring::Ring;
use crate::rules::shorten;
use crate::wasi::http::{Asked, LOGGER, Refused, Terms, Timeouts};

/// One list of HTTP fields. A guest may hold as many lists as handles, and each stands in host memory.
const HTTP_FIELD_BYTES: usize = 8 * 1024;
/// What one outgoing HTTP body may buffer, for the same reason.
const HTTP_CHUNK_BYTES: usize = 4 * 1024;

/// The host's side of WASI in one run.
pub(crate) struct HostWasi {
    context: WasiCtx,
    http: WasiHttpCtx,
    requests: Requests,
    table: ResourceTable,
}

impl HostWasi {
    /// No sockets, and just the environment and the directories that were granted; a program also has its arguments and its input.
    pub(crate) fn new(
        grants: &Grants,
        outside: Arc<dyn Outside>,
        (stdout, stderr): (Ring, Ring),
    ) -> wasmtime::Result<Self> {
        let Grants {
            limits,
            env,
            mounts,
            own,
            http: _,
            secrets: _,
            program,
        } = grants;
        let mut context = WasiCtx::builder();
        context
            .envs(env)
            .stdout(stdout)
            .stderr(stderr)
            .max_random_size(limits.random_bytes)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        if let Some(program) = program {
            let stdin = Bytes::copy_from_slice(&program.stdin);
            context
                .args(&program.args)
                .stdin(MemoryInputPipe::new(stdin));
        }
        dirs::preopen(&mut context, mounts, own)?;
        let requests = Requests::new(grants, outside);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(HTTP_FIELD_BYTES);
        let mut table = ResourceTable::new();
        let handles = if mounts.is_empty() {
            limits.handles
        } else {
            limits.handles.min(dirs::HANDLES)
        };
        table.set_max_capacity(usize::try_from(handles).unwrap_or(usize::MAX));
        Ok(Self {
            context: context.build(),
            http,
            requests,
            table,
        })
    }
}

/// Only a component that was linked for it gets here.
fn host(state: &mut State) -> &mut HostWasi {
    state
        .host_wasi
        .as_mut()
        .expect("a run has the WASI that its component was linked with")
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let HostWasi { context, table, .. } = host(self);
        WasiCtxView {
            ctx: context,
            table,
        }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let HostWasi {
            http,
            requests,
            table,
            ..
        } = host(self);
        WasiHttpCtxView {
            hooks: requests,
            table,
            ctx: http,
        }
    }
}

/// Sends what is granted, as any other run's; but nothing is recorded, and nobody knows later what was sent.
struct Requests {
    terms: Terms,
    outside: Arc<dyn Outside>,
    under_way: Arc<Semaphore>,
    log_line_bytes: u64,
    made: u64,
}

type Sent = (
    http::Response<WasiBody>,
    Box<dyn Future<Output = Result<(), Error>> + Send>,
);

impl Requests {
    fn new(grants: &Grants, outside: Arc<dyn Outside>) -> Self {
        let terms = Terms::of(grants);
        let at_once = usize::try_from(terms.at_once).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            under_way: Arc::new(Semaphore::new(at_once)),
            log_line_bytes: grants.limits.log_line_bytes,
            terms,
            outside,
            made: 0,
        }
    }

    fn refuse(&self, why: &str, error: Error) -> Error {
        let line = format!("a request was not sent: {why}");
        let said = Said {
            call: self.made,
            is_sure: false,
        };
        let message = shorten(&line, self.log_line_bytes);
        let logger = Some(LOGGER.to_owned());
        self.outside.log(said, LogLevel::Warning, logger, message);
        error
    }

    /// The request that is to be sent, and its place among those under way.
    fn admit(
        &mut self,
        head: &http::request::Parts,
        options: Option<RequestOptions>,
    ) -> Result<(Outgoing, OwnedSemaphorePermit), Error> {
        self.made += 1;
        let ns = |time: Option<Duration>| {
            time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        };
        let timeouts = options.map_or_else(Timeouts::default, |options| Timeouts {
            connect: ns(options.connect_timeout),
            first_byte: ns(options.first_byte_timeout),
            between_bytes: ns(options.between_bytes_timeout),
        });
        let fields = head.headers.iter();
        let asked = Asked {
            method: head.method.as_str(),
            scheme: head.uri.scheme_str(),
            authority: head
                .uri
                .authority()
                .map_or("", |authority| authority.as_str()),
            path: match head.uri.path_and_query() {
                Some(path) => path.as_str().to_owned(),
                None => "/".to_owned(),
            },
            fields: fields
                .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
                .collect(),
            timeouts,
        };
        let judged = self.terms.judge(self.made, asked);
        let judged = judged.map_err(|refusal| {
            let error = match refusal.what {
                Refused::Denied => Error::HttpRequestDenied,
                Refused::Method => Error::HttpRequestMethodInvalid,
                Refused::Uri => Error::HttpRequestUriInvalid,
                Refused::Body => Error::HttpRequestBodySize(None),
                Refused::TooMany => Error::ConnectionLimitReached,
            };
            self.refuse(&refusal.why, error)
        })?;
        match Arc::clone(&self.under_way).try_acquire_owned() {
            Ok(place) => Ok((judged.outgoing, place)),
            Err(_) => {
                let why = format!("{} exchanges are under way already", self.terms.at_once);
                Err(self.refuse(&why, Error::ConnectionLimitReached))
            }
        }
    }
}

impl WasiHttpHooks for Requests {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        processed: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        let (head, body) = request.into_parts();
        let admitted = self.admit(&head, options);
        let most = self.terms.budget.each;
        let outside = Arc::clone(&self.outside);
        Box::new(async move {
            let (mut outgoing, place) = admitted?;
            let most_here = usize::try_from(most).unwrap_or(usize::MAX);
            let body = Limited::new(body, most_here).collect().await;
            let body = body.map_err(|_| Error::HttpRequestBodySize(Some(most)))?;
            outgoing.body = body.to_bytes();
            let outcome = outside.send(outgoing).await;
            drop(place);
            let received = outcome.map_err(|failure| error(&failure))?;
            let mut response = http::Response::builder().status(received.status);
            for (name, value) in &received.fields {
                response = response.header(name, &value[..]);
            }
            let body = Full::new(Bytes::copy_from_slice(&received.body));
            let body = WasiBody::new(body.map_err(|never| match never {}));
            let response = response.body(body).map_err(|_| Error::HttpProtocolError)?;
            Ok((response, processed))
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        HTTP_CHUNK_BYTES
    }
}

/// The same as the guests of the other WASI are told.
fn error(failure: &Failure) -> Error {
    match failure {
        Failure::DnsTimeout => Error::DnsTimeout,
        Failure::DnsError => Error::DnsError {
            rcode: None,
            info_code: None,
        },
        Failure::AddressProhibited(_) => Error::DestinationIpProhibited,
        Failure::Refused => Error::ConnectionRefused,
        Failure::ConnectTimeout => Error::ConnectionTimeout,
        Failure::Terminated => Error::ConnectionTerminated,
        Failure::Certificate(_) => Error::TlsCertificateError,
        Failure::Tls(_) => Error::TlsProtocolError,
        Failure::ResponseTimeout => Error::HttpResponseTimeout,
        Failure::HeadTooLarge(most) => {
            Error::HttpResponseHeaderSectionSize(u32::try_from(*most).ok())
        }
        Failure::BodyTooLarge(most) => Error::HttpResponseBodySize(Some(*most)),
        Failure::Protocol => Error::HttpProtocolError,
        Failure::ConnectionLimit => Error::ConnectionLimitReached,
        Failure::Secret(_)
        | Failure::OutcomeUnknown
        | Failure::Unfinished
        | Failure::PlainSecret(_) => Error::InternalError(Some(failure.to_string())),
    }
}
