//! A number that outlives every call: what is kept by key, and changed once however often the server dies.

use std::time::Duration;

use longshore_guest::{CallError, Context, tool, values};

/// Adds to a number that is kept between calls, and says what it is now. A task, since that is what goes on where it
/// stood when a server dies.
#[tool(task_mode = "always")]
fn counter(
    /// Which number.
    #[tool(default = "count")]
    key: String,
    /// How often one is added.
    #[tool(default = 1, minimum = 1, maximum = 1000)]
    times: u32,
    /// Milliseconds before each but the first.
    #[tool(default = 0)]
    pause_ms: u32,
    ctx: &Context,
) -> Result<String, CallError> {
    let mut count = 0;
    for time in 0..times {
        if time > 0 && pause_ms > 0 {
            ctx.sleep(Duration::from_millis(pause_ms.into()))?;
        }
        count = values::increment(&key, 1)?;
    }
    Ok(count.to_string())
}
