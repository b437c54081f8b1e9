//! The exact text of every kind of answer. `UPDATE_GOLDEN=1` writes the files anew; read the difference.

use std::path::Path;

use longshore_protocol::capability::Capability;
use longshore_protocol::content::{Body, Content, Media, RawBlock, ToolResult};
use longshore_protocol::elicitation;
use longshore_protocol::envelope::RequestId;
use longshore_protocol::error::RpcError;
use longshore_protocol::guest_meta::GuestMeta;
use longshore_protocol::listening::ListChanges;
use longshore_protocol::meta::{LogLevel, ProgressToken};
use longshore_protocol::notification::{self, Family, Honoured, Progress, TaskMembers};
use longshore_protocol::response;
use longshore_protocol::result::{
    CacheHint, CacheScope, Discover, List, ServerInfo, write_acknowledgement, write_listen_end,
    write_page,
};
use longshore_protocol::task::{InputRequest, Task, TaskState};
use longshore_protocol::tool::Tool;

pub(crate) fn server() -> ServerInfo {
    ServerInfo::new("longshore", "0.1.0")
}

pub(crate) const CACHE: CacheHint = CacheHint {
    ttl_ms: 5000,
    scope: CacheScope::Private,
};

#[track_caller]
pub(crate) fn golden(name: &str, text: &str) {
    assert!(!text.contains(['\n', '\r']), "{name} is one line");
    serde_json::from_str::<serde_json::Value>(text).expect(name);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(format!("{name}.json"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{text}\n")).unwrap();
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(text, expected.trim_end(), "{name}");
}

/// Around the result, so that each golden is a whole message.
pub(crate) fn answered(write: impl FnOnce(&mut String)) -> String {
    response::result_with(&RequestId::parse("7").unwrap(), 0, write)
}

#[test]
fn discover() {
    let plain = Discover {
        instructions: None,
        cache: CACHE,
    };
    golden("discover", &answered(|out| plain.write_to(out, &server())));
    let cache = CacheHint {
        ttl_ms: 0,
        scope: CacheScope::Public,
    };
    let full = Discover {
        instructions: Some("say \"please\""),
        cache,
    };
    golden(
        "discover-full",
        &answered(|out| full.write_to(out, &server())),
    );
}

fn tools() -> [String; 2] {
    let full = Tool {
        name: "book",
        title: Some("Book a room"),
        description: "Books.\nOnce.",
        input_schema: "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n  \"type\": \"object\",\r\n  \"$defs\": {\"n\": {\"$anchor\": \"n\", \"const\": 1.0}},\n  \"if\": {\"properties\": {\"a\": {\"const\": \"x\\ny\"}}},\n  \"then\": {\"allOf\": [{\"$ref\": \"#n\"}]}\n}",
        output_schema: Some(r#"{"type":"array"}"#),
        extra: Some(
            r#"{"annotations":{"title":"T","readOnlyHint":true},"icons":[{"src":"https://example.com/i.png"}],"_meta":{"com.example/a":1,"io.modelcontextprotocol/x":2},"longshore/deadlineMs":5,"name":"evil","execution":{}}"#,
        ),
    };
    let small = Tool {
        name: "hello",
        title: None,
        description: "Greets.",
        input_schema: r#"{"type":"object","additionalProperties":false}"#,
        output_schema: None,
        extra: None,
    };
    [full.descriptor().unwrap(), small.descriptor().unwrap()]
}

#[test]
fn tools_list() {
    let tools = tools();
    let page = |next| {
        answered(|out| {
            write_page(
                out,
                List::Tools,
                tools.iter().map(String::as_str),
                next,
                CACHE,
                &server(),
            )
        })
    };
    golden("tools-list", &page(None));
    golden("tools-list-more", &page(Some("AWhlbGxv")));
    golden(
        "tools-list-empty",
        &answered(|out| write_page(out, List::Tools, [], None, CACHE, &server())),
    );
}

#[test]
fn tools_call() {
    let id = RequestId::parse(r#""call-1""#).unwrap();
    let raw = r#"{"type":"text","text":"raw",
        "annotations":{"audience":["user"]},"_meta":{"com.example/k":[1],"dev.mcp/k":2}}"#;
    let content = [
        Content::Text("one\n\"two\" \u{1f980}"),
        Content::Image(Media {
            data: b"\x89PNG",
            mime_type: "image/png",
        }),
        Content::Audio(Media {
            data: b"RIFF!",
            mime_type: "audio/wav",
        }),
        Content::ResourceLink {
            uri: "file:///a",
            name: "a",
            mime_type: Some("text/plain"),
            description: Some("the a"),
        },
        Content::ResourceLink {
            uri: "file:///b",
            name: "b",
            mime_type: None,
            description: None,
        },
        Content::Resource {
            uri: "test://t",
            mime_type: Some("text/plain"),
            body: Body::Text("t"),
        },
        Content::Resource {
            uri: "test://b",
            mime_type: None,
            body: Body::Blob(&[0, 255]),
        },
        Content::Raw(RawBlock::parse(raw).unwrap()),
    ];
    let meta = GuestMeta::parse(
        r#"{"com.example/trace": {"a": 1}, "io.modelcontextprotocol/serverInfo": {"name": "evil"}, "traceparent": "x"}"#,
    )
    .unwrap();
    let structured: &serde_json::value::RawValue = serde_json::from_str("{\"n\":\n1.0e2}").unwrap();
    let full = ToolResult {
        content: &content,
        structured: Some(structured),
        meta: Some(&meta),
        is_error: false,
    };
    golden(
        "tools-call-every-content",
        &response::result(&id, &full.to_json(&server())),
    );
    let nothing = ToolResult {
        content: &[],
        structured: None,
        meta: None,
        is_error: false,
    };
    golden(
        "tools-call-nothing",
        &response::result(&id, &nothing.to_json(&server())),
    );
    golden(
        "tools-call-error",
        &response::result(&id, &ToolResult::error_text("no room is free", &server())),
    );
}

fn task(state: TaskState<'_>) -> Task<'_> {
    Task {
        id: "3f2b8c1e-7d4a-4c9b-9a51-0e6f2d8b7c35",
        status_message: None,
        created_at_ms: 1_785_231_000_125,
        updated_at_ms: 1_785_231_060_000,
        ttl_ms: Some(691_200_000),
        poll_interval_ms: Some(1000),
        state,
    }
}

#[test]
fn a_call_that_became_a_task() {
    golden(
        "task-created",
        &answered(|out| task(TaskState::Working).write_created(out, &server())),
    );
    // Born with its questions, it shows the status and not the questions.
    let asked = [InputRequest {
        key: "k",
        request: "{}",
    }];
    let bare = Task {
        ttl_ms: None,
        poll_interval_ms: None,
        ..task(TaskState::InputRequired(&asked))
    };
    golden(
        "task-created-asking",
        &answered(|out| bare.write_created(out, &server())),
    );
    let done = ToolResult::error_text("x", &server());
    golden(
        "task-created-done",
        &answered(|out| task(TaskState::Completed(&done)).write_created(out, &server())),
    );
}

#[test]
fn every_state_of_a_task() {
    let get = |task: Task<'_>| answered(|out| task.write_detailed(out, &server()));
    let working = Task {
        status_message: Some("step 2 of 5"),
        ..task(TaskState::Working)
    };
    golden("task-working", &get(working));
    golden("task-cancelled", &get(task(TaskState::Cancelled)));

    let schema =
        serde_json::from_str(r#"{"type":"object","properties":{"ok":{"type":"boolean"}}}"#)
            .unwrap();
    let sampling = serde_json::from_str("{\"messages\":[],\n\"maxTokens\":9}").unwrap();
    let form = elicitation::form_request("sure?", schema);
    let page = elicitation::url_request("log in", "https://example.com/login").unwrap();
    let sample = elicitation::sampling_request(sampling);
    let roots = "{\"method\":\"roots/list\",\n\"params\":{}}";
    assert!(
        elicitation::read_question(roots).is_ok(),
        "a guest may write a question on several lines"
    );
    let questions = [
        InputRequest {
            key: "confirm",
            request: &form,
        },
        InputRequest {
            key: "confirm-2",
            request: &page,
        },
        InputRequest {
            key: "say \"it\"",
            request: &sample,
        },
        InputRequest {
            key: "roots",
            request: roots,
        },
    ];
    golden(
        "task-input-required",
        &get(task(TaskState::InputRequired(&questions))),
    );

    let result = ToolResult {
        content: &[Content::Text("done")],
        structured: None,
        meta: None,
        is_error: false,
    };
    let result = result.to_json(&server());
    let completed = get(task(TaskState::Completed(&result)));
    assert!(
        completed.contains(&result),
        "what was stored is what is sent"
    );
    golden("task-completed", &completed);

    let error =
        RpcError::new(1000, "the guest trapped").with_data(r#"{"reason":"trap"}"#.to_owned());
    let failed = Task {
        status_message: Some("trap"),
        ..task(TaskState::Failed(&error))
    };
    golden("task-failed", &get(failed));
}

#[test]
fn acknowledgement() {
    golden(
        "acknowledgement",
        &answered(|out| write_acknowledgement(out, &server())),
    );
}

#[test]
fn errors() {
    for (name, id, error) in [
        (
            "error-parse",
            None,
            RpcError::parse_error("the body is not one JSON text"),
        ),
        (
            "error-invalid-request",
            Some("\"a\""),
            RpcError::invalid_request("`method` is missing"),
        ),
        (
            "error-method-not-found",
            Some("0"),
            RpcError::method_not_found("tasks/list"),
        ),
        (
            "error-invalid-params",
            Some("-1"),
            RpcError::invalid_params("no tool is named `x`"),
        ),
        (
            "error-internal",
            Some("1"),
            RpcError::internal("the host failed"),
        ),
        (
            "error-header-mismatch",
            Some("1"),
            RpcError::header_mismatch("header Mcp-Name is missing"),
        ),
        (
            "error-missing-capability",
            Some("1"),
            RpcError::missing_capability(&[Capability::Tasks, Capability::ElicitationForm]),
        ),
        (
            "error-unsupported-version",
            Some("1"),
            RpcError::unsupported_version("1900-01-01"),
        ),
        (
            "error-of-a-run",
            Some("1"),
            RpcError::new(42, "no").with_data("[\n1]".to_owned()),
        ),
        (
            "error-quoting",
            Some("1"),
            RpcError::method_not_found(&"é".repeat(1000)),
        ),
    ] {
        let id = id.map(|id| RequestId::parse(id).unwrap());
        golden(name, &response::error(id.as_ref(), &error));
    }
}

#[test]
fn notifications() {
    let token = ProgressToken::parse("\"t-1\"").unwrap();
    let full = Progress {
        token: &token,
        done: 50.0,
        total: Some(100.5),
        message: Some("half\nway"),
    };
    golden("notification-progress", &full.to_json());
    let number = ProgressToken::parse("7").unwrap();
    let small = Progress {
        token: &number,
        done: 0.0,
        total: None,
        message: None,
    };
    golden("notification-progress-small", &small.to_json());
    golden(
        "notification-message",
        &notification::log_message(LogLevel::Warning, Some("disk"), "nearly \"full\"\n"),
    );
    golden(
        "notification-message-small",
        &notification::log_message(LogLevel::Debug, None, ""),
    );
}

#[test]
fn every_finite_number_is_written_as_json() {
    let token = ProgressToken::parse("1").unwrap();
    let numbers = [
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        1e15,
        1e21,
        -0.0,
        0.1,
        1e-5,
        9.9e-6,
        123_456_789.5,
    ];
    for done in numbers {
        let text = Progress {
            token: &token,
            done,
            total: Some(done),
            message: None,
        }
        .to_json();
        assert!(text.len() < 200, "{text}");
        serde_json::from_str::<serde_json::Value>(&text).expect(&text);
        let written = text.split("\"total\":").nth(1).unwrap();
        assert_eq!(written.trim_end_matches('}').parse(), Ok(done), "{text}");
    }
}

#[test]
fn listening() {
    let text = RequestId::parse("\"listen:0\"").unwrap();
    let number = RequestId::parse("7").unwrap();
    let ids = ["task-1".to_owned(), "task-2".to_owned()];
    let uris = ["test://a".to_owned(), "test://\"b\"".to_owned()];
    let all = ListChanges {
        tools: true,
        prompts: true,
        resources: true,
    };
    let tools = ListChanges {
        tools: true,
        ..ListChanges::default()
    };
    let none = ListChanges::default();
    for (name, lists, resources, task_ids) in [
        (
            "subscription-acknowledged",
            tools,
            None,
            Some(ids.as_slice()),
        ),
        (
            "subscription-acknowledged-all",
            all,
            Some(uris.as_slice()),
            Some(ids.as_slice()),
        ),
        (
            "subscription-acknowledged-no-task",
            none,
            None,
            Some(&[][..]),
        ),
        ("subscription-acknowledged-nothing", none, None, None),
    ] {
        let honoured = Honoured {
            lists,
            resources,
            task_ids,
        };
        golden(name, &notification::acknowledged(&text, &honoured));
    }
    for (name, family) in [
        ("notification-tools-list-changed", Family::Tools),
        ("notification-prompts-list-changed", Family::Prompts),
        ("notification-resources-list-changed", Family::Resources),
    ] {
        golden(name, &notification::list_changed(&number, family));
    }
    golden(
        "notification-resource-updated",
        &notification::resource_updated(&text, "test://a"),
    );
    golden(
        "subscription-end",
        &answered(|out| write_listen_end(out, &number, &server())),
    );
    let questions = [InputRequest {
        key: "key",
        request: "{\"method\":\"roots/list\"}",
    }];
    for (name, state) in [
        (
            "notification-task-asking",
            TaskState::InputRequired(&questions),
        ),
        (
            "notification-task-completed",
            TaskState::Completed("{\"content\":[]}"),
        ),
    ] {
        let task = Task {
            id: "task-1",
            status_message: Some("a\nb"),
            created_at_ms: 0,
            updated_at_ms: 1,
            ttl_ms: Some(60_000),
            poll_interval_ms: Some(1_000),
            state,
        };
        golden(
            name,
            &notification::task_changed(&text, &TaskMembers::of(&task)),
        );
    }
}
