//! Random numbers, which std has only for its hash maps.

wit_bindgen::generate!({
    inline: "
        package example:dice;

        world imports {
            import wasi:random/random@0.2.12;
        }
    ",
    path: "../../wit",
    world: "example:dice/imports",
    generate_all,
});

/// A random number.
pub(crate) fn random() -> u64 {
    wasi::random::random::get_random_u64()
}
