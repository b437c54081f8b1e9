//! Work that costs something, in pieces that are not done again once they are done.

use longshore_guest::task::Level;
use longshore_guest::{Context, Schema, tool};

/// How far one step looks beyond the one before it.
const REACH: u32 = 1000;

#[derive(serde::Serialize, Schema)]
struct Report {
    /// How many primes there are below 1000, below 2000, and so on: one for each step.
    primes: Vec<u32>,
}

/// Counts the primes below each of the first thousands, a step for each.
#[tool(task_mode = "always", output)]
fn steps(
    /// How many thousands.
    #[tool(maximum = 1000)]
    n: u32,
    ctx: &Context,
) -> Report {
    let mut report = Report { primes: Vec::new() };
    for step in 1..=n {
        let primes = ctx.step(&format!("below {}", step * REACH), || {
            ctx.status(format!("step {step} of {n}"));
            let primes = (2..step * REACH).filter(|number| is_prime(*number)).count();
            ctx.log(Level::Info, format!("step {step} found {primes}"));
            u32::try_from(primes).expect("fewer than the numbers that were looked at")
        });
        report.primes.push(primes);
    }
    report
}

fn is_prime(number: u32) -> bool {
    (2..)
        .take_while(|factor| factor * factor <= number)
        .all(|factor| number % factor != 0)
}
