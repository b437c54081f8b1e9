//! One function of WASI that std passes only small numbers to.

wit_bindgen::generate!({
    inline: "
        package example:limits;

        world imports {
            import wasi:random/random@0.2.12;
        }
    ",
    path: "../../wit",
    world: "example:limits/imports",
    generate_all,
});

/// That many random bytes.
pub(crate) fn random(bytes: u64) -> Vec<u8> {
    wasi::random::random::get_random_bytes(bytes)
}
