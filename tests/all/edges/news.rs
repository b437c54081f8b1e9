//! Who is told of lists and of resources: in sessions over both transports, and of those who listen over pipes.

use longshore_tests::events::Answer;
use longshore_tests::pipes::{Pipes, data};
use longshore_tests::process::{Options, Server};
use longshore_tests::session::{NEWEST, OLDEST, Session};
use serde_json::{Value, json};

const WATCHED: &str = "test://watched-resource";
const OTHER: &str = "test://static-text";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// What is said on either way, so that both are held to the same.
enum Line {
    /// A session, and the stream for what belongs to no request.
    Http(Session, Answer),
    /// The pipes of a server of its own.
    Pipes(Pipes),
}

impl Line {
    async fn result(&mut self, method: &str, params: Value) -> Value {
        match self {
            Self::Http(session, _) => session.result(method, params).await,
            Self::Pipes(pipes) => pipes.result(method, params).await,
        }
    }

    /// Calls a tool whose result may come before what it has told or after.
    async fn trigger(&mut self, tool: &str) {
        let params = json!({ "name": tool });
        match self {
            Self::Http(session, _) => drop(session.result("tools/call", params).await),
            Self::Pipes(pipes) => drop(pipes.ask("tools/call", params).await),
        }
    }

    /// The next notification: its method, and its parameters.
    async fn told(&mut self) -> (String, Value) {
        loop {
            let mut message = match self {
                Self::Http(_, stream) => stream.next().await,
                Self::Pipes(pipes) => pipes.next().await,
            }
            .expect("it goes on");
            if let Some(method) = message["method"].as_str() {
                return (method.to_owned(), message["params"].take());
            }
        }
    }

    async fn error(&mut self, method: &str, params: Value) -> Value {
        match self {
            Self::Http(session, _) => session.error(method, params).await.1,
            Self::Pipes(pipes) => pipes.response(method, params).await["error"].take(),
        }
    }
}

fn list(family: &str) -> (String, Value) {
    (format!("notifications/{family}/list_changed"), json!({}))
}

fn updated(uri: &str) -> (String, Value) {
    let method = "notifications/resources/updated".to_owned();
    (method, json!({ "uri": uri }))
}

/// What a session is told, and what it is not.
async fn hears(mut line: Line) {
    for (tool, family) in [
        ("test_trigger_tool_change", "tools"),
        ("test_trigger_prompt_change", "prompts"),
        ("test_trigger_resource_change", "resources"),
    ] {
        line.trigger(tool).await;
        assert_eq!(line.told().await, list(family));
    }
    // Nobody is told of contents without having asked, nor of others than those asked for, nor any more afterwards.
    let subscribe = ["resources/subscribe", "resources/unsubscribe"];
    for (method, uri, is_told) in [
        (None, WATCHED, false),
        (Some(subscribe[0]), OTHER, false),
        (Some(subscribe[0]), WATCHED, true),
        // Twice is as good as once.
        (Some(subscribe[0]), WATCHED, true),
        (Some(subscribe[1]), OTHER, true),
        (Some(subscribe[1]), WATCHED, false),
        (Some(subscribe[1]), WATCHED, false),
    ] {
        if let Some(method) = method {
            assert_eq!(line.result(method, json!({ "uri": uri })).await, json!({}));
        }
        line.trigger("test_trigger_resource_update").await;
        if is_told {
            assert_eq!(line.told().await, updated(WATCHED), "{method:?} {uri}");
        }
        // It would have come before this.
        line.trigger("test_trigger_prompt_change").await;
        assert_eq!(line.told().await, list("prompts"), "{method:?} {uri}");
    }
    // What nobody has cannot change.
    let error = line
        .error(subscribe[0], json!({ "uri": "test://nothing" }))
        .await;
    assert_eq!(error["code"], -32002, "{error}");
    // And only so much is looked after.
    for number in [1, 2] {
        let uri = format!("test://template/{number}/data");
        line.result(subscribe[0], json!({ "uri": uri })).await;
    }
    let error = line.error(subscribe[0], json!({ "uri": WATCHED })).await;
    assert_eq!(error["code"], -32602, "{error}");
    assert_eq!(error["data"]["reason"], "too-many", "{error}");
}

