//! The same rules by number: how far a tool gets.

use std::time::Duration;

use longshore_guest::ask::{AskError, Question, Reply};
use longshore_guest::task::Level;
use longshore_guest::{Argument, CallError, Context, artifacts, tool, values};
use serde_json::json;

use crate::wasi;

const PAGE: usize = 64 * 1024;

#[derive(Argument)]
#[tool(rename_all = "kebab-case")]
enum Good {
    Memory,
    Print,
    Handles,
    Random,
    Log,
    Status,
    Questions,
    QuestionsInLife,
    Question,
    Answer,
    Step,
    Scratch,
    Value,
    Values,
    ValuesBytes,
    Artifact,
    Artifacts,
    ArtifactsBytes,
}

#[derive(Argument)]
struct Said {
    text: String,
}

/// Takes so much of something and not more: bytes, or how many.
#[tool(task_mode = "always")]
fn reach(
    /** Of what. */
    what: Good,
    /** How much. */
    amount: usize,
    ctx: &Context,
) -> Result<String, CallError> {
    match what {
        Good::Memory => grow(amount),
        Good::Print => {
            // The last sign ends the line, and all of it is put out at once.
            println!("{}", "p".repeat(amount.saturating_sub(1)));
            Ok(format!("printed {amount} bytes"))
        }
        Good::Handles => {
            let held: Vec<_> = (0..amount).map(|_| wasi::handle()).collect();
            Ok(format!("held {} handles", held.len()))
        }
        Good::Random => Ok(format!("got {} bytes", wasi::random(amount as u64).len())),
        Good::Scratch => match std::fs::write("/scratch/file", vec![0; amount]) {
            Ok(()) => Ok(format!("kept {amount} bytes")),
            Err(error) => Err(format!("no room for {amount} bytes: {error}").into()),
        },
        Good::Log => {
            ctx.log(Level::Info, "l".repeat(amount));
            Ok(format!("logged {amount} bytes"))
        }
        Good::Status => {
            ctx.status("s".repeat(amount));
            Ok(format!("said {amount} bytes"))
        }
        Good::Questions => at_once(amount, ctx),
        Good::QuestionsInLife => {
            for n in 1..=amount {
                ask(ctx, n, form("One of many", 0))?;
            }
            Ok(format!("asked {amount} times"))
        }
        Good::Question => {
            ask(ctx, 1, form("?", amount))?;
            Ok(format!("asked with {amount} bytes"))
        }
        Good::Answer => Ok(match ctx.ask::<Said>("said", "Say something")? {
            Reply::Accepted(Said { text }) => format!("heard {} bytes", text.len()),
            Reply::Declined | Reply::Dismissed => "heard nothing".to_owned(),
        }),
        Good::Step => {
            // Its JSON form has two quotes more.
            let value = ctx.step("large", || "v".repeat(amount.saturating_sub(2)));
            Ok(format!("kept {} bytes", value.len() + 2))
        }
        Good::Value => kept(values::set("v", vec![0; amount])),
        Good::Values => kept((0..amount).try_for_each(|n| values::set(&format!("{n}"), ""))),
        Good::ValuesBytes => kept(parts(amount).try_for_each(|(n, bytes)| {
            // A key counts like its value.
            let key = format!("{n:02}");
            values::set(&key, vec![0; bytes.saturating_sub(key.len())])
        })),
        Good::Artifact => kept(leave(0, amount)),
        Good::Artifacts => kept((0..amount).try_for_each(|n| leave(n, 1))),
        Good::ArtifactsBytes => kept(parts(amount).try_for_each(|(n, bytes)| leave(n, bytes))),
    }
}

/// So many bytes in parts that are allowed one by one, the last of which has more than a few.
fn parts(bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    const PART: usize = 100 * 1024;
    let whole = (bytes / PART).saturating_sub(1);
    let rest = bytes - whole * PART;
    (0..whole).map(|n| (n, PART)).chain([(whole, rest)])
}

fn leave(n: usize, bytes: usize) -> Result<(), artifacts::Error> {
    artifacts::put(
        &format!("part-{n}"),
        "application/octet-stream",
        vec![0; bytes],
    )
    .map(drop)
}

fn kept(done: Result<(), values::Error>) -> Result<String, CallError> {
    match done {
        Ok(()) => Ok("kept".to_owned()),
        Err(error) => Err(format!("no room: {error}").into()),
    }
}

/// Has so many bytes of memory in all, or is told no.
fn grow(bytes: usize) -> Result<String, CallError> {
    let pages = bytes.div_ceil(PAGE);
    let more = pages.saturating_sub(core::arch::wasm32::memory_size::<0>());
    if core::arch::wasm32::memory_grow::<0>(more) == usize::MAX {
        return Err(CallError::tool(format!("no {pages} pages")));
    }
    Ok(format!("has {pages} pages"))
}

/// A form whose message and schema have so many bytes in all, or as few as it takes.
fn form(message: &str, bytes: usize) -> Question {
    let schema = |filling: usize| json!({ "type": "object", "properties": { "p": { "type": "string", "description": "d".repeat(filling) } } });
    let least = schema(0).to_string().len() + message.len();
    Question::form(message, &schema(bytes.saturating_sub(least)))
}

/// Asks and does not wait. After a refusal for a limit it asks once more, which no tool should.
fn ask(ctx: &Context, n: usize, question: Question) -> Result<(), CallError> {
    let key = format!("question-{n}");
    let asked = || match ctx.ask_one(&key, &question, Some(Duration::from_millis(1))) {
        Ok(_) | Err(AskError::TimedOut) => Ok(()),
        Err(error) => Err(error),
    };
    match asked() {
        Err(AskError::Limit(_)) => Ok(asked()?),
        other => Ok(other?),
    }
}

fn at_once(count: usize, ctx: &Context) -> Result<String, CallError> {
    let questions: Vec<_> = (1..=count)
        .map(|n| form("One of many", 0).with_key(format!("question-{n}")))
        .collect();
    let asked = || match ctx.ask_all(&questions, Some(Duration::from_millis(1))) {
        Ok(_) | Err(AskError::TimedOut) => Ok(()),
        Err(error) => Err(error),
    };
    match asked() {
        Err(AskError::Limit(_)) => asked()?,
        other => other?,
    }
    Ok(format!("asked {count} at once"))
}
