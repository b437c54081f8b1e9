//! `server/discover` and `tools/list`, member by member.

use longshore_tests::mcp::{Client, REVISION};
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::{Error, Row, SERVER_INFO, Sent, TASKS, check, is_marked, members};

/// Whether a result says how long and for whom it may be kept.
fn assert_cached(result: &Value) {
    assert!(result["ttlMs"].is_u64(), "{result}");
    assert!(
        matches!(result["cacheScope"].as_str(), Some("public" | "private")),
        "{result}"
    );
}

#[tokio::test]
async fn discover_says_what_there_is_and_no_more() {
    let server = Server::start(Options::default()).await;
    for client in [server.client(), Client::plain(server.address)] {
        let found = client.result("server/discover", json!({})).await;
        assert_eq!(
            members(&found),
            [
                "_meta",
                "cacheScope",
                "capabilities",
                "resultType",
                "supportedVersions",
                "ttlMs"
            ]
        );
        assert_eq!(found["resultType"], "complete");
        assert_eq!(found["supportedVersions"], json!([REVISION]));
        // Exactly this: no family without its methods, no `tasks` of an
        // older revision, and `{}` for the extension, since a known client refuses anything else.
        assert_eq!(
            found["capabilities"],
            json!({
                "tools": { "listChanged": true },
                "resources": { "subscribe": true, "listChanged": true },
                "prompts": { "listChanged": true },
                "completions": {},
                "logging": {},
                "extensions": { TASKS: {} },
            })
        );
        assert_cached(&found);
        assert!(is_marked(&found), "{found}");
        assert_eq!(members(&found["_meta"]), [SERVER_INFO]);
        assert_eq!(found["_meta"][SERVER_INFO]["name"], "longshore");
    }
}

#[tokio::test]
async fn tools_are_listed_in_the_order_of_their_names() {
    let server = Server::start(Options::with_guests(&["tool-error", "hello", "long-job"])).await;
    let client = server.client();
    let first = client
        .send("tools/list", json!({}))
        .await
        .expect("the server answers");
    let listed = &first.json()["result"];
    assert!(
        is_marked(listed) && listed["resultType"] == "complete",
        "{listed}"
    );
    assert_eq!(
        members(listed),
        ["_meta", "cacheScope", "resultType", "tools", "ttlMs"],
        "a whole list has no cursor"
    );
    assert_cached(listed);
    let tools = listed["tools"].as_array().expect("tools are a list");
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(names, ["hello", "long-job", "tool-error"]);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(
            tool["description"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{tool}"
        );
        // How a call is carried is the server's business alone in this revision.
        assert_eq!(
            members(tool),
            ["description", "inputSchema", "name"],
            "{tool}"
        );
    }
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "name": { "type": "string", "description": "Who is greeted." } },
        "required": ["name"],
    });
    assert_eq!(
        tools[0]["inputSchema"], schema,
        "a schema means what its author wrote"
    );

    for client in [client.clone(), client, Client::plain(server.address)] {
        let again = client
            .send("tools/list", json!({}))
            .await
            .expect("the server answers");
        assert_eq!(
            again.body, first.body,
            "an unchanged list is the same for everybody"
        );
    }
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let names = ["ask-form", "hello", "panic", "tool-error"];
    let server = Server::start(Options::with_guests(&names).set("page", 3)).await;
    let client = server.client();
    let first = client.result("tools/list", json!({})).await;
    let cursor = first["nextCursor"].as_str().expect("there is more");
    let second = client
        .result("tools/list", json!({ "cursor": cursor }))
        .await;
    assert!(second.get("nextCursor").is_none(), "{second}");
    assert_eq!(first["cacheScope"], second["cacheScope"]);
    assert_cached(&second);
    let listed: Vec<&Value> = [&first, &second]
        .into_iter()
        .flat_map(|page| page["tools"].as_array().expect("tools are a list"))
        .collect();
    assert_eq!(first["tools"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        listed
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect::<Vec<_>>(),
        names
    );
    // A cursor is good more than once, and for whoever has it.
    let again = Client::plain(server.address)
        .result("tools/list", json!({ "cursor": cursor }))
        .await;
    assert_eq!(again, second);

    let with = |cursor: Value| Sent::new(&client, "tools/list", json!({ "cursor": cursor }));
    let rows: Vec<Row> = vec![
        (
            "no cursor of ours",
            with(json!("hello")),
            Error(400, -32602),
        ),
        ("an empty cursor", with(json!("")), Error(400, -32602)),
        ("no base64", with(json!("*")), Error(400, -32602)),
        (
            "another form of cursor",
            with(json!("AmhlbGxv")),
            Error(400, -32602),
        ),
        ("a cursor to nowhere", with(json!("AQ")), Error(400, -32602)),
        (
            "a cursor that is no UTF-8",
            with(json!("Af_v")),
            Error(400, -32602),
        ),
        (
            "a long cursor",
            with(json!("A".repeat(10_000))),
            Error(400, -32602),
        ),
        ("a number", with(json!(3)), Error(400, -32602)),
        ("a list", with(json!([cursor])), Error(400, -32602)),
    ];
    check(server.address, rows).await;
}
