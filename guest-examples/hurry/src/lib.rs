//! A tool that is of no use to anybody if it takes long, and says so in its descriptor.

use std::time::Duration;

use longshore_guest::{CallError, Context, tool};

/// What it may take, in milliseconds.
const DEADLINE_MS: u64 = 500;

/// Works for a number of milliseconds, if half a second is enough.
#[tool(task_mode = "always", deadline_ms = DEADLINE_MS)]
fn hurry(
    /** How long. */
    ms: u64,
    ctx: &Context,
) -> Result<String, CallError> {
    let left = ctx
        .time_left()
        .ok_or("a call of this tool has a deadline")?;
    if left > Duration::from_millis(DEADLINE_MS) {
        return Err(format!("{left:?} are left, more than was asked for").into());
    }
    ctx.sleep(Duration::from_millis(ms))?;
    Ok(format!("made it in {ms} ms"))
}
