//! The client of the Rust SDK.

mod library;
mod piped;

use std::time::Duration;

use longshore_tests::process::{Options, Server};
use longshore_tests::wait;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ErrorCode, ErrorData, FormElicitationCapability, GetTaskParams, GetTaskResult, Implementation,
    InputRequest, JsonObject, ProtocolVersion, SubscriptionFilter, TASKS_EXTENSION_ID, TaskPayload,
    TaskStatus, UpdateTaskParams,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RequestContext, RunningService};
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use rmcp::{ClientHandler, RoleClient, ServiceError};
use serde_json::{Value, json};

use self::piped::Piped;
use super::script::tell_lacks;

type Client = RunningService<RoleClient, ClientConfig>;

async fn connect(server: &Server, capabilities: ClientCapabilities) -> Client {
    let transport =
        StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", server.address));
    connect_by(transport, capabilities).await
}

/// The newest revision, over whatever it comes.
async fn connect_by<T, E, A>(transport: T, capabilities: ClientCapabilities) -> Client
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let config = ClientConfig::new(capabilities, Implementation::new("longshore-tests", "0"));
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    config
        .serve_with_lifecycle(transport, mode)
        .await
        .expect("the client finds a server that it understands")
}

/// A client that can be asked and knows tasks.
async fn able(server: &Server) -> Client {
    let mut capabilities = ClientCapabilities::default();
    capabilities.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())].into());
    capabilities.elicitation =
        Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
    connect(server, capabilities).await
}

fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

/// Calls a tool that answers at once.
async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    match client
        .peer()
        .call_tool_once(params(tool, arguments))
        .await
        .expect("it is answered")
    {
        CallToolResponse::Complete(result) => result,
        other => panic!("{tool} gave {other:?}"),
    }
}

/// Calls a tool that becomes a task.
async fn start(client: &Client, params: CallToolRequestParams) -> String {
    match client
        .peer()
        .call_tool_once(params)
        .await
        .expect("it is answered")
    {
        CallToolResponse::Task(created) => created.task.task_id,
        other => panic!("no task but {other:?}"),
    }
}

async fn until(client: &Client, id: &str, is_it: impl Fn(TaskStatus) -> bool) -> GetTaskResult {
    wait::until("the task's status", Duration::from_secs(60), || async {
        let task = client
            .peer()
            .get_task(GetTaskParams::new(id))
            .await
            .expect("the task is there");
        is_it(task.task.status()).then_some(task)
    })
    .await
}

fn text(result: &CallToolResult) -> &str {
    let [block] = result.content.as_slice() else {
        panic!("one block, not {:?}", result.content)
    };
    &block.as_text().expect("it is a text").text
}

/// The result of a task that completed.
fn completed(task: GetTaskResult) -> CallToolResult {
    let TaskPayload::Completed { result } = task.task.payload else {
        panic!("not completed: {task:?}")
    };
    serde_json::from_value(Value::Object(result)).expect("it is the result of a call")
}

