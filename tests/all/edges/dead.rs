//! Clients that are gone, behind a proxy that keeps their connections and reads on in their place. Nothing tells them from
//! clients that listen, so that what they hold is bounded by number and by time.

use std::net::SocketAddr;
use std::time::Duration;

use longshore_tests::events::{self, Answer, Way};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, Session};
use longshore_tests::wait;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Longer than the server is told to wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A proxy whose clients are never missed.
struct Proxy {
    address: SocketAddr,
    /// How many clients have gone.
    gone: watch::Receiver<usize>,
    serving: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Proxy {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let (tell, gone) = watch::channel(0);
        let serving = tokio::spawn(async move {
            let mut kept = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                kept.spawn(keep(client, server, tell.clone()));
            }
        });
        Self {
            address,
            gone,
            serving,
        }
    }

    fn way(&self, server: &Server) -> Way {
        Way {
            through: self.address,
            host: server.address,
        }
    }

    async fn until_gone(&mut self, count: usize) {
        let gone = self.gone.wait_for(|gone| *gone == count);
        let gone = tokio::time::timeout(PATIENCE, gone).await;
        gone.expect("the clients are gone")
            .expect("the proxy is there");
    }
}

/// Passes on what both sides say, and reads what the server says for as long as it says anything.
async fn keep(client: TcpStream, server: SocketAddr, gone: watch::Sender<usize>) {
    let server = TcpStream::connect(server)
        .await
        .expect("the server listens");
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = async {
        let _until_it_is_gone = tokio::io::copy(&mut from_client, &mut to_server).await;
        gone.send_modify(|gone| *gone += 1);
        // The half that writes to the server stays open.
        std::future::pending::<()>().await;
    };
    let answering = async {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = from_server.read(&mut part).await {
            let _nobody_reads_it = to_client.write_all(&part[..read]).await;
        }
    };
    tokio::select! {
        () = asking => {}
        () = answering => {}
    }
}

fn listening(server: &Server) -> Value {
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    server.client().request("subscriptions/listen", filter)
}

/// Clients that listen by way of the proxy.
async fn listen(server: &Server, proxy: &Proxy, count: usize) -> Vec<Answer> {
    let mut answers = Vec::new();
    for _ in 0..count {
        let request = listening(server);
        let (headers, body) = (Client::headers(&request), request.to_string());
        let mut answer = events::open_by(proxy.way(server), "POST", &headers, body).await;
        assert!(answer.is_stream(), "{}", answer.status);
        answer.next().await.expect("the acknowledgement");
        answers.push(answer);
    }
    answers
}

#[tokio::test]
async fn those_that_nobody_misses_are_bounded_by_their_number() {
    const MOST: usize = 5;
    let options = Options::with_guests(&["hello"]).set("listeners", MOST);
    let server = Server::start(options).await;
    let mut proxy = Proxy::to(server.address).await;
    drop(listen(&server, &proxy, MOST).await);
    proxy.until_gone(MOST).await;
    // They are as good as there; one more is told so, and everything else is served.
    let more = events::open(server.address, &listening(&server)).await;
    assert_eq!(more.status, 503);
    assert_eq!(more.json().await["error"]["data"]["reason"], "busy");
    assert_eq!(server.figures().await["listeners"], MOST);
    let result = server
        .client()
        .call("hello", json!({ "name": "Ada" }))
        .await;
    assert_eq!(result["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn those_that_nobody_misses_are_let_go_in_time() {
    const SOME: usize = 20;
    let options = Options::with_guests(&["hello"])
        .set("listen_s", 1)
        .set("header_s", 3)
        .set("session_idle_s", 1);
    let server = Server::start(options).await;
    let fds = async || server.figures().await["process"]["fds"].as_u64();
    let before = fds().await;
    let mut proxy = Proxy::to(server.address).await;
    drop(listen(&server, &proxy, SOME).await);
    // Of a session as well, which such a listener would keep for ever.
    let session = Session::open(server.address, NEWEST, json!({})).await;
    let way = proxy.way(&server);
    let heard = events::open_by(way, "GET", &session.headers(), String::new()).await;
    assert!(heard.is_stream());
    drop(heard);
    proxy.until_gone(SOME + 1).await;
    // The proxy still holds the connections, and they are gone here all the same.
    wait::until("all to be let go", PATIENCE, || async {
        let figures = server.figures().await;
        let is_over = figures["listeners"] == 0 && figures["process"]["fds"].as_u64() <= before;
        is_over.then_some(())
    })
    .await;
    wait::until("the session to end", PATIENCE, || async {
        // Opening one looks through all that are there.
        let other = Session::open(server.address, NEWEST, json!({})).await;
        other.end().await;
        (server.figures().await["sessions"] == 0).then_some(())
    })
    .await;
    // Who comes now is served as the first was.
    let mut again = events::open(server.address, &listening(&server)).await;
    assert!(again.next().await.is_some());
}
