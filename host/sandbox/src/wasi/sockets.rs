//! `wasi:sockets`: there is a network, and nothing can be done on it.

use wasmtime::Result;
use wasmtime::component::Resource;

use super::clocks::Pollable;
use super::io::{Failure, Input, Output};
use super::none::{
    IncomingDatagrams, Network, OutgoingDatagrams, ResolvedAddresses, TcpSocket, UdpSocket,
};
use crate::bindings::wasi_world::wasi::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress,
};
use crate::bindings::wasi_world::wasi::sockets::{
    instance_network, ip_name_lookup, network, tcp, tcp_create_socket, udp, udp_create_socket,
};
use crate::host::State;

/// What a function that can fail gives.
type Tried<T> = Result<Result<T, ErrorCode>>;

impl network::Host for State {
    fn network_error_code(&mut self, error: Resource<Failure>) -> Result<Option<ErrorCode>> {
        self.passes_on(
            import!("wasi:sockets/network.network-error-code"),
            &error,
            0,
        )?;
        // No stream leads to a network.
        Ok(None)
    }
}

impl network::HostNetwork for State {
    fn drop(&mut self, network: Resource<Network>) -> Result<()> {
        self.passes_drop(import!("wasi:sockets/network.drop"), network)
            .map(drop)
    }
}

impl instance_network::Host for State {
    fn instance_network(&mut self) -> Result<Resource<Network>> {
        self.passes(
            import!("wasi:sockets/instance-network.instance-network"),
            0,
            0,
        )?;
        Ok(self.wasi.table.push(Network)?)
    }
}

impl tcp_create_socket::Host for State {
    fn create_tcp_socket(&mut self, family: IpAddressFamily) -> Tried<Resource<TcpSocket>> {
        let import = import!("wasi:sockets/tcp-create-socket.create-tcp-socket");
        self.passes(import, family as u64, 0)?;
        Ok(Err(ErrorCode::AccessDenied))
    }
}

impl udp_create_socket::Host for State {
    fn create_udp_socket(&mut self, family: IpAddressFamily) -> Tried<Resource<UdpSocket>> {
        let import = import!("wasi:sockets/udp-create-socket.create-udp-socket");
        self.passes(import, family as u64, 0)?;
        Ok(Err(ErrorCode::AccessDenied))
    }
}

impl ip_name_lookup::Host for State {
    fn resolve_addresses(
        &mut self,
        network: Resource<Network>,
        name: String,
    ) -> Tried<Resource<ResolvedAddresses>> {
        let import = import!("wasi:sockets/ip-name-lookup.resolve-addresses");
        self.passes_on(import, &network, 0)?;
        self.world.passed(name.as_bytes());
        Ok(Err(ErrorCode::PermanentResolverFailure))
    }
}

impl ip_name_lookup::HostResolveAddressStream for State {
    fn resolve_next_address(
        &mut self,
        it: Resource<ResolvedAddresses>,
    ) -> Tried<Option<IpAddress>> {
        let import =
            import!("wasi:sockets/ip-name-lookup.resolve-address-stream.resolve-next-address");
        self.on_none(import, &it)
    }

    fn subscribe(&mut self, it: Resource<ResolvedAddresses>) -> Result<Resource<Pollable>> {
        let import = import!("wasi:sockets/ip-name-lookup.resolve-address-stream.subscribe");
        self.on_none(import, &it)
    }

    fn drop(&mut self, it: Resource<ResolvedAddresses>) -> Result<()> {
        let import = import!("wasi:sockets/ip-name-lookup.resolve-address-stream.drop");
        self.on_none(import, &it)
    }
}

impl tcp::Host for State {}

