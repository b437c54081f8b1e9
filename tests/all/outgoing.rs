//! Requests that tools send: to whom they may, as often as they should, and with what they may carry.

mod doubt;
mod kills;
mod points;
mod reach;
mod secrets;
mod waits;

use longshore_tests::mcp::Client;
use longshore_tests::process::{Options, Server};
use longshore_tests::target::Target;
use serde_json::{Value, json};

/// A rule that lets this target be sent everything.
fn rule(target: &Target) -> Value {
    json!({
        "scheme": "http",
        "host": "127.0.0.1",
        "port": target.address.port(),
        "methods": ["*"],
        "networks": ["127.0.0.0/8"],
    })
}

/// The same, with that done about what is in doubt.
fn rule_with(target: &Target, in_doubt: &str) -> Value {
    let mut rule = rule(target);
    rule["in_doubt"] = in_doubt.into();
    rule
}

async fn grant(server: &Server, component: &str, grant: &Value) {
    let path = format!("/v1/components/{component}/grant");
    let reply = server.admin("PUT", &path, grant.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.json());
}

/// A server whose tool may send requests by that rule.
async fn serving(component: &str, options: Options, rule: Value) -> Server {
    let mut options = options;
    options
        .components
        .push(longshore_tests::guests::component(component));
    let server = Server::start(options).await;
    server.prepared().await;
    grant(&server, component, &json!({ "http": [rule] })).await;
    server
}

fn url(target: &Target) -> String {
    format!("http://{}/orders?from=here", target.address)
}

/// What a call of that tool answers, as text.
async fn says(client: &Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments).await;
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result}")).to_owned()
}
