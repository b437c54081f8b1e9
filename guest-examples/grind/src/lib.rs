//! Work that looks at nothing, not even a clock: nothing can be recorded of it, so that whoever goes on begins again.

use std::hint::black_box;

use longshore_guest::tool;

/// Rounds in each unit, about a millisecond.
const ROUNDS: u64 = 1 << 20;

/// Computes a number of units without a pause, and says what came of it.
#[tool(task_mode = "always")]
fn grind(
    /// How many.
    units: u32,
) -> String {
    let mut state = 1_u64;
    for _ in 0..units {
        for round in 0..ROUNDS {
            state = black_box(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(round),
            );
        }
    }
    format!("{units} units: {state:016x}")
}
