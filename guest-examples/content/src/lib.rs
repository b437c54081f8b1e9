//! A tool that answers with every kind of content.

use longshore_guest::bindings::longshore::tool::types::{Body, Embedded, Link, Media};
use longshore_guest::{Block, ToolResult, tool};
use serde_json::json;

/// One black pixel, as PNG.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\
    \x00\x00\x00\nIDATx\xdac`\x00\x00\x00\x02\x00\x01\xe5'\xde\xfc\x00\x00\x00\x00IEND\xaeB`\x82";
/// Four samples of silence, as WAV: 8 bits, 8 kHz, one channel.
const SILENCE: &[u8] =
    b"RIFF\x28\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\
    \x01\x00\x08\x00data\x04\x00\x00\x00\x80\x80\x80\x80";

/// Answers with one block of every kind, to show what clients make of them.
#[tool]
fn content() -> ToolResult {
    let annotated = json!({
        "type": "text",
        "text": "for the person only",
        "annotations": { "audience": ["user"], "priority": 0.5 },
    });
    let blocks = vec![
        Block::Text("plain text".to_owned()),
        Block::Image(Media {
            data: PIXEL.to_vec(),
            mime_type: "image/png".to_owned(),
        }),
        Block::Audio(Media {
            data: SILENCE.to_vec(),
            mime_type: "audio/wav".to_owned(),
        }),
        Block::ResourceLink(Link {
            uri: "https://example.org/report".to_owned(),
            name: "report".to_owned(),
            mime_type: Some("text/html".to_owned()),
            description: Some("A report to read.".to_owned()),
        }),
        Block::ResourceLink(Link {
            uri: "https://example.org/bare".to_owned(),
            name: "bare".to_owned(),
            mime_type: None,
            description: None,
        }),
        Block::Embedded(Embedded {
            uri: "example:note".to_owned(),
            mime_type: Some("text/plain".to_owned()),
            body: Body::Text("a note".to_owned()),
        }),
        Block::Embedded(Embedded {
            uri: "example:bytes".to_owned(),
            mime_type: None,
            body: Body::Bytes(vec![0, 1, 2, 255]),
        }),
        Block::Raw(annotated.to_string()),
    ];
    ToolResult::blocks(blocks).with_meta(&json!({ "example.org/kinds": 6 }))
}