impl tcp::HostTcpSocket for State {
    fn start_bind(
        &mut self,
        it: Resource<TcpSocket>,
        _: Resource<Network>,
        _: IpSocketAddress,
    ) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.start-bind");
        self.on_none(import, &it)
    }

    fn finish_bind(&mut self, it: Resource<TcpSocket>) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.finish-bind");
        self.on_none(import, &it)
    }

    fn start_connect(
        &mut self,
        it: Resource<TcpSocket>,
        _: Resource<Network>,
        _: IpSocketAddress,
    ) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.start-connect");
        self.on_none(import, &it)
    }

    fn finish_connect(
        &mut self,
        it: Resource<TcpSocket>,
    ) -> Tried<(Resource<Input>, Resource<Output>)> {
        let import = import!("wasi:sockets/tcp.tcp-socket.finish-connect");
        self.on_none(import, &it)
    }

    fn start_listen(&mut self, it: Resource<TcpSocket>) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.start-listen");
        self.on_none(import, &it)
    }

    fn finish_listen(&mut self, it: Resource<TcpSocket>) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.finish-listen");
        self.on_none(import, &it)
    }

    fn accept(
        &mut self,
        it: Resource<TcpSocket>,
    ) -> Tried<(Resource<TcpSocket>, Resource<Input>, Resource<Output>)> {
        let import = import!("wasi:sockets/tcp.tcp-socket.accept");
        self.on_none(import, &it)
    }

    fn local_address(&mut self, it: Resource<TcpSocket>) -> Tried<IpSocketAddress> {
        let import = import!("wasi:sockets/tcp.tcp-socket.local-address");
        self.on_none(import, &it)
    }

    fn remote_address(&mut self, it: Resource<TcpSocket>) -> Tried<IpSocketAddress> {
        let import = import!("wasi:sockets/tcp.tcp-socket.remote-address");
        self.on_none(import, &it)
    }

    fn is_listening(&mut self, it: Resource<TcpSocket>) -> Result<bool> {
        let import = import!("wasi:sockets/tcp.tcp-socket.is-listening");
        self.on_none(import, &it)
    }

    fn address_family(&mut self, it: Resource<TcpSocket>) -> Result<IpAddressFamily> {
        let import = import!("wasi:sockets/tcp.tcp-socket.address-family");
        self.on_none(import, &it)
    }

    fn set_listen_backlog_size(&mut self, it: Resource<TcpSocket>, _: u64) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.set-listen-backlog-size");
        self.on_none(import, &it)
    }

    fn keep_alive_enabled(&mut self, it: Resource<TcpSocket>) -> Tried<bool> {
        let import = import!("wasi:sockets/tcp.tcp-socket.keep-alive-enabled");
        self.on_none(import, &it)
    }

    fn set_keep_alive_enabled(&mut self, it: Resource<TcpSocket>, _: bool) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.set-keep-alive-enabled");
        self.on_none(import, &it)
    }

    fn keep_alive_idle_time(&mut self, it: Resource<TcpSocket>) -> Tried<u64> {
        let import = import!("wasi:sockets/tcp.tcp-socket.keep-alive-idle-time");
        self.on_none(import, &it)
    }

    fn set_keep_alive_idle_time(&mut self, it: Resource<TcpSocket>, _: u64) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.set-keep-alive-idle-time");
        self.on_none(import, &it)
    }

    fn keep_alive_interval(&mut self, it: Resource<TcpSocket>) -> Tried<u64> {
        let import = import!("wasi:sockets/tcp.tcp-socket.keep-alive-interval");
        self.on_none(import, &it)
    }

    fn set_keep_alive_interval(&mut self, it: Resource<TcpSocket>, _: u64) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.set-keep-alive-interval");
        self.on_none(import, &it)
    }

    fn keep_alive_count(&mut self, it: Resource<TcpSocket>) -> Tried<u32> {
        let import = import!("wasi:sockets/tcp.tcp-socket.keep-alive-count");
        self.on_none(import, &it)
    }

    fn set_keep_alive_count(&mut self, it: Resource<TcpSocket>, _: u32) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.set-keep-alive-count");
        self.on_none(import, &it)
    }

    fn hop_limit(&mut self, it: Resource<TcpSocket>) -> Tried<u8> {
        let import = import!("wasi:sockets/tcp.tcp-socket.hop-limit");
        self.on_none(import, &it)
    }

    fn set_hop_limit(&mut self, it: Resource<TcpSocket>, _: u8) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.set-hop-limit");
        self.on_none(import, &it)
    }

    fn receive_buffer_size(&mut self, it: Resource<TcpSocket>) -> Tried<u64> {
        let import = import!("wasi:sockets/tcp.tcp-socket.receive-buffer-size");
        self.on_none(import, &it)
    }

    fn set_receive_buffer_size(&mut self, it: Resource<TcpSocket>, _: u64) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.set-receive-buffer-size");
        self.on_none(import, &it)
    }

    fn send_buffer_size(&mut self, it: Resource<TcpSocket>) -> Tried<u64> {
        let import = import!("wasi:sockets/tcp.tcp-socket.send-buffer-size");
        self.on_none(import, &it)
    }

    fn set_send_buffer_size(&mut self, it: Resource<TcpSocket>, _: u64) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.set-send-buffer-size");
        self.on_none(import, &it)
    }

    fn subscribe(&mut self, it: Resource<TcpSocket>) -> Result<Resource<Pollable>> {
        let import = import!("wasi:sockets/tcp.tcp-socket.subscribe");
        self.on_none(import, &it)
    }

    fn shutdown(&mut self, it: Resource<TcpSocket>, _: tcp::ShutdownType) -> Tried<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.shutdown");
        self.on_none(import, &it)
    }

    fn drop(&mut self, it: Resource<TcpSocket>) -> Result<()> {
        let import = import!("wasi:sockets/tcp.tcp-socket.drop");
        self.on_none(import, &it)
    }
}

impl udp::Host for State {}

impl udp::HostUdpSocket for State {
    fn start_bind(
        &mut self,
        it: Resource<UdpSocket>,
        _: Resource<Network>,
        _: IpSocketAddress,
    ) -> Tried<()> {
        let import = import!("wasi:sockets/udp.udp-socket.start-bind");
        self.on_none(import, &it)
    }

