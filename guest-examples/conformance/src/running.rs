//! What a call may do while its caller waits.

use std::time::Duration;

use longshore_guest::ask::Reply;
use longshore_guest::task::Level;
use longshore_guest::{Argument, CallError, Cancelled, Context, changes, tool};

/// Between two reports.
const PAUSE: Duration = Duration::from_millis(50);

/// Says three times how far it is.
#[tool(name = "test_tool_with_progress", task_mode = "never")]
fn tool_with_progress(ctx: &Context) -> Result<&'static str, Cancelled> {
    ctx.progress(0.0, 100.0);
    ctx.sleep(PAUSE)?;
    ctx.progress(50.0, 100.0);
    ctx.sleep(PAUSE)?;
    ctx.progress(100.0, 100.0);
    Ok("Tool with progress executed successfully")
}

/// Writes to the log, for those who asked for it.
#[tool(name = "test_logging_tool", task_mode = "never")]
fn logging_tool(ctx: &Context) -> &'static str {
    ctx.log(Level::Info, "Logging tool executed");
    "Logging tool executed successfully"
}

/// Needs a client whose model can be asked.
#[tool(name = "test_missing_capability", requires("sampling"))]
fn missing_capability() -> &'static str {
    "This client can be asked for sampling"
}

/// Tells the clients that listen to read the list of tools again.
#[tool(name = "test_trigger_tool_change", task_mode = "never")]
fn trigger_tool_change() -> &'static str {
    changes::tools_changed();
    "Told that the tools changed"
}

#[derive(Argument)]
struct Name {
    /// A name.
    name: String,
}

/// Asks for a name while its caller waits.
#[tool(name = "test_streaming_elicitation")]
fn streaming_elicitation(ctx: &Context) -> Result<String, CallError> {
    Ok(match ctx.ask("name", "What is your name?")? {
        Reply::Accepted(Name { name }) => format!("Hello, {name}!"),
        Reply::Declined | Reply::Dismissed => "Hello, whoever you are!".to_owned(),
    })
}
