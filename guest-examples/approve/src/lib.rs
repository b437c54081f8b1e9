//! A tool that asks before it does something that cannot be undone.

use longshore_guest::ask::Reply;
use longshore_guest::task::Level;
use longshore_guest::{Argument, CallError, Context, tool};

#[derive(Argument)]
struct Decision {
    #[tool(title = "Go ahead")]
    approve: bool,
}

/// Does something once the person has approved it; here it only writes to its log.
#[tool(task_mode = "always")]
fn approve(
    /** What is to be done. */
    what: String,
    ctx: &Context,
) -> Result<String, CallError> {
    match ctx.ask("approve", &format!("Do this? {what}"))? {
        Reply::Accepted(Decision { approve: true }) => {
            ctx.log(Level::Notice, format!("doing {what}"));
            Ok(format!("done: {what}"))
        }
        Reply::Accepted(_) | Reply::Declined | Reply::Dismissed => {
            Ok(format!("not approved: {what}"))
        }
    }
}
