//! What WASI grants: nothing.

use std::sync::Arc;

use http_body_util::BodyExt as _;
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

use super::kit::Remembers;
use crate::control::Control;
use crate::host::State;
use crate::run::Trail;

fn state() -> State {
    let limits = Limits {
        handles: 3,
        ..Limits::default()
    };
    State::new(
        &limits,
        &Trail::new(&limits),
        Arc::new(Remembers::default()),
        Control::default(),
    )
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
