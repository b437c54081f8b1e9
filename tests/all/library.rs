//! Resources, prompts and completions: what is listed, read, filled in and proposed, and what it may cost.

mod listening;
mod runs;

use longshore_tests::component::{Library, Made, Prompt, Resource};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use rusqlite::Connection;
use serde_json::{Value, json};

/// A server to which a component named `made` was uploaded.
async fn serving(library: Library, options: Options) -> Server {
    let server = Server::start(options).await;
    let reply = server
        .upload("made", Made::of_library(library).bytes())
        .await;
    assert_eq!(reply.status, 201, "{}", reply.json());
    server
}

fn resources(uris: &[&str]) -> Vec<Resource> {
    uris.iter().map(|uri| Resource::at(uri)).collect()
}

fn prompts(names: &[&str]) -> Vec<Prompt> {
    names.iter().map(|name| Prompt::named(name)).collect()
}

async fn read(client: &Client, uri: &str) -> Value {
    client.result("resources/read", json!({ "uri": uri })).await
}

/// Every page of a list: its items, and how many pages there were.
async fn pages(client: &Client, method: &str, member: &str) -> (Vec<Value>, usize) {
    let (mut items, mut params, mut pages) = (Vec::new(), json!({}), 0);
    loop {
        let mut page = client.result(method, params).await;
        assert!(page["ttlMs"].is_u64(), "{page}");
        assert_eq!(page["cacheScope"], "private", "{page}");
        assert_eq!(page["resultType"], "complete", "{page}");
        items.append(page[member].as_array_mut().expect("a list"));
        pages += 1;
        match page.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return (items, pages),
        }
    }
}

#[tokio::test]
async fn lists_are_in_order_and_come_in_pages() {
    let long = format!("test://{}", "x".repeat(8 * 1024 - 7));
    let library = Library {
        resources: resources(&["test://c", &long, "test://a", "test://b", "test://d"]),
        templates: resources(&["test://{b}", "test://a/{a}", "test://c/{c}"]),
        prompts: prompts(&["d", "b", "c", "a"]),
        ..Library::default()
    };
    let server = serving(library, Options::default().set("page", 2)).await;
    let client = server.client();
    let names = |items: &[Value], member: &str| -> Vec<String> {
        let names = items.iter().filter_map(|item| item[member].as_str());
        names.map(str::to_owned).collect()
    };
    let (items, count) = pages(&client, "resources/list", "resources").await;
    let sorted = ["test://a", "test://b", "test://c", "test://d", &long];
    assert_eq!(
        (names(&items, "uri"), count),
        (sorted.map(str::to_owned).into(), 3)
    );
    assert_eq!(items[0], json!({ "uri": "test://a", "name": "thing" }));
    let (items, count) = pages(&client, "resources/templates/list", "resourceTemplates").await;
    let sorted = ["test://a/{a}", "test://c/{c}", "test://{b}"];
    assert_eq!(
        (names(&items, "uriTemplate"), count),
        (sorted.map(str::to_owned).into(), 2)
    );
    let (items, count) = pages(&client, "prompts/list", "prompts").await;
    assert_eq!(
        (names(&items, "name"), count),
        (["a", "b", "c", "d"].map(str::to_owned).into(), 2)
    );
    for method in ["resources/list", "resources/templates/list", "prompts/list"] {
        let (status, error) = client.error(method, json!({ "cursor": "AgA" })).await;
        assert_eq!((status, &error["code"]), (400, &json!(-32602)), "{method}");
    }
}

#[tokio::test]
async fn every_list_is_there_though_it_is_empty() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    for (method, member) in [
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ] {
        assert_eq!(pages(&client, method, member).await, (Vec::new(), 1));
    }
}

