//! A tool that orders things one after the other, each of them once, whatever happens to the server meanwhile.

use longshore_guest::{CallError, Context, Schema, http, tool};
use serde_json::json;

longshore_guest::manifest!(
    r#"
    [[http]]
    host = "*"
    port = "*"
    methods = ["POST"]

    [[http]]
    scheme = "http"
    host = "*"
    port = "*"
    methods = ["POST"]
    "#
);

#[derive(Default, serde::Serialize, Schema)]
struct Orders {
    /// Those that were taken.
    accepted: u32,
    /// Those that were not.
    refused: u32,
    /// Those of which nobody knows.
    unknown: u32,
}

/// Orders so many things at a shop: one request each, and none twice.
#[tool(output, task_mode = "always")]
fn order(
    /// How many.
    #[tool(minimum = 1, maximum = 1000)]
    n: u32,
    /// The shop's URL, which takes orders by POST.
    url: String,
    /// How often each is tried, where it is known that it was not sent.
    #[tool(default = 1, minimum = 1, maximum = 10)]
    tries: u32,
    ctx: &Context,
) -> Result<Orders, CallError> {
    let mut orders = Orders::default();
    for thing in 1..=n {
        let mut left = tries;
        loop {
            left -= 1;
            match http::post(&url).json(&json!({ "thing": thing })).send() {
                Ok(response) if response.is_ok() => orders.accepted += 1,
                Ok(_) => orders.refused += 1,
                // Once more would perhaps be twice.
                Err(error) if error.may_have_happened() => orders.unknown += 1,
                Err(error) if left == 0 => return Err(error.into()),
                Err(_) => continue,
            }
            break;
        }
        ctx.progress(f64::from(thing), f64::from(n));
    }
    Ok(orders)
}
