//! Which addresses may be dialled: what the whole internet can reach, and nothing nearer.
//!
//! A name that is granted says nothing about where it leads. So every address that a name resolves to, and every
//! address that stands in a request itself, is judged here at the moment it is dialled.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::network::Network;

/// What an address that is not dialled stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No address at all, or this host.
    Unspecified,
    /// This machine.
    Loopback,
    /// A network of somebody's own.
    Private,
    /// The neighbours on one cable.
    LinkLocal,
    /// What tells a machine about itself, with its credentials.
    Metadata,
    /// What a provider's customers share.
    Shared,
    /// Many receivers.
    Multicast,
    /// All receivers.
    Broadcast,
    /// Examples in books.
    Documentation,
    /// Set aside for other purposes, or for none yet.
    Reserved,
    /// An IPv4 address inside an IPv6 one, sent through somebody's tunnel.
    Tunnel,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a metadata service",
            Self::Shared => "an address of shared space",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "a broadcast address",
            Self::Documentation => "an address of documentation",
            Self::Reserved => "a reserved address",
            Self::Tunnel => "an address of a tunnel",
        })
    }
}

/// Why an address is not dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undialled {
    /// It is not public, and no rule names its network.
    #[error(
        "{address} is {kind}, which is dialled only if a rule of the grant names it: networks = [\"{address}\"]"
    )]
    NotPublic {
        /// The address, without what it was wrapped in.
        address: IpAddr,
        /// What it stands for.
        kind: Kind,
    },
    /// It is one that the server itself listens at.
    #[error("{0} is the server's own")]
    Own(SocketAddr),
}

/// The address in the form in which it is judged and dialled.
#[must_use]
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The address to dial, if it may be dialled.
///
/// `networks` are those that a grant names; `own` is what the server listens at and connects to itself, which nothing
/// opens.
pub fn dialled(
    address: IpAddr,
    port: u16,
    networks: &[Network],
    own: &[SocketAddr],
) -> Result<SocketAddr, Undialled> {
    let address = canonical(address);
    let dialled = SocketAddr::new(address, port);
    let is_own = |own: &SocketAddr| {
        let ip = canonical(own.ip());
        // Who listens everywhere is found everywhere.
        own.port() == port && (ip == address || ip.is_unspecified() || address.is_unspecified())
    };
    if own.iter().any(is_own) {
        return Err(Undialled::Own(dialled));
    }
    match kind(address) {
        Some(kind) if !networks.iter().any(|network| network.holds(address)) => {
            Err(Undialled::NotPublic { address, kind })
        }
        Some(_) | None => Ok(dialled),
    }
}

/// What an address stands for that is not public; none if it is.
#[must_use]
pub fn kind(address: IpAddr) -> Option<Kind> {
    match canonical(address) {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

/// Single addresses of metadata services that lie in no range for such things, or in one that reads otherwise.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    // These two are those of clouds that took public and shared ones.
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254);

/// The registry of special-purpose IPv4 addresses.
const V4: [(Network, Kind); 15] = [
    (Network::v4([0, 0, 0, 0], 8), Kind::Unspecified),
    (Network::v4([10, 0, 0, 0], 8), Kind::Private),
    (Network::v4([100, 64, 0, 0], 10), Kind::Shared),
    (Network::v4([127, 0, 0, 0], 8), Kind::Loopback),
    (Network::v4([169, 254, 0, 0], 16), Kind::LinkLocal),
    (Network::v4([172, 16, 0, 0], 12), Kind::Private),
    (Network::v4([192, 0, 0, 0], 24), Kind::Reserved),
    (Network::v4([192, 0, 2, 0], 24), Kind::Documentation),
    (Network::v4([192, 88, 99, 0], 24), Kind::Reserved),
    (Network::v4([192, 168, 0, 0], 16), Kind::Private),
    (Network::v4([198, 18, 0, 0], 15), Kind::Reserved),
    (Network::v4([198, 51, 100, 0], 24), Kind::Documentation),
    (Network::v4([203, 0, 113, 0], 24), Kind::Documentation),
    (Network::v4([224, 0, 0, 0], 4), Kind::Multicast),
    (Network::v4([240, 0, 0, 0], 4), Kind::Reserved),
];

fn kind_v4(address: Ipv4Addr) -> Option<Kind> {
    if METADATA_V4.contains(&address) {
        return Some(Kind::Metadata);
    }
    if address.is_broadcast() {
        return Some(Kind::Broadcast);
    }
    V4.iter()
        .find(|(network, _)| network.holds(address.into()))
        .map(|(_, kind)| *kind)
}

/// Public unicast lies in here.
const PUBLIC_V6: Network = Network::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
/// The prefix through which a network without IPv4 reaches it.
const NAT64: Network = Network::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

/// The registry of special-purpose IPv6 addresses; what is in none of them and not in [`PUBLIC_V6`] is reserved.
const V6: [(Network, Kind); 13] = [
    (
        Network::v6([0, 0, 0, 0, 0, 0, 0, 0], 128),
        Kind::Unspecified,
    ),
    (Network::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Kind::Loopback),
    // An IPv4 address at the end, of two kinds that were given up.
    (Network::v6([0, 0, 0, 0, 0, 0, 0, 0], 96), Kind::Tunnel),
    (Network::v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), Kind::Tunnel),
    // NAT64 of somebody's own: where the IPv4 address is in it is his to know.
    (
        Network::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
        Kind::Tunnel,
    ),
    (Network::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), Kind::Tunnel),
    (
        Network::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
        Kind::Documentation,
    ),
    (
        Network::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
        Kind::Reserved,
    ),
    (Network::v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), Kind::Tunnel),
    (
        Network::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
        Kind::Documentation,
    ),
    (Network::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Kind::Private),
    (
        Network::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
        Kind::LinkLocal,
    ),
    (
        Network::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
        Kind::Multicast,
    ),
];

fn kind_v6(address: Ipv6Addr) -> Option<Kind> {
    if address == METADATA_V6 {
        return Some(Kind::Metadata);
    }
    if NAT64.holds(address.into()) {
        let [.., a, b, c, d] = address.octets();
        return kind_v4(Ipv4Addr::new(a, b, c, d));
    }
    let special = V6
        .iter()
        .find(|(network, _)| network.holds(address.into()))
        .map(|(_, kind)| *kind);
    if special.is_some() {
        return special;
    }
    if !PUBLIC_V6.holds(address.into()) {
        return Some(Kind::Reserved);
    }
    // An interface that says that it is the end of a tunnel, in whatever network.
    let [.., marker, tunnel, _, _] = address.segments();
    (tunnel == 0x5efe && matches!(marker, 0 | 0x0200)).then_some(Kind::Tunnel)
}
