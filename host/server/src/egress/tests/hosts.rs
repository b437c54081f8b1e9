//! What comes of requests to hosts of every kind.

use std::time::Duration;

use futures_util::FutureExt as _;

use super::*;

async fn said(mut stream: TcpStream, text: &'static str) {
    write(&mut stream, text).await;
}

async fn said_and_silent(mut stream: TcpStream, text: &'static str) {
    write(&mut stream, text).await;
    std::future::pending().await
}

async fn without_end(mut stream: TcpStream, head: &'static str, piece: &'static str) {
    write(&mut stream, head).await;
    while stream.write_all(piece.as_bytes()).await.is_ok() {}
}

#[tokio::test]
async fn a_request_is_sent_as_it_is_and_answered_as_it_comes() {
    let host = Host::that(|stream| ok(stream).boxed()).await;
    let mut outgoing = plain(host.address);
    outgoing.method = "POST".parse().unwrap();
    outgoing.body = Bytes::from_static(b"body");
    let field = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    outgoing.fields = vec![
        field("x-b", "1"),
        field("x-b", "2"),
        // These are not for a guest to say.
        field("content-length", "9999"),
        field("transfer-encoding", "chunked"),
        field("connection", "upgrade"),
        field("upgrade", "h2c"),
        field("host", "elsewhere.test"),
        field("expect", "100-continue"),
        field("idempotency-key", "the guest's own"),
    ];
    outgoing.is_keyed = true;
    let response = response(egress().send("the-call", outgoing).await);
    assert_eq!((response.status, &response.body[..]), (200, &b"hi"[..]));
    assert_eq!(response.fields[0].0, "x-a");
    let sent = host.read().remove(0).to_lowercase();
    let mut lines: Vec<&str> = sent.lines().collect();
    assert_eq!(lines.remove(0), "post /a?b=c http/1.1");
    let is_there = |line: &str| lines.iter().filter(|there| **there == line).count();
    let address = host.address;
    for line in [
        &*format!("host: {address}"),
        "x-b: 1",
        "x-b: 2",
        "content-length: 4",
        "idempotency-key: the-call-7",
        concat!("user-agent: longshore/", env!("CARGO_PKG_VERSION")),
        "body",
    ] {
        assert_eq!(is_there(line), 1, "{line} in {sent}");
    }
    for word in ["chunked", "h2c", "elsewhere", "expect", "9999", "own"] {
        assert!(!sent.contains(word), "{word} in {sent}");
    }
}

/// Which of its bounds a host runs into.
#[derive(Clone, Copy)]
enum Short {
    None,
    FirstByte,
    BetweenBytes,
    Whole,
}

