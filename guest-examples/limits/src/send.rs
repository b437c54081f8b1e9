//! The same rules for what a tool sends.

use longshore_guest::http::{self, Pending};
use longshore_guest::tool;

/// Sends so many requests at once, each with so many bytes, and says how it went.
#[tool(task_mode = "always")]
fn send(
    /// Where to.
    url: String,
    /// How many.
    #[tool(default = 1, minimum = 1)]
    at_once: usize,
    /// How large each is.
    #[tool(default = 0)]
    bytes: usize,
) -> Result<String, http::Error> {
    let request = || http::post(&url).body(vec![b'b'; bytes]);
    let sent = (0..at_once)
        .map(|_| request().start())
        .collect::<Result<Vec<Pending>, _>>()?;
    for pending in sent {
        pending.wait()?;
    }
    Ok(format!("sent {at_once} times {bytes} bytes"))
}
