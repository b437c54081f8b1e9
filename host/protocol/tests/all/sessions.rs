//! What a session is told: the exact text, as far as it differs from 2026-07-28.

use longshore_protocol::content::{Content, ToolResult};
use longshore_protocol::elicitation;
use longshore_protocol::error::RpcError;
use longshore_protocol::guest_meta::GuestMeta;
use longshore_protocol::notification::Family;
use longshore_protocol::result::{Discover, List, write_page};
use longshore_protocol::session::out::{self, Question};
use longshore_protocol::session::task::{TaskSupport, result_of, write_list};
use longshore_protocol::task::{Task, TaskState};
use longshore_protocol::tool::{self, Tool};
use longshore_protocol::version::Revision;
use serde_json::value::RawValue;

use crate::goldens::{CACHE, answered, golden, server};

const REVISIONS: [Revision; 2] = [Revision::R20251125, Revision::R20250618];

#[test]
fn opened() {
    let offer = Discover {
        instructions: Some("Ask \"nicely\"."),
        cache: CACHE,
    };
    for revision in REVISIONS {
        golden(
            &format!("session-opened-{}", revision.as_str()),
            &answered(|out| offer.write_opened(out, revision, &server())),
        );
    }
}

#[test]
fn results() {
    let structured: Box<RawValue> = RawValue::from_string("{\"a\":1}".to_owned()).unwrap();
    let number: Box<RawValue> = RawValue::from_string("7".to_owned()).unwrap();
    let meta = GuestMeta::parse("{\"example.com/a\":[1]}").unwrap();
    let full = ToolResult {
        content: &[Content::Text("a \"text\"\n")],
        structured: Some(&structured),
        meta: Some(&meta),
        is_error: true,
    };
    golden(
        "session-result",
        &answered(|out| out.push_str(&out::plain(&full.to_json(&server())))),
    );
    golden(
        "session-result-of-a-task",
        &answered(|out| out.push_str(&result_of("task-1", &full.to_json(&server())))),
    );
    // Data that is no object is left out; the text says the same.
    let small = ToolResult {
        content: &[Content::Text("7")],
        structured: Some(&number),
        meta: None,
        is_error: false,
    };
    golden(
        "session-result-small",
        &answered(|out| out.push_str(&out::plain(&small.to_json(&server())))),
    );
    let mut page = String::new();
    write_page(
        &mut page,
        List::Tools,
        ["{\"name\":\"a\"}"],
        Some("next"),
        CACHE,
        &server(),
    );
    golden(
        "session-page",
        &answered(|out| out.push_str(&out::plain(&page))),
    );
    assert_eq!(out::NOTHING, "{}");
}

#[test]
fn descriptors() {
    let tool = Tool {
        name: "a",
        title: Some("A"),
        description: "does a",
        input_schema: r#"{"type":"object"}"#,
        output_schema: Some(r#"{"type":"object","properties":{}}"#),
        extra: Some(
            r#"{"icons":[{"src":"https://example.com/i.png"}],"annotations":{"readOnlyHint":true}}"#,
        ),
    };
    let full = tool.descriptor().unwrap();
    for revision in REVISIONS {
        golden(
            &format!("session-tool-{}", revision.as_str()),
            &tool::in_session(&full, revision, TaskSupport::Optional),
        );
    }
    let text = Tool {
        output_schema: Some(r#"{"type":"string"}"#),
        extra: None,
        ..tool
    };
    golden(
        "session-tool-that-answers-no-object",
        &tool::in_session(
            &text.descriptor().unwrap(),
            Revision::R20251125,
            TaskSupport::Forbidden,
        ),
    );
}

#[test]
fn questions() {
    let schema = r#"{"type":"object","properties":{"c":{"type":"string","oneOf":[{"const":"r","title":"Red"}]},"n":{"type":"integer"}}}"#;
    let schema = RawValue::from_string(schema.to_owned()).unwrap();
    let params =
        RawValue::from_string(r#"{"messages":[],"maxTokens":1,"_meta":{"a":1}}"#.to_owned())
            .unwrap();
    let rows = [
        ("form", elicitation::form_request("Which?", &schema), None),
        (
            "page",
            elicitation::url_request("Go", "https://example.com/").unwrap(),
            None,
        ),
        (
            "model",
            elicitation::sampling_request(&params),
            Some("task-1"),
        ),
        ("folders", elicitation::roots_request(None), None),
        (
            "folders-of-a-task",
            elicitation::roots_request(None),
            Some("task-1"),
        ),
    ];
    for (name, request, task) in rows {
        for revision in REVISIONS {
            // It has no pages to visit.
            if name == "page" && revision == Revision::R20250618 {
                continue;
            }
            let question = Question {
                id: 3,
                request: &request,
                elicitation_id: "e-3",
                task,
            };
            golden(
                &format!("session-question-{name}-{}", revision.as_str()),
                &question.to_json(revision),
            );
        }
    }
    golden("session-cancelled", &out::cancelled(3, "nobody waits"));
    for (name, family) in [
        ("session-tools-list-changed", Family::Tools),
        ("session-prompts-list-changed", Family::Prompts),
        ("session-resources-list-changed", Family::Resources),
    ] {
        golden(name, &out::list_changed(family));
    }
    golden(
        "session-resource-updated",
        &out::resource_updated("test://\"a\""),
    );
}

#[test]
fn tasks() {
    let error = RpcError::new(1000, "broken");
    let rows = [
        ("working", TaskState::Working, "working"),
        ("asking", TaskState::InputRequired(&[]), "input_required"),
        (
            "completed",
            TaskState::Completed("{\"content\":[]}"),
            "completed",
        ),
        (
            "unmanaged",
            TaskState::Completed("{\"content\":[],\"isError\":true}"),
            "failed",
        ),
        (
            "managed",
            TaskState::Completed("{\"content\":[],\"isError\":false}"),
            "completed",
        ),
        ("failed", TaskState::Failed(&error), "failed"),
        ("cancelled", TaskState::Cancelled, "cancelled"),
    ];
    for (name, state, status) in rows {
        let task = Task {
            id: "task-1",
            status_message: Some("a\nb"),
            created_at_ms: 0,
            updated_at_ms: 1,
            ttl_ms: Some(60_000),
            poll_interval_ms: Some(1_000),
            state,
        };
        let mut written = String::new();
        task.write_in_session(&mut written);
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read["status"], status, "{name}");
        if name == "working" {
            golden("session-task", &answered(|out| out.push_str(&written)));
            golden(
                "session-task-created",
                &answered(|out| task.write_created_in_session(out)),
            );
            golden(
                "session-task-list",
                &answered(|out| write_list(out, [written.as_str(), &written], Some("next"))),
            );
        }
    }
    golden(
        "session-task-list-empty",
        &answered(|out| write_list(out, [], None)),
    );
}
