//! The engine's own WASI 0.2: everything is there, and nothing leads outside but to directories that were granted. Its clocks and random numbers are the machine's, so that a run cannot be repeated.

use wasmtime_wasi::{ResourceTable, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{
    Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView,
};

use crate::dirs;
use crate::grants::Grants;
use crate::host::State;
use crate::ring::Ring;

/// One list of HTTP fields. A guest may hold as many lists as handles, and each stands in host memory.
const HTTP_FIELD_BYTES: usize = 8 * 1024;
/// What one outgoing HTTP body may buffer, for the same reason.
const HTTP_CHUNK_BYTES: usize = 4 * 1024;

/// The host's side of WASI in one run.
pub(crate) struct HostWasi {
    context: WasiCtx,
    http: WasiHttpCtx,
    no_http: NoHttp,
    table: ResourceTable,
}

impl HostWasi {
    /// No arguments or sockets, and just the environment and the directories that were granted; stdin is at its end.
    pub(crate) fn new(grants: &Grants, stdout: Ring, stderr: Ring) -> wasmtime::Result<Self> {
        let Grants {
            limits,
            env,
            mounts,
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
        dirs::preopen(&mut context, mounts)?;
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(HTTP_FIELD_BYTES);
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        Ok(Self {
            context: context.build(),
            http,
            no_http: NoHttp,
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
            no_http,
            table,
            ..
        } = host(self);
        WasiHttpCtxView {
            hooks: no_http,
            table,
            ctx: http,
        }
    }
}

/// Denies every request.
struct NoHttp;

type Sent = (
    http::Response<WasiBody>,
    Box<dyn Future<Output = Result<(), Error>> + Send>,
);

impl WasiHttpHooks for NoHttp {
    fn send_request(
        &mut self,
        _request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _processed: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Sent, Error>> + Send> {
        Box::new(std::future::ready(Err(Error::HttpRequestDenied)))
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        HTTP_CHUNK_BYTES
    }
}
