//! A tool that looks at nothing else: what a host must be able to stop.

use std::hint::black_box;
use std::time::{Duration, Instant};

use longshore_guest::tool;

/// Rounds between two looks at the clock, about a millisecond, so that nearly all the time is the guest's own.
const ROUNDS: u64 = 1 << 20;

/// Computes without a pause for a number of seconds, whatever anybody says.
#[tool(task_mode = "always")]
fn spin(
    /// How long.
    #[tool(minimum = 0)]
    seconds: f64,
) -> Result<String, String> {
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|error| format!("cannot spin for {seconds} s: {error}"))?;
    let start = Instant::now();
    let mut state = 1_u64;
    while start.elapsed() < time {
        for round in 0..ROUNDS {
            state = black_box(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(round),
            );
        }
    }
    Ok(format!("spun for {seconds} s"))
}