#[tokio::test]
async fn hosts_that_mean_no_good_cost_what_they_may() {
    const SHORT_MS: u64 = 1_000;
    let cases: [(&str, Does, Short, Result<u16, Failure>); 16] = [
        (
            "an endless body",
            |s| without_end(s, "HTTP/1.1 200 OK\r\n\r\n", "xxxxxxxxxxxxxxxx").boxed(),
            Short::None,
            Err(Failure::BodyTooLarge(64 * 1024)),
        ),
        (
            "a body that says that it is too large",
            |s| said_and_silent(s, "HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n").boxed(),
            Short::None,
            Err(Failure::BodyTooLarge(64 * 1024)),
        ),
        (
            "an endless head",
            |s| without_end(s, "HTTP/1.1 200 OK\r\n", "x-a: aaaaaaaaaaaaaaa\r\n").boxed(),
            Short::None,
            Err(Failure::HeadTooLarge(16 * 1024)),
        ),
        (
            "a body that breaks off",
            |s| said(s, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").boxed(),
            Short::None,
            Err(Failure::Terminated),
        ),
        (
            "no response",
            |s| said(s, "").boxed(),
            Short::None,
            Err(Failure::Terminated),
        ),
        (
            "something else than HTTP",
            |s| said(s, "SSH-2.0-OpenSSH_9.2\r\n\r\n").boxed(),
            Short::None,
            Err(Failure::Protocol),
        ),
        (
            "another protocol",
            |s| {
                said(
                    s,
                    "HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                )
                .boxed()
            },
            Short::None,
            Err(Failure::Protocol),
        ),
        (
            "a redirect, which is the guest's to follow",
            |s| {
                said(
                    s,
                    "HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
                )
                .boxed()
            },
            Short::None,
            Ok(302),
        ),
        (
            "news first",
            |s| said(s, "HTTP/1.1 103 X\r\n\r\nHTTP/1.1 204 X\r\n\r\n").boxed(),
            Short::None,
            Ok(204),
        ),
        (
            "pieces",
            |s| {
                said(
                    s,
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
                )
                .boxed()
            },
            Short::None,
            Ok(200),
        ),
        (
            "pieces that are none",
            |s| {
                said(
                    s,
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                )
                .boxed()
            },
            Short::None,
            Err(Failure::Terminated),
        ),
        (
            "silence",
            |s| said_and_silent(s, "").boxed(),
            Short::FirstByte,
            Err(Failure::ResponseTimeout),
        ),
        (
            "silence in the middle of a head",
            |s| said_and_silent(s, "HTTP/1.1 200 OK\r\nX-A").boxed(),
            Short::FirstByte,
            Err(Failure::ResponseTimeout),
        ),
        (
            "silence in the middle of a body",
            |s| said_and_silent(s, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi").boxed(),
            Short::BetweenBytes,
            Err(Failure::ResponseTimeout),
        ),
        (
            "a body that comes, and never to its end",
            |mut s| {
                async move {
                    write(&mut s, "HTTP/1.1 200 OK\r\n\r\n").await;
                    while s.write_all(b"x").await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                }
                .boxed()
            },
            Short::Whole,
            Err(Failure::ResponseTimeout),
        ),
        (
            "a reset",
            |s| async move { s.set_zero_linger().expect("it is a socket") }.boxed(),
            Short::None,
            Err(Failure::Terminated),
        ),
    ];
    for (what, does, short, expected) in cases {
        let host = Host::that(does).await;
        let mut outgoing = plain(host.address);
        let bounds = &mut outgoing.bounds;
        match short {
            Short::None => {}
            Short::FirstByte => bounds.first_byte_ms = SHORT_MS,
            Short::BetweenBytes => bounds.between_bytes_ms = SHORT_MS,
            Short::Whole => bounds.whole_ms = SHORT_MS,
        }
        let outcome = egress().send("c", outgoing).await;
        assert_eq!(outcome.map(|response| response.status), expected, "{what}");
        // Nothing is tried again.
        assert!(host.read().len() <= 1, "{what}");
    }
}

#[tokio::test]
async fn what_is_packed_stays_packed_and_a_head_needs_no_body() {
    let host = Host::that(|s| {
        said(
            s,
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nGZIP",
        )
        .boxed()
    })
    .await;
    let packed = response(egress().send("c", plain(host.address)).await);
    assert_eq!(&packed.body[..], b"GZIP");
    let host =
        Host::that(|s| said(s, "HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n").boxed()).await;
    let mut outgoing = plain(host.address);
    outgoing.method = "HEAD".parse().unwrap();
    let head = response(egress().send("c", outgoing).await);
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn whom_nobody_is_and_who_takes_nothing() {
    let unused = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    assert_eq!(
        egress().send("c", plain(unused)).await,
        Err(Failure::Refused)
    );
    let mut egress = egress();
    egress.resolver = Names::of(&[]);
    let nobody = to(Scheme::Http, "nobody.test");
    assert_eq!(egress.send("c", nobody).await, Err(Failure::DnsError));
    let mut silent = to(Scheme::Http, "silent.test");
    silent.bounds.connect_ms = 300;
    assert_eq!(egress.send("c", silent).await, Err(Failure::DnsTimeout));
    // It takes the connection and never says who it is.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut mute = to(Scheme::Https, &address.to_string());
    mute.bounds.connect_ms = 300;
    assert_eq!(egress.send("c", mute).await, Err(Failure::ConnectTimeout));
}

#[tokio::test]
async fn what_is_not_public_is_not_dialled_by_name_or_number() {
    let addresses = [
        "127.0.0.1",
        "127.9.9.9",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.1.1",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "::1",
        "::",
        "fd00::1",
        "fe80::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fd00:ec2::254",
    ];
    for text in addresses {
        let address: IpAddr = text.parse().unwrap();
        let mut egress = egress();
        let mut names = Names::default();
        names.known.insert("leads.test", vec![vec![address]]);
        egress.resolver = Arc::new(names);
        let literal = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        for authority in ["leads.test", &literal] {
            let mut outgoing = to(Scheme::Http, authority);
            outgoing.networks.clear();
            let outcome = egress.send("c", outgoing).await;
            assert!(
                matches!(outcome, Err(Failure::AddressProhibited(_))),
                "{authority} ({text}): {outcome:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_that_address_is_dialled() {
    let host = Host::that(|stream| ok(stream).boxed()).await;
    let port = host.address.port();
    let names = Names::of(&[
        // Whoever asks twice is led elsewhere.
        ("moves.test", &[&["127.0.0.1"], &["127.0.0.2"]]),
        // What may not be dialled is left out.
        ("mixed.test", &[&["10.0.0.1", "127.0.0.1"]]),
    ]);
    let mut egress = egress();
    egress.resolver = Arc::clone(&names) as _;
    for name in ["moves.test", "mixed.test"] {
        let outgoing = to(Scheme::Http, &format!("{name}:{port}"));
        let response = response(egress.send("c", outgoing).await);
        assert_eq!(response.status, 200, "{name}");
    }
    assert_eq!(*names.asked.lock(), ["moves.test", "mixed.test"]);
    assert!(host.read()[0].contains(&format!("host: moves.test:{port}")));
}

#[tokio::test]
async fn nobody_is_let_to_the_server_itself() {
    let host = Host::that(|stream| ok(stream).boxed()).await;
    let egress = egress();
    egress.is_ours(host.address);
    let outcome = egress.send("c", plain(host.address)).await;
    assert!(
        matches!(outcome, Err(Failure::AddressProhibited(_))),
        "{outcome:?}"
    );
    assert!(host.read().is_empty());
}

#[tokio::test]
async fn connections_are_as_many_as_may_be() {
    let host = Host::that(|stream| {
        async move {
            let _held = stream;
            std::future::pending().await
        }
        .boxed()
    })
    .await;
    let egress = Arc::new(Egress::new(Vault::default(), 1));
    let first = {
        let egress = Arc::clone(&egress);
        let outgoing = plain(host.address);
        tokio::spawn(async move { egress.send("c", outgoing).await })
    };
    while host.read().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut second = plain(host.address);
    second.bounds.connect_ms = 300;
    assert_eq!(
        egress.send("c", second.clone()).await,
        Err(Failure::ConnectionLimit)
    );
    // Whoever is let go of gives its place back.
    first.abort();
    assert!(first.await.is_err());
    second.bounds.connect_ms = 20_000;
    second.bounds.first_byte_ms = 300;
    assert_eq!(
        egress.send("c", second).await,
        Err(Failure::ResponseTimeout)
    );
}

/// An address at which connections are neither taken nor refused, for as long as this is held.
struct Dead {
    _listening: TcpListener,
    _waiting: TcpStream,
}

impl Dead {
    async fn at(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(address).unwrap();
        // One may wait to be taken, and nobody takes it.
        Self {
            _listening: socket.listen(0).unwrap(),
            _waiting: TcpStream::connect(address).await.unwrap(),
        }
    }
}

#[tokio::test]
async fn an_address_that_is_dead_leaves_time_for_the_next() {
    let host = Host::that(|stream| ok(stream).boxed()).await;
    let port = host.address.port();
    let dead = ["127.0.0.2", "127.0.0.3"];
    let mut held = Vec::new();
    for address in dead {
        let address: IpAddr = address.parse().unwrap();
        held.push(Dead::at(SocketAddr::new(address, port)).await);
    }
    let mut egress = egress();
    egress.resolver = Names::of(&[
        ("half.test", &[&["127.0.0.2", "127.0.0.3", "127.0.0.1"]]),
        ("dead.test", &[&["127.0.0.2", "127.0.0.3"]]),
    ]);
    let to_name = |name: &str, connect_ms| {
        let mut outgoing = to(Scheme::Http, &format!("{name}:{port}"));
        outgoing.bounds.connect_ms = connect_ms;
        outgoing
    };
    let half = response(egress.send("c", to_name("half.test", 3_000)).await);
    assert_eq!(half.status, 200);
    let dead = egress.send("c", to_name("dead.test", 300)).await;
    assert_eq!(dead, Err(Failure::ConnectTimeout));
}

#[tokio::test]
async fn waiting_for_a_place_and_connecting_have_one_time_together() {
    let mut egress = Egress::new(Vault::default(), 1);
    egress.resolver = Names::of(&[]);
    let egress = Arc::new(egress);
    let place = egress.places.acquire().await.unwrap();
    let mut silent = to(Scheme::Http, "silent.test");
    silent.bounds.connect_ms = 2_000;
    let began = std::time::Instant::now();
    let sent = {
        let egress = Arc::clone(&egress);
        tokio::spawn(async move { egress.send("c", silent).await })
    };
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    drop(place);
    assert_eq!(sent.await.unwrap(), Err(Failure::DnsTimeout));
    let took = began.elapsed();
    assert!(took < Duration::from_millis(3_000), "{took:?}");
}

#[tokio::test]
async fn this_machine_knows_its_own_name() {
    let host = Host::that(|stream| ok(stream).boxed()).await;
    let mut outgoing = to(Scheme::Http, &format!("localhost:{}", host.address.port()));
    outgoing.networks.push("::1".parse().unwrap());
    assert_eq!(response(egress().send("c", outgoing).await).status, 200);
}
