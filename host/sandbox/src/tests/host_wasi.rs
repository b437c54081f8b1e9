//! What the engine's own WASI grants: nothing.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use longshore_journal::world::World;
use longshore_policy::limits::Limits;
use wasmtime_wasi::WasiView as _;
use wasmtime_wasi::cli::WasiCliView as _;
use wasmtime_wasi::filesystem::WasiFilesystemView as _;
use wasmtime_wasi::p2::bindings::cli::environment::Host as _;
use wasmtime_wasi::p2::bindings::cli::stdin::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::sockets::instance_network::Host as _;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::Host as _;
use wasmtime_wasi::p2::bindings::sockets::network::IpAddressFamily;
use wasmtime_wasi::p2::bindings::sockets::tcp_create_socket::Host as _;
use wasmtime_wasi::p2::bindings::sockets::udp_create_socket::Host as _;
use wasmtime_wasi::p2::{DynInputStream, StreamError};
use wasmtime_wasi::sockets::WasiSocketsView as _;
use wasmtime_wasi_http::{Error, WasiBody, WasiHttpView as _};

use super::again::curious;
use super::kit::{Remembers, origin, prepared, report, run_of, sandbox_with, text_of};
use super::script::nothing;
use crate::control::Control;
use crate::host::State;
use crate::journal::Journal;
use crate::run::Trail;
use crate::sandbox::WasiKind;

fn state() -> State {
    let limits = Limits {
        handles: 3,
        ..Limits::default()
    };
    let journal = Journal::fresh(origin());
    let trail = Trail::new(&limits, &journal);
    let world = World::new(&origin(), journal.begin, journal.after, journal.tape);
    let outside = Arc::new(Remembers::default());
    let kind = WasiKind::Host;
    State::new(
        kind,
        &nothing(limits),
        &trail,
        world,
        0,
        outside,
        Control::default(),
    )
    .unwrap()
}

#[tokio::test]
async fn a_guest_finds_nothing_of_ours() {
    let mut state = state();
    assert!(state.cli().get_environment().unwrap().is_empty());
    assert!(state.cli().get_arguments().unwrap().is_empty());
    assert_eq!(state.cli().initial_cwd().unwrap(), None);
    assert!(state.filesystem().get_directories().unwrap().is_empty());
    let stdin = state.cli().get_stdin().unwrap();
    let stdin: &mut DynInputStream = state.ctx().table.get_mut(&stdin).unwrap();
    stdin.ready().await;
    assert!(matches!(stdin.read(1), Err(StreamError::Closed)));
}

#[tokio::test]
async fn sockets_names_and_requests_are_refused_with_an_error_not_a_trap() {
    let mut state = state();
    for family in [IpAddressFamily::Ipv4, IpAddressFamily::Ipv6] {
        let refused = state.sockets().create_tcp_socket(family).unwrap_err();
        assert_eq!(refused.downcast().unwrap().name(), "access-denied");
        let refused = state.sockets().create_udp_socket(family).await.unwrap_err();
        assert_eq!(refused.downcast().unwrap().name(), "access-denied");
    }
    let network = state.sockets().instance_network().unwrap();
    let refused = state
        .sockets()
        .resolve_addresses(network, "localhost".into())
        .unwrap_err();
    assert_eq!(
        refused.downcast().unwrap().name(),
        "permanent-resolver-failure"
    );

    let body = WasiBody::new(http_body_util::Empty::new().map_err(|never| match never {}));
    let request = http::Request::get("http://127.0.0.1:1/")
        .body(body)
        .unwrap();
    let processed = Box::new(std::future::ready(Ok(())));
    let sent = Box::into_pin(state.http().hooks.send_request(request, None, processed)).await;
    assert!(matches!(sent.err(), Some(Error::HttpRequestDenied)));
}

#[tokio::test]
async fn entries_in_the_hosts_table_are_limited() {
    let mut state = state();
    for _ in 0..3 {
        state.cli().get_stdin().unwrap();
    }
    let error = state.cli().get_stdin().unwrap_err();
    let ending = crate::fault::ending(&error, &Default::default());
    assert!(format!("{ending:?}").contains("HandleLimit"), "{ending:?}");
}

#[tokio::test]
async fn a_guest_of_a_node_that_records_nothing_runs_all_the_same() {
    let sandbox = sandbox_with(WasiKind::Host, 1);
    let run = run_of(prepared(&sandbox, &curious()));
    let ended = report(sandbox.start(run).ended).await;
    assert_eq!(text_of(&ended).len(), 16);
    assert_eq!(ended.stdout.text, "tick\ntick\n");
    assert_eq!(ended.calls, 3, "only calls of longshore:tool are counted");
}
