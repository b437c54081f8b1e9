//! A tool that takes memory until it has enough or is told no.

use longshore_guest::tool;

const MIB: usize = 1 << 20;

/// Takes a number of mebibytes of memory and writes to all of it.
#[tool]
fn hog(
    /** How many. */
    mib: u32,
) -> Result<String, String> {
    let mut held: Vec<Vec<u8>> = Vec::new();
    for _ in 0..mib {
        let mut part = Vec::new();
        if held.try_reserve(1).is_err() || part.try_reserve_exact(MIB).is_err() {
            return Err(format!("the sandbox gave only {} MiB", held.len()));
        }
        // Written to, and with something other than the zeros that it holds already.
        part.resize(MIB, 1);
        held.push(part);
    }
    let bytes: usize = held.iter().flatten().map(|byte| usize::from(*byte)).sum();
    Ok(format!("held {} MiB", bytes / MIB))
}
