//! Resources, prompts and completions: what is read of a request, and the exact text of every answer.

use longshore_protocol::completing::{Completing, Reference};
use longshore_protocol::content::{Body, Content, Media, RawBlock};
use longshore_protocol::decode;
use longshore_protocol::envelope::{self as wire, Message as Envelope};
use longshore_protocol::guest_meta::GuestMeta;
use longshore_protocol::prompt::{self, Argument, Completion, MAX_VALUES, Message, Prompt, Role};
use longshore_protocol::request::Request;
use longshore_protocol::resource::{self, Contents, Resource, Template};
use longshore_protocol::response;
use longshore_protocol::result::{List, write_page};
use longshore_protocol::version::Revision;
use serde_json::{Value, json};

use super::goldens::{CACHE, answered, golden, server};
use super::{INVALID_PARAMS, MISMATCH, READ, Sent, check};

fn sent(method: &str, params: Value) -> Sent {
    Sent::new(method, params)
}

#[test]
fn lists_are_asked_for_alike() {
    for method in ["resources/list", "resources/templates/list", "prompts/list"] {
        check(vec![
            ("from the start", sent(method, json!({})), READ),
            ("from a page", sent(method, json!({"cursor": "c"})), READ),
            (
                "cursor a number",
                sent(method, json!({"cursor": 5})),
                INVALID_PARAMS,
            ),
        ]);
    }
}

#[test]
fn what_is_read_has_a_uri_and_its_header() {
    let read = |params: Value| sent("resources/read", params);
    let uri = json!({"uri": "test://a/é"});
    let encoded = "=?base64?dGVzdDovL2Evw6k=?=";
    check(vec![
        ("in order", read(json!({"uri": "test://a"})), READ),
        ("in base64", read(uri.clone()).name(&[encoded]), READ),
        ("header missing", read(uri.clone()).name(&[]), MISMATCH),
        (
            "another in the header",
            read(uri).name(&["test://b"]),
            MISMATCH,
        ),
        (
            "another case in the header",
            read(json!({"uri": "test://a"})).name(&["TEST://a"]),
            MISMATCH,
        ),
        (
            "header twice",
            read(json!({"uri": "test://a"})).name(&["test://a", "test://a"]),
            MISMATCH,
        ),
        ("no uri", read(json!({})).name(&["x"]), INVALID_PARAMS),
        (
            "a number",
            read(json!({"uri": 5})).name(&["5"]),
            INVALID_PARAMS,
        ),
        (
            "answers a list",
            read(json!({"uri": "test://a", "inputResponses": []})),
            INVALID_PARAMS,
        ),
    ]);
}

