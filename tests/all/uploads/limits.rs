//! Uploads that are too large, too slow, broken off, or dear to compile.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use longshore_tests::alive::{Baseline, canary};
use longshore_tests::component::Made;
use longshore_tests::guests;
use longshore_tests::process::{Options, Server, TOKEN};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::live_values;

/// The limit of the servers here.
const LIMIT: usize = 1024 * 1024;

async fn small() -> Server {
    Server::start(
        Options::with_guests(&["hello"])
            .set("upload_mib", 1)
            .set("body_pause_s", 1),
    )
    .await
}

/// The beginning of an upload: everything but its body.
async fn begin(address: SocketAddr, length: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address)
        .await
        .expect("the server listens");
    let head = format!(
        "PUT /v1/components/large HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n{length}\r\n\r\n"
    );
    stream
        .write_all(head.as_bytes())
        .await
        .expect("the server reads");
    stream
}

/// Status and reason of the answer, which must come although the body is not whole.
async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> (u16, String) {
    let mut text = String::new();
    let reading = async {
        let mut part = [0; 4096];
        while !text.ends_with('}') {
            match stream
                .read(&mut part)
                .await
                .expect("the answer can be read")
            {
                0 => break,
                read => {
                    text.push_str(std::str::from_utf8(&part[..read]).expect("the answer is text"))
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), reading)
        .await
        .expect("an answer comes");
    let (head, body) = text
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let body: Value =
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {body:?}"));
    (
        status.expect("an answer has a status"),
        body["error"]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    )
}

#[tokio::test]
async fn too_large_is_told_before_the_body_and_at_the_limit() {
    let server = small().await;
    let baseline = Baseline::of(&server).await;
    let too_large = (413, "too-large".to_owned());

    // Not a byte of the body is sent.
    let mut honest = begin(server.address, &format!("Content-Length: {}", LIMIT + 1)).await;
    assert_eq!(answer(&mut honest).await, too_large);

    // The server has read all that was sent when it answers, so nothing tears the answer off.
    let mut chunked = begin(server.address, "Transfer-Encoding: chunked").await;
    let most = [
        format!("{LIMIT:x}\r\n").into_bytes(),
        vec![0; LIMIT],
        b"\r\n1\r\n\0\r\n".to_vec(),
    ]
    .concat();
    chunked.write_all(&most).await.expect("the server reads");
    assert_eq!(answer(&mut chunked).await, too_large);

    let at_limit = server.upload("large", vec![0; LIMIT]).await;
    assert_eq!(
        (at_limit.status, &at_limit.json()["error"]["reason"]),
        (422, &Value::from("not-wasm"))
    );
    drop((honest, chunked));
    baseline.holds(&server).await;
}

#[tokio::test]
async fn an_endless_body_is_answered_cut_and_not_kept() {
    let server = small().await;
    let baseline = Baseline::of(&server).await;
    let rss = async || {
        server.figures().await["process"]["rssKib"]
            .as_u64()
            .expect("the system tells")
    };
    let before = rss().await;
    let endless = begin(server.address, "Transfer-Encoding: chunked").await;
    let (mut reading, mut writing) = endless.into_split();
    let chunk = [b"10000\r\n".to_vec(), vec![0; 0x10000], b"\r\n".to_vec()].concat();
    let cut = async {
        let mut sent = 0;
        while writing.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
        }
        sent
    };
    // What is sent after the answer is taken in for a moment, so that the answer can be read at all.
    let cut = tokio::time::timeout(Duration::from_secs(10), cut);
    let (answered, sent) = tokio::join!(answer(&mut reading), cut);
    assert_eq!(answered, (413, "too-large".to_owned()));
    let sent = sent.expect("the server ends it");
    let grown = rss().await.saturating_sub(before);
    println!("{} MiB were sent, {grown} KiB are kept", sent / LIMIT);
    assert!(grown < 16 * 1024, "{grown} KiB are kept");
    drop((reading, writing));
    baseline.holds(&server).await;
}

#[tokio::test]
async fn broken_off_and_standing_still_leave_nothing() {
    let server = small().await;
    let baseline = Baseline::of(&server).await;
    let bytes = std::fs::read(guests::component("tool-error")).expect("the example is there");
    for percent in [0, 50, 99] {
        let mut stream = begin(server.address, &format!("Content-Length: {}", bytes.len())).await;
        stream
            .write_all(&bytes[..bytes.len() * percent / 100])
            .await
            .expect("the server reads");
    }
    baseline.holds(&server).await;

    let mut stream = begin(server.address, &format!("Content-Length: {}", bytes.len())).await;
    stream
        .write_all(&bytes[..bytes.len() / 2])
        .await
        .expect("the server reads");
    let started = Instant::now();
    assert_eq!(answer(&mut stream).await, (408, "too-slow".to_owned()));
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    drop(stream);

    assert_eq!(
        server.admin("GET", "/v1/components/large", "").await.status,
        404
    );
    baseline.holds(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_while_one_compiles_for_long() {
    let server = Server::start(Options::with_guests(&["hello"]).set("compile.cpu_s", 5)).await;
    let baseline = Baseline::of(&server).await;
    let bomb = async {
        let started = Instant::now();
        let reply = server.upload("bomb", live_values(20_000)).await;
        (reply, started.elapsed())
    };
    let others = async {
        // The bomb's child has begun, or the good one might be first.
        longshore_tests::wait::until("the bomb to compile", Duration::from_secs(20), || async {
            (server.figures().await["sandbox"]["compiles"] == 2).then_some(())
        })
        .await;
        let started = Instant::now();
        let mut slowest = Duration::ZERO;
        while started.elapsed() < Duration::from_secs(2) {
            let asked = Instant::now();
            canary(&server).await;
            slowest = slowest.max(asked.elapsed());
        }
        let good = server.upload("good", Made::with_tool("good").bytes()).await;
        (slowest, good)
    };
    let ((bomb, took), (slowest, good)) = tokio::join!(bomb, others);
    println!("the bomb was given up after {took:?}; the slowest call beside it took {slowest:?}");
    assert_eq!(
        (bomb.status, &bomb.json()["error"]["reason"]),
        (422, &Value::from("compile-limit"))
    );
    assert!(
        took > Duration::from_secs(2),
        "{took:?} is no long compilation"
    );
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert_eq!(good.status, 201, "{}", good.json());
    baseline.holds(&server).await;
}
