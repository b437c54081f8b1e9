//! Every resource, template and prompt of the examples, read or filled in over HTTP.

use std::collections::BTreeSet;

use longshore_tests::guests;
use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

use super::bare;

/// One request, and all of its result but what every result has.
struct Row {
    component: &'static str,
    /// What is listed: a URI, a template or the name of a prompt.
    listed: &'static str,
    method: &'static str,
    params: Value,
    expected: Value,
}

/// Asks for an answer before it has a result, and is tried where questions are.
const ASKS: (&str, &str) = ("conformance", "test_input_required_result_prompt");

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";

fn read(component: &'static str, listed: &'static str, uri: &str, contents: Value) -> Row {
    let mut contents = contents;
    contents["uri"] = json!(uri);
    Row {
        component,
        listed,
        method: "resources/read",
        params: json!({ "uri": uri }),
        expected: json!({ "contents": [contents], "ttlMs": 0, "cacheScope": "private" }),
    }
}

fn get(component: &'static str, name: &'static str, arguments: &Value, messages: &Value) -> Row {
    Row {
        component,
        listed: name,
        method: "prompts/get",
        params: json!({ "name": name, "arguments": arguments }),
        expected: json!({ "messages": messages }),
    }
}

fn complete(
    component: &'static str,
    listed: &'static str,
    argument: &str,
    value: &str,
    values: &[&str],
) -> Row {
    let of = if listed.contains('{') {
        json!({ "type": "ref/resource", "uri": listed })
    } else {
        json!({ "type": "ref/prompt", "name": listed })
    };
    Row {
        component,
        listed,
        method: "completion/complete",
        params: json!({ "ref": of, "argument": { "name": argument, "value": value } }),
        expected: json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } }),
    }
}

fn says(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": { "type": "text", "text": text } })
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let text = |text: &str| json!({ "mimeType": "text/plain", "text": text });
    let shown = json!({ "role": "user", "content": { "type": "resource", "resource": {
        "uri": "test://shown", "mimeType": "text/plain", "text": "Embedded resource content for testing.",
    } } });
    let image = json!({ "role": "user", "content": { "type": "image", "data": PIXEL, "mimeType": "image/png" } });
    vec![
        read("cookbook", "recipe:all", "recipe:all", text("omelette\npancakes\nporridge")),
        read("cookbook", "recipe:{dish}", "recipe:porridge", text("Simmer oats in water with a pinch of salt. Stir.")),
        complete("cookbook", "recipe:{dish}", "dish", "p", &["pancakes", "porridge"]),
        get("cookbook", "plan-meal", &json!({ "dish": "porridge" }), &json!([
            says("user", "Plan a meal for two with porridge."),
            says("assistant", "It is made like this: Simmer oats in water with a pinch of salt. Stir."),
            says("user", "What goes with it?"),
        ])),
        complete("cookbook", "plan-meal", "dish", "o", &["omelette"]),
        complete("cookbook", "plan-meal", "guests", "o", &[]),
        read("conformance", "test://static-text", "test://static-text", text("This is the content of the static text resource.")),
        read("conformance", "test://static-binary", "test://static-binary", json!({ "mimeType": "image/png", "blob": PIXEL })),
        read("conformance", "test://watched-resource", "test://watched-resource", text("This is the content of the watched resource.")),
        read("conformance", "test://template/{id}/data", "test://template/a%20b/data", json!({
            "mimeType": "application/json", "text": r#"{"id":"a b","templateTest":true,"data":"Data for ID: a b"}"#,
        })),
        complete("conformance", "test://template/{id}/data", "id", "12", &["12", "123"]),
        get("conformance", "test_simple_prompt", &json!({}), &json!([says("user", "This is a simple prompt for testing.")])),
        get("conformance", "test_prompt_with_arguments", &json!({ "arg1": "a", "arg2": "b" }), &json!([
            says("user", "Prompt with arguments: arg1='a', arg2='b'"),
        ])),
        complete("conformance", "test_prompt_with_arguments", "arg1", "par", &["paris", "park", "party"]),
        get("conformance", "test_prompt_with_embedded_resource", &json!({ "resourceUri": "test://shown" }), &json!([
            shown, says("user", "Please process the embedded resource above."),
        ])),
        get("conformance", "test_prompt_with_image", &json!({}), &json!([image, says("user", "Please analyze the image above.")])),
    ]
}

#[tokio::test]
async fn every_example_is_read_and_filled_in_as_its_rows_say() {
    let options = Options {
        components: guests::all().values().cloned().collect(),
        ..Options::default()
    };
    let server = Server::start(options).await;
    let rows = rows();
    let mut in_rows: BTreeSet<(String, String)> = rows
        .iter()
        .map(|row| (row.component.to_owned(), row.listed.to_owned()))
        .collect();
    in_rows.insert((ASKS.0.to_owned(), ASKS.1.to_owned()));
    let components = server.admin("GET", "/v1/components", "").await.json();
    let components = components["components"].as_array().expect("a list").clone();
    let served: BTreeSet<(String, String)> = components
        .iter()
        .flat_map(|component| {
            [
                ("resources", "uri"),
                ("templates", "uriTemplate"),
                ("prompts", "name"),
            ]
            .into_iter()
            .flat_map(move |(list, key)| {
                let items = component[list].as_array().expect("a list").iter();
                items.map(move |item| (component["name"].clone(), item[key].clone()))
            })
        })
        .map(|(component, name)| {
            let text = |value: &Value| value.as_str().expect("a name").to_owned();
            (text(&component), text(&name))
        })
        .collect();
    assert_eq!(
        in_rows, served,
        "something without a row, or a row without what it is of"
    );

    let client = server.client();
    for Row {
        method,
        params,
        expected,
        ..
    } in rows
    {
        let result = client.result(method, params.clone()).await;
        assert_eq!(bare(&result), Some(expected), "{method} {params}");
    }
    let wrong = json!({ "name": "plan-meal", "arguments": { "dish": "gruel" } });
    let (_, error) = client.error("prompts/get", wrong).await;
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32602), &json!("there is no recipe of gruel"))
    );
}
