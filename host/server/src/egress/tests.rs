//! Real listeners, and hosts that mean no good.

mod hosts;
mod secrets;
mod trust;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use longshore_journal::http::{Failure, Outcome, Response};
use longshore_policy::authority::{Authority, Scheme};
use longshore_policy::secrets::Secret;
use longshore_sandbox::outside::{Bounds, Outgoing};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::Egress;
use super::resolve::Resolve;
use super::vault::Vault;

/// Who answers for names, and is asked how often.
#[derive(Default)]
struct Names {
    known: HashMap<&'static str, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, _: &str, name: &str) -> io::Result<Vec<IpAddr>> {
        let before = {
            let mut asked = self.asked.lock();
            let before = asked.iter().filter(|asked| *asked == name).count();
            asked.push(name.to_owned());
            before
        };
        match self.known.get(name) {
            // Whoever answers last answers so for ever.
            Some(answers) => Ok(answers[before.min(answers.len() - 1)].clone()),
            None if name == "silent.test" => std::future::pending().await,
            None => Err(io::Error::other("no such name")),
        }
    }
}

impl Names {
    fn of(known: &[(&'static str, &[&[&str]])]) -> Arc<Self> {
        let address = |text: &&str| text.parse().expect("an address");
        let known = known.iter().map(|(name, answers)| {
            let answers = answers.iter();
            let answers = answers.map(|answer| answer.iter().map(address).collect());
            (*name, answers.collect())
        });
        Arc::new(Self {
            known: known.collect(),
            asked: Mutex::default(),
        })
    }
}

fn egress() -> Egress {
    Egress::new(Vault::default(), 16)
}

fn bounds() -> Bounds {
    Bounds {
        connect_ms: 20_000,
        first_byte_ms: 20_000,
        between_bytes_ms: 20_000,
        whole_ms: 60_000,
        head_bytes: 16 * 1024,
        body_bytes: 64 * 1024,
    }
}

/// A request to there, where loopback addresses may be dialled.
fn to(scheme: Scheme, authority: &str) -> Outgoing {
    Outgoing {
        exchange: 7,
        method: "GET".parse().unwrap(),
        scheme,
        authority: Authority::read(scheme, authority).unwrap(),
        path: "/a?b=c".into(),
        fields: Vec::new(),
        body: Bytes::new(),
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        secrets: Vec::<Secret>::new(),
        is_keyed: false,
        bounds: bounds(),
    }
}

fn plain(address: SocketAddr) -> Outgoing {
    to(Scheme::Http, &address.to_string())
}

/// A host that reads one request a connection and then does that. It is sent what was read.
struct Host {
    address: SocketAddr,
    read: Arc<Mutex<Vec<String>>>,
}

/// What a host does with a connection once it has read a request.
type Does = fn(TcpStream) -> futures_util::future::BoxFuture<'static, ()>;

impl Host {
    async fn that(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let read = Arc::<Mutex<Vec<String>>>::default();
        let heads = Arc::clone(&read);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let heads = Arc::clone(&heads);
                tokio::spawn(async move {
                    let request = request(&mut stream).await;
                    heads.lock().push(request);
                    does(stream).await;
                });
            }
        });
        Self { address, read }
    }

    fn read(&self) -> Vec<String> {
        self.read.lock().clone()
    }
}

/// One request, as far as its length says.
async fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return text,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

/// Writes it, slowly enough that it is seen piece by piece.
async fn write(stream: &mut TcpStream, text: &str) {
    let _the_other_side_may_be_gone = stream.write_all(text.as_bytes()).await;
    let _likewise = stream.flush().await;
}

async fn ok(mut stream: TcpStream) {
    write(
        &mut stream,
        "HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nhi",
    )
    .await;
}

#[track_caller]
fn response(outcome: Outcome) -> Response {
    outcome.unwrap_or_else(|failure| panic!("{failure:?}"))
}
