//! What of WASI std does not let through as it is.

wit_bindgen::generate!({
    inline: "
        package example:limits;

        world imports {
            import wasi:cli/stdout@0.2.12;
            import wasi:random/random@0.2.12;
        }
    ",
    path: "../../wit",
    world: "example:limits/imports",
    generate_all,
});

/// One more handle, of the smallest thing there is.
pub(crate) fn handle() -> wasi::io::streams::OutputStream {
    wasi::cli::stdout::get_stdout()
}

/// That many random bytes.
pub(crate) fn random(bytes: u64) -> Vec<u8> {
    wasi::random::random::get_random_bytes(bytes)
}
