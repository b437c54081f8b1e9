//! Which addresses are dialled.

use std::net::{IpAddr, SocketAddr};

use longshore_policy::address::{Kind, Undialled, dialled, kind};
use longshore_policy::network::Network;

use crate::algebra::Chance;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The first and the last address of a range and what they stand for, and the neighbours outside.
const EDGES: [(&str, &str, Kind); 28] = [
    ("0.0.0.0", "0.255.255.255", Kind::Unspecified),
    ("10.0.0.0", "10.255.255.255", Kind::Private),
    ("100.64.0.0", "100.127.255.255", Kind::Shared),
    ("127.0.0.0", "127.255.255.255", Kind::Loopback),
    ("169.254.0.0", "169.254.255.255", Kind::LinkLocal),
    ("172.16.0.0", "172.31.255.255", Kind::Private),
    ("192.0.0.0", "192.0.0.255", Kind::Reserved),
    ("192.0.2.0", "192.0.2.255", Kind::Documentation),
    ("192.88.99.0", "192.88.99.255", Kind::Reserved),
    ("192.168.0.0", "192.168.255.255", Kind::Private),
    ("198.18.0.0", "198.19.255.255", Kind::Reserved),
    ("198.51.100.0", "198.51.100.255", Kind::Documentation),
    ("203.0.113.0", "203.0.113.255", Kind::Documentation),
    ("224.0.0.0", "239.255.255.255", Kind::Multicast),
    ("240.0.0.0", "255.255.255.254", Kind::Reserved),
    ("255.255.255.255", "255.255.255.255", Kind::Broadcast),
    ("168.63.129.16", "168.63.129.16", Kind::Metadata),
    ("::", "::", Kind::Unspecified),
    ("::1", "::1", Kind::Loopback),
    ("::2", "::ffff:ffff", Kind::Tunnel),
    (
        "2001::",
        "2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Tunnel,
    ),
    (
        "2001:1::",
        "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Reserved,
    ),
    (
        "2001:db8::",
        "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Documentation,
    ),
    (
        "2002::",
        "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Tunnel,
    ),
    (
        "3fff::",
        "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Documentation,
    ),
    (
        "fc00::",
        "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Private,
    ),
    (
        "fe80::",
        "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::LinkLocal,
    ),
    (
        "ff00::",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        Kind::Multicast,
    ),
];

#[test]
fn special_ranges_reach_just_as_far_as_they_do() {
    for (first, last, expected) in EDGES {
        assert_eq!(kind(ip(first)), Some(expected), "{first}");
        assert_eq!(kind(ip(last)), Some(expected), "{last}");
    }
    for public in [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.0.3.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "8.8.8.8",
        "168.63.129.15",
        "2000::",
        "2001:200::",
        "2001:4860:4860::8888",
        "2003::",
        "2606:4700::1111",
        "3ffe:ffff::",
        "3fff:1000::",
    ] {
        assert_eq!(kind(ip(public)), None, "{public}");
    }
    for unassigned in [
        "1fff:ffff::",
        "4000::",
        "5f00::1",
        "100::1",
        "64:ff9a::1",
        "fec0::1",
        "fbff::1",
    ] {
        assert_eq!(kind(ip(unassigned)), Some(Kind::Reserved), "{unassigned}");
    }
}

#[test]
fn what_tells_a_machine_about_itself_is_known_everywhere() {
    for metadata in [
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "64:ff9b::169.254.169.254",
    ] {
        assert_eq!(kind(ip(metadata)), Some(Kind::Metadata), "{metadata}");
    }
}

#[test]
fn an_address_in_an_address_is_judged() {
    for (wrapped, expected) in [
        ("::ffff:127.0.0.1", Some(Kind::Loopback)),
        ("::ffff:10.0.0.1", Some(Kind::Private)),
        ("::ffff:8.8.8.8", None),
        ("64:ff9b::127.0.0.1", Some(Kind::Loopback)),
        ("64:ff9b::10.0.0.1", Some(Kind::Private)),
        ("64:ff9b::8.8.8.8", None),
        // Where these lead is for whoever runs them to say, whatever address is in them.
        ("64:ff9b:1::8.8.8.8", Some(Kind::Tunnel)),
        ("::127.0.0.1", Some(Kind::Tunnel)),
        ("::ffff:0:127.0.0.1", Some(Kind::Tunnel)),
        ("2002:7f00:1::", Some(Kind::Tunnel)),
        ("2002:808:808::", Some(Kind::Tunnel)),
        ("2001:0:808:808:0:0:80ff:fffe", Some(Kind::Tunnel)),
        ("2606:4700::5efe:10.0.0.1", Some(Kind::Tunnel)),
        ("2606:4700::200:5efe:10.0.0.1", Some(Kind::Tunnel)),
    ] {
        assert_eq!(kind(ip(wrapped)), expected, "{wrapped}");
    }
}