#[tokio::test]
async fn what_is_listed_or_fits_a_template_is_read_and_nothing_else() {
    let library = Library {
        resources: resources(&["test://listed", "test://t/listed"]),
        templates: resources(&["test://t/{id}", "test://q{?a,b}"]),
        ..Library::default()
    };
    let server = serving(library, Options::default()).await;
    let client = server.client();
    for uri in [
        "test://listed",
        "test://t/listed",
        "test://t/1",
        "test://t/%C3%A9",
        "test://q?a=1",
    ] {
        let result = read(&client, uri).await;
        assert_eq!(
            result["contents"],
            json!([{ "uri": uri, "text": "something" }]),
            "{result}"
        );
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(0), &json!("private"))
        );
        assert_eq!(result["resultType"], "complete");
    }
    let started = async || server.figures().await["runs"]["started"].clone();
    let before = started().await;
    let longest = format!("test://t/{}", "x".repeat(8 * 1024 - 9));
    for uri in [
        "test://none",
        "TEST://listed",
        "test://listed#part",
        "test://t/",
        "test://t/a/b",
        "test://t/..",
        "test://t/%2e%2E",
        "test://t/\u{e9}",
        "test://t/a b",
        "listed",
        "",
        &format!("{longest}x"),
    ] {
        let (status, error) = client.error("resources/read", json!({ "uri": uri })).await;
        assert_eq!(
            (status, &error["code"]),
            (400, &json!(-32602)),
            "{uri:?}: {error}"
        );
        assert_eq!(error["data"], json!({ "uri": uri }));
    }
    assert_eq!(started().await, before, "nothing was run for them");
    assert_eq!(read(&client, &longest).await["contents"][0]["uri"], longest);
}