#[tokio::test]
async fn lists_calls_and_follows() {
    let server = Server::start(Options::with_guests(&[
        "hello",
        "long-job",
        "tool-error",
        "panic",
    ]))
    .await;
    let client = able(&server).await;
    let info = client
        .peer()
        .peer_info()
        .expect("the server said who it is");
    assert_eq!(info.protocol_version, ProtocolVersion::V_2026_07_28);
    assert!(
        info.capabilities.supports_tasks() && info.capabilities.tools.is_some(),
        "{info:?}"
    );
    assert_eq!(
        info.server_info.as_ref().map(|server| server.name.as_str()),
        Some("longshore")
    );

    let tools = client
        .peer()
        .list_all_tools()
        .await
        .expect("it lists tools");
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["hello", "long-job", "panic", "tool-error"]);

    let result = call(&client, "hello", json!({ "name": "Ada" })).await;
    assert_eq!((text(&result), result.is_error), ("Hello, Ada!", None));
    let result = call(&client, "tool-error", json!({ "message": "no luck" })).await;
    assert_eq!((text(&result), result.is_error), ("no luck", Some(true)));
    let result = call(&client, "hello", json!({ "name": 7 })).await;
    assert_eq!(result.is_error, Some(true));
    assert!(text(&result).contains("/name"), "{}", text(&result));

    // Errors arrive as errors of the protocol, and not of a transport.
    let Err(ServiceError::McpError(error)) = client
        .peer()
        .call_tool_once(params("panic", json!({})))
        .await
    else {
        panic!("a tool that broke is no error");
    };
    assert_eq!(error.data, Some(json!({ "reason": "trap" })), "{error:?}");
    let Err(ServiceError::McpError(error)) = client
        .peer()
        .call_tool_once(params("none", json!({})))
        .await
    else {
        panic!("an unknown tool is no error");
    };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    let unknown = client
        .peer()
        .get_task(GetTaskParams::new("3f2c1a44-0000-4000-8000-000000000000"))
        .await;
    let Err(ServiceError::McpError(error)) = unknown else {
        panic!("an unknown task is no error")
    };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);

    let id = start(
        &client,
        params("long-job", json!({ "steps": 3, "step-ms": 200 })),
    )
    .await;
    let working = client
        .peer()
        .get_task(GetTaskParams::new(&*id))
        .await
        .expect("the task is there");
    assert_eq!(
        (working.task.status(), &working.task.task.task_id),
        (TaskStatus::Working, &id)
    );
    assert!(
        working.task.task.poll_interval_ms.is_some() && working.task.task.ttl_ms.is_some(),
        "{working:?}"
    );
    let result = completed(until(&client, &id, |status| status.is_terminal()).await);
    assert_eq!(text(&result), "done: 3 steps");

    let id = start(
        &client,
        params("long-job", json!({ "steps": 1_000, "step-ms": 100 })),
    )
    .await;
    client
        .peer()
        .cancel_task(CancelTaskParams::new(&*id))
        .await
        .expect("a cancel is acknowledged");
    let task = until(&client, &id, |status| status.is_terminal()).await;
    assert_eq!(task.task.payload, TaskPayload::Cancelled);
    client
        .peer()
        .cancel_task(CancelTaskParams::new(&*id))
        .await
        .expect("so is a cancel that comes too late");
    client.cancel().await.expect("the client ends");
}

#[tokio::test]
async fn answers_what_a_task_asks() {
    let server = Server::start(Options::with_guests(&["ask-form"])).await;
    let client = able(&server).await;
    let content = json!({ "name": "Ada", "age": 36, "choice": "green" });
    let rows = [
        (
            json!({ "action": "accept", "content": content }),
            "Ada is 36 and chose green",
        ),
        (
            json!({ "action": "decline" }),
            "the person declined to answer",
        ),
        (
            json!({ "action": "cancel" }),
            "the person closed the question",
        ),
    ];
    for (answer, expected) in rows {
        let id = start(&client, params("ask-form", json!({}))).await;
        let asking = until(&client, &id, |status| status != TaskStatus::Working).await;
        let TaskPayload::InputRequired { input_requests } = asking.task.payload else {
            panic!("it asks nothing: {asking:?}")
        };
        let keys: Vec<&String> = input_requests.keys().collect();
        let [key] = keys.as_slice() else {
            panic!("one question, not {keys:?}")
        };
        assert!(
            matches!(input_requests[*key], InputRequest::Elicitation(_)),
            "{input_requests:?}"
        );
        let answers = [((*key).clone(), answer)].into();
        client
            .peer()
            .update_task(UpdateTaskParams::new(&*id, answers))
            .await
            .expect("the answer is acknowledged");
        let result = completed(until(&client, &id, |status| status.is_terminal()).await);
        assert_eq!((text(&result), result.is_error), (expected, None));
    }
}

/// A client that says yes to whatever it is asked.
#[derive(Clone, Debug)]
struct Agreeable;

impl ClientHandler for Agreeable {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation =
            Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        ClientConfig::new(capabilities, Implementation::new("longshore-tests", "0"))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let content = json!({ "name": "Ada", "age": 36, "choice": "green" });
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }
}

