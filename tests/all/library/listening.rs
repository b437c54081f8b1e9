//! What those who listen are told of lists and of contents.

use longshore_tests::component::{Act, Behaviour, Library, Made};
use longshore_tests::events::{self, Answer};
use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::{prompts, read, resources};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A stream, with what it acknowledged first.
async fn listen(client: &Client, id: &Value, filter: &Value) -> (Answer, Value) {
    let mut request = client.request("subscriptions/listen", json!({ "notifications": filter }));
    request["id"] = id.clone();
    let mut answer = events::open(client.address, &request).await;
    let first = answer.next().await.expect("the acknowledgement");
    (answer, first["params"]["notifications"].clone())
}

/// The next notice: its method, and the URI in it.
async fn told(answer: &mut Answer, id: &Value) -> (String, Value) {
    let event = answer.next().await.expect("there is news");
    assert_eq!(
        event["params"]["_meta"],
        json!({ SUBSCRIPTION: id }),
        "{event}"
    );
    let method = event["method"].as_str().expect("a method");
    let method = method.trim_start_matches("notifications/").to_owned();
    (method, event["params"]["uri"].clone())
}

fn list(family: &str) -> (String, Value) {
    (format!("{family}/list_changed"), Value::Null)
}

fn updated(uri: &str) -> (String, Value) {
    ("resources/updated".to_owned(), json!(uri))
}

async fn upload(server: &Server, name: &str, library: Library) {
    let reply = server.upload(name, Made::of_library(library).bytes()).await;
    assert!(matches!(reply.status, 200 | 201), "{}", reply.json());
}

#[tokio::test]
async fn each_is_told_of_the_lists_that_changed_and_that_it_asked_for() {
    let server = Server::start(Options::default()).await;
    let client = server.client();
    let all = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
    let (mut all_lists, honoured) = listen(&client, &json!("all"), &all).await;
    assert_eq!(honoured, all);
    let only = json!({ "promptsListChanged": true, "resourcesListChanged": false });
    let (mut only_prompts, honoured) = listen(&client, &json!(1), &only).await;
    assert_eq!(honoured, json!({ "promptsListChanged": true }));
    let id = json!("all");

    let library = |uris: &[&str], names: &[&str], answer: &str| Library {
        resources: resources(uris),
        prompts: prompts(names),
        answer: answer.to_owned(),
        ..Library::default()
    };
    // In the order of the kinds where several are told at once.
    upload(&server, "made", library(&["test://a"], &["p"], "one")).await;
    let first = [
        told(&mut all_lists, &id).await,
        told(&mut all_lists, &id).await,
    ];
    assert_eq!(first, [list("prompts"), list("resources")]);
    upload(&server, "made", library(&["test://a"], &["p", "q"], "one")).await;
    assert_eq!(told(&mut all_lists, &id).await, list("prompts"));
    upload(
        &server,
        "made",
        library(&["test://a", "test://b"], &["p", "q"], "one"),
    )
    .await;
    assert_eq!(told(&mut all_lists, &id).await, list("resources"));
    // The same lists with other contents are no other lists.
    upload(
        &server,
        "made",
        library(&["test://a", "test://b"], &["p", "q"], "two"),
    )
    .await;
    // A template is a resource's.
    let with_template = Library {
        templates: resources(&["test://{x}"]),
        ..library(&["test://a", "test://b"], &["p", "q"], "two")
    };
    upload(&server, "made", with_template).await;
    assert_eq!(told(&mut all_lists, &id).await, list("resources"));
    assert_eq!(
        server
            .upload("tool", Made::with_tool("t").bytes())
            .await
            .status,
        201
    );
    assert_eq!(told(&mut all_lists, &id).await, list("tools"));
    assert_eq!(
        server
            .admin("DELETE", "/v1/components/made", "")
            .await
            .status,
        204
    );
    let last = [
        told(&mut all_lists, &id).await,
        told(&mut all_lists, &id).await,
    ];
    assert_eq!(last, [list("prompts"), list("resources")]);

    for _ in 0..3 {
        assert_eq!(told(&mut only_prompts, &json!(1)).await, list("prompts"));
    }
    drop(server);
}

#[tokio::test]
async fn a_component_tells_of_its_lists_and_of_its_own_resources() {
    const OWN: &[Act] = &[
        Act::PromptsChanged,
        Act::ResourcesChanged,
        Act::ResourceUpdated("test://own/1"),
    ];
    const OTHERS: &[Act] = &[
        Act::ResourceUpdated("test://own/1"),
        Act::ResourceUpdated("test://nobody"),
        Act::ResourceUpdated("test://other"),
    ];
    let server = Server::start(Options::default()).await;
    let own = Library {
        resources: resources(&["test://own"]),
        templates: resources(&["test://own/{n}"]),
        read: Behaviour::Does(OWN),
        ..Library::default()
    };
    let other = Library {
        resources: resources(&["test://other"]),
        read: Behaviour::Does(OTHERS),
        ..Library::default()
    };
    upload(&server, "own", own.clone()).await;
    upload(&server, "other", other).await;
    let client = server.client();
    let filter = json!({
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["test://own/1", "test://nobody", "test://own/1", "no uri", "test://other"],
    });
    let (mut heard, honoured) = listen(&client, &json!(7), &filter).await;
    assert_eq!(
        honoured["resourceSubscriptions"],
        json!(["test://own/1", "test://other"]),
        "what nobody has cannot change: {honoured}"
    );
    let id = json!(7);
    read(&client, "test://own").await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(told(&mut heard, &id).await);
    }
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        seen,
        [list("prompts"), list("resources"), updated("test://own/1")]
    );
    // Of what is another's, nobody believes it.
    read(&client, "test://other").await;
    assert_eq!(told(&mut heard, &id).await, updated("test://other"));
    // Another version may hold something else.
    let version = Library {
        answer: "something else".to_owned(),
        ..own
    };
    upload(&server, "own", version).await;
    assert_eq!(told(&mut heard, &id).await, updated("test://own/1"));
}
