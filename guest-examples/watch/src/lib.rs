//! A tool that waits until something elsewhere is as it should be, for days if need be, and takes nothing meanwhile.

use std::time::Duration;

use longshore_guest::wait::{self, Poll};
use longshore_guest::{CallError, Context, Schema, tool};
use serde_json::Value;

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

/// How much of a text is shown.
const SHOWN: usize = 4 * 1024;

#[derive(serde::Serialize, Schema)]
struct Seen {
    status: u16,
    text: String,
}

/// Waits until a page has a value at a JSON pointer, or, without one, until it changes.
#[tool(output, read_only)]
fn watch(
    /** The URL, such as https://ci.example.org/job/7. */
    url: String,
    /** Where to look in its JSON, such as /state. */
    pointer: Option<String>,
    /** The value to wait for there, as JSON; without it, any other than at first. */
    equals: Option<String>,
    /** Milliseconds from one look to the next. */
    #[tool(default = 60000, minimum = 1)]
    every_ms: u64,
    /** Milliseconds after which it gives up. */
    give_up_ms: Option<u64>,
    ctx: &Context,
) -> Result<Seen, CallError> {
    ctx.status(&format!("watching {url}"));
    let mut poll = Poll::get(url).every(Duration::from_millis(every_ms));
    if let Some(ms) = give_up_ms {
        poll = poll.give_up_after(Duration::from_millis(ms));
    }
    let seen = match (pointer, equals) {
        (Some(pointer), Some(equals)) => {
            let value: Value = serde_json::from_str(&equals)?;
            poll.until_equals(pointer, [value])
        }
        (Some(pointer), None) => poll.until_changed_at(pointer),
        (None, None) => poll.until_changed(),
        (None, Some(_)) => return Err("`equals` needs a `pointer`".into()),
    };
    let seen = match seen {
        Ok(seen) => seen,
        Err(wait::Error::GaveUp) => return Err("it did not come in time".into()),
        Err(error) => return Err(error.into()),
    };
    let mut text = seen.text().into_owned();
    text.truncate(text.floor_char_boundary(SHOWN));
    Ok(Seen {
        status: seen.status(),
        text,
    })
}
