//! A tool that says at once what it sees on its clock, and computes in between without a word to anybody: whatever it
//! has said stands in its result too, so that a call which went on in another process, and saw anything else there,
//! cannot hide it.

use std::time::Instant;

use longshore_guest::task::Level;
use longshore_guest::{Context, tool};
use serde_json::json;

/// How far the numbers go that it looks through between two looks: some milliseconds of work.
const REACH: u32 = 12_000;

/// Looks at its clock twice each time, and says what it saw.
#[tool(task_mode = "always")]
fn looks(
    /// How many times.
    #[tool(maximum = 1000)]
    n: u32,
    ctx: &Context,
) -> String {
    let start = Instant::now();
    let (mut looks, mut primes) = (Vec::new(), 0);
    for look in 1..=n {
        // The second look mostly sees what the first one saw, and that too is something that was seen.
        let seen = [start.elapsed().as_millis(), start.elapsed().as_millis()];
        let said = format!("look {look} of {n} at {} and {} ms", seen[0], seen[1]);
        ctx.status(&said);
        ctx.log(Level::Info, &said);
        looks.push(said);
        primes = (2..REACH + look).filter(|number| is_prime(*number)).count();
    }
    json!({ "looks": looks, "primes": primes }).to_string()
}

fn is_prime(number: u32) -> bool {
    (2..)
        .take_while(|factor| factor * factor <= number)
        .all(|factor| number % factor != 0)
}