#[tokio::test]
async fn a_prompt_needs_what_it_says_and_a_proposal_what_it_is_for() {
    let asking = Prompt {
        arguments: vec![("must".to_owned(), true), ("may".to_owned(), false)],
        ..Prompt::named("asking")
    };
    let library = Library {
        templates: resources(&["test://t/{id}"]),
        prompts: vec![asking, Prompt::named("plain")],
        ..Library::default()
    };
    let server = serving(library, Options::default()).await;
    let client = server.client();
    let filled_in = client
        .result("prompts/get", json!({ "name": "plain" }))
        .await;
    assert_eq!(
        filled_in["messages"],
        json!([{ "role": "user", "content": { "type": "text", "text": "something" } }])
    );
    assert!(
        filled_in.get("ttlMs").is_none(),
        "a prompt is not kept: {filled_in}"
    );
    for arguments in [
        json!({ "must": "" }),
        json!({ "must": "a", "may": "b", "other": "c" }),
    ] {
        client
            .result(
                "prompts/get",
                json!({ "name": "asking", "arguments": arguments }),
            )
            .await;
    }
    let of = |kind: &str, key: &str, name: &str| json!({ "type": kind, key: name });
    let complete = |of: Value, argument: &str| json!({ "ref": of, "argument": { "name": argument, "value": "" } });
    let before = server.figures().await["runs"]["started"].clone();
    let refused = [
        ("prompts/get", json!({ "name": "none" }), "unknown prompt"),
        ("prompts/get", json!({ "name": "Plain" }), "unknown prompt"),
        (
            "prompts/get",
            json!({ "name": "asking" }),
            "needs the arguments must",
        ),
        (
            "prompts/get",
            json!({ "name": "asking", "arguments": { "may": "b" } }),
            "must",
        ),
        (
            "completion/complete",
            complete(of("ref/prompt", "name", "none"), "a"),
            "unknown prompt",
        ),
        (
            "completion/complete",
            complete(of("ref/resource", "uri", "test://none/{id}"), "id"),
            "unknown template",
        ),
        (
            "completion/complete",
            complete(of("ref/prompt", "name", "asking"), "other"),
            "no argument",
        ),
        (
            "completion/complete",
            complete(of("ref/resource", "uri", "test://t/{id}"), "other"),
            "no argument",
        ),
    ];
    for (method, params, says) in refused {
        let (status, error) = client.error(method, params.clone()).await;
        assert_eq!((status, &error["code"]), (400, &json!(-32602)), "{params}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(says), "{message:?} does not say {says:?}");
    }
    // It makes no proposals, so that nothing is to be run for some.
    for of in [
        of("ref/prompt", "name", "asking"),
        of("ref/resource", "uri", "test://t/{id}"),
    ] {
        let argument = if of["type"] == "ref/prompt" {
            "may"
        } else {
            "id"
        };
        let proposed = client
            .result("completion/complete", complete(of, argument))
            .await;
        assert_eq!(
            proposed["completion"],
            json!({ "values": [], "total": 0, "hasMore": false })
        );
    }
    assert_eq!(server.figures().await["runs"]["started"], before);
}

#[tokio::test]
async fn every_name_has_one_owner_and_both_are_named() {
    let library = |uri: &str, template: &str, prompt: &str| Library {
        resources: resources(&[uri]),
        templates: resources(&[template]),
        prompts: prompts(&[prompt]),
        ..Library::default()
    };
    let first = library("test://a", "test://t/{a}", "a");
    let server = serving(first, Options::default()).await;
    for (what, other) in [
        (
            "resource \"test://a\"",
            library("test://a", "test://u/{a}", "b"),
        ),
        (
            "template \"test://t/{a}\"",
            library("test://b", "test://t/{a}", "b"),
        ),
        ("prompt \"a\"", library("test://b", "test://u/{a}", "a")),
    ] {
        let reply = server
            .upload("other", Made::of_library(other).bytes())
            .await;
        let error = &reply.json()["error"];
        assert_eq!(
            (reply.status, &error["reason"]),
            (409, &json!("name-collision")),
            "{error}"
        );
        let message = error["message"].as_str().expect("a message");
        for word in [what, "\"made\"", "\"other\""] {
            assert!(message.contains(word), "{message:?} does not say {word:?}");
        }
    }
    // The first is served on, and the names are free once it is gone.
    assert_eq!(
        read(&server.client(), "test://a").await["contents"][0]["uri"],
        "test://a"
    );
    assert_eq!(
        server
            .admin("DELETE", "/v1/components/made", "")
            .await
            .status,
        204
    );
    let again = library("test://a", "test://t/{a}", "a");
    assert_eq!(
        server
            .upload("other", Made::of_library(again).bytes())
            .await
            .status,
        201
    );
}

#[tokio::test]
async fn what_was_listed_is_kept_and_asked_for_where_it_was_not() {
    let library = Library {
        resources: resources(&["test://a"]),
        prompts: prompts(&["p"]),
        ..Library::default()
    };
    let mut server = serving(library, Options::default()).await;
    let there = async |server: &Server| {
        let figures = server.figures().await;
        (figures["resources"].clone(), figures["prompts"].clone())
    };
    assert_eq!(there(&server).await, (json!(1), json!(1)));
    server.kill().await;
    server.restart().await;
    assert_eq!(there(&server).await, (json!(1), json!(1)));
    read(&server.client(), "test://a").await;

    // As an earlier version has kept it, which knew nothing but tools.
    server.kill().await;
    let database = Connection::open(server.data().join("longshore.db")).expect("it is a database");
    let changed = database.execute(
        "update component set meta = json_remove(meta, '$.library')",
        [],
    );
    assert_eq!(changed.expect("it can be written"), 1);
    drop(database);
    server.restart().await;
    server.prepared().await;
    longshore_tests::wait::until("its lists", std::time::Duration::from_secs(20), || async {
        (there(&server).await == (json!(1), json!(1))).then_some(())
    })
    .await;
    read(&server.client(), "test://a").await;
    server.kill().await;
    server.restart().await;
    assert_eq!(
        there(&server).await,
        (json!(1), json!(1)),
        "and kept from then on"
    );
}
