//! A long count that saves how far it is: after the death of its process it goes on from there.

use longshore_guest::{Context, tool};
use serde::{Deserialize, Serialize};

/// How far one unit reaches beyond the one before it.
const REACH: u32 = 1000;

/// How far the count is, which is all that a restart needs to know.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Counted {
    units: u32,
    primes: u32,
}

/// Counts the primes below a number of thousands, a unit for each.
#[tool(task_mode = "always", restart = count_on)]
fn resumable(
    /// How many thousands.
    #[tool(maximum = 1000)]
    n: u32,
    ctx: &Context,
) -> String {
    count_on(Counted::default(), n, ctx)
}

fn count_on(entered: Counted, n: u32, ctx: &Context) -> String {
    let mut counted = entered;
    if counted.units == n {
        return format!("{} primes in {} units", counted.primes, counted.units);
    }
    let (from, to) = (counted.units * REACH, (counted.units + 1) * REACH);
    counted.primes += (from.max(2)..to)
        .map(|number| u32::from(is_prime(number)))
        .sum::<u32>();
    counted.units += 1;
    ctx.status(format!("unit {} of {n}", counted.units));
    ctx.progress(counted.units.into(), n.into());
    // It goes on in another instance, which begins this function with what is saved here.
    ctx.checkpoint(&counted)
}

fn is_prime(number: u32) -> bool {
    (2..)
        .take_while(|factor| factor * factor <= number)
        .all(|factor| number % factor != 0)
}
