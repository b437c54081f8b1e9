//! One tool for each kind of content.

use longshore_guest::bindings::longshore::tool::types::{Body, Embedded, Media};
use longshore_guest::{Block, tool};

/// One black pixel, as PNG.
pub(crate) const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\
    \x00\x00\x00\nIDATx\xdac`\x00\x00\x00\x02\x00\x01\xe5'\xde\xfc\x00\x00\x00\x00IEND\xaeB`\x82";
/// Four samples of silence, as WAV: 8 bits, 8 kHz, one channel.
const SILENCE: &[u8] =
    b"RIFF\x28\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00\
    \x01\x00\x08\x00data\x04\x00\x00\x00\x80\x80\x80\x80";

/// Greets somebody by name, at once.
#[tool(task_mode = "never", read_only)]
fn greet(
    /** Who is greeted. */
    name: String,
) -> String {
    format!("Hello, {name}!")
}

/// Answers with one text.
#[tool(name = "test_simple_text")]
fn simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Answers with one image.
#[tool(name = "test_image_content")]
fn image_content() -> Vec<Block> {
    vec![pixel()]
}

/// Answers with one sound.
#[tool(name = "test_audio_content")]
fn audio_content() -> Vec<Block> {
    vec![Block::Audio(Media {
        data: SILENCE.to_vec(),
        mime_type: "audio/wav".to_owned(),
    })]
}

/// Answers with one resource in full.
#[tool(name = "test_embedded_resource")]
fn embedded_resource() -> Vec<Block> {
    vec![embedded(
        "test://embedded-resource",
        "text/plain",
        "This is an embedded resource content.",
    )]
}

/// Answers with a text, an image and a resource.
#[tool(name = "test_multiple_content_types")]
fn multiple_content_types() -> Vec<Block> {
    vec![
        Block::Text("Multiple content types test:".to_owned()),
        pixel(),
        embedded(
            "test://mixed-content-resource",
            "application/json",
            r#"{"test":"data","value":123}"#,
        ),
    ]
}

/// Answers with an error.
#[tool(name = "test_error_handling")]
fn error_handling() -> Result<(), &'static str> {
    Err("This tool intentionally returns an error for testing")
}

/// Answers with a value that clients repeat in a header of the request.
#[tool(name = "test_custom_header")]
fn custom_header(
    /// What is repeated.
    #[tool(header = "Value")]
    value: Option<String>,
) -> String {
    format!("value: {}", value.unwrap_or_default())
}

pub(crate) fn pixel() -> Block {
    Block::Image(Media {
        data: PIXEL.to_vec(),
        mime_type: "image/png".to_owned(),
    })
}

fn embedded(uri: &str, mime_type: &str, text: &str) -> Block {
    Block::Embedded(Embedded {
        uri: uri.to_owned(),
        mime_type: Some(mime_type.to_owned()),
        body: Body::Text(text.to_owned()),
    })
}
