//! A tool that reads a page of the web, from hosts that its operator names.

use longshore_guest::{Schema, http, tool};

/// How many bytes of a text are shown.
const SHOWN: usize = 4 * 1024;

longshore_guest::manifest!(
    r#"
    [[http]]
    host = "*"
    port = "*"

    [[http]]
    scheme = "http"
    host = "*"
    port = "*"
    "#
);

#[derive(serde::Serialize, Schema)]
struct Page {
    status: u16,
    content_type: Option<String>,
    bytes: usize,
    text: String,
}

/// Reads what is at a URL: its status, its type, and the beginning of its text.
#[tool(output, read_only)]
fn fetch(
    /** The URL, such as https://example.org/. */
    url: String,
) -> Result<Page, http::Error> {
    let response = http::get(url).send()?;
    let mut text = String::from_utf8_lossy(response.bytes()).into_owned();
    text.truncate(text.floor_char_boundary(SHOWN));
    Ok(Page {
        status: response.status(),
        content_type: response.header("content-type").map(str::to_owned),
        bytes: response.bytes().len(),
        text,
    })
}