/// What a client without tasks sees, over whatever it came.
async fn holds_a_session(client: &RunningService<RoleClient, Agreeable>) {
    let info = client
        .peer()
        .peer_info()
        .expect("the server said who it is");
    assert_eq!(info.protocol_version, ProtocolVersion::V_2025_11_25);
    let tools = client
        .peer()
        .list_all_tools()
        .await
        .expect("it lists tools");
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert!(
        names.starts_with(&["ask-form", "hello", "long-job"]),
        "{names:?}"
    );
    for (tool, arguments, expected) in [
        ("hello", json!({ "name": "Ada" }), "Hello, Ada!"),
        (
            "long-job",
            json!({ "steps": 2, "step-ms": 300 }),
            "done: 2 steps",
        ),
        ("ask-form", json!({}), "Ada is 36 and chose green"),
    ] {
        let result = client
            .peer()
            .call_tool(params(tool, arguments))
            .await
            .expect("it is answered");
        assert_eq!((text(&result), result.is_error), (expected, None), "{tool}");
    }
}

#[tokio::test]
async fn holds_a_session_and_answers_in_it() {
    let server = Server::start(Options::with_guests(&["ask-form", "hello", "long-job"])).await;
    let transport =
        StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", server.address));
    let client = Agreeable
        .serve_with_lifecycle(transport, ClientLifecycleMode::Initialize)
        .await
        .expect("a session is opened");
    holds_a_session(&client).await;
    client.cancel().await.expect("the client ends");
    wait::until("the session to end", Duration::from_secs(20), || async {
        (server.figures().await["sessions"] == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn does_the_same_over_pipes() {
    let data = longshore_tests::pipes::data();
    let guests = ["ask-form", "hello", "long-job"];
    let client = Agreeable
        .serve_with_lifecycle(
            Piped::start(data.path(), &guests),
            ClientLifecycleMode::Initialize,
        )
        .await
        .expect("a session is opened");
    holds_a_session(&client).await;
    client.cancel().await.expect("the client ends");

    let mut capabilities = ClientCapabilities::default();
    capabilities.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())].into());
    let client = connect_by(Piped::start(data.path(), &guests), capabilities).await;
    let info = client
        .peer()
        .peer_info()
        .expect("the server said who it is");
    assert_eq!(info.protocol_version, ProtocolVersion::V_2026_07_28);
    let job = params("long-job", json!({ "steps": 3, "step-ms": 200 }));
    let id = start(&client, job).await;
    let result = completed(until(&client, &id, |status| status.is_terminal()).await);
    assert_eq!(text(&result), "done: 3 steps");
    client.cancel().await.expect("the client ends");
}

#[test]
fn lacks_task_ids_in_listen() {
    let filter = json!({ "toolsListChanged": true, "taskIds": ["any"] });
    let filter: SubscriptionFilter = serde_json::from_value(filter).expect("it is a filter");
    let written = serde_json::to_value(&filter).expect("it can be written");
    assert_eq!(written, json!({ "toolsListChanged": true }));
    tell_lacks(
        "rmcp 3.11.0",
        &["task ids in subscriptions/listen: it polls"],
    );
}

#[tokio::test]
async fn sees_a_task_fail() {
    // Every task lives for a moment only.
    let server = Server::start(Options::with_guests(&["long-job"]).set("deadline_ms", 300)).await;
    let client = able(&server).await;
    let id = start(
        &client,
        params("long-job", json!({ "steps": 1_000, "step-ms": 100 })),
    )
    .await;
    let task = until(&client, &id, |status| status.is_terminal()).await;
    let TaskPayload::Failed { error } = task.task.payload else {
        panic!("it did not fail: {task:?}")
    };
    assert_eq!(error["data"], json!({ "reason": "expired" }), "{error:?}");
    assert!(
        error["code"].is_i64() && error["message"].is_string(),
        "{error:?}"
    );
}

#[tokio::test]
async fn without_tasks_gets_results_and_refusals() {
    let server = Server::start(Options::with_guests(&["long-job"])).await;
    let client = connect(&server, ClientCapabilities::default()).await;
    let result = call(&client, "long-job", json!({ "steps": 2, "step-ms": 100 })).await;
    assert_eq!(text(&result), "done: 2 steps");
    let Err(ServiceError::McpError(error)) =
        client.peer().get_task(GetTaskParams::new("any")).await
    else {
        panic!("a client without the extension is shown tasks");
    };
    assert_eq!(error.code.0, -32021, "{error:?}");
}
