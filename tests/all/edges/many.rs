//! As many listeners as there may be.

use longshore_tests::component::Made;
use longshore_tests::events;
use longshore_tests::process::{Options, Server};
use longshore_tests::usage::Usage;
use serde_json::json;

/// The default of `listeners`.
const ALL: usize = 1_024;
/// Those that are there before memory is measured: the first ones cost what all others share.
const FIRST: usize = 24;
/// What one of them may cost, with its connection. They need about a third of it.
const EACH_KIB: u64 = 48;

#[tokio::test]
async fn as_many_listen_as_may_and_each_is_told() {
    let server = Server::start(Options::with_guests(&["hello"])).await;
    let client = server.client();
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let request = client.request("subscriptions/listen", filter);
    let rss_kib = || Usage::of(server.pid()).expect("it lives").rss_kib;
    let (mut streams, mut before) = (Vec::new(), 0);
    for number in 0..ALL {
        if number == FIRST {
            before = rss_kib();
        }
        let mut stream = events::open(server.address, &request).await;
        assert!(stream.is_stream(), "number {number}: {}", stream.status);
        let first = stream.next().await.expect("the acknowledgement");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        streams.push(stream);
    }
    let grown = rss_kib().saturating_sub(before);
    let each = grown as f64 / (ALL - FIRST) as f64;
    println!("{ALL} listeners, {each:.1} KiB each");
    assert!(
        grown < EACH_KIB * (ALL - FIRST) as u64,
        "{each:.1} KiB each"
    );
    assert_eq!(server.figures().await["listeners"], ALL);

    // One more is not let in, and keeps nobody from being served.
    let more = events::open(server.address, &request).await;
    assert_eq!(more.status, 503);
    assert_eq!(more.json().await["error"]["data"]["reason"], "busy");
    let result = client.call("hello", json!({ "name": "Ada" })).await;
    assert_eq!(result["content"][0]["text"], "Hello, Ada!");

    let made = Made::with_tool("new");
    assert_eq!(server.upload("new", made.bytes()).await.status, 201);
    for stream in &mut streams {
        let told = stream.next().await.expect("it is told");
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
}
