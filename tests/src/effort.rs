//! How much a test does: as much as fits between two changes, or more when somebody asks for it.

/// How often a test does its work: `usual` times, unless `LONGSHORE_TEST_ROUNDS` says otherwise.
///
/// # Panics
/// If the variable is no number.
#[must_use]
pub fn rounds(usual: usize) -> usize {
    std::env::var("LONGSHORE_TEST_ROUNDS").map_or(usual, |text| {
        text.parse()
            .expect("LONGSHORE_TEST_ROUNDS is a number of rounds")
    })
}
