//! Calls that go on without their caller.

use std::time::Duration;

use longshore_guest::ask::{Answer, Question, Reply};
use longshore_guest::{Argument, CallError, Context, tool};

/// Works for a number of seconds.
#[tool(name = "slow_compute", task_mode = "always")]
fn slow_compute(
    /// How long.
    #[tool(minimum = 0)]
    seconds: f64,
    /// A word to know the call by.
    label: Option<String>,
    ctx: &Context,
) -> Result<String, CallError> {
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|error| format!("cannot compute for {seconds} s: {error}"))?;
    let label = label.unwrap_or_else(|| "unnamed".to_owned());
    ctx.status(format!("computing {label}"));
    ctx.sleep(time)?;
    Ok(format!("Computed {label} in {seconds} s"))
}

/// Works for a second and does not manage.
#[tool(name = "failing_job", task_mode = "always", requires("tasks"))]
fn failing_job(ctx: &Context) -> Result<(), CallError> {
    ctx.sleep(Duration::from_secs(1))?;
    Err("The job failed, as it always does".into())
}

/// Works for a moment and finds the request itself wrong.
#[tool(name = "protocol_error_job", task_mode = "always")]
fn protocol_error_job(ctx: &Context) -> Result<(), CallError> {
    /// JSON-RPC 2.0, internal error.
    const INTERNAL: i32 = -32603;

    ctx.sleep(Duration::from_millis(100))?;
    Err(CallError::rpc(INTERNAL, "The job broke, as it always does"))
}

#[derive(Argument)]
struct Confirmation {
    /// Whether to go ahead.
    confirm: bool,
}

/// Asks before it deletes a file; there is none.
#[tool(name = "confirm_delete", task_mode = "always")]
fn confirm_delete(
    /// The file.
    filename: String,
    ctx: &Context,
) -> Result<String, CallError> {
    Ok(match ctx.ask("confirm", &format!("Delete {filename}?"))? {
        Reply::Accepted(Confirmation { confirm: true }) => format!("Deleted {filename}"),
        Reply::Accepted(_) | Reply::Declined | Reply::Dismissed => format!("Kept {filename}"),
    })
}

#[derive(Argument)]
struct Named {
    /// A name.
    name: String,
    /// Whether it is right.
    confirm: Option<bool>,
}

/// Asks two questions at once.
#[tool(name = "multi_input", task_mode = "always")]
fn multi_input(ctx: &Context) -> Result<String, CallError> {
    let questions = [("first", "The first name?"), ("second", "The second name?")]
        .map(|(key, message)| Question::form_of::<Named>(message).with_key(key));
    let answers = ctx.ask_all(&questions, None)?;
    let names = answers
        .into_iter()
        .map(named)
        .collect::<Result<Vec<String>, CallError>>()?;
    Ok(format!("Names: {}", names.join(", ")))
}

fn named(answer: Answer) -> Result<String, CallError> {
    Ok(match answer.into_argument()? {
        Reply::Accepted(Named { name, confirm }) if confirm != Some(false) => name,
        Reply::Accepted(_) | Reply::Declined | Reply::Dismissed => "nobody".to_owned(),
    })
}