#[test]
fn only_a_network_that_is_named_is_opened() {
    let opens = |network: &str, address: &str| {
        let networks: Vec<Network> = vec![network.parse().unwrap()];
        dialled(ip(address), 443, &networks, &[])
    };
    assert_eq!(
        opens("10.1.0.0/16", "10.1.2.3").unwrap().to_string(),
        "10.1.2.3:443"
    );
    assert_eq!(
        opens("10.1.0.0/16", "::ffff:10.1.2.3").unwrap().to_string(),
        "10.1.2.3:443"
    );
    assert!(opens("127.0.0.1", "127.0.0.1").is_ok());
    assert!(opens("fd12::/16", "fd12::1").is_ok());
    for (network, address) in [
        ("10.1.0.0/16", "10.2.0.1"),
        ("10.1.0.0/16", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.2"),
        ("127.0.0.0/8", "::1"),
        // Its translator may stand elsewhere, where the same numbers are another network.
        ("10.1.0.0/16", "64:ff9b::10.1.2.3"),
        ("fd12::/16", "fd13::1"),
    ] {
        let refused = opens(network, address).unwrap_err();
        assert!(
            matches!(refused, Undialled::NotPublic { .. }),
            "{network} {address}: {refused}"
        );
    }
}

#[test]
fn nothing_opens_what_the_server_listens_at() {
    let networks: Vec<Network> = vec![
        "127.0.0.0/8".parse().unwrap(),
        "10.0.0.0/8".parse().unwrap(),
    ];
    let loopback: Vec<SocketAddr> = vec!["127.0.0.1:8383".parse().unwrap()];
    let everywhere: Vec<SocketAddr> = vec!["0.0.0.0:8383".parse().unwrap()];
    for (own, address, port, expected) in [
        (&loopback, "127.0.0.1", 8383, false),
        (&loopback, "::ffff:127.0.0.1", 8383, false),
        (&loopback, "127.0.0.1", 8384, true),
        (&loopback, "127.0.0.2", 8383, true),
        (&everywhere, "127.0.0.2", 8383, false),
        (&everywhere, "10.0.0.1", 8383, false),
        (&everywhere, "8.8.8.8", 8383, false),
        (&everywhere, "8.8.8.8", 443, true),
    ] {
        let dialled = dialled(ip(address), port, &networks, own);
        assert_eq!(dialled.is_ok(), expected, "{address} {port} {own:?}");
    }
}

#[test]
fn networks_are_written_in_one_way() {
    for text in [
        "10.0.0.0/8",
        "192.168.1.0/24",
        "127.0.0.1/32",
        "fd00::/8",
        "fc00::/7",
        "::1/128",
    ] {
        let network: Network = text.parse().unwrap();
        assert_eq!(network.to_string(), text);
    }
    for text in [
        "0.0.0.0/0",
        "10.0.0.0/7",
        "::/0",
        "10.0.0.1/8",
        "fd00::1/64",
        "10.0.0.0/33",
        "fd00::/129",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "10/8",
        "localhost",
        "",
        "::ffff:10.0.0.0/104",
    ] {
        assert!(text.parse::<Network>().is_err(), "{text}");
    }
}

/// What is dialled with a network more is what was dialled before and that network, and nothing else.
#[test]
fn a_network_opens_itself_and_nothing_else() {
    let mut chance = Chance::new(3);
    let named: Vec<Network> = [
        "10.1.0.0/16",
        "127.0.0.0/8",
        "169.254.169.254",
        "fd12::/16",
        "2002::/16",
        "::1",
    ]
    .map(|text| text.parse().unwrap())
    .to_vec();
    let mut opened = 0;
    for _ in 0..100_000 {
        let address = address(&mut chance);
        let network = named[chance.below(named.len())];
        let before = dialled(address, 1, &[], &[]).is_ok();
        let after = dialled(address, 1, &[network], &[]).is_ok();
        assert_eq!(
            after,
            before || network.holds(address.to_canonical()),
            "{address} {network}"
        );
        opened += usize::from(after && !before);
    }
    assert!(opened > 1_000, "chance has tried too few: {opened}");
}

/// Any address, often one that is near a range of which there is something to say.
fn address(chance: &mut Chance) -> IpAddr {
    let v4 = |chance: &mut Chance| {
        let starts: [[u8; 2]; 6] = [[10, 1], [10, 2], [127, 0], [169, 254], [192, 168], [8, 8]];
        let [a, b] = starts[chance.below(6)];
        let end = chance.bits();
        if chance.below(4) == 0 {
            [169, 254, 169, 254]
        } else {
            [a, b, end.to_le_bytes()[0], end.to_le_bytes()[1]]
        }
    };
    let v6 = |start: [u16; 6], [a, b, c, d]: [u8; 4]| {
        let [s0, s1, s2, s3, s4, s5] = start;
        let (s6, s7) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        IpAddr::from([s0, s1, s2, s3, s4, s5, s6, s7])
    };
    let inside = v4(chance);
    match chance.below(8) {
        0 | 1 => IpAddr::from(inside),
        2 => v6([0, 0, 0, 0, 0, 0xffff], inside),
        3 => v6([0x64, 0xff9b, 0, 0, 0, 0], inside),
        4 => v6([0x2002, 0, 0, 0, 0, 0], inside),
        5 => v6([0xfd12, 0, 0, 0, 0, 0], inside),
        6 => v6([0, 0, 0, 0, 0, 0], [0, 0, 0, 1]),
        _ => IpAddr::from(u128::from(chance.bits()).wrapping_shl(64).to_be_bytes()),
    }
}
