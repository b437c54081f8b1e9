use longshore_protocol::capability::Capability;
use longshore_protocol::elicitation::{
    InputAnswer, InputKind, MAX_URL_BYTES, form_request, read_answer, read_question, roots_request,
    sampling_request, url_request,
};
use longshore_protocol::error;
use serde_json::value::RawValue;

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_is_asked_reads_back_as_the_same_question() {
    let schema = r#"{"type":"object","properties":{}}"#;
    for (question, kind, needs) in [
        (
            form_request("who?", raw(schema)),
            InputKind::Form,
            Capability::ElicitationForm,
        ),
        (
            url_request("go", "https://example.com/a?b#c").unwrap(),
            InputKind::Url,
            Capability::ElicitationUrl,
        ),
        (
            sampling_request(raw(r#"{"messages":[],"maxTokens":5}"#)),
            InputKind::Sampling,
            Capability::Sampling,
        ),
        (
            sampling_request(raw(r#"{"messages":[],"maxTokens":5,"tools":[]}"#)),
            InputKind::Sampling,
            Capability::SamplingTools,
        ),
        (
            sampling_request(raw(
                r#"{"messages":[],"maxTokens":5,"includeContext":"allServers"}"#,
            )),
            InputKind::Sampling,
            Capability::SamplingContext,
        ),
        (
            sampling_request(raw(
                r#"{"messages":[],"maxTokens":5,"includeContext":"none"}"#,
            )),
            InputKind::Sampling,
            Capability::Sampling,
        ),
        (roots_request(None), InputKind::Roots, Capability::Roots),
        (
            roots_request(Some(raw(r#"{"_meta":{}}"#))),
            InputKind::Roots,
            Capability::Roots,
        ),
        // The mode of a form may be left out.
        (
            format!(
                r#"{{"method":"elicitation/create","params":{{"message":"","requestedSchema":{schema}}}}}"#
            ),
            InputKind::Form,
            Capability::ElicitationForm,
        ),
    ] {
        let read = read_question(&question).unwrap();
        assert_eq!((read.kind, read.needs), (kind, needs), "{question}");
        assert_eq!(
            read.schema.map(RawValue::get),
            (kind == InputKind::Form).then_some(schema)
        );
    }
}

#[test]
fn what_is_no_question_is_refused() {
    for text in [
        "",
        "[]",
        "{}",
        r#"{"method":5}"#,
        r#"{"method":"ping"}"#,
        r#"{"method":"elicitation/create"}"#,
        r#"{"method":"elicitation/create","params":[]}"#,
        r#"{"method":"elicitation/create","params":{"message":"x"}}"#,
        r#"{"method":"elicitation/create","params":{"requestedSchema":{}}}"#,
        r#"{"method":"elicitation/create","params":{"mode":"voice","message":"x","requestedSchema":{}}}"#,
        r#"{"method":"elicitation/create","params":{"mode":5,"message":"x","requestedSchema":{}}}"#,
        r#"{"method":"elicitation/create","params":{"mode":"url","message":"x"}}"#,
        r#"{"method":"elicitation/create","params":{"mode":"url","message":"x","url":"ftp://a"}}"#,
        r#"{"method":"elicitation/create","params":{"mode":"form","mode":"url","message":"x","url":"https://a"}}"#,
        r#"{"method":"sampling/createMessage","params":{}}"#,
        r#"{"method":"sampling/createMessage","params":{"messages":"hi"}}"#,
    ] {
        assert!(read_question(text).is_err(), "{text}");
    }
}

#[test]
fn a_page_to_visit_is_an_absolute_url() {
    let longest = format!("https://e/{}", "x".repeat(MAX_URL_BYTES - 10));
    for url in ["https://example.com", "http://127.0.0.1:80/x", &longest] {
        assert!(url_request("m", url).is_ok(), "{url}");
    }
    for url in [
        "",
        "example.com",
        "/x",
        "javascript:alert(1)",
        "https://",
        "https:///x",
        "https://?x",
        "https://exa mple.com",
        "https://example.com/\n",
        "https://example.com/é",
        &format!("{longest}x"),
    ] {
        assert!(url_request("m", url).is_err(), "{url}");
    }
}

#[test]
fn answers_have_the_shape_of_their_kind() {
    use InputKind::{Form, Roots, Sampling, Url};
    let read = |kind, text: &str| match read_answer("k1", kind, raw(text)) {
        Ok(InputAnswer::Accepted(content)) => {
            format!("accepted {}", content.map_or("-", RawValue::get))
        }
        Ok(InputAnswer::Declined) => "declined".to_owned(),
        Ok(InputAnswer::Cancelled) => "cancelled".to_owned(),
        Ok(InputAnswer::Sampled(answer)) => format!("sampled {}", answer.get()),
        Ok(InputAnswer::Roots(answer)) => format!("roots {}", answer.get()),
        Err(error) => {
            assert_eq!((error.code, error::http_status(&error)), (-32602, 400));
            assert!(error.message.contains("`k1`"), "{}", error.message);
            "malformed".to_owned()
        }
    };
    let sampled = r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}"#;
    let roots = r#"{"roots":[{"uri":"file:///a"}]}"#;
    for (kind, text, expected) in [
        (
            Form,
            r#"{"action":"accept","content":{"a":1}}"#,
            r#"accepted {"a":1}"#,
        ),
        (
            Form,
            r#"{"action":"accept","content":{},"x":5}"#,
            "accepted {}",
        ),
        (Form, r#"{"action":"accept"}"#, "malformed"),
        (Form, r#"{"action":"accept","content":null}"#, "malformed"),
        (Form, r#"{"action":"accept","content":[]}"#, "malformed"),
        (
            Form,
            r#"{"action":"accept","content":{"a":1,"a":2}}"#,
            "malformed",
        ),
        (
            Form,
            r#"{"action":"accept","content":{},"content":{}}"#,
            "malformed",
        ),
        (Form, r#"{"action":"decline"}"#, "declined"),
        (Form, r#"{"action":"cancel","content":5}"#, "cancelled"),
        (Form, r#"{"action":"Accept","content":{}}"#, "malformed"),
        (Form, r#"{"action":true}"#, "malformed"),
        (Form, r#"{"content":{}}"#, "malformed"),
        (Form, "[]", "malformed"),
        (Form, "null", "malformed"),
        (Form, r#""accept""#, "malformed"),
        (Form, sampled, "malformed"),
        (Url, r#"{"action":"accept"}"#, "accepted -"),
        (
            Url,
            r#"{"action":"accept","content":{"a":1}}"#,
            "accepted -",
        ),
        (Url, r#"{"action":"decline"}"#, "declined"),
        (Url, "{}", "malformed"),
        (Sampling, sampled, &format!("sampled {sampled}")),
        (
            Sampling,
            r#"{"role":"assistant","content":[],"model":"m","stopReason":"endTurn"}"#,
            r#"sampled {"role":"assistant","content":[],"model":"m","stopReason":"endTurn"}"#,
        ),
        (
            Sampling,
            r#"{"role":"system","content":[],"model":"m"}"#,
            "malformed",
        ),
        (
            Sampling,
            r#"{"role":"user","content":"x","model":"m"}"#,
            "malformed",
        ),
        (Sampling, r#"{"role":"user","content":[]}"#, "malformed"),
        (Sampling, r#"{"action":"accept","content":{}}"#, "malformed"),
        (Sampling, "null", "malformed"),
        (Roots, roots, &format!("roots {roots}")),
        (Roots, r#"{"roots":[]}"#, r#"roots {"roots":[]}"#),
        (Roots, r#"{"roots":[{"uri":"https://a"}]}"#, "malformed"),
        (Roots, r#"{"roots":[{}]}"#, "malformed"),
        (Roots, r#"{"roots":{}}"#, "malformed"),
        (Roots, "{}", "malformed"),
    ] {
        assert_eq!(read(kind, text), expected, "{kind:?} {text}");
    }
}
