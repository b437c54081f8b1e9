//! A tool of which there is one in each language, alike in all that a client sees: it says how far it is, asks a
//! question, heeds a cancel, refuses an argument, and answers with data.

use std::time::Duration;

use longshore_guest::ask::{AskError, Reply};
use longshore_guest::{Argument, CallError, Context, Schema, tool};

#[derive(Argument)]
struct Opinion {
    /// From 1 to 5.
    #[tool(minimum = 1, maximum = 5)]
    mark: u8,
}

#[derive(serde::Serialize, Schema)]
struct Report {
    topic: String,
    rounds: u32,
    /// A letter of the topic for each look.
    seen: String,
    /// What became of the question: answered, declined or unsupported.
    answer: String,
    mark: Option<u8>,
}

/// Looks at a topic in rounds, and asks the person for a mark.
#[tool(task_mode = "always", output)]
fn survey(
    /** What it is about. */
    topic: String,
    /** How many looks to take. */
    #[tool(default = 3, minimum = 1, maximum = 1000)]
    rounds: u32,
    /** Milliseconds between two looks. */
    #[tool(default = 0)]
    pause: u32,
    ctx: &Context,
) -> Result<Report, CallError> {
    let topic = named(topic)?;
    let mut seen = String::new();
    for round in 1..=rounds {
        ctx.status(format!("round {round} of {rounds}"));
        ctx.progress(round.into(), rounds.into());
        seen.push(ctx.step("look", || look(&topic, round)));
        ctx.sleep(Duration::from_millis(pause.into()))?;
    }
    let (answer, mark) = match ctx.ask("mark", &format!("What do you think of {topic}?")) {
        Ok(Reply::Accepted(Opinion { mark })) => ("answered", Some(mark)),
        Ok(Reply::Declined | Reply::Dismissed) => ("declined", None),
        Err(AskError::Unsupported(_)) => ("unsupported", None),
        Err(error) => return Err(error.into()),
    };
    Ok(Report {
        topic,
        rounds,
        seen,
        answer: answer.to_owned(),
        mark,
    })
}

/// A look is done once, even if the server dies.
fn look(topic: &str, round: u32) -> char {
    let mut letters = topic.chars().cycle();
    letters
        .nth(round as usize - 1)
        .expect("a topic has letters")
}

fn named(topic: String) -> Result<String, String> {
    if topic.is_empty() {
        return Err("a survey needs a topic".to_owned());
    }
    Ok(topic)
}