#[tokio::test]
async fn a_session_over_http_is_told_of_lists_and_of_what_it_subscribed_to() {
    let options = Options::with_guests(&["conformance"]).set("listen_resources", 2);
    let server = Server::start(options).await;
    for revision in [NEWEST, OLDEST] {
        let session = Session::open(server.address, revision, json!({})).await;
        let stream = session.listen(None).await;
        hears(Line::Http(session, stream)).await;
    }
}

#[tokio::test]
async fn a_session_over_pipes_is_told_the_same() {
    let data = data();
    let component = longshore_tests::guests::component("conformance");
    let component = component.display().to_string();
    for revision in [NEWEST, OLDEST] {
        let arguments = ["--set", "listen_resources=2", &component];
        let mut pipes = Pipes::start_with(data.path(), &arguments);
        // It lists once it knows its tools; who has a session before that is told that they came.
        let all = alone(json!({}), &json!({}));
        while pipes.result("tools/list", all.clone()).await["tools"] == json!([]) {}
        pipes.open(revision, json!({})).await;
        hears(Line::Pipes(pipes)).await;
    }
}

#[tokio::test]
async fn another_session_hears_nothing_of_what_one_subscribed_to() {
    let server = Server::start(Options::with_guests(&["conformance"])).await;
    let one = Session::open(server.address, NEWEST, json!({})).await;
    let other = Session::open(server.address, NEWEST, json!({})).await;
    let (mut heard, mut others) = (one.listen(None).await, other.listen(None).await);
    one.result("resources/subscribe", json!({ "uri": WATCHED }))
        .await;
    for tool in ["test_trigger_resource_update", "test_trigger_tool_change"] {
        other.result("tools/call", json!({ "name": tool })).await;
    }
    let first = heard.next().await.expect("it is told");
    assert_eq!(first["method"], "notifications/resources/updated");
    for stream in [&mut heard, &mut others] {
        let told = stream.next().await.expect("it is told");
        assert_eq!(told["method"], "notifications/tools/list_changed");
    }
}

/// Parameters of a request that says all that is needed.
fn alone(mut params: Value, extensions: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": extensions },
    });
    params
}

#[tokio::test]
async fn who_listens_over_pipes_is_told_under_the_id_of_the_request() {
    let data = data();
    let mut pipes = Pipes::start(data.path(), &["conformance"]);
    let none = json!({});
    pipes.result("tools/list", alone(json!({}), &none)).await;
    // Tasks are for those who know them.
    let filter = |filter: Value| json!({ "notifications": filter });
    let tasks = alone(filter(json!({ "taskIds": [] })), &none);
    let refused = pipes.response("subscriptions/listen", tasks).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert_eq!(
        refused["error"]["data"]["requiredCapabilities"],
        json!({ "extensions": { TASKS: {} } })
    );
    let known = alone(filter(json!({ "taskIds": [] })), &json!({ TASKS: {} }));
    let id = pipes.ask("subscriptions/listen", known).await;
    let acknowledged = pipes.next().await.expect("it is acknowledged");
    assert_eq!(
        acknowledged["params"],
        json!({ "_meta": { SUBSCRIPTION: id }, "notifications": { "taskIds": [] } })
    );

    let lists = json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourceSubscriptions": [WATCHED, "test://nothing"],
    });
    let id = pipes
        .ask("subscriptions/listen", alone(filter(lists), &none))
        .await;
    let acknowledged = pipes.next().await.expect("it is acknowledged");
    let honoured = &acknowledged["params"]["notifications"];
    assert_eq!(honoured["resourceSubscriptions"], json!([WATCHED]));
    for (tool, told) in [
        ("test_trigger_tool_change", "tools/list_changed"),
        // Not asked for.
        ("test_trigger_resource_change", ""),
        ("test_trigger_resource_update", "resources/updated"),
        ("test_trigger_prompt_change", "prompts/list_changed"),
    ] {
        let call = alone(json!({ "name": tool }), &none);
        pipes.ask("tools/call", call).await;
        let mut is_told = told.is_empty();
        let mut is_answered = false;
        while !(is_told && is_answered) {
            let message = pipes.next().await.expect("it goes on");
            match message["method"].as_str() {
                Some(method) => {
                    assert_eq!(method, format!("notifications/{told}"));
                    assert_eq!(message["params"]["_meta"], json!({ SUBSCRIPTION: id }));
                    is_told = true;
                }
                None => is_answered = true,
            }
        }
    }
}
