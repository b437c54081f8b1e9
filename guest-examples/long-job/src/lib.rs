//! A job of many steps: it says where it is, and stops when it is told to.

use std::time::Duration;

use longshore_guest::{CallError, Context, tool};

/// Works through a number of steps, waiting in each.
#[tool(task_mode = "always")]
fn long_job(
    /// How many.
    #[tool(minimum = 1)]
    steps: u32,
    /// Milliseconds in each.
    #[tool(name = "step-ms")]
    step_ms: u64,
    ctx: &Context,
) -> Result<String, CallError> {
    for step in 1..=steps {
        ctx.status(format!("step {step} of {steps}"));
        ctx.progress(step.into(), steps.into());
        ctx.check_cancelled()?;
        ctx.sleep(Duration::from_millis(step_ms))?;
    }
    Ok(format!("done: {steps} steps"))
}
