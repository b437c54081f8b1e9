//! Who is let in at all: what `Host` and `Origin` must be, before anything else is looked at.

use longshore_tests::http::Reply;
use longshore_tests::process::{Options, Server, TOKEN};
use serde_json::json;

use super::raw::Raw;
use super::{Error, ErrorWith, Fine, Sent, judge};

/// Requests to the side of the operator begin so.
const ADMIN: &str = "admin";

/// Whom a request says it is for, and from which page it comes.
struct Addressed {
    name: &'static str,
    target: String,
    /// The lines of `Host` and `Origin`.
    lines: Vec<String>,
    is_let_in: bool,
}

#[tokio::test]
async fn only_requests_for_this_server_and_from_no_foreign_page_are_read() {
    let server = Server::start(Options::default()).await;
    let (own, port) = (server.address.to_string(), server.address.port());
    let host = |name: &str| format!("Host: {name}");
    let row = |name, lines: &[String], is_let_in| Addressed {
        name,
        target: "/mcp".to_owned(),
        lines: lines.to_vec(),
        is_let_in,
    };
    let from = |name, origin: &str, is_let_in| {
        row(name, &[host(&own), format!("Origin: {origin}")], is_let_in)
    };
    let to = |name, target: String, lines: &[String], is_let_in| Addressed {
        target,
        ..row(name, lines, is_let_in)
    };
    let rows = vec![
        row("own address", &[host(&own)], true),
        row("own name", &[host(&format!("localhost:{port}"))], true),
        row(
            "own name in capitals",
            &[host(&format!("LOCALHOST:{port}"))],
            true,
        ),
        row(
            "the other family's loopback",
            &[host(&format!("[::1]:{port}"))],
            true,
        ),
        row("no host", &[], false),
        row("an empty host", &[host("")], false),
        row("two hosts", &[host(&own), host(&own)], false),
        row(
            "a good and a bad host",
            &[host(&own), host("evil.example")],
            false,
        ),
        row("evil", &[host("evil.example")], false),
        row(
            "evil on this port",
            &[host(&format!("evil.example:{port}"))],
            false,
        ),
        row(
            "evil that begins like this",
            &[host(&format!("127.0.0.1.evil.example:{port}"))],
            false,
        ),
        row(
            "evil that begins like this name",
            &[host(&format!("localhost.evil.example:{port}"))],
            false,
        ),
        row(
            "evil behind a user",
            &[host(&format!("127.0.0.1:{port}@evil.example"))],
            false,
        ),
        row("a user", &[host(&format!("me@127.0.0.1:{port}"))], false),
        row("no port", &[host("127.0.0.1")], false),
        row(
            "another port",
            &[host(&format!("127.0.0.1:{}", port ^ 1))],
            false,
        ),
        row(
            "another port by its end",
            &[host(&format!("127.0.0.1:{port}0"))],
            false,
        ),
        row(
            "a port with a nought before it",
            &[host(&format!("127.0.0.1:0{port}"))],
            false,
        ),
        row(
            "the address as one number",
            &[host(&format!("2130706433:{port}"))],
            false,
        ),
        row(
            "the address of everywhere",
            &[host(&format!("0.0.0.0:{port}"))],
            false,
        ),
        row(
            "another loopback address",
            &[host(&format!("127.0.0.2:{port}"))],
            false,
        ),
        row(
            "eight-bit characters",
            &[host(&format!("localhóst:{port}"))],
            false,
        ),
        from("own page", &format!("http://{own}"), true),
        from(
            "own page by its name",
            &format!("http://localhost:{port}"),
            true,
        ),
        from(
            "own page in other case",
            &format!("http://LocalHost:{port}"),
            true,
        ),
        from("evil page, good host", "http://evil.example", false),
        from(
            "evil page on this port",
            &format!("http://evil.example:{port}"),
            false,
        ),
        from(
            "evil page that begins like this",
            &format!("http://127.0.0.1:{port}.evil.example"),
            false,
        ),
        from(
            "evil page that ends like this",
            &format!("http://evil.example/127.0.0.1:{port}"),
            false,
        ),
        from("a page of nowhere", "null", false),
        from("an empty origin", "", false),
        from(
            "a page on another port of this machine",
            &format!("http://127.0.0.1:{}", port ^ 1),
            false,
        ),
        from("a page without a port", "http://localhost", false),
        from("a page over TLS", &format!("https://{own}"), false),
        from("a file", "file://", false),
        from("an extension", "chrome-extension://abcdefghijklmnop", false),
        from(
            "two pages in one line",
            &format!("http://{own} http://evil.example"),
            false,
        ),
        row(
            "own page twice",
            &[
                host(&own),
                format!("Origin: http://{own}"),
                format!("Origin: http://{own}"),
            ],
            false,
        ),
        row(
            "own page and evil page",
            &[
                host(&own),
                format!("Origin: http://{own}"),
                "Origin: http://evil.example".to_owned(),
            ],
            false,
        ),
        row(
            "evil host, evil page",
            &[
                host("evil.example"),
                "Origin: http://evil.example".to_owned(),
            ],
            false,
        ),
        row(
            "evil host, own page",
            &[host("evil.example"), format!("Origin: http://{own}")],
            false,
        ),
        to(
            "own address in the target too",
            format!("http://{own}/mcp"),
            &[host(&own)],
            true,
        ),
        to(
            "evil in the target",
            "http://evil.example/mcp".to_owned(),
            &[host(&own)],
            false,
        ),
        to(
            "own address in the target, evil host",
            format!("http://{own}/mcp"),
            &[host("evil.example")],
            false,
        ),
        to(
            "another own name in the target",
            format!("http://localhost:{port}/mcp"),
            &[host(&own)],
            false,
        ),
        to(
            "own address in the target, no host",
            format!("http://{own}/mcp"),
            &[],
            false,
        ),
    ];

    let foreign = ErrorWith(403, -32600, json!({ "reason": "foreign" }));
    let mut faults = Vec::new();
    for Addressed {
        name,
        target,
        lines,
        is_let_in,
    } in rows
    {
        // The same lines before a good request, a bad one, and on the side of the operator: with and without token.
        let good = Sent::new(&server.client(), "tools/list", json!({}));
        let token = format!("authorization: Bearer {TOKEN}");
        let elsewhere = target.replace("/mcp", "/v1/node");
        let requests = [
            (
                "good",
                request("POST", &target, &lines, &good.headers, &good.body),
                Fine,
            ),
            (
                "not JSON",
                request("POST", &target, &lines, &good.headers, b"{"),
                Error(400, -32700),
            ),
            (
                "no type",
                request("POST", &target, &lines, &[], b"{"),
                Error(415, -32600),
            ),
            (
                ADMIN,
                request(
                    "GET",
                    &elsewhere,
                    &[lines.clone(), vec![token]].concat(),
                    &[],
                    b"",
                ),
                Error(200, 0),
            ),
            (
                "admin without token",
                request("GET", &elsewhere, &lines, &[], b""),
                Error(401, 0),
            ),
            (
                "admin, nothing there",
                request("GET", &target.replace("/mcp", "/"), &lines, &[], b""),
                Error(404, 0),
            ),
        ];
        for (what, bytes, expected) in requests {
            let mut raw = Raw::open(server.address).await;
            raw.send(bytes).await;
            let reply = raw.reply().await.expect("it is answered");
            let judged = match expected {
                _ if !is_let_in && what.starts_with(ADMIN) => judge_admin(&reply),
                _ if !is_let_in => judge(&reply, &foreign),
                Error(status, 0) if reply.status == status => Ok(()),
                expected => judge(&reply, &expected),
            };
            if let Err(fault) = judged {
                faults.push(format!("{name}, {what}: {fault}"));
            }
            if !is_let_in {
                assert!(
                    reply.json().get("id").is_none(),
                    "nothing of the body was read: {}",
                    reply.json()
                );
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} rows fail:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// What is asked of the operator's side is answered as that answers.
fn judge_admin(reply: &Reply) -> Result<(), String> {
    let body = reply.json();
    let is_told = body["error"]["message"]
        .as_str()
        .is_some_and(|text| !text.is_empty());
    if reply.status == 403 && body["error"]["reason"] == "foreign" && is_told {
        Ok(())
    } else {
        Err(format!("{} {body}", reply.status))
    }
}

fn request(
    verb: &str,
    target: &str,
    lines: &[String],
    headers: &[(String, String)],
    body: &[u8],
) -> Vec<u8> {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let head = format!(
        "{verb} {target} HTTP/1.1\r\n{lines}{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