    fn finish_bind(&mut self, it: Resource<UdpSocket>) -> Tried<()> {
        let import = import!("wasi:sockets/udp.udp-socket.finish-bind");
        self.on_none(import, &it)
    }

    fn stream(
        &mut self,
        it: Resource<UdpSocket>,
        _: Option<IpSocketAddress>,
    ) -> Tried<(Resource<IncomingDatagrams>, Resource<OutgoingDatagrams>)> {
        let import = import!("wasi:sockets/udp.udp-socket.stream");
        self.on_none(import, &it)
    }

    fn local_address(&mut self, it: Resource<UdpSocket>) -> Tried<IpSocketAddress> {
        let import = import!("wasi:sockets/udp.udp-socket.local-address");
        self.on_none(import, &it)
    }

    fn remote_address(&mut self, it: Resource<UdpSocket>) -> Tried<IpSocketAddress> {
        let import = import!("wasi:sockets/udp.udp-socket.remote-address");
        self.on_none(import, &it)
    }

    fn address_family(&mut self, it: Resource<UdpSocket>) -> Result<IpAddressFamily> {
        let import = import!("wasi:sockets/udp.udp-socket.address-family");
        self.on_none(import, &it)
    }

    fn unicast_hop_limit(&mut self, it: Resource<UdpSocket>) -> Tried<u8> {
        let import = import!("wasi:sockets/udp.udp-socket.unicast-hop-limit");
        self.on_none(import, &it)
    }

    fn set_unicast_hop_limit(&mut self, it: Resource<UdpSocket>, _: u8) -> Tried<()> {
        let import = import!("wasi:sockets/udp.udp-socket.set-unicast-hop-limit");
        self.on_none(import, &it)
    }

    fn receive_buffer_size(&mut self, it: Resource<UdpSocket>) -> Tried<u64> {
        let import = import!("wasi:sockets/udp.udp-socket.receive-buffer-size");
        self.on_none(import, &it)
    }

    fn set_receive_buffer_size(&mut self, it: Resource<UdpSocket>, _: u64) -> Tried<()> {
        let import = import!("wasi:sockets/udp.udp-socket.set-receive-buffer-size");
        self.on_none(import, &it)
    }

    fn send_buffer_size(&mut self, it: Resource<UdpSocket>) -> Tried<u64> {
        let import = import!("wasi:sockets/udp.udp-socket.send-buffer-size");
        self.on_none(import, &it)
    }

    fn set_send_buffer_size(&mut self, it: Resource<UdpSocket>, _: u64) -> Tried<()> {
        let import = import!("wasi:sockets/udp.udp-socket.set-send-buffer-size");
        self.on_none(import, &it)
    }

    fn subscribe(&mut self, it: Resource<UdpSocket>) -> Result<Resource<Pollable>> {
        let import = import!("wasi:sockets/udp.udp-socket.subscribe");
        self.on_none(import, &it)
    }

    fn drop(&mut self, it: Resource<UdpSocket>) -> Result<()> {
        let import = import!("wasi:sockets/udp.udp-socket.drop");
        self.on_none(import, &it)
    }
}

impl udp::HostIncomingDatagramStream for State {
    fn receive(
        &mut self,
        it: Resource<IncomingDatagrams>,
        _: u64,
    ) -> Tried<Vec<udp::IncomingDatagram>> {
        let import = import!("wasi:sockets/udp.incoming-datagram-stream.receive");
        self.on_none(import, &it)
    }

    fn subscribe(&mut self, it: Resource<IncomingDatagrams>) -> Result<Resource<Pollable>> {
        let import = import!("wasi:sockets/udp.incoming-datagram-stream.subscribe");
        self.on_none(import, &it)
    }

    fn drop(&mut self, it: Resource<IncomingDatagrams>) -> Result<()> {
        let import = import!("wasi:sockets/udp.incoming-datagram-stream.drop");
        self.on_none(import, &it)
    }
}

impl udp::HostOutgoingDatagramStream for State {
    fn check_send(&mut self, it: Resource<OutgoingDatagrams>) -> Tried<u64> {
        let import = import!("wasi:sockets/udp.outgoing-datagram-stream.check-send");
        self.on_none(import, &it)
    }

    fn send(
        &mut self,
        it: Resource<OutgoingDatagrams>,
        _: Vec<udp::OutgoingDatagram>,
    ) -> Tried<u64> {
        let import = import!("wasi:sockets/udp.outgoing-datagram-stream.send");
        self.on_none(import, &it)
    }

    fn subscribe(&mut self, it: Resource<OutgoingDatagrams>) -> Result<Resource<Pollable>> {
        let import = import!("wasi:sockets/udp.outgoing-datagram-stream.subscribe");
        self.on_none(import, &it)
    }

    fn drop(&mut self, it: Resource<OutgoingDatagrams>) -> Result<()> {
        let import = import!("wasi:sockets/udp.outgoing-datagram-stream.drop");
        self.on_none(import, &it)
    }
}
