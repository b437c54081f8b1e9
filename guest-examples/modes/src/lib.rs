//! The same work under each task mode: what differs is how the caller gets the result.

use std::time::Duration;

use longshore_guest::{CallError, Context, tool};

/// Works for a while, to show when a call becomes a task.
#[tool(task_mode = "never")]
fn modes_never(
    /** Milliseconds of work. */
    ms: u64,
    ctx: &Context,
) -> Result<String, CallError> {
    work("never", ms, ctx)
}

/// Works for a while, to show when a call becomes a task.
#[tool(task_mode = "on-detach")]
fn modes_on_detach(
    /// Milliseconds of work.
    ms: u64,
    /// Whether nobody need wait.
    #[tool(default)]
    detach: bool,
    ctx: &Context,
) -> Result<String, CallError> {
    if detach {
        ctx.detach();
    }
    work("on-detach", ms, ctx)
}

/// Works for a while, to show when a call becomes a task.
#[tool(task_mode = "auto")]
fn modes_auto(
    /// Milliseconds of work.
    ms: u64,
    /// Whether nobody need wait.
    #[tool(default)]
    detach: bool,
    ctx: &Context,
) -> Result<String, CallError> {
    if detach {
        ctx.detach();
    }
    work("auto", ms, ctx)
}

/// Works for a while, to show when a call becomes a task.
#[tool(task_mode = "always")]
fn modes_always(
    /** Milliseconds of work. */
    ms: u64,
    ctx: &Context,
) -> Result<String, CallError> {
    work("always", ms, ctx)
}

fn work(mode: &str, ms: u64, ctx: &Context) -> Result<String, CallError> {
    ctx.sleep(Duration::from_millis(ms))?;
    Ok(format!("{mode} after {ms} ms"))
}
