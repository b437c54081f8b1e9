//! What the contract with guests and clients fixes: these numbers have no setting.

use longshore_tests::component::{Made, Tool};
use longshore_tests::http::send;
use longshore_tests::mcp::Client;
use longshore_tests::process::Server;
use serde_json::{Value, json};

use super::{Outcome, Reaching, Row};

#[rustfmt::skip]
pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::fixed("levels of JSON in a request", 64, "-32600", depth),
        Row::fixed("tools of a component", 128, "list-tools", tools),
        Row::fixed("signs in a tool's name", 64, "tool-name", name),
        Row::fixed("bytes of a tool's title", 255, "list-tools", title),
        Row::fixed("bytes of a tool's description", 8 << 10, "list-tools", description),
        Row::fixed("bytes of a tool's further members", 64 << 10, "list-tools", extra),
        Row::fixed("bytes of a schema", 256 << 10, "schema", schema),
        Row::fixed("patterns of a schema", 64, "schema", patterns),
        Row::fixed("levels of a schema", 64, "schema", levels),
    ]
}

fn count(amount: u64) -> usize {
    usize::try_from(amount).expect("it is small")
}

fn depth(server: &Server, levels: u64) -> Reaching<'_> {
    Box::pin(async move {
        let request = server.client().request("tools/list", json!({}));
        let headers = Client::headers(&request);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        // The message itself is the first level.
        let inner = count(levels) - 1;
        let deep = format!("{{\"deep\":{}{},", "[".repeat(inner), "]".repeat(inner));
        let body = request.to_string().replacen('{', &deep, 1);
        let reply = send(server.address, "POST", "/mcp", &headers, body).await;
        let reply = reply.expect("the server answers").json();
        match reply["error"]["code"].as_i64() {
            Some(code) => Err(code.to_string()),
            None => Ok(()),
        }
    })
}

async fn uploaded(server: &Server, tools: impl Into<Vec<Tool>>) -> Outcome {
    let reply = server.upload("upload", Made::of(tools).bytes()).await;
    if matches!(reply.status, 200 | 201) {
        return Ok(());
    }
    let reason = reply.json()["error"]["reason"].take();
    Err(reason.as_str().expect("a reason").to_owned())
}

fn tools(server: &Server, amount: u64) -> Reaching<'_> {
    Box::pin(async move {
        let tools: Vec<Tool> = (0..amount)
            .map(|n| Tool::named(&format!("tool-{n}")))
            .collect();
        uploaded(server, tools).await
    })
}

/// One tool that is bent in one place.
fn bent(server: &Server, bend: impl FnOnce(&mut Tool) + Send + 'static) -> Reaching<'_> {
    Box::pin(async move {
        let mut tool = Tool::named("bent");
        bend(&mut tool);
        uploaded(server, [tool]).await
    })
}

fn name(server: &Server, signs: u64) -> Reaching<'_> {
    bent(server, move |tool| tool.name = "n".repeat(count(signs)))
}

fn title(server: &Server, bytes: u64) -> Reaching<'_> {
    bent(server, move |tool| {
        tool.title = Some("t".repeat(count(bytes)));
    })
}

fn description(server: &Server, bytes: u64) -> Reaching<'_> {
    bent(server, move |tool| {
        tool.description = "d".repeat(count(bytes));
    })
}

/// That many bytes of JSON, of which a text within makes up what is missing.
fn filled(bytes: u64, shape: impl Fn(String) -> Value) -> String {
    let least = shape(String::new()).to_string().len();
    shape("f".repeat(count(bytes) - least)).to_string()
}

fn extra(server: &Server, bytes: u64) -> Reaching<'_> {
    bent(server, move |tool| {
        tool.extra = Some(filled(
            bytes,
            |text| json!({ "_meta": { "example.org/x": text } }),
        ));
    })
}

fn schema(server: &Server, bytes: u64) -> Reaching<'_> {
    bent(server, move |tool| {
        tool.input_schema = filled(
            bytes,
            |text| json!({ "type": "object", "description": text }),
        );
    })
}

fn patterns(server: &Server, amount: u64) -> Reaching<'_> {
    bent(server, move |tool| {
        let properties: serde_json::Map<String, Value> = (0..amount)
            .map(|n| {
                (
                    format!("p{n}"),
                    json!({ "type": "string", "pattern": format!("^{n}$") }),
                )
            })
            .collect();
        tool.input_schema = json!({ "type": "object", "properties": properties }).to_string();
    })
}

fn levels(server: &Server, levels: u64) -> Reaching<'_> {
    bent(server, move |tool| {
        // The schema is the first level, and the object of its examples has the rest.
        let inner = count(levels) - 1;
        let deep = format!("{}{}", "[".repeat(inner), "]".repeat(inner));
        tool.input_schema = format!("{{\"type\":\"object\",\"examples\":{deep}}}");
    })
}
