//! What there is to read and to fill in.

use longshore_tests::pipes::data;
use longshore_tests::process::{Options, Server};
use rmcp::model::{
    ClientCapabilities, GetPromptRequestParams, ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, Peer};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};

use super::super::cases::{self, LIBRARY};
use super::piped::Piped;
use super::{Agreeable, connect, connect_by};

async fn read(
    peer: &Peer<RoleClient>,
    uri: &str,
) -> Result<(String, Option<String>, String), ServiceError> {
    let result = peer
        .read_resource(ReadResourceRequestParams::new(uri))
        .await?;
    let [
        ResourceContents::TextResourceContents {
            uri,
            mime_type,
            text,
            ..
        },
    ] = result.contents.as_slice()
    else {
        panic!("one text, not {result:?}")
    };
    Ok((uri.clone(), mime_type.clone(), text.clone()))
}

/// As the scripts of other clients print it.
async fn library(peer: &Peer<RoleClient>) -> Value {
    let resources = peer.list_all_resources().await.expect("resources");
    let templates = peer.list_all_resource_templates().await.expect("templates");
    let prompts = peer.list_all_prompts().await.expect("prompts");
    let (uri, mime_type, listed) = read(peer, "recipe:all").await.expect("it is there");
    let (_, _, dish) = read(peer, "recipe:omelette").await.expect("it is there");
    let missing = match read(peer, "recipe:gruel").await {
        Err(ServiceError::McpError(error)) => error.code.0,
        other => panic!("a recipe of gruel: {other:?}"),
    };
    let arguments = json!({ "dish": "omelette" });
    let arguments = arguments.as_object().expect("an object").clone();
    let params = GetPromptRequestParams::new("plan-meal").with_arguments(arguments);
    let prompt = peer.get_prompt(params).await.expect("it is filled in");
    let messages: Vec<Value> = prompt
        .messages
        .iter()
        .map(|message| {
            let text = message.content.as_text().expect("a text");
            json!([message.role, text.text])
        })
        .collect();
    let of_prompt = peer.complete_prompt_simple("plan-meal", "dish", "p").await;
    let of_template = peer
        .complete_resource_simple("recipe:{dish}", "dish", "o")
        .await;
    json!({
        "what": "library",
        "resources": resources.iter().map(|resource| &resource.uri).collect::<Vec<_>>(),
        "templates": templates.iter().map(|template| &template.uri_template).collect::<Vec<_>>(),
        "prompts": prompts.iter().map(|prompt| &prompt.name).collect::<Vec<_>>(),
        "read": [uri, mime_type, listed, dish],
        "missing": missing,
        "prompt": messages,
        "proposed": [of_prompt.expect("proposals"), of_template.expect("proposals")],
    })
}

#[tokio::test]
async fn reads_and_fills_in_over_http() {
    let server = Server::start(Options::with_guests(&[LIBRARY])).await;
    let client = connect(&server, ClientCapabilities::default()).await;
    assert_eq!(library(client.peer()).await, cases::library("2026-07-28"));
    let transport =
        StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", server.address));
    let client = Agreeable
        .serve_with_lifecycle(transport, ClientLifecycleMode::Initialize)
        .await
        .expect("a session is opened");
    assert_eq!(library(client.peer()).await, cases::library("2025-11-25"));
}

#[tokio::test]
async fn reads_and_fills_in_over_pipes() {
    let data = data();
    let start = || Piped::start(data.path(), &[LIBRARY]);
    let client = connect_by(start(), ClientCapabilities::default()).await;
    assert_eq!(library(client.peer()).await, cases::library("2026-07-28"));
    client.cancel().await.expect("the client ends");
    let client = Agreeable
        .serve_with_lifecycle(start(), ClientLifecycleMode::Initialize)
        .await
        .expect("a session is opened");
    assert_eq!(library(client.peer()).await, cases::library("2025-11-25"));
    client.cancel().await.expect("the client ends");
}
