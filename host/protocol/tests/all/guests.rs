use longshore_protocol::content::RawBlock;
use longshore_protocol::guest_meta::GuestMeta;
use longshore_protocol::json::{MAX_DEPTH, strict_value};
use longshore_protocol::tool::Tool;

#[test]
fn json_of_guests_is_read_strictly() {
    for text in [
        "{}",
        "null",
        r#"{"a":[1,-2,1.5,"x",true,null,{"a":1}]}"#,
        " [ ] ",
        "18446744073709551615",
        "1e300",
    ] {
        assert_eq!(
            strict_value(text).unwrap(),
            serde_json::from_str::<serde_json::Value>(text).unwrap(),
            "{text}"
        );
    }
    let lists = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(strict_value(&lists(MAX_DEPTH)).is_ok());
    for text in [
        "",
        "{",
        "{} {}",
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"[{"b":{"a":1,"a":1}}]"#,
        r#""\ud800""#,
        "1e999",
        "NaN",
        &lists(MAX_DEPTH + 1),
        &lists(1_000_000),
    ] {
        assert!(strict_value(text).is_err(), "{text}");
    }
}

#[test]
fn blocks_of_guests_are_objects_that_a_client_can_read() {
    for text in [
        r#"{"type":"text","text":"x","annotations":{"priority":1}}"#,
        r#"{"type":"image","data":"","mimeType":"image/png"}"#,
        r#"{"type":"audio","data":"","mimeType":"audio/wav"}"#,
        r#"{"type":"resource_link","uri":"a:b","name":"n","size":5}"#,
        r#"{"type":"resource","resource":{"uri":"a:b","blob":""}}"#,
        r#"{"type":"hologram","anything":[]}"#,
    ] {
        assert!(RawBlock::parse(text).is_ok(), "{text}");
    }
    for text in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"type":5}"#,
        r#"{"type":"text"}"#,
        r#"{"type":"text","text":5}"#,
        r#"{"type":"image","data":""}"#,
        r#"{"type":"resource_link","uri":"a:b"}"#,
        r#"{"type":"resource","resource":{"uri":"a:b"}}"#,
        r#"{"type":"resource","resource":{"text":""}}"#,
        r#"{"type":"text","text":"x","type":"text"}"#,
        r#"{"type":"text","text":"x","_meta":5}"#,
        r#"{"type":"text","text":"x"}}"#,
    ] {
        assert!(RawBlock::parse(text).is_err(), "{text}");
    }
}

#[test]
fn guests_do_not_speak_with_the_voice_of_others() {
    for (key, kept) in [
        ("plain", true),
        ("com.example/x", true),
        ("com.example.mcp/x", true),
        ("mcp/x", true),
        ("com.mcp-tools/x", true),
        ("io.modelcontextprotocol/serverInfo", false),
        ("io.modelcontextprotocol/related-task", false),
        ("dev.mcp/x", false),
        ("com.mcp.tools/x", false),
        ("org.modelcontextprotocol.api/x/y", false),
        ("longshore/task", false),
        ("io\\u002emodelcontextprotocol/serverInfo", false),
    ] {
        let meta = GuestMeta::parse(&format!(r#"{{"{key}":1}}"#)).unwrap();
        assert_eq!(!meta.is_empty(), kept, "{key}");
    }
    for text in ["", "[]", "5", r#"{"a":1,"a":2}"#, r#"{"a":}"#] {
        assert!(GuestMeta::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_descriptor_with_malformed_json_is_refused_by_name() {
    let tool = Tool {
        name: "t",
        title: None,
        description: "d",
        input_schema: "{}",
        output_schema: None,
        extra: None,
    };
    let extra = |text: &'static str| Tool {
        extra: Some(text),
        ..tool
    };
    assert_eq!(
        tool.descriptor().unwrap(),
        r#"{"name":"t","description":"d","inputSchema":{}}"#
    );
    for (tool, words) in [
        (
            Tool {
                input_schema: "null",
                ..tool
            },
            "input schema",
        ),
        (
            Tool {
                input_schema: "{",
                ..tool
            },
            "input schema",
        ),
        (
            Tool {
                output_schema: Some("[]"),
                ..tool
            },
            "output schema",
        ),
        (extra("[]"), "extra"),
        (extra("{"), "extra"),
        (extra(r#"{"icons":[],"icons":[]}"#), "extra"),
        (extra(r#"{"annotations":5}"#), "extra.annotations"),
        (
            extra(r#"{"annotations":{"readOnlyHint":"yes"}}"#),
            "extra.annotations.readOnlyHint",
        ),
        (
            extra(r#"{"annotations":{"openWorldHint":null}}"#),
            "extra.annotations.openWorldHint",
        ),
        (
            extra(r#"{"annotations":{"title":5}}"#),
            "extra.annotations.title",
        ),
        (extra(r#"{"icons":{}}"#), "extra.icons"),
        (
            extra(r#"{"icons":[{"src":"http://example.com/i.png"}]}"#),
            "extra.icons",
        ),
        (extra(r#"{"icons":["x"]}"#), "extra.icons"),
        (extra(r#"{"_meta":[]}"#), "extra"),
    ] {
        let fault = tool.descriptor().unwrap_err().to_string();
        assert!(fault.starts_with(words), "{fault}");
    }
}
