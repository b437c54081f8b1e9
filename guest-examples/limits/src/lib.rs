//! A tool that breaks a rule of the sandbox on demand: each ends in an error with a name, and nobody else notices.

mod reach;
mod send;
mod wasi;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use longshore_guest::ask::Question;
use longshore_guest::{Argument, CallError, Context, tool};
use serde_json::json;

/// One more than may be open at once.
const QUESTIONS: usize = 17;
/// One byte more than a result may hold.
const OUTPUT: usize = (1 << 20) + 1;
/// Far more than may be shown one by one.
const STATUSES: u32 = 10_000;

#[derive(Argument)]
#[tool(rename_all = "kebab-case")]
enum Rule {
    Recursion,
    Exit,
    Random,
    Loop,
    Stubborn,
    Trap,
    Status,
    Questions,
    Output,
    Cancelled,
    NestedStep,
}

/// Breaks one rule of the sandbox, to show what becomes of it.
#[tool]
fn limits(
    /** Which one. */
    what: Rule,
    ctx: &Context,
) -> Result<String, CallError> {
    match what {
        Rule::Recursion => Ok(format!("came back from {} calls", recurse(1))),
        Rule::Exit => std::process::exit(3),
        Rule::Random => Ok(format!("got {} bytes", wasi::random(u64::MAX).len())),
        Rule::Loop => run_for_ever(),
        Rule::Stubborn => {
            // From here on it has its grace after a cancel, and does not use it.
            let _ = ctx.is_cancelled();
            run_for_ever()
        }
        Rule::Trap => core::arch::wasm32::unreachable(),
        Rule::Status => {
            for n in 1..=STATUSES {
                ctx.status(format!("status {n}"));
            }
            Ok(format!("set {STATUSES} statuses"))
        }
        Rule::Questions => {
            let schema = json!({ "type": "object", "properties": {} });
            let question =
                |n| Question::form("One of many", &schema).with_key(format!("question-{n}"));
            let questions: Vec<_> = (1..=QUESTIONS).map(question).collect();
            let answers = ctx.ask_all(&questions, None)?;
            Ok(format!("got {} answers", answers.len()))
        }
        Rule::Output => Ok("x".repeat(OUTPUT)),
        Rule::Cancelled => Err(CallError::Cancelled),
        Rule::NestedStep => {
            ctx.step("outer", || ctx.step("inner", || ()));
            Ok("nested".to_owned())
        }
    }
}

/// Always so, which the compiler does not know.
static DEEPER: AtomicBool = AtomicBool::new(true);

/// Calls itself until the stack is full. What is left to do after each call keeps it from becoming a loop, and none of it
/// is kept in memory, whose part for a stack would be full before the host's.
#[inline(never)]
fn recurse(depth: u64) -> u64 {
    if DEEPER.load(Ordering::Relaxed) {
        recurse(depth + 1).wrapping_mul(3) ^ depth
    } else {
        depth
    }
}

fn run_for_ever() -> ! {
    loop {
        black_box(());
    }
}
