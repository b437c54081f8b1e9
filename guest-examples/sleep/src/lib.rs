//! A tool that only waits: it uses no CPU, and a cancel wakes it.

use std::time::Duration;

use longshore_guest::{CallError, Context, tool};

/// Waits for a number of seconds.
#[tool(task_mode = "always")]
fn sleep(
    /// How long.
    #[tool(minimum = 0)]
    seconds: f64,
    ctx: &Context,
) -> Result<&'static str, CallError> {
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|error| format!("cannot sleep for {seconds} s: {error}"))?;
    ctx.sleep(time)?;
    Ok("slept")
}