#[test]
fn a_prompt_takes_texts_by_name() {
    let get = |params: Value| sent("prompts/get", params);
    check(vec![
        ("no arguments", get(json!({"name": "p"})), READ),
        (
            "arguments",
            get(json!({"name": "p", "arguments": {"a": "1", "b": ""}})),
            READ,
        ),
        (
            "header missing",
            get(json!({"name": "p"})).name(&[]),
            MISMATCH,
        ),
        (
            "another in the header",
            get(json!({"name": "p"})).name(&["q"]),
            MISMATCH,
        ),
        (
            "no name",
            get(json!({"arguments": {}})).name(&["p"]),
            INVALID_PARAMS,
        ),
    ]);
    for value in [json!(1), json!(null), json!(["x"]), json!({}), json!(true)] {
        let params = json!({"name": "p", "arguments": {"a": value}});
        check(vec![(
            "an argument that is no text",
            get(params),
            INVALID_PARAMS,
        )]);
    }
    for arguments in [json!([]), json!("x"), json!(null)] {
        let params = json!({"name": "p", "arguments": arguments});
        check(vec![(
            "arguments of another type",
            get(params),
            INVALID_PARAMS,
        )]);
    }
    let body = get(json!({"name": "p", "arguments": {"a": "1"}}))
        .body
        .to_string()
        .replace(r#"{"a":"1"}"#, r#"{"a":"1","\u0061":"2"}"#);
    let twice = get(json!({"name": "p"})).read_text(&body);
    assert_eq!(super::code_and_status(twice), INVALID_PARAMS);
}

fn completing(params: Value, look: impl FnOnce(&Completing<'_>)) {
    let body = sent("completion/complete", params).body.to_string();
    let Envelope::Request(envelope) = wire::parse(body.as_bytes()).unwrap() else {
        panic!("{body} is no request");
    };
    let (_, request) = decode::over_stdio(&envelope).unwrap();
    let Request::Complete(completing) = request else {
        panic!("{request:?}");
    };
    look(&completing);
}

#[test]
fn a_completion_says_of_what() {
    let of_prompt = json!({"type": "ref/prompt", "name": "p", "title": "P"});
    let of_template = json!({"type": "ref/resource", "uri": "test://{id}"});
    let typed = json!({"name": "a", "value": "v"});
    completing(
        json!({"ref": of_prompt, "argument": typed, "context": {"arguments": {"b": "c"}}}),
        |read| {
            assert_eq!(read.of, Reference::Prompt("p".into()));
            assert_eq!((read.argument.as_ref(), read.value.as_ref()), ("a", "v"));
            assert_eq!(read.context, [("b".into(), "c".into())]);
        },
    );
    completing(json!({"ref": of_template, "argument": typed}), |read| {
        assert_eq!(read.of, Reference::Template("test://{id}".into()));
        assert!(read.context.is_empty());
    });
    let wrong = |params: Value| {
        let name = "what is not complete";
        check(vec![(
            name,
            sent("completion/complete", params).name(&[]),
            INVALID_PARAMS,
        )]);
    };
    wrong(json!({}));
    wrong(json!({"ref": of_prompt}));
    wrong(json!({"argument": typed}));
    wrong(json!({"ref": "ref/prompt", "argument": typed}));
    wrong(json!({"ref": {"type": "ref/tool", "name": "p"}, "argument": typed}));
    wrong(json!({"ref": {"type": "ref/prompt"}, "argument": typed}));
    wrong(json!({"ref": {"type": "ref/resource", "name": "p"}, "argument": typed}));
    wrong(json!({"ref": of_prompt, "argument": {"name": "a"}}));
    wrong(json!({"ref": of_prompt, "argument": {"name": "a", "value": 1}}));
    wrong(json!({"ref": of_prompt, "argument": typed, "context": []}));
    wrong(json!({"ref": of_prompt, "argument": typed, "context": {"arguments": []}}));
    wrong(json!({"ref": of_prompt, "argument": typed, "context": {"arguments": {"b": 1}}}));
}

#[test]
fn a_filter_is_a_set_of_kinds() {
    let listen = |filter: Value| sent("subscriptions/listen", json!({"notifications": filter}));
    let uris = json!(["test://a"]);
    check(vec![
        ("nothing", listen(json!({})), READ),
        (
            "all",
            listen(json!({
                "toolsListChanged": true, "promptsListChanged": false, "resourcesListChanged": true,
                "resourceSubscriptions": uris, "taskIds": [],
            })),
            READ,
        ),
        (
            "a kind that is not known",
            listen(json!({"weatherChanged": 5})),
            READ,
        ),
        (
            "prompts by a number",
            listen(json!({"promptsListChanged": 1})),
            INVALID_PARAMS,
        ),
        (
            "resources by null",
            listen(json!({"resourcesListChanged": null})),
            INVALID_PARAMS,
        ),
        (
            "one resource and no list",
            listen(json!({"resourceSubscriptions": "test://a"})),
            INVALID_PARAMS,
        ),
        (
            "a resource that is a number",
            listen(json!({"resourceSubscriptions": [1]})),
            INVALID_PARAMS,
        ),
    ]);
}

#[test]
fn descriptors() {
    let extra = r#"{"title":"T","size":5,"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-01T00:00:00Z"},"icons":[{"src":"data:image/png;base64,AA=="}],"_meta":{"com.example/a":1,"io.modelcontextprotocol/x":2},"unknown":{}}"#;
    let resource = Resource {
        uri: "test://a?b=\"c\"",
        name: "a",
        mime_type: Some("text/plain"),
        description: Some("What.\nIt is."),
        extra: Some(extra),
    };
    let small = Resource {
        mime_type: None,
        description: None,
        extra: None,
        ..resource
    };
    let template = Template {
        uri_template: "test://{id}",
        name: "a",
        mime_type: Some("text/plain"),
        description: Some("Some."),
        extra: Some(extra),
    };
    let arguments = [
        Argument {
            name: "a",
            description: Some("First."),
            required: true,
        },
        Argument {
            name: "b",
            description: None,
            required: false,
        },
    ];
    let prompt = Prompt {
        name: "p",
        title: Some("P"),
        description: Some("For."),
        arguments: &arguments,
        extra: Some(extra),
    };
    let page = |list, texts: &[String], next| {
        answered(|out| {
            let texts = texts.iter().map(String::as_str);
            write_page(out, list, texts, next, CACHE, &server());
        })
    };
    let resources = [resource.descriptor().unwrap(), small.descriptor().unwrap()];
    golden(
        "resources-list",
        &page(List::Resources, &resources, Some("Y3Vyc29y")),
    );
    golden(
        "resources-templates-list",
        &page(List::Templates, &[template.descriptor().unwrap()], None),
    );
    golden(
        "prompts-list",
        &page(List::Prompts, &[prompt.descriptor().unwrap()], None),
    );
}

#[test]
fn a_malformed_member_of_a_descriptor_is_named() {
    let rows = [
        (r#"{"title":1}"#, "extra.title"),
        (r#"{"size":-1}"#, "extra.size"),
        (r#"{"size":1.5}"#, "extra.size"),
        (r#"{"annotations":[]}"#, "extra.annotations"),
        (
            r#"{"annotations":{"audience":["all"]}}"#,
            "extra.annotations.audience",
        ),
        (
            r#"{"annotations":{"priority":2}}"#,
            "extra.annotations.priority",
        ),
        (
            r#"{"annotations":{"lastModified":5}}"#,
            "extra.annotations.lastModified",
        ),
        (
            r#"{"icons":[{"src":"http://example.com/i.png"}]}"#,
            "extra.icons",
        ),
        (r#"{"_meta":1}"#, "_meta"),
        ("[]", "extra"),
        ("{", "extra"),
    ];
    for (extra, named) in rows {
        let resource = Resource {
            uri: "test://a",
            name: "a",
            mime_type: None,
            description: None,
            extra: Some(extra),
        };
        let fault = resource.descriptor().unwrap_err().to_string();
        assert!(fault.contains(named), "{extra}: {fault}");
    }
    // What a prompt has no such member for is nobody's business.
    let prompt = Prompt {
        name: "p",
        title: None,
        description: None,
        arguments: &[],
        extra: Some(r#"{"size":-1,"annotations":5}"#),
    };
    assert_eq!(
        prompt.descriptor().unwrap(),
        r#"{"name":"p","arguments":[]}"#
    );
}

#[test]
fn what_was_read() {
    let meta = GuestMeta::parse(r#"{"a":1,"longshore/x":2}"#).unwrap();
    let contents = [
        Contents {
            uri: "test://a",
            mime_type: Some("text/plain"),
            body: Body::Text("a\"b\n"),
            meta: Some(&meta),
        },
        Contents {
            uri: "test://a/b",
            mime_type: None,
            body: Body::Blob(&[0, 255, 128]),
            meta: None,
        },
    ];
    let whole = |contents: &[Contents<'_>]| {
        answered(|out| out.push_str(&resource::read_result(contents, CACHE, &server())))
    };
    golden("resources-read", &whole(&contents));
    golden("resources-read-nothing", &whole(&[]));
    let error = resource::not_found(Revision::R20260728, "test://\"x\"");
    let id = longshore_protocol::envelope::RequestId::parse("7").unwrap();
    golden(
        "error-resource-not-found",
        &response::error(Some(&id), &error),
    );
}

#[test]
fn a_prompt_that_is_filled_in() {
    let raw = RawBlock::parse(r#"{"type":"text","text":"raw","annotations":{"priority":1}}"#);
    let media = |mime_type| Media {
        data: &[1, 2, 3],
        mime_type,
    };
    let contents = [
        Content::Text("a\nb"),
        Content::Image(media("image/png")),
        Content::Audio(media("audio/wav")),
        Content::ResourceLink {
            uri: "test://a",
            name: "a",
            mime_type: None,
            description: Some("d"),
        },
        Content::Resource {
            uri: "test://a",
            mime_type: Some("text/plain"),
            body: Body::Text("t"),
        },
        Content::Raw(raw.unwrap()),
    ];
    let messages: Vec<Message<'_>> = contents
        .into_iter()
        .zip([Role::User, Role::Assistant].into_iter().cycle())
        .map(|(content, role)| Message { role, content })
        .collect();
    golden(
        "prompts-get",
        &answered(|out| out.push_str(&prompt::get_result(Some("d"), &messages, &server()))),
    );
    golden(
        "prompts-get-nothing",
        &answered(|out| out.push_str(&prompt::get_result(None, &[], &server()))),
    );
}

#[test]
fn proposals() {
    let values: Vec<String> = (0..=MAX_VALUES).map(|n| format!("v{n}")).collect();
    let completed = |values: &[String], total, has_more| {
        let completion = Completion {
            values,
            total,
            has_more,
        };
        completion.to_json(&server())
    };
    golden(
        "completion",
        &answered(|out| out.push_str(&completed(&values[..2], Some(7), true))),
    );
    golden(
        "completion-nothing",
        &answered(|out| out.push_str(&completed(&[], None, false))),
    );
    let read = |text: &str| -> (usize, bool) {
        let value: Value = serde_json::from_str(text).unwrap();
        let completion = &value["completion"];
        (
            completion["values"].as_array().unwrap().len(),
            completion["hasMore"].as_bool().unwrap(),
        )
    };
    assert_eq!(
        read(&completed(&values[..MAX_VALUES], None, false)),
        (MAX_VALUES, false)
    );
    // What is left out there is more of.
    assert_eq!(read(&completed(&values, None, false)), (MAX_VALUES, true));
}
