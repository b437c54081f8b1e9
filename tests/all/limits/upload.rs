//! What an upload may be, and what compiling it may take.

use std::time::Duration;

use futures_util::future::{FutureExt as _, join_all};
use longshore_tests::component::Made;
use longshore_tests::http::Reply;
use longshore_tests::process::{Server, TOKEN};
use longshore_tests::wait;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{Outcome, Reaching};

fn count(amount: u64) -> usize {
    usize::try_from(amount).expect("it is small")
}

/// What became of an upload. That it is no tool is told after everything else that can be told by reading.
fn outcome(reply: &Reply) -> Outcome {
    if matches!(reply.status, 200 | 201) {
        return Ok(());
    }
    let body = reply.json();
    match body["error"]["reason"].as_str().expect("a reason") {
        "world" => Ok(()),
        reason => Err(reason.to_owned()),
    }
}

async fn uploaded(server: &Server, bytes: Vec<u8>) -> Outcome {
    outcome(&server.upload("upload", bytes).await)
}

fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text of a test is right")
}

/// A component that is refused by reading or not at all.
macro_rules! by_reading {
    ($($name:ident: $text:expr),* $(,)?) => {
        $(pub(super) fn $name(server: &Server, amount: u64) -> Reaching<'_> {
            let text: fn(usize) -> String = $text;
            Box::pin(async move { uploaded(server, binary(&text(count(amount)))).await })
        })*
    };
}

by_reading! {
    table: |n| format!("(component (core module (table {n} funcref)))"),
    instances: |n| format!(
        "(component (core module $m) {})",
        "(core instance (instantiate $m))".repeat(n)
    ),
    items: |n| format!("(component {})", "(type u8)".repeat(n)),
    parts: |n| format!("(component {})", "(core module)".repeat(n)),
    // The outermost is no level.
    nesting: |n| format!("{}{}", "(component ".repeat(n + 1), ")".repeat(n + 1)),
    type_nesting: |n| format!(
        "(component {}{})",
        "(type (instance ".repeat(n - 1),
        "))".repeat(n - 1)
    ),
    // Three signs before the name of the only case, and two bytes for its length.
    types: |n| format!("(component (type (enum \"{}\")))", "a".repeat(n - 5)),
    functions: |n| format!("(component (core module {}))", "(func)".repeat(n)),
    // A count of locals, and the end.
    function: |n| format!("(component (core module (func {})))", "nop ".repeat(n - 2)),
    jump_targets: |n| format!(
        "(component (core module (func (br_table 0 {} (i32.const 0)))))",
        "0 ".repeat(n)
    ),
    imports: |n| format!("(component {})", numbered("(import \"wasi:cli/N\" (instance))", n)),
    exports: |n| format!(
        "(component (instance $i) {})",
        numbered("(export \"eN\" (instance $i))", n)
    ),
}

fn numbered(what: &str, count: usize) -> String {
    (0..count)
        .map(|n| what.replace('N', &format!("n{n}")))
        .collect()
}

/// In pages, as memory comes.
pub(super) fn memory(server: &Server, bytes: u64) -> Reaching<'_> {
    let pages = bytes.div_ceil(64 << 10);
    let text = format!("(component (core module (memory {pages})))");
    Box::pin(async move { uploaded(server, binary(&text)).await })
}

pub(super) fn instances_of_a_run(server: &Server, instances: u64) -> Reaching<'_> {
    Box::pin(async move {
        // It is one without more.
        let made = Made {
            more_instances: count(instances) - 1,
            ..Made::with_tool("many")
        };
        uploaded(server, made.bytes()).await
    })
}

pub(super) fn bytes(server: &Server, bytes: u64) -> Reaching<'_> {
    Box::pin(async move {
        match uploaded(server, vec![0; count(bytes)]).await {
            // It was read to its end.
            Err(reason) if reason == "not-wasm" => Ok(()),
            other => other,
        }
    })
}

/// One less is kept from ending, and one more is sent whole.
pub(super) fn at_once(server: &Server, uploads: u64) -> Reaching<'_> {
    Box::pin(async move {
        let mut begun = Vec::new();
        for _ in 1..uploads {
            let mut stream = TcpStream::connect(server.address)
                .await
                .expect("it listens");
            let head = format!(
                "PUT /v1/components/slow HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n1",
                server.address
            );
            stream.write_all(head.as_bytes()).await.expect("it is read");
            begun.push(stream);
        }
        let are = async |count: u64| {
            wait::until("uploads", Duration::from_secs(20), || async {
                (server.figures().await["uploads"] == count).then_some(())
            })
            .await;
        };
        are(uploads - 1).await;
        let reply = server
            .upload("upload", Made::with_tool("one").bytes())
            .await;
        drop(begun);
        are(0).await;
        outcome(&reply)
    })
}

/// A function that loads many values before it uses the first: the compiler's time grows with the cube of their number.
fn of_live_values(count: usize) -> Vec<u8> {
    let loads: String = (0..count)
        .map(|n| format!("(i32.load offset={} (local.get 0))", 4 * n))
        .collect();
    let xors = "i32.xor ".repeat(count - 1);
    tool(&format!(
        "(core module (memory 1) (func (param i32) (result i32) {loads} {xors}))"
    ))
}

/// A component of which reading says that it is a tool.
fn tool(inside: &str) -> Vec<u8> {
    binary(&format!(
        "(component {inside} (instance $t) (export \"longshore:tool/tools@0.1.0\" (instance $t)))"
    ))
}

pub(super) fn live_values(server: &Server, values: u64) -> Reaching<'_> {
    Box::pin(async move { uploaded(server, of_live_values(count(values))).await })
}

pub(super) fn many_functions(server: &Server, functions: u64) -> Reaching<'_> {
    Box::pin(async move {
        let one = "(func (param i32) (result i32) (i32.add (local.get 0) (i32.const 77)))";
        let inside = format!("(core module {})", one.repeat(count(functions)));
        uploaded(server, tool(&inside)).await
    })
}

/// That many begin, and it is seen how many of them go on at once.
pub(super) fn compilations(server: &Server, uploads: u64) -> Reaching<'_> {
    Box::pin(async move {
        let figure = async |name: &str| server.figures().await["sandbox"][name].as_u64();
        let before = figure("compiles").await;
        let names: Vec<String> = (0..uploads).map(|n| format!("slow-{n}")).collect();
        let all = join_all(names.iter().zip(0..).map(|(name, n)| {
            // No two of them are the same.
            server.upload(name, of_live_values(20_000 + n))
        }));
        let seen = wait::until("all to begin", Duration::from_secs(30), || async {
            let begun = figure("compiles").await >= before.map(|before| before + uploads);
            if begun {
                figure("compiling").await
            } else {
                None
            }
        });
        let (_, seen) = futures_util::join!(all.map(drop), seen);
        match seen.cmp(&uploads) {
            std::cmp::Ordering::Less => Err("waits".to_owned()),
            _ => Ok(()),
        }
    })
}
