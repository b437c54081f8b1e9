//! A tool that makes something, and takes it back if its call is cancelled before somebody has decided to keep it.

use longshore_guest::ask::{AskError, Reply};
use longshore_guest::task::Level;
use longshore_guest::{Argument, CallError, Context, tool};

#[derive(Argument)]
struct Decision {
    #[tool(title = "Keep it")]
    keep: bool,
}

/// Makes something, here only a line in its log, and asks whether to keep it.
#[tool(task_mode = "always")]
fn cleanup(ctx: &Context) -> Result<&'static str, CallError> {
    ctx.log(Level::Notice, "made");
    match ctx.ask("keep", "Keep what was made?") {
        Ok(Reply::Accepted(Decision { keep: true })) => Ok("kept"),
        Ok(Reply::Accepted(_) | Reply::Declined | Reply::Dismissed) => {
            ctx.log(Level::Notice, "removed");
            Ok("removed")
        }
        Err(AskError::CallCancelled) => {
            ctx.log(Level::Notice, "removed");
            Err(CallError::Cancelled)
        }
        Err(error) => Err(error.into()),
    }
}
