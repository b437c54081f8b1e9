//! A tool that looks at all that differs from one call to the next: clocks, random numbers, the order of a hash map,
//! what a person answers. All of it is in the result, so that a call which went on in another process, and saw
//! anything else there, cannot hide it.

mod wasi;

use std::collections::HashSet;
use std::time::{Duration, Instant, SystemTime};

use longshore_guest::ask::Reply;
use longshore_guest::{Argument, CallError, Context, tool};
use serde_json::json;

/// How long it waits, by each of the two ways to wait.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Argument)]
struct Bet {
    /// The side that will lie on top.
    #[tool(minimum = 1, maximum = 6)]
    bet: u8,
}

#[derive(Argument)]
struct Again {
    #[tool(title = "Roll again")]
    again: bool,
}

/// Rolls dice: asks for a bet and whether to roll twice, and tells all that it saw on the way.
#[tool(task_mode = "always")]
fn dice(ctx: &Context) -> Result<String, CallError> {
    println!("the dice are on the table");
    eprintln!("nobody has bet yet");
    let (start, wall_before) = (Instant::now(), wall_ms()?);
    let random = wasi::random();
    // The order of a hash map differs from one to the next, and so does what is made of it.
    let sides: Vec<u8> = HashSet::from([1, 2, 3, 4, 5, 6]).into_iter().collect();

    ctx.status("waiting for a bet");
    let bet = match ctx.ask("bet", "Which side will lie on top?")? {
        Reply::Accepted(Bet { bet }) => Some(bet),
        Reply::Declined | Reply::Dismissed => None,
    };
    ctx.status("rolling");
    ctx.sleep(PAUSE)?;
    std::thread::sleep(PAUSE);
    let mut rolls = vec![top(&sides, random)];
    println!("rolled {}", rolls[0]);
    let steady_between = millis(start.elapsed());

    ctx.status("waiting to hear whether to go on");
    let again = match ctx.ask("again", "Once more?")? {
        Reply::Accepted(Again { again }) => Some(again),
        Reply::Declined | Reply::Dismissed => None,
    };
    if again == Some(true) {
        rolls.push(top(&sides, wasi::random()));
        println!("rolled {}", rolls[1]);
    }
    let seen = json!({
        "bet": bet,
        "again": again,
        "rolls": rolls,
        "sides": sides,
        "random": format!("{random:016x}"),
        "wallMs": [wall_before, wall_ms()?],
        "steadyMs": [steady_between, millis(start.elapsed())],
    });
    Ok(seen.to_string())
}

/// The side that lies on top.
fn top(sides: &[u8], random: u64) -> u8 {
    sides[(random % sides.len() as u64) as usize]
}

fn wall_ms() -> Result<u64, String> {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map(millis)
        .map_err(|error| format!("the clock stands before 1970: {error}"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).expect("a time that fits")
}
